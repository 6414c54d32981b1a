//! Brings the instincts in line with what the audit records say of their sources.
//!
//! The records are read through the index, the rules are [`steward_domain::trust`]'s. An instinct's numbers are the
//! whole of what the records say, never a step more than before: doing it twice, in another order or after a
//! loss comes to the same. What a human wrote stays: a ceiling, words, and observations given in advance, on top of
//! which ours are counted.

use crate::failure::passing;
use crate::vault::{Host, on_a_blocking_thread};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steward_domain::audit::WorkflowRef;
use steward_domain::frontmatter::{self, FieldEdit, Fields};
use steward_domain::path::{RecordKind, RecordPath};
use steward_domain::time;
use steward_domain::trust::confidence::Standing;
use steward_domain::trust::mark::{Subject, TrustMark, shown_name};
use steward_domain::trust::step_back::due;
use steward_vault::create::CreateError;
use steward_vault::index::SourceTrust;
use steward_vault::keeper::{ApplyError, Keeper};
use steward_vault::root::RootError;
use steward_workflows::activities::{CalibrateAsk, Calibrated};
use temporalio_common::ActivityError;

/// First what was done by hand, then what follows for the sources, then what was undone too often.
pub(crate) async fn calibrate(
    host: &Host,
    ask: &CalibrateAsk,
    (workflow, now): (WorkflowRef, DateTime<Utc>),
) -> Result<Calibrated, ActivityError> {
    let mut report = Calibrated::default();
    compare(host, ask, (&workflow, now), &mut report).await?;
    let sources = host.index.trust(now).await.map_err(passing)?;
    prune(host, ask, (&workflow, &sources), &mut report).await?;
    report.lowered = step_back(host, (&workflow, now)).await?.len() as u64;
    instincts(host, ask, sources, &mut report).await?;
    if report != Calibrated::default() {
        tracing::info!(
            written = report.written,
            failed = report.failed,
            by_hand = report.by_hand,
            pruned = report.pruned,
            lowered = report.lowered,
            "trust brought in line with the records"
        );
    }
    Ok(report)
}

/// Files what humans did by hand about what was proposed, and which changes they wrote back.
async fn compare(
    host: &Host,
    ask: &CalibrateAsk,
    (workflow, now): (&WorkflowRef, DateTime<Utc>),
    report: &mut Calibrated,
) -> Result<(), ActivityError> {
    for proposal in host.index.to_compare(now).await.map_err(passing)? {
        if report.by_hand >= u64::from(ask.limit) {
            report.more = true;
            break;
        }
        let (keeper, workflow) = (Arc::clone(&host.keeper), workflow.clone());
        match on_a_blocking_thread(move || keeper.compare(&proposal, workflow, now)).await? {
            Ok(Some(receipt)) => {
                report.by_hand += 1;
                host.note(&[&receipt.record]).await?;
            }
            Ok(None) => {}
            Err(e @ (ApplyError::Root(_) | ApplyError::Form(_) | ApplyError::Chain(_))) => {
                tracing::warn!(error = %e, "a proposal could not be compared with its target");
            }
            Err(e) => return Err(passing(e)),
        }
    }
    Ok(())
}

/// Files that a source is taken for a stranger again, once for each time.
async fn prune(
    host: &Host,
    ask: &CalibrateAsk,
    (workflow, sources): (&WorkflowRef, &BTreeMap<String, SourceTrust>),
    report: &mut Calibrated,
) -> Result<(), ActivityError> {
    let known = host.index.prunes().await.map_err(passing)?;
    for (source, trust) in sources {
        for fall in trust.moves.iter().filter(|m| m.to == Standing::Pruned) {
            if report.pruned >= u64::from(ask.limit) {
                report.more = true;
                return Ok(());
            }
            let name = shown_name(source, &trust.name);
            let mark = TrustMark::Pruned { subject: Subject::Source(source.clone()), name, confidence: fall.value };
            let plan = mark.plan((&fall.cause, fall.at), host.settings.policy.mode, workflow.clone());
            let plan = plan.map_err(passing)?;
            if !known.contains(plan.id().as_str()) {
                host.file(plan).await?;
                report.pruned += 1;
            }
        }
    }
    Ok(())
}

