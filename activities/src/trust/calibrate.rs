//! Brings the instincts in line with what the audit records say of their sources.
//!
//! The records are read through the index, the rules are [`steward_domain::trust`]'s. An instinct's numbers are the
//! whole of what the records say, never a step more than before: doing it twice, in another order or after a
//! loss comes to the same. What a human wrote stays: a ceiling, words, observations given in advance, to which ours
//! are added, and the confidence from which the average starts.

use crate::failure::retryable_failure;
use crate::vault::{VaultContext, run_blocking};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steward_domain::action::audit::WorkflowRef;
use steward_domain::record::entity::Instinct;
use steward_domain::record::frontmatter::{self, FieldEdit, RecordFields};
use steward_domain::record::path::{PathError, RecordKind, RecordPath};
use steward_domain::time;
use steward_domain::trust::confidence::ConfidenceStatus;
use steward_domain::trust::demotion::find_demotions;
use steward_domain::trust::mark::{TrustMark, TrustSubject, short_source_name};
use steward_vault::action::create::CreateError;
use steward_vault::action::writer::{ApplyError, VaultWriter};
use steward_vault::files::root::VaultRootError;
use steward_vault::index::SourceTrust;
use steward_workflows::CalibrateOutput;
use temporalio_common::ActivityError;

#[cfg(test)]
mod tests;

/// Longest that one call goes on beginning things: half of what a workflow gives it.
const WORKS_FOR: Duration = Duration::from_secs(120);
/// Instincts that are looked at, and noted, at once: a second or two of a slow disk.
const SLICE: usize = 200;

/// When one call stops beginning things.
#[derive(Clone, Copy)]
pub(crate) struct CallDeadline(Instant);

impl CallDeadline {
    /// That of a call which begins now.
    pub(crate) fn from_now() -> Self {
        Self(Instant::now() + WORKS_FOR)
    }

    /// Half of the time that is left.
    fn halve_time_left(self) -> Self {
        let now = Instant::now();
        Self(now + self.0.saturating_duration_since(now) / 2)
    }

    fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}

/// First what was done by hand, then what was undone too often, then what follows for the sources.
///
/// The records are folded once. Dropped at any point, it leaves what was written so far, and the next call the rest.
pub(crate) async fn run_calibration(
    host: &VaultContext,
    deadline: impl FnOnce() -> CallDeadline,
    (workflow, now): (WorkflowRef, DateTime<Utc>),
) -> Result<CalibrateOutput, ActivityError> {
    let _turn = host.learning.lock().await;
    let (deadline, mut report) = (deadline(), CalibrateOutput::default());
    compare_proposals(host, deadline.halve_time_left(), (&workflow, now), &mut report).await?;
    report.lowered = apply_demotions(host, (&workflow, now)).await?.len() as u64;
    let sources = host.index.compute_source_trust(now).await.map_err(retryable_failure)?;
    record_pruned_sources(host, deadline, (&workflow, &sources), &mut report).await?;
    write_instincts(host, deadline, sources, &mut report).await?;
    if report != CalibrateOutput::default() {
        tracing::info!(
            written = report.written,
            failed = report.failed,
            by_hand = report.by_hand,
            pruned = report.pruned,
            lowered = report.lowered,
            more = report.more,
            "trust brought in line with the records"
        );
    }
    Ok(report)
}

/// Files what humans did by hand about what was proposed, and which changes they wrote back.
async fn compare_proposals(
    host: &VaultContext,
    deadline: CallDeadline,
    (workflow, now): (&WorkflowRef, DateTime<Utc>),
    report: &mut CalibrateOutput,
) -> Result<(), ActivityError> {
    let round = host.index.next_comparison_round(now).await.map_err(retryable_failure)?;
    let mut compared = 0;
    for proposal in &round.proposals {
        if deadline.is_over() {
            report.more = true;
            break;
        }
        compared += 1;
        let (keeper, proposal, workflow) = (Arc::clone(&host.keeper), proposal.clone(), workflow.clone());
        match run_blocking(move || keeper.file_manual_outcome(&proposal, workflow, now)).await? {
            Ok(Some(receipt)) => {
                report.by_hand += 1;
                host.reindex_paths(&[&receipt.record]).await?;
            }
            Ok(None) => {}
            Err(e @ (ApplyError::Root(_) | ApplyError::Form(_) | ApplyError::Chain(_))) => {
                tracing::warn!(error = %e, "a proposal could not be compared with its target");
            }
            Err(e) => return Err(retryable_failure(e)),
        }
    }
    // Whoever is cut short before this begins the round anew.
    host.index.finish_comparison_round(&round, compared).await.map_err(retryable_failure)
}

