//! Calibrates the instincts: writes what the audit records show about each source.
//!
//! The records are read through the index, and the rules are those of [`steward_domain::trust`]. The numbers of an
//! instinct are computed from all records, never from the earlier numbers. So a repeat, another order or a loss gives
//! the same result. It must not overwrite what a person wrote: a ceiling, the text, observations given in advance (ours
//! are added to them), and the confidence from which the average starts.

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
use steward_domain::record::path::RecordPath;
use steward_domain::time;
use steward_domain::trust::confidence::ConfidenceStatus;
use steward_domain::trust::demotion::find_demotions;
use steward_domain::trust::mark::{TrustMark, TrustSubject, short_source_name};
use steward_vault::action::create::CreateError;
use steward_vault::action::writer::{ApplyError, VaultWriter};
use steward_vault::files::root::VaultRootError;
use steward_vault::index::{InstinctNumber, SourceTrust};
use steward_workflows::CalibrateOutput;
use temporalio_common::ActivityError;

#[cfg(test)]
mod tests;

/// How long one call begins new work: 120 s, half of the time that its workflow allows.
const WORK_TIME: Duration = Duration::from_secs(120);
/// Instincts that are written and then indexed at once: 200, which takes a slow disk a second or two.
const SLICE: usize = 200;

/// When one call stops beginning new work.
#[derive(Clone, Copy)]
pub(crate) struct CallDeadline(Instant);

impl CallDeadline {
    /// The deadline of a call that begins now.
    pub(crate) fn from_now() -> Self {
        Self(Instant::now() + WORK_TIME)
    }

    /// A deadline after half of the time that is left.
    fn halve_time_left(self) -> Self {
        let now = Instant::now();
        Self(now + self.0.saturating_duration_since(now) / 2)
    }

    fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}

/// Compares proposals with changes made by hand, demotes what was undone too often, and updates the instincts.
///
/// The records are read once. If the call is dropped at any point, what it wrote stays, and the next call does the rest.
pub(crate) async fn run_calibration(
    vault: &VaultContext,
    start_deadline: impl FnOnce() -> CallDeadline,
    workflow: WorkflowRef,
    now: DateTime<Utc>,
) -> Result<CalibrateOutput, ActivityError> {
    let (deadline, mut report) = (start_deadline(), CalibrateOutput::default());
    compare_proposals(vault, deadline.halve_time_left(), &workflow, now, &mut report).await?;
    report.lowered = apply_demotions(vault, &workflow, now).await?.len() as u64;
    let sources = vault.index.trust().compute_source_trust(now).await.map_err(retryable_failure)?;
    record_pruned_sources(vault, deadline, &workflow, &sources, &mut report).await?;
    write_instincts(vault, deadline, sources, &mut report).await?;
    if report != CalibrateOutput::default() {
        tracing::info!(
            written = report.written,
            failed = report.failed,
            by_hand = report.by_hand,
            pruned = report.pruned,
            lowered = report.lowered,
            more = report.more,
            "trust calibrated from the records"
        );
    }
    Ok(report)
}

/// Files which proposals people made true by hand, and which changes they reverted by hand.
async fn compare_proposals(
    vault: &VaultContext,
    deadline: CallDeadline,
    workflow: &WorkflowRef,
    now: DateTime<Utc>,
    report: &mut CalibrateOutput,
) -> Result<(), ActivityError> {
    let round = vault.index.trust().next_comparison_round(now).await.map_err(retryable_failure)?;
    let mut compared = 0;
    for proposal in &round.proposals {
        if deadline.is_over() {
            report.more = true;
            break;
        }
        compared += 1;
        let (writer, proposal, workflow) = (Arc::clone(&vault.writer), proposal.clone(), workflow.clone());
        match run_blocking(move || writer.file_manual_outcome(&proposal, workflow, now)).await? {
            Ok(Some(receipt)) => {
                report.by_hand += 1;
                vault.reindex_paths(&[&receipt.record]).await?;
            }
            Ok(None) => {}
            Err(e @ (ApplyError::Root(_) | ApplyError::Form(_) | ApplyError::Chain(_))) => {
                tracing::warn!(error = %e, "failed to compare a proposal with its target");
            }
            Err(e) => return Err(retryable_failure(e)),
        }
    }
    // A call that is interrupted before this line begins the round again.
    vault.index.trust().finish_comparison_round(&round, compared).await.map_err(retryable_failure)
}

