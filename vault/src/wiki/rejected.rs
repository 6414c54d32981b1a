//! Ends runs that commit nothing, and keeps an audit record of each.
//!
//! A run is ended here, whoever ends it. The state of the staged run is written first, and the record follows. A crash, a stop or a full
//! disk may hold the record: [`VaultWriter::record_ended_runs`] files what is missing. A run has one such record, because it is
//! named after the run. It changes no file.

use crate::action::writer::{ApplyError, VaultWriter};
use crate::gates::stop;
use crate::wiki::ingest::describe_run;
use crate::wiki::request::WikiRunError;
use crate::wiki::staged::{RunMeta, RunState, RunStatus, StagedRun, StagedRunError, StagedRuns};
use chrono::{DateTime, Utc};
use steward_domain::action::audit::{ActionKind, WorkflowRef};
use steward_domain::record::path::RecordPath;
use steward_domain::record::plain_text::to_one_line;
use steward_domain::wiki::plan::{WikiPlanError, WikiRun, close};
use steward_domain::wiki::run::{RunEnd, RunRejection};
use steward_domain::wiki::verifier::find_verifier_model;

/// The most characters of a reason, and of a name, in a record.
const MAX_REASON: usize = 1_000;
const MAX_NAME: usize = 120;

/// How a line about what somebody did ends with their reason.
pub(super) fn add_reason(reason: Option<&str>) -> String {
    let reason: String = to_one_line(reason.unwrap_or_default()).chars().take(MAX_REASON).collect();
    if reason.is_empty() { reason } else { format!(": {}", reason.trim_end_matches('.')) }
}

impl VaultWriter {
    /// Ends a run that the rules, its limits or its writer refuse.
    ///
    /// # Errors
    /// [`StagedRunError`] if its state cannot be written.
    pub fn reject_run(&self, run: &StagedRun, at: DateTime<Utc>, reason: &str) -> Result<(), StagedRunError> {
        self.end_run(run, RunStatus::new(RunState::Rejected, at, reason))
    }

    /// Ends a run because a verifier refused what is staged. A person may commit it all the same.
    ///
    /// # Errors
    /// [`StagedRunError`].
    pub fn reject_by_verifier(&self, run: &StagedRun, at: DateTime<Utc>, reason: &str) -> Result<(), StagedRunError> {
        let refused_by_verifier = run.read_staged()?.map(|(plan, _)| plan.hash());
        self.end_run(run, RunStatus { refused_by_verifier, ..RunStatus::new(RunState::Rejected, at, reason) })
    }

    /// Ends a run because a person rejects it.
    ///
    /// # Errors
    /// As [`VaultWriter::reject_run`].
    pub fn reject_by_person(
        &self,
        run: &StagedRun,
        at: DateTime<Utc>,
        by: &str,
        reason: Option<&str>,
    ) -> Result<(), StagedRunError> {
        let status = RunStatus::new(RunState::Rejected, at, &format!("{by} rejected it{}", add_reason(reason)));
        self.end_run(run, RunStatus { rejected_by: Some(by.to_owned()), ..status })
    }

    /// Ends a run for which nobody answered in time.
    ///
    /// # Errors
    /// As [`VaultWriter::reject_run`].
    pub fn abandon_run(&self, run: &StagedRun, at: DateTime<Utc>, reason: &str) -> Result<(), StagedRunError> {
        self.end_run(run, RunStatus::new(RunState::Abandoned, at, reason))
    }

    /// Ends a run because its assistant gives it up after it was submitted.
    ///
    /// # Errors
    /// As [`VaultWriter::reject_run`].
    pub fn withdraw_run(&self, run: &StagedRun, at: DateTime<Utc>, reason: Option<&str>) -> Result<(), StagedRunError> {
        self.abandon_run(run, at, &format!("its assistant gave it up{}", add_reason(reason)))
    }

    fn end_run(&self, run: &StagedRun, status: RunStatus) -> Result<(), StagedRunError> {
        // A person may have ended it meanwhile.
        let known = run.read_status().ok().flatten().filter(|known| find_end(known).is_some());
        let status = match known {
            Some(known) => known,
            None => {
                run.write_status(&status)?;
                status
            }
        };
        // The run has ended, with a record or without it.
        if let Err(error) = self.record_end(run, &status) {
            tracing::warn!(run = %run.meta.run, %error, "the record of a rejected run is not filed yet");
        }
        Ok(())
    }

