//! `steward schedules plan|apply|list|adopt`.
//!
//! A plan is always shown before it is carried out. The registrar plans and applies; here its rows become
//! tables, and an exit code when it refuses to delete as much as was asked, or to touch another vault's schedules.

mod adopt;

use crate::cli;
use crate::config::Config;
use crate::out::{self, Exit, Out, shown, table};
use crate::registrar::{Registrar, SchedulePlan, Verb};
use crate::{schedules, temporal};
use chrono::Utc;
use serde_json::json;
use std::collections::BTreeMap;
use steward_domain::time::format_millis;
use steward_server::facts::schedules::ScheduleRow;
use steward_vault::identity::VaultIdentity;

/// Rows of a plan that a person is shown.
const MOST_ROWS: usize = 20;

pub(crate) async fn run(config: &Config, what: &cli::Schedules, out: Out) -> anyhow::Result<Exit> {
    if let cli::Schedules::Adopt { yes } = what {
        return adopt::run(config, *yes, out).await;
    }
    let client = temporal::connect(config, Vec::new()).await?;
    let (root, index) = super::open(config).await?;
    match what {
        cli::Schedules::Plan { deep } => {
            let owner = VaultIdentity::read(&root)?;
            let registrar =
                schedules::registrar(client, config, owner, |s| s.describe_all = *deep).telling(out::progress);
            let plan = schedules::plan(&registrar, &index, config).await?;
            out.value(&plan, || describe(&plan))?;
            Ok(if plan.refused.is_some() || plan.conflict.is_some() { Exit::Refused } else { Exit::Ok })
        }
        cli::Schedules::Apply { confirm_deletions, deep } => {
            let owner = adopt::hold(&root)?.identity;
            let registrar = schedules::registrar(client, config, Some(owner), |s| {
                s.describe_all = *deep;
                s.operator_confirmed = *confirm_deletions;
            })
            .telling(out::progress);
            let plan = schedules::plan(&registrar, &index, config).await?;
            out.say(&describe(&plan))?;
            apply(&registrar, plan, out).await
        }
        cli::Schedules::List => {
            let registrar = schedules::registrar(client, config, VaultIdentity::read(&root)?, |_| ());
            let rows = registrar.list(Utc::now()).await.map_err(|e| anyhow::anyhow!("failed to {e}"))?;
            out.value(&rows, || list(&rows))?;
            Ok(Exit::Ok)
        }
        // Above, for it may have to start the server.
        cli::Schedules::Adopt { .. } => Ok(Exit::Ok),
    }
}

async fn apply(registrar: &Registrar, plan: SchedulePlan, out: Out) -> anyhow::Result<Exit> {
    let outcome = schedules::apply(registrar, plan.clone()).await;
    out.value(&json!({"plan": plan, "outcome": outcome}), || {
        format!(
            "created {}, updated {}, paused {}, resumed {}, deleted {}, unchanged {}, kept {}, failed {}",
            outcome.created,
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
        return Ok(Exit::Refused);
    }
    if outcome.is_behind() {
        return Ok(Exit::Faults);
    }
    Ok(if outcome.refused.is_some() { Exit::Refused } else { Exit::Ok })
}

/// A plan as a table: what happens to which schedule and why, the first few of them, and how many in all.
pub(crate) fn describe(plan: &SchedulePlan) -> String {
    let mut rows = table(&["schedule", "what", "why"]);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let routines = plan.routines.iter().map(|step| (step.id, step.interval_seconds, &step.verb));
    let steps = plan.steps.iter().map(|step| (step.id.as_str(), step.interval_seconds, &step.verb));
    for (id, interval_seconds, verb) in routines.chain(steps) {
        let (what, why) = match verb {
            Verb::Unchanged => ("unchanged", String::new()),
            Verb::Create { paused: false } => ("create", format!("every {} min", interval_seconds / 60)),
            Verb::Create { paused: true } => ("create, paused", "the matter is done".into()),
            Verb::Update { differences } => ("update", differences.join("\n")),
            Verb::Pause => ("pause", "the matter is done".into()),
            Verb::Resume => ("resume", "the matter is open again".into()),
            Verb::Delete => ("delete", "the matter is archived or gone".into()),
            Verb::Keep { why } => ("keep", why.clone()),
        };
        *counts.entry(what).or_default() += 1;
        if *verb != Verb::Unchanged && rows.row_count() < MOST_ROWS {
            rows.add_row(vec![id.to_owned(), what.into(), shown(&why)]);
        }
    }
    let unchanged = counts.remove("unchanged").unwrap_or_default();
    let mut lines = Vec::new();
    if rows.row_count() > 0 {
        lines.push(rows.to_string());
    }
    if counts.values().sum::<usize>() > rows.row_count() {
        let counts: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        lines.push(format!("… {} in all; `steward schedules plan --json` lists them", counts.join(", ")));
    }
    lines.push(format!("{unchanged} unchanged"));
    if let Some(refused) = &plan.refused {
        lines.push(format!("refused: {} deletions. {}", refused.ids.len(), refused.mend));
    }
    if let Some(conflict) = &plan.conflict {
        lines.push(format!("refused: {}", shown(&conflict.to_string())));
    }
    lines.extend(plan.warnings.iter().take(MOST_ROWS).map(|w| shown(w)));
    if plan.warnings.len() > MOST_ROWS {
        lines.push(format!("… {} warnings in all", plan.warnings.len()));
    }
    lines.join("\n")
}

fn list(rows: &[ScheduleRow]) -> String {
    let mut shown_rows = table(&["schedule", "every", "next run", "state", "last run"]);
    for row in rows {
        let state = if row.paused { format!("paused: {}", shown(&row.note)) } else { "active".into() };
        let last = row.recent.first().map(|r| format!("{} {}", r.at.map(format_millis).unwrap_or_default(), r.status));
        shown_rows.add_row(vec![
            row.id.clone(),
            format!("{} min", row.interval_seconds / 60),
            row.next_run.map(format_millis).unwrap_or_default(),
            state,
            last.unwrap_or_default(),
        ]);
    }
    shown_rows.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registrar::Step;
    use steward_domain::path::RecordPath;

    #[test]
    fn a_plan_of_thousands_is_told_in_a_few_rows_and_its_counts() {
        let step = |n: usize| Step {
            id: format!("al-steward-m{n}"),
            matter: RecordPath::parse(&format!("matter/m{n}.md")).unwrap(),
            interval_seconds: 1800,
            verb: if n < 40 { Verb::Unchanged } else { Verb::Create { paused: false } },
        };
        let plan = SchedulePlan { steps: (0..5000).map(step).collect(), ..SchedulePlan::default() };
        let text = describe(&plan);
        assert!(text.lines().count() < 30, "{text}");
        assert!(text.contains("4960 create in all") && text.contains("40 unchanged"), "{text}");
        let plan = SchedulePlan { steps: (39..42).map(step).collect(), ..SchedulePlan::default() };
        assert!(!describe(&plan).contains("in all"));
    }
}
