//! One tick of every open matter, for `up --once` and `up --tick-now`.
//!
//! Every open matter is ticked as its schedule would tick it. The reports and their audit records become one table and
//! one exit code. A record that cannot be read becomes one of the errors; the other tasks stay.

use super::UpRuntime;
use crate::cli::output::{CommandExit, escape_text, format_causes};
use crate::cli::style::TextStyle;
use crate::cli::table::{create_table, show_disposition};
use crate::commands;
use crate::runtime::engine::Engine;
use chrono::Utc;
use comfy_table::Cell;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use std::collections::BTreeMap;
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::plan::Disposition;
use steward_domain::gates::result::{GateName, GateResult};
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::RecordPath;
use steward_domain::record::plain_text::count_noun;
use steward_domain::steward::tick::{TaskCheckOutcome, TaskCheckReport, TickReport};

/// How many matters are ticked at once: 16, enough to keep two cores busy.
const TICKS_AT_ONCE: usize = 16;

/// The result of one task.
#[derive(Serialize)]
struct TickRoundRow {
    matter: RecordPath,
    task: RecordPath,
    decision: String,
    confidence: f64,
    disposition: Option<Disposition>,
    /// The change that was made or proposed, or that a live mode would have made.
    change: Option<String>,
    /// The first closed gate other than the mode and the caller.
    held_by: Option<String>,
    action: Option<String>,
    reasoning: String,
}

#[derive(Serialize)]
pub(super) struct TickRound {
    tasks: Vec<TickRoundRow>,
    ticks: usize,
    /// Due tasks without news, about which no clerk was asked.
    quiet: u32,
    skipped: BTreeMap<String, u32>,
    /// The vault was stopped: no clerk was asked and nothing was changed.
    stopped: bool,
    errors: Vec<String>,
    /// The command that undoes the first live change.
    undo: Option<String>,
}

pub(super) async fn tick_all(runtime: &UpRuntime<'_>) -> anyhow::Result<TickRound> {
    let UpRuntime { config, context, engine, .. } = *runtime;
    let matters = engine.parts.index.read().list_matters(&config.cadence).await?;
    let open: Vec<RecordPath> =
        matters.into_iter().filter(|m| m.state == Some(RecordState::Open)).map(|m| m.path).collect();
    let reports: Vec<(RecordPath, anyhow::Result<TickReport>)> = stream::iter(open)
        .map(|matter| async move {
            let report = commands::tick::tick_matter(&context.client, config, &matter, false).await;
            (matter, report)
        })
        .buffered(TICKS_AT_ONCE)
        .collect()
        .await;
    let mut round = TickRound {
        tasks: Vec::new(),
        ticks: reports.len(),
        quiet: 0,
        skipped: BTreeMap::new(),
        stopped: false,
        errors: Vec::new(),
        undo: None,
    };
    for (matter, report) in reports {
        match report {
            Err(e) => round.errors.push(format!("{matter}: {e:#}")),
            Ok(report) => add_tick_report(&mut round, engine, &matter, report).await,
        }
    }
    for problem in engine.parts.index.read().list_problems().await? {
        round.errors.push(format!("{}: {}", problem.path, problem.message));
    }
    round.errors.sort();
    round.errors.dedup();
    let live = round.tasks.iter().find(|row| row.disposition == Some(Disposition::Live));
    let undo = live.and_then(|row| row.action.as_ref());
    round.undo = undo.map(|id| {
        format!(
            "{} undo {} --vault {}",
            program_name(),
            &id[..8],
            config.vault_folder().unwrap_or(std::path::Path::new(".")).display()
        )
    });
    Ok(round)
}

fn program_name() -> String {
    std::env::args_os().next().map_or_else(|| "steward".into(), |name| name.to_string_lossy().into_owned())
}

async fn add_tick_report(round: &mut TickRound, engine: &Engine, matter: &RecordPath, report: TickReport) {
    round.quiet += report.quiet;
    round.stopped |= report.stopped;
    for (reason, count) in report.skipped {
        let word = serde_json::to_value(reason).ok().and_then(|w| w.as_str().map(str::to_owned)).unwrap_or_default();
        *round.skipped.entry(word).or_default() += count;
    }
    round.errors.extend(report.errors);
    for task in report.evaluated {
        let record = match &task.ended {
            TaskCheckOutcome::Decided { action_id, .. } => Some(read_action_record(engine, action_id.as_str()).await),
            _ => None,
        };
        round.add_task(matter, task, record);
    }
}