/// Lowers by a step what was undone too often; says which steps.
pub(crate) async fn step_back(
    host: &Host,
    (workflow, now): (&WorkflowRef, DateTime<Utc>),
) -> Result<Vec<String>, ActivityError> {
    let (mode, budget) = (host.settings.policy.mode, host.settings.reversal_budget);
    // No change lands meanwhile that would not know of it.
    let _turn = host.landing.lock().await;
    let made = host.index.made(now).await.map_err(passing)?;
    let caps = host.index.caps().await.map_err(passing)?;
    let mut steps = Vec::new();
    for step in due(&made, &caps, (mode, budget), now) {
        tracing::warn!(subject = %step.mark.subject(), "one step back: {}", step.mark);
        steps.push(step.mark.to_string());
        let plan = step.mark.plan((&step.cause.0, step.cause.1), mode, workflow.clone()).map_err(passing)?;
        host.file(plan).await?;
    }
    Ok(steps)
}

/// Writes at most so many instincts that differ.
async fn instincts(
    host: &Host,
    ask: &CalibrateAsk,
    sources: BTreeMap<String, SourceTrust>,
    report: &mut Calibrated,
) -> Result<(), ActivityError> {
    let mut files = host.index.instinct_files().await.map_err(passing)?;
    for (source, trust) in sources {
        if report.written >= u64::from(ask.limit) {
            report.more = true;
            break;
        }
        let path = match files.remove(&source) {
            Some(path) => path,
            None => RecordPath::new(RecordKind::Instinct, &source).map_err(passing)?,
        };
        let (keeper, file) = (Arc::clone(&host.keeper), path.clone());
        match on_a_blocking_thread(move || write(&keeper, &file, &trust)).await? {
            Ok(true) => {
                report.written += 1;
                host.note(&[&path]).await?;
            }
            Ok(false) => {}
            // A file that a human broke is theirs to mend, and keeps back no other.
            Err(e @ (ApplyError::Record { .. } | ApplyError::Root(_) | ApplyError::Form(_))) => {
                tracing::warn!(instinct = %path, error = %e, "an instinct could not be written");
                report.failed += 1;
            }
            Err(e) => return Err(passing(e)),
        }
    }
    Ok(())
}

/// Whether anything had to be written.
fn write(keeper: &Keeper, path: &RecordPath, trust: &SourceTrust) -> Result<bool, ApplyError> {
    let current = match keeper.root().read(path) {
        Ok(current) => current,
        Err(RootError::Missing { .. }) => return create(keeper, path, trust),
        Err(e) => return Err(e.into()),
    };
    let none = Fields::new();
    let document = frontmatter::read(&current.bytes).ok();
    let edits = edits(document.as_ref().map_or(&none, |d| d.fields()), trust);
    if edits.is_empty() { Ok(false) } else { keeper.note(path, &edits) }
}

fn create(keeper: &Keeper, path: &RecordPath, trust: &SourceTrust) -> Result<bool, ApplyError> {
    let mut fields = Fields::new();
    fields.insert("type".into(), json!("instinct"));
    fields.insert("source".into(), json!(trust.name));
    for edit in edits(&fields, trust) {
        fields.insert(edit.field, edit.value.unwrap_or_default());
    }
    match keeper.create(path, frontmatter::render(&fields, "").as_bytes()) {
        Ok(written) => Ok(written),
        // It came this very moment: the next round adds to it.
        Err(CreateError::Taken { .. }) => Ok(false),
        Err(CreateError::Kind { path }) => Err(ApplyError::Form(format!("{path}: not written whole"))),
        Err(CreateError::Disk(e)) => Err(e),
    }
}

/// What has to change in these fields.
fn edits(fields: &Fields, trust: &SourceTrust) -> Vec<FieldEdit> {
    let number = |field: &str| fields.get(field).and_then(Value::as_u64).unwrap_or(0);
    let given = number("observations").saturating_sub(number("counted"));
    let history: Vec<String> = trust
        .moves
        .iter()
        .map(|m| format!("{} {} {:.2} ({})", time::seconds(m.at), m.to.word(), m.value, m.cause))
        .collect();
    let wanted = [
        ("observations", json!(given.saturating_add(trust.observations.into()))),
        ("counted", json!(trust.observations)),
        ("confidence", json!((trust.confidence.value * 10_000.0).round() / 10_000.0)),
        ("status", json!(trust.confidence.standing.word())),
        ("history", json!(history)),
    ];
    // A list that is written before it has anything would keep its place on one line, and read otherwise than one
    // that is written whole.
    let nothing = |(field, value): &(&str, Value)| *value == json!([]) && !fields.contains_key(*field);
    let differs = |one: &(&str, Value)| fields.get(one.0) != Some(&one.1) && !nothing(one);
    let edit = |(field, value): (&str, Value)| FieldEdit { field: field.to_owned(), value: Some(value) };
    wanted.into_iter().filter(differs).map(edit).collect()
}
