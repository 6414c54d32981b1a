//! `steward audit list|show|verify`: what was decided and done.
//!
//! Lists come from the index, a record and the chain from the files themselves. It reads only: a broken
//! chain is told with an exit code of its own and never mended.

use crate::cli;
use crate::config::Config;
use crate::out::{Exit, Out, shown, table};
use anyhow::Context;
use serde_json::json;
use steward_domain::audit::AuditRecord;
use steward_domain::path::RecordPath;
use steward_domain::time::stamp;
use steward_vault::chain;
use steward_vault::index::ActionRow;
use steward_vault::root::Root;

pub(crate) async fn run(config: &Config, what: &cli::Audit, out: Out) -> anyhow::Result<Exit> {
    match what {
        cli::Audit::List { limit, task } => {
            let (_, index) = super::look(config).await?;
            let target = task.as_deref().map(RecordPath::parse).transpose()?;
            let rows = index.actions(None, target.as_ref(), *limit).await?;
            out.value(&rows, || list(&rows))?;
            Ok(Exit::Ok)
        }
        cli::Audit::Show { action } => {
            let (root, index) = super::look(config).await?;
            let path = super::find(&index, action).await?;
            let record = read(&root, &path)?;
            let value = json!({"path": path, "record": record, "reasoning": record.draft.reasoning});
            let text = String::from_utf8_lossy(&root.read(&path)?.bytes).into_owned();
            out.value(&value, || format!("{path}\n\n{}", text.lines().map(shown).collect::<Vec<_>>().join("\n")))?;
            Ok(Exit::Ok)
        }
        cli::Audit::Verify => {
            let root = Root::open(config.vault()?)?;
            let found = chain::verify(&root)?;
            out.value(&found, || {
                let mut lines = vec![format!("{} records read", found.records)];
                if found.head_unknown {
                    lines.push("the head of the chain is not known: records missing at the end cannot be told".into());
                }
                lines.extend(found.faults.iter().map(|f| shown(f)));
                lines.push(if found.faults.is_empty() {
                    "the chain is whole".into()
                } else {
                    "the chain is broken".into()
                });
                lines.join("\n")
            })?;
            Ok(if found.faults.is_empty() { Exit::Ok } else { Exit::Faults })
        }
    }
}

/// Reads an audit record.
pub(crate) fn read(root: &Root, path: &RecordPath) -> anyhow::Result<AuditRecord> {
    let snapshot = root.read(path)?;
    AuditRecord::parse(&snapshot.bytes).with_context(|| format!("failed to read {path}"))
}

fn list(rows: &[ActionRow]) -> String {
    let mut shown_rows = table(&["when", "action", "record", "decision", "confidence", "landed", "answered"]);
    for row in rows {
        shown_rows.add_row(vec![
            stamp(row.at),
            row.id.to_string(),
            row.target.to_string(),
            row.decision.word().to_owned(),
            format!("{:.2}", row.confidence),
            row.landing.word().to_owned(),
            row.answered.map(|k| k.word().trim_start_matches("steward-action-").to_owned()).unwrap_or_default(),
        ]);
    }
    shown_rows.to_string()
}