/// Files a record each time that a source is pruned, which makes it an unknown source again.
async fn record_pruned_sources(
    vault: &VaultContext,
    deadline: CallDeadline,
    workflow: &WorkflowRef,
    sources: &BTreeMap<String, SourceTrust>,
    report: &mut CalibrateOutput,
) -> Result<(), ActivityError> {
    let recorded = vault.index.trust().list_prune_records().await.map_err(retryable_failure)?;
    for (source, trust) in sources {
        for fall in trust.status_changes.iter().filter(|m| m.to == ConfidenceStatus::Pruned) {
            let name = short_source_name(source, &trust.name);
            let mark =
                TrustMark::Pruned { subject: TrustSubject::Source(source.clone()), name, confidence: fall.value };
            let plan = mark.into_plan(&fall.cause, fall.at, vault.settings.policy.mode, workflow.clone());
            let plan = plan.map_err(retryable_failure)?;
            if recorded.contains(plan.id().as_str()) {
                continue;
            }
            if deadline.is_over() {
                report.more = true;
                return Ok(());
            }
            vault.file_record(plan).await?;
            report.pruned += 1;
        }
    }
    Ok(())
}

/// Demotes by one step each source and class that was undone too often, and returns the demotions as text.
pub(crate) async fn apply_demotions(
    vault: &VaultContext,
    workflow: &WorkflowRef,
    now: DateTime<Utc>,
) -> Result<Vec<String>, ActivityError> {
    let (mode, budget) = (vault.settings.policy.mode, vault.settings.reversal_budget);
    // A change that is applied meanwhile would not see the demotion.
    let _guard = vault.apply_lock.lock().await;
    let made = vault.index.trust().list_recent_live_changes(now).await.map_err(retryable_failure)?;
    let caps = vault.index.trust().read_mode_caps().await.map_err(retryable_failure)?;
    let mut steps = Vec::new();
    for step in find_demotions(&made, &caps, mode, budget, now) {
        tracing::warn!(subject = %step.mark.subject(), "demoted: {}", step.mark);
        steps.push(step.mark.to_string());
        let plan =
            step.mark.into_plan(&step.cause.0, step.cause.1, mode, workflow.clone()).map_err(retryable_failure)?;
        vault.file_record(plan).await?;
    }
    Ok(steps)
}

/// Writes the instincts that differ, a slice at a time.
async fn write_instincts(
    vault: &VaultContext,
    deadline: CallDeadline,
    sources: BTreeMap<String, SourceTrust>,
    report: &mut CalibrateOutput,
) -> Result<(), ActivityError> {
    let mut files = vault.index.trust().list_instinct_files().await.map_err(retryable_failure)?;
    let mut left = sources.into_iter().peekable();
    while left.peek().is_some() {
        if deadline.is_over() {
            report.more = true;
            break;
        }
        let mut path = |source: &str| match files.remove(source) {
            Some(path) => Ok(path),
            // The name may belong to a file of another source.
            None => vault.writer.find_instinct_place(source),
        };
        let slice = left.by_ref().take(SLICE).map(|(source, trust)| Ok((path(&source)?, trust)));
        let slice: Vec<(RecordPath, SourceTrust)> =
            slice.collect::<Result<_, ApplyError>>().map_err(retryable_failure)?;
        let writer = Arc::clone(&vault.writer);
        let (slice, numbers) = run_blocking(move || {
            let numbers: Vec<InstinctNumber> =
                slice.iter().flat_map(|(path, trust)| list_numbers(&writer, path, trust)).collect();
            (slice, numbers)
        })
        .await?;
        vault.index.trust().note_instinct_numbers(&numbers, Utc::now()).await.map_err(retryable_failure)?;
        let writer = Arc::clone(&vault.writer);
        let outcome = run_blocking(move || write_instinct_slice(&writer, slice)).await?;
        report.written += outcome.written.len() as u64;
        report.failed += outcome.failed;
        vault.reindex_paths(&outcome.written.iter().collect::<Vec<_>>()).await?;
        if let Some(e) = outcome.interrupted_by {
            return Err(retryable_failure(e));
        }
    }
    Ok(())
}

/// How the writing of one slice ended.
#[derive(Default)]
struct InstinctSliceOutcome {
    written: Vec<RecordPath>,
    failed: u64,
    interrupted_by: Option<ApplyError>,
}

fn write_instinct_slice(writer: &VaultWriter, slice: Vec<(RecordPath, SourceTrust)>) -> InstinctSliceOutcome {
    let mut outcome = InstinctSliceOutcome::default();
    for (path, trust) in slice {
        match update_instinct(writer, &path, &trust) {
            Ok(true) => outcome.written.push(path),
            Ok(false) => {}
            // A person broke this file and has to fix it. The other files go on.
            Err(e @ (ApplyError::Record { .. } | ApplyError::Root(_) | ApplyError::Form(_))) => {
                tracing::warn!(instinct = %path, error = %e, "failed to write an instinct");
                outcome.failed += 1;
            }
            Err(e) => {
                outcome.interrupted_by = Some(e);
                break;
            }
        }
    }
    outcome
}