    /// Files the records of ended runs that have none yet, and returns them. Under a stop nothing is filed.
    ///
    /// # Errors
    /// [`StagedRunError`] if the staged runs cannot be listed. A record that cannot be filed is tried again at the next call.
    pub fn record_ended_runs(&self) -> Result<Vec<RecordPath>, StagedRunError> {
        let (runs, mut filed) = (StagedRuns::new(self.root()), Vec::new());
        if stop::is_stopped(self.root()) {
            return Ok(filed);
        }
        for ended in runs.list()?.into_iter().filter(|run| find_end(&run.status).is_some()) {
            let record = runs.peek(&ended.meta.run).map_err(WikiRunError::from);
            match record.and_then(|run| self.record_end(&run, &ended.status)) {
                Ok(record) => filed.extend(record),
                Err(error) => {
                    tracing::warn!(run = %ended.meta.run, %error, "the record of a rejected run is not filed yet");
                }
            }
        }
        Ok(filed)
    }

    /// Whether a record says how a run ended, or that it was committed.
    #[must_use]
    pub fn has_end_record(&self, meta: &RunMeta) -> bool {
        let runs = [name_end(meta), describe_run(meta, WorkflowRef::default())];
        let paths = runs.iter().filter_map(|run| run.draft_record().ok()?.record_path().ok());
        paths.into_iter().any(|path| self.root().exists(&path))
    }

    /// Files the record of a run that has ended, once. Returns it if it is new.
    fn record_end(&self, run: &StagedRun, status: &RunStatus) -> Result<Option<RecordPath>, WikiRunError> {
        let Some(end) = find_end(status) else { return Ok(None) };
        if self.has_end_record(&run.meta) {
            return Ok(None);
        }
        let described = describe_end(run, status, end);
        let path = described.draft_record().and_then(|draft| draft.record_path()).map_err(WikiPlanError::from)?;
        // A run that a person has committed since is on record.
        let committed = describe_run(&run.meta, WorkflowRef::default());
        if self.root().exists(&path) || self.find_run(&committed)?.is_some() {
            return Ok(None);
        }
        match self.commit_run(&close(described, Vec::new())?) {
            Ok(receipt) => Ok((!receipt.repeated).then_some(receipt.record)),
            // It follows when the stop has ended.
            Err(ApplyError::Stopped | ApplyError::NotPermitted { .. }) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

/// The run of a record that says how it ended, without what its folder holds.
fn name_end(meta: &RunMeta) -> WikiRun {
    WikiRun { kind: ActionKind::WikiRejected, ..describe_run(meta, WorkflowRef::default()) }
}

/// How a run ended that committed nothing; `None` for any other.
fn find_end(status: &RunStatus) -> Option<RunEnd> {
    match status.state {
        RunState::Rejected => Some(RunEnd::Rejected),
        RunState::Abandoned => Some(RunEnd::Abandoned),
        RunState::Pending | RunState::Verifying | RunState::Committed => None,
    }
}

fn describe_end(run: &StagedRun, status: &RunStatus, end: RunEnd) -> WikiRun {
    let meta = &run.meta;
    let (reason, by) = (shorten(&status.reason, MAX_REASON), shorten(&meta.by, MAX_NAME));
    let writer = if meta.is_by_rules() { "fixed rules" } else { &meta.writer };
    // A file that cannot be read any more says nothing.
    let verifier = run.read_verifier().ok().and_then(|lines| find_verifier_model(&lines));
    let checked = verifier.map_or_else(String::new, |model| format!(", checked by {}", shorten(&model, MAX_NAME)));
    let mut described = describe_run(meta, WorkflowRef::default());
    described.kind = ActionKind::WikiRejected;
    described.at = status.at;
    described.reasoning = format!(
        "{end}: {}. Asked for by {by}, written by {}{checked}.",
        reason.trim_end_matches('.'),
        shorten(writer, MAX_NAME)
    );
    described.clerk = run.read_transcript().ok().and_then(|transcript| transcript.describe_clerk());
    let by = status.rejected_by.as_ref().map(|by| shorten(by, MAX_NAME));
    described.mark.rejection = Some(RunRejection { end, by });
    described
}

/// The beginning of a text, on one line.
fn shorten(text: &str, limit: usize) -> String {
    let line = to_one_line(text);
    match line.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", line[..at].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_and_not_too_long() {
        assert_eq!(shorten("a\nb\u{202e}c ", 10), "a b c");
        assert_eq!(shorten("ärgerlich", 3), "ärg…");
        assert_eq!(shorten("abc", 3), "abc");
    }
}