/// Files that a source is taken for a stranger again, once for each time.
async fn record_pruned_sources(
    host: &VaultContext,
    deadline: CallDeadline,
    (workflow, sources): (&WorkflowRef, &BTreeMap<String, SourceTrust>),
    report: &mut CalibrateOutput,
) -> Result<(), ActivityError> {
    let known = host.index.list_prune_records().await.map_err(retryable_failure)?;
    for (source, trust) in sources {
        for fall in trust.moves.iter().filter(|m| m.to == ConfidenceStatus::Pruned) {
            let name = short_source_name(source, &trust.name);
            let mark =
                TrustMark::Pruned { subject: TrustSubject::Source(source.clone()), name, confidence: fall.value };
            let plan = mark.into_plan(&fall.cause, fall.at, host.settings.policy.mode, workflow.clone());
            let plan = plan.map_err(retryable_failure)?;
            if known.contains(plan.id().as_str()) {
                continue;
            }
            if deadline.is_over() {
                report.more = true;
                return Ok(());
            }
            host.file_record(plan).await?;
            report.pruned += 1;
        }
    }
    Ok(())
}

/// Lowers by a step what was undone too often; says which steps.
pub(crate) async fn apply_demotions(
    host: &VaultContext,
    (workflow, now): (&WorkflowRef, DateTime<Utc>),
) -> Result<Vec<String>, ActivityError> {
    let (mode, budget) = (host.settings.policy.mode, host.settings.reversal_budget);
    // No change lands meanwhile that would not know of it.
    let _turn = host.landing.lock().await;
    let made = host.index.list_recent_live_changes(now).await.map_err(retryable_failure)?;
    let caps = host.index.read_mode_caps().await.map_err(retryable_failure)?;
    let mut steps = Vec::new();
    for step in find_demotions(&made, &caps, (mode, budget), now) {
        tracing::warn!(subject = %step.mark.subject(), "one step back: {}", step.mark);
        steps.push(step.mark.to_string());
        let plan =
            step.mark.into_plan(&step.cause.0, step.cause.1, mode, workflow.clone()).map_err(retryable_failure)?;
        host.file_record(plan).await?;
    }
    Ok(steps)
}

/// Writes the instincts that differ, a slice at a time.
async fn write_instincts(
    host: &VaultContext,
    deadline: CallDeadline,
    sources: BTreeMap<String, SourceTrust>,
    report: &mut CalibrateOutput,
) -> Result<(), ActivityError> {
    let mut files = host.index.list_instinct_files().await.map_err(retryable_failure)?;
    let mut left = sources.into_iter().peekable();
    while left.peek().is_some() {
        if deadline.is_over() {
            report.more = true;
            break;
        }
        let mut path = |source: &str| match files.remove(source) {
            Some(path) => Ok(path),
            None => RecordPath::new(RecordKind::Instinct, source),
        };
        let slice = left.by_ref().take(SLICE).map(|(source, trust)| Ok((path(&source)?, trust)));
        let slice: Vec<(RecordPath, SourceTrust)> =
            slice.collect::<Result<_, PathError>>().map_err(retryable_failure)?;
        let keeper = Arc::clone(&host.keeper);
        let ended = run_blocking(move || write_instinct_slice(&keeper, slice)).await?;
        report.written += ended.written.len() as u64;
        report.failed += ended.failed;
        host.reindex_paths(&ended.written.iter().collect::<Vec<_>>()).await?;
        if let Some(e) = ended.cut_short {
            return Err(retryable_failure(e));
        }
    }
    Ok(())
}

