//! `steward schedules plan|apply|list`.
//!
//! A plan is always shown before it is carried out. The registrar plans and applies; here its rows become
//! tables, and an exit code when it refuses to delete as much as was asked.

use crate::cli;
use crate::config::Config;
use crate::out::{Exit, Out, shown, table};
use crate::registrar::{SchedulePlan, ScheduleRow, Verb};
use crate::{schedules, temporal};
use chrono::Utc;
use serde_json::json;
use steward_domain::time::stamp;

pub(crate) async fn run(config: &Config, what: &cli::Schedules, out: Out) -> anyhow::Result<Exit> {
    let client = temporal::connect(config, Vec::new()).await?;
    let (_, index) = super::look(config).await?;
    match what {
        cli::Schedules::Plan => {
            let registrar = schedules::registrar(client, config, |s| s.describe_all = true);
            let plan = schedules::plan(&registrar, &index, config).await?;
            out.value(&plan, || describe(&plan))?;
            Ok(if plan.refused.is_some() { Exit::Refused } else { Exit::Ok })
        }
        cli::Schedules::Apply { confirm_deletions } => {
            let registrar = schedules::registrar(client, config, |s| {
                s.describe_all = true;
                s.operator_confirmed = *confirm_deletions;
            });
            let plan = schedules::plan(&registrar, &index, config).await?;
            out.say(&describe(&plan))?;
            let outcome = schedules::apply(&registrar, plan.clone()).await;
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
                    outcome.errors.len()
                )
            })?;
            if !outcome.errors.is_empty() {
                return Ok(Exit::Faults);
            }
            Ok(if outcome.refused.is_some() { Exit::Refused } else { Exit::Ok })
        }
        cli::Schedules::List => {
            let registrar = schedules::registrar(client, config, |_| ());
            let rows = registrar.list(Utc::now()).await.map_err(|e| anyhow::anyhow!("failed to {e}"))?;
            out.value(&rows, || list(&rows))?;
            Ok(Exit::Ok)
        }
    }
}

/// A plan as a table: what happens to which schedule and why.
pub(crate) fn describe(plan: &SchedulePlan) -> String {
    let mut rows = table(&["schedule", "what", "why"]);
    let mut unchanged = 0;
    for step in &plan.steps {
        let (what, why) = match &step.verb {
            Verb::Unchanged => {
                unchanged += 1;
                continue;
            }
            Verb::Create { paused: false } => ("create", format!("every {} min", step.interval_seconds / 60)),
            Verb::Create { paused: true } => ("create, paused", "the matter is done".into()),
            Verb::Update { differences } => ("update", differences.join("\n")),
            Verb::Pause => ("pause", "the matter is done".into()),
            Verb::Resume => ("resume", "the matter is open again".into()),
            Verb::Delete => ("delete", "the matter is archived or gone".into()),
            Verb::Keep { why } => ("keep", why.clone()),
        };
        rows.add_row(vec![step.id.clone(), what.into(), shown(&why)]);
    }
    let mut lines = Vec::new();
    if rows.row_count() > 0 {
        lines.push(rows.to_string());
    }
    lines.push(format!("{unchanged} unchanged"));
    if let Some(refused) = &plan.refused {
        lines.push(format!("refused: {} deletions. {}", refused.ids.len(), refused.mend));
    }
    lines.extend(plan.warnings.iter().map(|w| shown(w)));
    lines.join("\n")
}

fn list(rows: &[ScheduleRow]) -> String {
    let mut shown_rows = table(&["schedule", "every", "next run", "state", "last run"]);
    for row in rows {
        let state = if row.paused { format!("paused: {}", shown(&row.note)) } else { "active".into() };
        let last = row.recent.first().map(|r| format!("{} {}", r.at.map(stamp).unwrap_or_default(), r.status));
        shown_rows.add_row(vec![
            row.id.clone(),
            format!("{} min", row.interval_seconds / 60),
            row.next_run.map(stamp).unwrap_or_default(),
            state,
            last.unwrap_or_default(),
        ]);
    }
    shown_rows.to_string()
}