async fn read_action_record(engine: &Engine, action: &str) -> anyhow::Result<AuditRecord> {
    let path = commands::find_action_record(&engine.parts.index, action).await?;
    commands::audit::read_record(engine.parts.writer.root(), &path)
}

impl TickRound {
    /// The exit code for scripts: 4 if anything failed, 3 if the vault is stopped, otherwise 0.
    pub(super) fn exit_code(&self) -> CommandExit {
        match (self.errors.is_empty(), self.stopped) {
            (false, _) => CommandExit::Faults,
            (true, true) => CommandExit::Refused,
            (true, false) => CommandExit::Ok,
        }
    }

    /// Adds the result of one task. A record that cannot be read is added to the errors.
    fn add_task(&mut self, matter: &RecordPath, task: TaskCheckReport, record: Option<anyhow::Result<AuditRecord>>) {
        let path = task.task.clone();
        let row = match task.ended {
            TaskCheckOutcome::Decided { decision, confidence, disposition, action_id } => {
                let record = record.and_then(|read| {
                    read.map_err(|e| {
                        let causes = format_causes(&e);
                        self.errors.push(format!("{path}: failed to read the record of {action_id}: {causes}"))
                    })
                    .ok()
                });
                TickRoundRow {
                    disposition: Some(disposition),
                    change: record.as_ref().and_then(describe_change),
                    held_by: record.as_ref().and_then(describe_closed_gate),
                    action: Some(action_id.to_string()),
                    ..build_undecided_row(
                        matter,
                        path,
                        decision.as_str(),
                        confidence,
                        record.map(|r| r.draft.reasoning).unwrap_or_default(),
                    )
                }
            }
            TaskCheckOutcome::RateGuarded { confidence, reason } => TickRoundRow {
                held_by: Some(format!("rate guard: {reason}")),
                ..build_undecided_row(matter, path, "rate_guarded", confidence, reason)
            },
            TaskCheckOutcome::ClerkFailed { reason } => {
                self.errors.push(format!("{path}: no answer from the clerk: {reason}"));
                build_undecided_row(matter, path, "clerk_failed", 0.0, reason)
            }
            TaskCheckOutcome::Error { reason } => {
                self.errors.push(format!("{path}: {reason}"));
                build_undecided_row(matter, path, "error", 0.0, reason)
            }
            TaskCheckOutcome::ChangedMeanwhile => {
                build_undecided_row(matter, path, "changed_meanwhile", 0.0, String::new())
            }
            TaskCheckOutcome::NoTimeLeft => build_undecided_row(matter, path, "no_time_left", 0.0, String::new()),
            TaskCheckOutcome::Stopped => build_undecided_row(matter, path, "stopped", 0.0, String::new()),
        };
        self.tasks.push(row);
    }
}

fn build_undecided_row(
    matter: &RecordPath,
    task: RecordPath,
    decision: &str,
    confidence: f64,
    reasoning: String,
) -> TickRoundRow {
    TickRoundRow {
        matter: matter.clone(),
        task,
        decision: decision.to_owned(),
        confidence,
        disposition: None,
        change: None,
        held_by: None,
        action: None,
        reasoning,
    }
}

fn describe_change(record: &AuditRecord) -> Option<String> {
    let to = record.draft.proposed_state?;
    let from = record.draft.prior_state.as_deref().unwrap_or("(none)");
    Some(format!("{from} → {}", to.as_str()))
}

fn describe_closed_gate(record: &AuditRecord) -> Option<String> {
    record.draft.proposed_state?;
    let mode_only = |g: &&GateResult| matches!(g.gate, GateName::Mode | GateName::Caller);
    let closed = record.draft.gates.iter().find(|g| !g.open && !mode_only(g));
    match closed {
        Some(gate) => Some(format!("{}: {}, needs {}", gate.gate.as_str(), gate.found, gate.needed)),
        None if record.draft.disposition == Disposition::Live => None,
        None => Some("the mode alone: live would make this change".into()),
    }
}