/// What became of a slice.
#[derive(Default)]
struct InstinctSliceOutcome {
    written: Vec<RecordPath>,
    failed: u64,
    cut_short: Option<ApplyError>,
}

fn write_instinct_slice(keeper: &VaultWriter, slice: Vec<(RecordPath, SourceTrust)>) -> InstinctSliceOutcome {
    let mut ended = InstinctSliceOutcome::default();
    for (path, trust) in slice {
        match update_instinct(keeper, &path, &trust) {
            Ok(true) => ended.written.push(path),
            Ok(false) => {}
            // A file that a human broke is theirs to mend, and keeps back no other.
            Err(e @ (ApplyError::Record { .. } | ApplyError::Root(_) | ApplyError::Form(_))) => {
                tracing::warn!(instinct = %path, error = %e, "an instinct could not be written");
                ended.failed += 1;
            }
            Err(e) => {
                ended.cut_short = Some(e);
                break;
            }
        }
    }
    ended
}

/// Whether anything had to be written.
fn update_instinct(keeper: &VaultWriter, path: &RecordPath, trust: &SourceTrust) -> Result<bool, ApplyError> {
    let current = match keeper.root().read_file(path) {
        Ok(current) => current,
        Err(VaultRootError::Missing { .. }) => return create_instinct(keeper, path, trust),
        Err(e) => return Err(e.into()),
    };
    let none = RecordFields::new();
    let document = frontmatter::read_document(&current.bytes).ok();
    let edits = plan_instinct_edits(document.as_ref().map_or(&none, |d| d.fields()), trust);
    if edits.is_empty() { Ok(false) } else { keeper.update_status_fields(path, &edits) }
}

fn create_instinct(keeper: &VaultWriter, path: &RecordPath, trust: &SourceTrust) -> Result<bool, ApplyError> {
    let mut fields = RecordFields::new();
    fields.insert("type".into(), json!("instinct"));
    fields.insert("source".into(), json!(trust.name));
    for edit in plan_instinct_edits(&fields, trust) {
        fields.insert(edit.field, edit.value.unwrap_or_default());
    }
    match keeper.create_file(path, frontmatter::render_document(&fields, "").as_bytes()) {
        Ok(written) => Ok(written),
        // It came this very moment: the next round adds to it.
        Err(CreateError::Taken { .. }) => Ok(false),
        Err(CreateError::Kind { path }) => Err(ApplyError::Form(format!("{path}: not written whole"))),
        Err(CreateError::Disk(e)) => Err(e),
    }
}

/// What has to change in these fields.
fn plan_instinct_edits(fields: &RecordFields, trust: &SourceTrust) -> Vec<FieldEdit> {
    let number = |field: &str| fields.get(field).and_then(Value::as_u64);
    // Until we have written our count, every number is the human's. The same write keeps both, so a crash adds nothing twice.
    let counted = number(Instinct::COUNTED);
    let given = number("observations").unwrap_or(0).saturating_sub(counted.unwrap_or(0));
    let start = if counted.is_none() { Instinct::read(fields).start } else { None };
    let history: Vec<String> = trust
        .moves
        .iter()
        .map(|m| format!("{} {} {:.2} ({})", time::format_seconds(m.at), m.to.as_str(), m.value, m.cause))
        .collect();
    let wanted = [
        ("observations", json!(given.saturating_add(trust.observations.into()))),
        (Instinct::COUNTED, json!(trust.observations)),
        ("confidence", json!((trust.confidence.value * 10_000.0).round() / 10_000.0)),
        ("status", json!(trust.confidence.standing.as_str())),
        ("history", json!(history)),
    ];
    // A list that is written before it has anything would keep its place on one line, and read otherwise than one
    // that is written whole.
    let nothing = |(field, value): &(&str, Value)| *value == json!([]) && !fields.contains_key(*field);
    let differs = |one: &(&str, Value)| fields.get(one.0) != Some(&one.1) && !nothing(one);
    let edit = |(field, value): (&str, Value)| FieldEdit { field: field.to_owned(), value: Some(value) };
    let start = start.map(|start| (Instinct::START, json!(start)));
    wanted.into_iter().chain(start).filter(differs).map(edit).collect()
}