/// The numbers that an instinct holds and is to hold. None for a file that is yet to be created or cannot be read.
fn list_numbers(writer: &VaultWriter, path: &RecordPath, trust: &SourceTrust) -> Vec<InstinctNumber> {
    let Ok(current) = writer.root().read_file(path) else { return Vec::new() };
    let Ok(document) = frontmatter::read_document(&current.bytes) else { return Vec::new() };
    let fields = document.fields();
    let is_counted = fields.get(Instinct::COUNTED).and_then(Value::as_u64).is_some();
    let number = |field: &'static str, wanted: &Value| InstinctNumber {
        path: path.clone(),
        field,
        found: fields.get(field).filter(|value| !value.is_null()).map(Value::to_string),
        wanted: wanted.to_string(),
        is_counted,
    };
    compute_numbers(fields, trust).iter().map(|(field, wanted)| number(field, wanted)).collect()
}

/// Updates an instinct's file, and returns whether anything had to be written.
fn update_instinct(writer: &VaultWriter, path: &RecordPath, trust: &SourceTrust) -> Result<bool, ApplyError> {
    let current = match writer.root().read_file(path) {
        Ok(current) => current,
        Err(VaultRootError::Missing { .. }) => return create_instinct(writer, path, trust),
        Err(e) => return Err(e.into()),
    };
    let none = RecordFields::new();
    let document = frontmatter::read_document(&current.bytes).ok();
    let edits = plan_instinct_edits(document.as_ref().map_or(&none, |d| d.fields()), trust);
    if edits.is_empty() { Ok(false) } else { writer.update_status_fields(path, &edits) }
}

fn create_instinct(writer: &VaultWriter, path: &RecordPath, trust: &SourceTrust) -> Result<bool, ApplyError> {
    let mut fields = RecordFields::new();
    fields.insert("type".into(), json!("instinct"));
    fields.insert("source".into(), json!(trust.name));
    for edit in plan_instinct_edits(&fields, trust) {
        fields.insert(edit.field, edit.value.unwrap_or_default());
    }
    match writer.create_file(path, frontmatter::render_document(&fields, "").as_bytes()) {
        Ok(written) => Ok(written),
        // The file was created this very moment. The next round updates it.
        Err(CreateError::Taken { .. }) => Ok(false),
        Err(CreateError::Kind { path }) => Err(ApplyError::Form(format!("{path}: failed to write the whole file"))),
        Err(CreateError::Disk(e)) => Err(e),
    }
}

/// The numbers that an instinct with these fields is to hold, of those that a person may write as well.
fn compute_numbers(fields: &RecordFields, trust: &SourceTrust) -> [(&'static str, Value); 3] {
    let number = |field: &str| fields.get(field).and_then(Value::as_u64);
    // Until our count is in the file, every number is the person's. One write stores both, so that a crash adds nothing
    // twice.
    let given = number("observations").unwrap_or(0).saturating_sub(number(Instinct::COUNTED).unwrap_or(0));
    [
        ("observations", json!(given.saturating_add(trust.observations.into()))),
        ("confidence", json!((trust.confidence.value * 10_000.0).round() / 10_000.0)),
        ("status", json!(trust.confidence.status.as_str())),
    ]
}

/// Lists the edits that bring an instinct's fields up to date.
fn plan_instinct_edits(fields: &RecordFields, trust: &SourceTrust) -> Vec<FieldEdit> {
    let counted = fields.get(Instinct::COUNTED).and_then(Value::as_u64);
    let start = if counted.is_none() { Instinct::read(fields).start } else { None };
    let history: Vec<String> = trust
        .status_changes
        .iter()
        .map(|m| format!("{} {} {:.2} ({})", time::format_seconds(m.at), m.to.as_str(), m.value, m.cause))
        .collect();
    let [observations, confidence, status] = compute_numbers(fields, trust);
    let counted = (Instinct::COUNTED, json!(trust.observations));
    let wanted = [observations, counted, confidence, status, ("history", json!(history))];
    // An empty list is not written. It would stay on one line when members are added, and so look different from a list
    // that was written at once.
    let is_new_empty_list = |(field, value): &(&str, Value)| *value == json!([]) && !fields.contains_key(*field);
    let differs = |one: &(&str, Value)| fields.get(one.0) != Some(&one.1) && !is_new_empty_list(one);
    let edit = |(field, value): (&str, Value)| FieldEdit { field: field.to_owned(), value: Some(value) };
    let start = start.map(|start| (Instinct::START, json!(start)));
    wanted.into_iter().chain(start).filter(differs).map(edit).collect()
}