pub(super) fn describe_round(round: &TickRound) -> String {
    let style = TextStyle::current();
    let mut tasks = create_table(
        &["task", "decision", "change", "disposition", "held by", "action"],
        &["task", "decision", "held by"],
    );
    for row in &round.tasks {
        tasks.add_row(vec![
            Cell::from(row.task.slug()),
            format!("{:.0} % {}", row.confidence * 100.0, row.decision).into(),
            escape_text(row.change.as_deref().unwrap_or("")).into(),
            show_disposition(row.disposition),
            escape_text(row.held_by.as_deref().unwrap_or("")).into(),
            style.show_id(row.action.as_deref().unwrap_or_default()).into(),
        ]);
    }
    let skipped: Vec<String> =
        round.skipped.iter().map(|(reason, n)| format!("{n} {}", reason.replace('_', " "))).collect();
    let skipped = if skipped.is_empty() { "none".to_owned() } else { skipped.join(", ") };
    let mut lines = Vec::new();
    if round.stopped {
        lines.push("The vault is stopped: no clerk is asked and nothing changes until `steward resume`.".to_owned());
    }
    if !round.tasks.is_empty() {
        lines.push(tasks.to_string());
    }
    lines.push(format!(
        "{} checked at {}; {} without news; skipped: {skipped}",
        count_noun(round.ticks as u64, "matter"),
        Utc::now().format("%H:%M:%S UTC"),
        count_noun(round.quiet.into(), "due task")
    ));
    lines.extend(round.errors.iter().map(|e| format!("problem    {}", escape_text(e))));
    if let Some(undo) = &round.undo {
        lines.push(format!("undo one   {undo}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::action::plan::ActionId;
    use steward_domain::steward::clerk::Judgement;

    fn round() -> TickRound {
        TickRound {
            tasks: Vec::new(),
            ticks: 1,
            quiet: 0,
            skipped: BTreeMap::new(),
            stopped: false,
            errors: Vec::new(),
            undo: None,
        }
    }

    fn add(round: &mut TickRound, task: &str, ended: TaskCheckOutcome, record: Option<anyhow::Result<AuditRecord>>) {
        let task = TaskCheckReport { task: RecordPath::parse(task).unwrap(), ended };
        round.add_task(&RecordPath::parse("matter/m.md").unwrap(), task, record);
    }

    #[test]
    fn a_missing_record_is_one_more_error_and_the_other_rows_are_printed() {
        let mut round = round();
        let action_id: ActionId = serde_json::from_str("\"0123456789abcdef\"").unwrap();
        let ended = TaskCheckOutcome::Decided {
            decision: Judgement::LikelyDone,
            confidence: 0.9,
            disposition: Disposition::Live,
            action_id,
        };
        add(&mut round, "task/a.md", ended, Some(Err(anyhow::anyhow!("it is gone"))));
        add(&mut round, "task/b.md", TaskCheckOutcome::NoTimeLeft, None);
        assert_eq!((round.tasks.len(), round.errors.len(), round.exit_code()), (2, 1, CommandExit::Faults));
        let text = describe_round(&round);
        let error = "task/a.md: failed to read the record of 0123456789abcdef: it is gone";
        assert!(text.contains(error), "{text}");
        assert!(text.contains("likely_done") && text.contains("no_time_left"), "{text}");
    }

    #[test]
    fn a_clerk_that_gives_no_answer_is_printed_with_the_reason_and_is_a_fault() {
        let mut round = round();
        add(&mut round, "task/a.md", TaskCheckOutcome::ClerkFailed { reason: "connection refused".into() }, None);
        assert!(describe_round(&round).contains("task/a.md: no answer from the clerk: connection refused"));
        assert_eq!(round.exit_code(), CommandExit::Faults);
    }

    #[test]
    fn a_round_of_a_stopped_vault_says_so_and_is_refused() {
        let round = TickRound { stopped: true, ..round() };
        assert!(describe_round(&round).contains("steward resume"));
        assert_eq!(round.exit_code(), CommandExit::Refused);
    }
}
