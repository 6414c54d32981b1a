//! The commands `steward schedules plan|apply|list|adopt`.
//!
//! A plan is always printed before it is applied. The registrar plans and applies; this module renders tables and sets
//! the exit code. The code is 3 if the registrar refuses deletions above the budget, or to touch the schedules of
//! another vault.

mod adopt;

use crate::cli;
use crate::cli::output::{self, CommandExit, CommandOutput, escape_text};
use crate::cli::style::TextStyle;
use crate::cli::table::create_table;
use crate::config::StewardConfig;
use crate::registrar::desired;
use crate::registrar::{SchedulePlan, ScheduleRegistrar, ScheduleStepVerb};
use crate::temporal;
use chrono::Utc;
use serde_json::json;
use std::collections::BTreeMap;
use steward_domain::record::plain_text::count_noun;
use steward_server::views::schedules::ScheduleRow;
use steward_vault::files::identity::VaultIdentity;

/// The most rows of a plan or a list that are printed.
const MOST_ROWS: usize = 20;

pub(crate) async fn run(
    config: &StewardConfig,
    command: &cli::SchedulesCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    if let cli::SchedulesCommand::Adopt { yes } = command {
        return adopt::run(config, *yes, out).await;
    }
    let client = temporal::connect_client(config, Vec::new()).await?;
    let (root, index) = super::open_vault(config).await?;
    match command {
        cli::SchedulesCommand::Plan { deep } => {
            let owner = VaultIdentity::read(&root)?;
            let registrar = desired::build_registrar(client, config, owner, |s| s.describe_all = *deep)
                .with_progress(output::print_progress);
            let plan = desired::plan_schedules(&registrar, &index, config).await?;
            out.print_value(&plan, || describe_plan(&plan))?;
            Ok(if plan.refused.is_some() || plan.conflict.is_some() { CommandExit::Refused } else { CommandExit::Ok })
        }
        cli::SchedulesCommand::Apply { confirm_deletions, deep } => {
            super::settle_moves_if_unserved(config, &root, &index).await?;
            let owner = adopt::acquire_identity(&root)?.identity;
            let registrar = desired::build_registrar(client, config, Some(owner), |s| {
                s.describe_all = *deep;
                s.operator_confirmed = *confirm_deletions;
            })
            .with_progress(output::print_progress);
            let plan = desired::plan_schedules(&registrar, &index, config).await?;
            out.print_text(&describe_plan(&plan))?;
            apply_plan(&registrar, plan, out).await
        }
        cli::SchedulesCommand::List => {
            let registrar = desired::build_registrar(client, config, VaultIdentity::read(&root)?, |_| ());
            let rows = registrar.list_schedules(Utc::now()).await.map_err(|e| anyhow::anyhow!("failed to {e}"))?;
            out.print_value(&rows, || render_schedule_table(&rows))?;
            Ok(CommandExit::Ok)
        }
        // Handled above, because it may have to start the server first.
        cli::SchedulesCommand::Adopt { .. } => Ok(CommandExit::Ok),
    }
}

async fn apply_plan(
    registrar: &ScheduleRegistrar,
    plan: SchedulePlan,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let outcome = desired::apply_schedules(registrar, plan.clone()).await;
    out.print_value(&json!({"plan": plan, "outcome": outcome}), || {
        format!(
            "created {}, moved {}, updated {}, paused {}, resumed {}, deleted {}, unchanged {}, kept {}, failed {}",
            outcome.created,
            outcome.moved,
            outcome.updated,
            outcome.paused,
            outcome.resumed,
            outcome.deleted,
            outcome.unchanged,
            outcome.kept,
            outcome.errors.len() + outcome.routine_errors.len()
        )
    })?;
    if outcome.conflict.is_some() {
        return Ok(CommandExit::Refused);
    }
    if outcome.is_behind() {
        return Ok(CommandExit::Faults);
    }
    Ok(if outcome.refused.is_some() { CommandExit::Refused } else { CommandExit::Ok })
}

