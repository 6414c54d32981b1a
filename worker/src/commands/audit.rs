//! The commands `steward audit list|show|verify`: the audit records and their hash chain.
//!
//! Lists come from the index; a record and the chain come from the files. The commands only read: a broken chain has an
//! exit code of its own and must never be repaired.

use super::names;
use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::style::TextStyle;
use crate::cli::table::{create_wide_table, show_disposition};
use crate::config::StewardConfig;
use crate::fleet;
use anyhow::Context;
use comfy_table::Cell;
use serde_json::json;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::record::path::RecordPath;
use steward_domain::record::plain_text::count_noun;
use steward_domain::time::format_millis;
use steward_vault::action::chain::{self, ChainVerification};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{ActionRow, Index};
use steward_vault::tracker::outbox::{self, DeliveryStatus};

pub(crate) async fn run(
    config: &StewardConfig,
    command: &cli::AuditCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    match command {
        cli::AuditCommand::List { limit, task } => {
            let vault = super::open_read_only(config).await?;
            let rows = match task {
                Some(text) => list_actions_about(&vault.index, text, *limit).await?,
                None => vault.index.actions().list_actions(None, None, *limit).await?,
            };
            out.print_value(&rows, || render_action_table(&rows))?;
            Ok(CommandExit::Ok)
        }
        cli::AuditCommand::Show { action } => {
            let vault = super::open_read_only(config).await?;
            let root = &vault.root;
            let path = super::find_action_record(&vault.index, action).await?;
            let record = read_record(root, &path)?;
            let delivery = outbox::read_delivery_status(root, &record)?;
            let value =
                json!({"path": path, "record": record, "reasoning": record.draft.reasoning, "tracker": delivery});
            let text = String::from_utf8_lossy(&root.read_file(&path)?.bytes).into_owned();
            out.print_value(&value, || {
                let lines = text
                    .lines()
                    .map(escape_text)
                    .chain(delivery.iter().map(|d| format!("\ntracker: {}", describe_tracker_status(d))));
                format!("{path}\n\n{}", lines.collect::<Vec<_>>().join("\n"))
            })?;
            Ok(CommandExit::Ok)
        }
        cli::AuditCommand::Verify => {
            let root = VaultRoot::open(config.vault_folder()?)?;
            let seen = fleet::find_seen_chain(config).await;
            let found = chain::verify_chain_beyond(&root, seen.as_ref())?;
            out.print_value(&found, || describe_verification(&found))?;
            Ok(if found.faults.is_empty() { CommandExit::Ok } else { CommandExit::Faults })
        }
    }
}

/// Reads an audit record.
pub(crate) fn read_record(root: &VaultRoot, path: &RecordPath) -> anyhow::Result<AuditRecord> {
    let snapshot = root.read_file(path)?;
    AuditRecord::parse(&snapshot.bytes).with_context(|| format!("failed to read {path}"))
}

/// Describes on one line what was delivered to the tracker, or is owed to it.
pub(crate) fn describe_tracker_status(delivery: &DeliveryStatus) -> String {
    let status = match &delivery.came {
        Some((record, outcome)) => format!("{outcome}; see {record}"),
        None => delivery.says.to_string(),
    };
    let Some(progress) = delivery.progress.as_ref().filter(|_| delivery.came.is_none()) else {
        return escape_text(&status);
    };
    let error = progress.last_error.as_deref().map(|e| format!("; tried {} times: {e}", progress.tries));
    let next = progress.next_try.map(|at| format!("; next try after {}", format_millis(at)));
    escape_text(&format!("{status}{}{}", error.unwrap_or_default(), next.unwrap_or_default()))
}

fn describe_verification(found: &ChainVerification) -> String {
    if found.faults.is_empty() {
        return describe_intact_chain(found);
    }
    let mut lines = vec![format!("{} read", count_noun(found.records, "record"))];
    lines.extend(found.faults.iter().map(|f| escape_text(f)));
    lines.push("the chain is broken".into());
    lines.join("\n")
}

/// Describes a chain without faults. If its head is unknown, the text must not claim that it is complete.
pub(crate) fn describe_intact_chain(found: &ChainVerification) -> String {
    match (found.head_unknown, found.records) {
        (true, 0) => "there is no chain yet".into(),
        (true, records) => format!(
            "the chain of {} has no fault, but its head is unknown: records missing at the end cannot be detected",
            count_noun(records, "record")
        ),
        (false, records) => format!("{}, the chain is intact", count_noun(records, "record")),
    }
}

