//! The transcript of a run in which a model writes, and that of its verifier: lines that are only ever appended.
//!
//! A line is durable before anything follows from it. One that a crash cut off counts as not written.

use super::files::read_bytes;
use super::{StagedRun, StagedRunError, StagedRuns, edited};
use crate::files::durable;
use crate::wiki::guardian::GuardianLine;
use cap_std::fs::OpenOptions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Write};
use steward_domain::wiki::verifier::VerifierLine;
use steward_domain::wiki::writer::budget::MeasuredUsage;
use steward_domain::wiki::writer::transcript::{Transcript, TranscriptLine};

const TRANSCRIPT: &str = "transcript.jsonl";
const VERIFIER: &str = "verifier.jsonl";
const CHANGES: &str = "changes.jsonl";
/// The largest transcript, in bytes: far more than the turns of any run hold.
const MAX_TRANSCRIPT: usize = 64 * 1024 * 1024;

/// The most runs of which the usage is measured: the newest.
const MEASURED_RUNS: usize = 20;

impl StagedRuns {
    /// What the newest runs of this model took, as their transcripts say.
    ///
    /// # Errors
    /// The folder of the runs cannot be listed.
    pub fn measure_usage(&self, model: &str) -> Result<MeasuredUsage, StagedRunError> {
        let mut measured = MeasuredUsage::default();
        let runs = self.list()?.into_iter().rev().filter(|run| run.meta.writer == model && run.meta.source.is_some());
        for run in runs.take(MEASURED_RUNS) {
            let read = self.peek(&run.meta.run).and_then(|run| run.read_transcript());
            if let Ok(transcript) = read {
                measured.add(&transcript);
            }
        }
        Ok(measured)
    }
}

impl StagedRun {
    /// What was said so far. A line that a crash cut off counts as not written.
    ///
    /// # Errors
    /// [`StagedRunError::Edited`] if a line cannot be read.
    pub fn read_transcript(&self) -> Result<Transcript, StagedRunError> {
        Ok(Transcript { lines: self.read_lines(TRANSCRIPT)? })
    }

    /// What an assistant did so far.
    ///
    /// # Errors
    /// As [`StagedRun::read_transcript`].
    pub(crate) fn read_changes(&self) -> Result<Vec<GuardianLine>, StagedRunError> {
        self.read_lines(CHANGES)
    }

    /// Appends what an assistant did. Returns after it is durable.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub(crate) fn append_change(&self, line: &GuardianLine) -> Result<(), StagedRunError> {
        self.write_line(CHANGES, line).map_err(self.failed())
    }

    /// What the verifier did so far.
    ///
    /// # Errors
    /// As [`StagedRun::read_transcript`].
    pub fn read_verifier(&self) -> Result<Vec<VerifierLine>, StagedRunError> {
        self.read_lines(VERIFIER)
    }

    fn read_lines<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, StagedRunError> {
        let failed = |reason: String| edited(&self.meta.run, &format!("{name}: {reason}"));
        let bytes = read_bytes(&self.dir, name, MAX_TRANSCRIPT).map_err(|e| failed(e.to_string()))?;
        let bytes = bytes.unwrap_or_default();
        let whole = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        whole.map(serde_json::from_slice).collect::<Result<Vec<T>, _>>().map_err(|e| failed(e.to_string()))
    }

    /// Appends a line. Returns after it is durable.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn append_transcript(&self, line: &TranscriptLine) -> Result<(), StagedRunError> {
        self.write_line(TRANSCRIPT, line).map_err(self.failed())
    }

    /// Appends a line of the verifier. Returns after it is durable.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn append_verifier(&self, line: &VerifierLine) -> Result<(), StagedRunError> {
        self.write_line(VERIFIER, line).map_err(self.failed())
    }

    fn write_line(&self, name: &str, line: &impl Serialize) -> io::Result<()> {
        let known = read_bytes(&self.dir, name, MAX_TRANSCRIPT)?;
        let whole =
            known.as_deref().map_or(0, |bytes| bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        if known.is_none() {
            durable::replace_private_file(&self.dir, name, &text)?;
            return durable::sync_folder(&self.dir);
        }
        let mut file = self.dir.open_with(name, OpenOptions::new().append(true))?;
        // What a crash cut off.
        file.set_len(whole as u64)?;
        file.write_all(&text)?;
        file.sync_all()
    }
}
