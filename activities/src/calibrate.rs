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
use std::sync::Arc;
use steward_domain::frontmatter::{self, FieldEdit, Fields};
use steward_domain::path::{RecordKind, RecordPath};
use steward_domain::time;
use steward_vault::create::CreateError;
use steward_vault::index::SourceTrust;
use steward_vault::keeper::{ApplyError, Keeper};
use steward_vault::root::RootError;
use steward_workflows::activities::{CalibrateAsk, Calibrated};
use temporalio_common::ActivityError;

/// Writes at most so many instincts that differ.
pub(crate) async fn calibrate(
    host: &Host,
    ask: &CalibrateAsk,
    now: DateTime<Utc>,
) -> Result<Calibrated, ActivityError> {
    let sources = host.index.trust(now).await.map_err(passing)?;
    let mut files = host.index.instinct_files().await.map_err(passing)?;
    let mut report = Calibrated::default();
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
    if report != Calibrated::default() {
        tracing::info!(written = report.written, failed = report.failed, "instincts brought up to date");
    }
    Ok(report)
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
    let differs = |(field, value): &(&str, Value)| fields.get(*field) != Some(value);
    let edit = |(field, value): (&str, Value)| FieldEdit { field: field.to_owned(), value: Some(value) };
    wanted.into_iter().filter(differs).map(edit).collect()
}