/// Only a decision has a judgement and a confidence of its own. The record of a resolution repeats those of the decision
/// that it resolves, and in a list they would look like a second decision. The moment is cut to the second, so that ids
/// and paths have room.
/// Lists the actions on the note that a text means. The note may be gone: then its path finds them.
async fn list_actions_about(index: &Index, text: &str, limit: u32) -> anyhow::Result<Vec<ActionRow>> {
    let (path, subject) = names::find_by_name(index, text).await?;
    let rows = index.actions().list_actions(None, Some(&path), limit).await?;
    if subject.is_some() || !rows.is_empty() || text.contains('/') {
        return Ok(rows);
    }
    let path = names::find_by_title(index, None, text).await?;
    Ok(index.actions().list_actions(None, Some(&path), limit).await?)
}

fn render_action_table(rows: &[ActionRow]) -> String {
    let style = TextStyle::current();
    let headings = ["time", "action", "kind", "record", "decision", "class", "disposition", "resolution"];
    let mut shown_rows = create_wide_table(&headings, &["record", "decision"], &["kind", "class"]);
    for row in rows {
        let decision = match row.kind {
            ActionKind::Action => format!("{:.0} % {}", row.confidence * 100.0, row.decision.as_str()),
            _ if style.is_long => String::new(),
            kind => kind.describe().to_owned(),
        };
        let has_disposition = row.kind == ActionKind::Action || style.is_long && !row.kind.has_no_disposition();
        let disposition = has_disposition.then_some(row.disposition);
        shown_rows.add_row([
            Cell::from(style.show_moment(row.at)),
            style.show_id(row.id.as_str()).into(),
            row.kind.describe().into(),
            style.show_record(&row.target).into(),
            decision.into(),
            row.class.map_or("", |class| class.as_str()).into(),
            show_disposition(disposition),
            row.resolution.map_or("", ActionKind::describe).into(),
        ]);
    }
    shown_rows.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Utc;
    use steward_domain::action::plan::{ActionId, Disposition};
    use steward_domain::gates::mode::Mode;
    use steward_domain::steward::clerk::Judgement;

    fn row(kind: ActionKind, resolution: Option<ActionKind>) -> ActionRow {
        ActionRow {
            path: RecordPath::parse("event/steward-action-20261122T080000000Z-pay.md").unwrap(),
            id: ActionId::derive(&[kind.as_str()]),
            kind,
            target: RecordPath::parse("task/pay.md").unwrap(),
            at: Utc::now(),
            decision: Judgement::LikelyDone,
            confidence: 0.3,
            disposition: Disposition::Live,
            mode: Mode::Live,
            class: None,
            proposed_state: None,
            pending: false,
            waits: false,
            is_repeated: false,
            settled: false,
            resolves: None,
            resolution,
            resolved_at: None,
            resolved_by: None,
            proposal: None,
            edited: false,
            batch_id: None,
            seq: 1,
        }
    }

    #[test]
    fn every_row_of_the_list_says_what_its_record_is() {
        use ActionKind::{Action, Confirmed, Lowered, Reversed};
        let rows =
            [row(Lowered, None), row(Reversed, None), row(Confirmed, Some(Reversed)), row(Action, Some(Confirmed))];
        let table = render_action_table(&rows);
        let shown: Vec<Vec<&str>> =
            table.lines().skip(2).map(|line| line.split_whitespace().skip(2).collect()).collect();
        assert_eq!(
            shown,
            [
                vec!["demoted", "task/pay.md"],
                vec!["undone", "task/pay.md", "live"],
                vec!["confirmed", "task/pay.md", "live", "undone"],
                vec!["decided", "task/pay.md", "30", "%", "likely_done", "live", "confirmed"],
            ],
            "{table}"
        );
    }

    #[test]
    fn a_chain_is_called_intact_only_when_its_end_is_known() {
        let found = |records, head_unknown| {
            describe_verification(&ChainVerification { records, head_unknown, faults: Vec::new() })
        };
        assert!(found(0, true).ends_with("there is no chain yet"));
        assert!(found(3, false).ends_with("the chain is intact"));
        assert!(found(3, true).contains("cannot be detected") && !found(3, true).ends_with("intact"));
    }
}
