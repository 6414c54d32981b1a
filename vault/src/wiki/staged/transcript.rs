//! The transcript of a run in which a model writes: lines that are only ever appended.
//!
//! A line is durable before anything follows from it. One that a crash cut off counts as not written.

use super::files::read_bytes;
use super::{StagedRun, StagedRunError, edited};
use crate::files::durable;
use cap_std::fs::OpenOptions;
use std::io::{self, Write};
use steward_domain::wiki::writer::transcript::{Transcript, TranscriptLine};

const TRANSCRIPT: &str = "transcript.jsonl";
/// The largest transcript, in bytes: far more than the turns of any run hold.
const MAX_TRANSCRIPT: usize = 64 * 1024 * 1024;

impl StagedRun {
    /// What was said so far. A line that a crash cut off counts as not written.
    ///
    /// # Errors
    /// [`StagedRunError::Edited`] if a line cannot be read.
    pub fn read_transcript(&self) -> Result<Transcript, StagedRunError> {
        let failed = |reason: String| edited(&self.meta.run, &format!("{TRANSCRIPT}: {reason}"));
        let bytes = read_bytes(&self.dir, TRANSCRIPT, MAX_TRANSCRIPT).map_err(|e| failed(e.to_string()))?;
        let bytes = bytes.unwrap_or_default();
        let whole = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let lines = whole.map(serde_json::from_slice::<TranscriptLine>).collect::<Result<Vec<_>, _>>();
        Ok(Transcript { lines: lines.map_err(|e| failed(e.to_string()))? })
    }

    /// Appends a line. Returns after it is durable.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn append_transcript(&self, line: &TranscriptLine) -> Result<(), StagedRunError> {
        self.write_line(line).map_err(self.failed())
    }

    fn write_line(&self, line: &TranscriptLine) -> io::Result<()> {
        let known = read_bytes(&self.dir, TRANSCRIPT, MAX_TRANSCRIPT)?;
        let whole =
            known.as_deref().map_or(0, |bytes| bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        if known.is_none() {
            durable::replace_private_file(&self.dir, TRANSCRIPT, &text)?;
            return durable::sync_folder(&self.dir);
        }
        let mut file = self.dir.open_with(TRANSCRIPT, OpenOptions::new().append(true))?;
        // What a crash cut off.
        file.set_len(whole as u64)?;
        file.write_all(&text)?;
        file.sync_all()
    }
}