/// Describes a plan: a table of its first changes with their reasons, the counts, the warnings and the refusals.
pub(crate) fn describe_plan(plan: &SchedulePlan) -> String {
    let mut rows = create_table(&["schedule", "change", "reason"], &["schedule", "reason"]);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let routines = plan.routines.iter().map(|step| (step.id, step.interval_seconds, &step.verb));
    let steps = plan.steps.iter().map(|step| (step.id.as_str(), step.interval_seconds, &step.verb));
    for (id, interval_seconds, verb) in routines.chain(steps) {
        let (change, reason) = match verb {
            ScheduleStepVerb::Unchanged => ("unchanged", String::new()),
            ScheduleStepVerb::Create { paused: false } => ("create", format!("every {} min", interval_seconds / 60)),
            ScheduleStepVerb::Create { paused: true } => {
                ("create, paused", "the matter is done, or the vault is drained".into())
            }
            ScheduleStepVerb::Move { from_id, .. } => ("move", format!("from {from_id}: the matter was renamed")),
            ScheduleStepVerb::Update { differences } => ("update", differences.join("; ")),
            ScheduleStepVerb::Pause => ("pause", "the matter is done".into()),
            ScheduleStepVerb::Drain => ("pause", "the vault is drained".into()),
            ScheduleStepVerb::Resume => ("resume", "the matter is open again, or the drain has ended".into()),
            ScheduleStepVerb::Delete => ("delete", "the matter is archived or gone".into()),
            ScheduleStepVerb::Keep { why } => ("keep", why.clone()),
        };
        *counts.entry(change).or_default() += 1;
        if *verb != ScheduleStepVerb::Unchanged && rows.row_count() < MOST_ROWS {
            rows.add_row(vec![id.to_owned(), change.into(), escape_text(&reason)]);
        }
    }
    let unchanged = counts.remove("unchanged").unwrap_or_default();
    let mut lines = Vec::new();
    if rows.row_count() > 0 {
        lines.push(rows.to_string());
    }
    if counts.values().sum::<usize>() > rows.row_count() {
        let counts: Vec<String> = counts.iter().map(|(change, count)| format!("{count} {change}")).collect();
        lines.push(format!("… {} in all; `steward schedules plan --json` lists them", counts.join(", ")));
    }
    if unchanged > 0 || lines.is_empty() {
        lines.push(format!("{unchanged} unchanged"));
    }
    if let Some(refused) = &plan.refused {
        lines.push(format!("refused {}: {}", count_noun(refused.ids.len() as u64, "deletion"), refused.hint));
    }
    if let Some(conflict) = &plan.conflict {
        lines.push(format!("refused: {}", escape_text(&conflict.to_string())));
    }
    lines.extend(plan.warnings.iter().take(MOST_ROWS).map(|w| escape_text(w)));
    if plan.warnings.len() > MOST_ROWS {
        lines.push(format!("… {} warnings in all", plan.warnings.len()));
    }
    lines.join("\n")
}

fn render_schedule_table(rows: &[ScheduleRow]) -> String {
    let mut shown_rows = create_table(&["schedule", "every", "next run", "state", "last run"], &["schedule", "state"]);
    for row in rows {
        let state = if row.paused { format!("paused: {}", escape_text(&row.note)) } else { "active".into() };
        let show = |at| TextStyle::current().show_moment(at);
        let last = row.recent.first().map(|run| format!("{} {}", run.at.map(show).unwrap_or_default(), run.status));
        shown_rows.add_row(vec![
            row.id.clone(),
            format!("{} min", row.interval_seconds / 60),
            row.next_run.map(show).unwrap_or_default(),
            state,
            last.unwrap_or_default(),
        ]);
    }
    shown_rows.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registrar::{RoutineStep, ScheduleStep};
    use steward_domain::record::path::RecordPath;

    #[test]
    fn a_plan_of_thousands_is_printed_in_a_few_rows_with_its_counts() {
        let step = |n: usize| ScheduleStep {
            id: format!("al-steward-m{n}"),
            matter: RecordPath::parse(&format!("matter/m{n}.md")).unwrap(),
            interval_seconds: 1800,
            verb: if n < 40 { ScheduleStepVerb::Unchanged } else { ScheduleStepVerb::Create { paused: false } },
        };
        let plan = SchedulePlan { steps: (0..5000).map(step).collect(), ..SchedulePlan::default() };
        let text = describe_plan(&plan);
        assert!(text.lines().count() < 30, "{text}");
        assert!(text.contains("4960 create in all") && text.contains("40 unchanged"), "{text}");
        let plan = SchedulePlan { steps: (39..42).map(step).collect(), ..SchedulePlan::default() };
        assert!(!describe_plan(&plan).contains("in all"));
    }

    #[test]
    fn the_first_plan_of_a_new_server_shows_the_routine_that_claimed_it() {
        let verb = ScheduleStepVerb::Unchanged;
        let first = RoutineStep { id: "al-signal-extract", workflow: "ExtractWorkflow", interval_seconds: 300, verb };
        let mut plan = SchedulePlan { routines: vec![first], ..SchedulePlan::default() };
        assert_eq!(describe_plan(&plan), "1 unchanged");
        plan.include_claim();
        let text = describe_plan(&plan);
        let row: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(row, ["al-signal-extract", "create", "every", "5", "min"], "{text}");
    }
}
