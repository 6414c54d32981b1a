//! Reads a file with one JSON object a line, some lines at a time.
//!
//! An invalid line is reported by its number, and the others go on. A line that is too long is skipped and must not be
//! held in memory. The objects become messages. The caller moves the file itself.

use super::super::BATCH;
use super::super::BATCH_BYTES;
use super::super::FoundMessage;
use super::super::hash_id;
use super::super::source_pattern;
use serde::Deserialize;
use serde_json::Value;
use std::io::{self, BufRead};
use steward_domain::time;

/// Most bad lines that are reported one by one: 50. The rest are counted.
const MAX_REPORTED: usize = 50;

/// One line. Unknown keys are ignored, because exports have many.
#[derive(Deserialize)]
struct InboxLine {
    id: Option<Value>,
    at: Option<String>,
    from: Option<String>,
    subject: Option<String>,
    text: String,
}

/// Reads the lines of a file.
pub(super) struct LineReader<R> {
    reader: R,
    max_bytes: u64,
    number: u64,
}

/// The messages and the bad lines of some lines.
#[derive(Default)]
pub(super) struct LineChunk {
    pub(super) found: Vec<FoundMessage>,
    /// Why a line could not be read, by its number.
    pub(super) bad: Vec<(u64, String)>,
    /// There are no more lines.
    pub(super) last: bool,
}

/// The complaints about the lines of a file.
#[derive(Default)]
pub(super) struct LineComplaints {
    reported: Vec<(u64, String)>,
    more: u64,
}

impl<R: BufRead> LineReader<R> {
    pub(super) fn new(reader: R, max_bytes: u64) -> Self {
        Self { reader, max_bytes, number: 0 }
    }

    /// Reads the next lines, at most as many as a batch holds.
    pub(super) fn read_chunk(&mut self) -> io::Result<LineChunk> {
        let (mut chunk, mut size) = (LineChunk::default(), 0);
        while chunk.found.len() + chunk.bad.len() < BATCH && size < BATCH_BYTES {
            let Some(line) = self.read_line()? else {
                chunk.last = true;
                break;
            };
            let read =
                line.and_then(|line| if line.trim_ascii().is_empty() { Ok(None) } else { parse_line(&line).map(Some) });
            match read {
                Ok(Some(found)) => {
                    size += found.memory_size();
                    chunk.found.push(found);
                }
                Ok(None) => {}
                Err(why) => chunk.bad.push((self.number, why)),
            }
        }
        Ok(chunk)
    }

    /// Reads the next line, or the reason why it is skipped.
    fn read_line(&mut self) -> io::Result<Option<Result<Vec<u8>, String>>> {
        let (mut line, mut length) = (Vec::new(), 0_u64);
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() && length == 0 {
                return Ok(None);
            }
            let end = buffer.iter().position(|b| *b == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            length += part.len() as u64 + u64::from(end.is_some());
            if length <= self.max_bytes {
                line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            let ended = end.is_some() || buffer.is_empty();
            self.reader.consume(used);
            if ended {
                break;
            }
        }
        self.number += 1;
        let too_long = || format!("{length} bytes, but a message may have at most {}", self.max_bytes);
        Ok(Some(if length > self.max_bytes { Err(too_long()) } else { Ok(line) }))
    }
}

impl LineComplaints {
    pub(super) fn add(&mut self, bad: Vec<(u64, String)>) {
        for complaint in bad {
            if self.reported.len() < MAX_REPORTED {
                self.reported.push(complaint);
            } else {
                self.more += 1;
            }
        }
    }

    /// Renders the report for the file beside the source; `None` if every line was good.
    pub(super) fn into_report(self, file: &str) -> Option<String> {
        if self.reported.is_empty() {
            return None;
        }
        let mut lines: Vec<String> = self.reported.iter().map(|(n, why)| format!("{file}, line {n}: {why}")).collect();
        if self.more > 0 {
            lines.push(format!("and {} more", self.more));
        }
        Some(lines.join("\n"))
    }
}

fn parse_line(line: &[u8]) -> Result<FoundMessage, String> {
    let read: InboxLine =
        serde_json::from_slice(line).map_err(|e| format!("expected an object such as {{\"text\": …}}: {e}"))?;
    let at = read
        .at
        .as_deref()
        .map(|at| time::parse(at).ok_or_else(|| format!("`at` is no valid time: `{}`", shorten_value(at))));
    let id = match &read.id {
        Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        Some(_) | None => hash_id(line),
    };
    Ok(FoundMessage {
        source_id: id,
        pattern: source_pattern("drop", read.from.as_deref()),
        origin_at: at.transpose()?,
        author: read.from,
        subject: read.subject,
        text: read.text,
    })
}

fn shorten_value(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;
