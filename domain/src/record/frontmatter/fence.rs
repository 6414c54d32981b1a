//! Finds the frontmatter of a record: BOM, opening `---`, fields, closing `---`, body.
//!
//! It works on the whole file before any YAML is parsed. It refuses input that no parser should see: oversized,
//! binary and non-UTF-8 files, control characters, lone carriage returns. It must not change a byte. `parse` reads
//! the text between the fences.

use std::ops::Range;

use super::FrontmatterError;
use super::MAX_FRONTMATTER_BYTES;
use super::MAX_RECORD_BYTES;

const BOM: &str = "\u{feff}";
const FENCE: &str = "---";

/// The offsets of the fields and the body in a record.
#[derive(Debug, Clone)]
pub(super) struct FrontmatterSpans {
    /// The lines between the fences. They are empty or end with a line ending.
    pub(super) yaml: Range<usize>,
    /// The first byte after the line of the closing fence.
    pub(super) body: usize,
}

/// Checks the bytes of a whole file and returns them as text.
pub(super) fn decode_text(bytes: &[u8]) -> Result<&str, FrontmatterError> {
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(FrontmatterError::RecordTooLarge { bytes: bytes.len() });
    }
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        let line = line_at_offset(bytes, offset);
        return Err(FrontmatterError::Binary { line, offset });
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        let line = line_at_offset(bytes, offset);
        FrontmatterError::NotUtf8 { line, offset }
    })
}

/// Finds the fences.
pub(super) fn find_fences(text: &str) -> Result<FrontmatterSpans, FrontmatterError> {
    let bom = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let start = match next_line(text, bom) {
        Some((line, next)) if is_fence(line) => next,
        Some(_) | None => return Err(FrontmatterError::NoFrontmatter),
    };
    let mut at = start;
    while let Some((line, next)) = next_line(text, at) {
        if at - start > MAX_FRONTMATTER_BYTES {
            return Err(FrontmatterError::FrontmatterTooLarge);
        }
        if is_fence(line) {
            let found = FrontmatterSpans { yaml: start..at, body: next };
            check_characters(text, &found.yaml)?;
            return Ok(found);
        }
        at = next;
    }
    if at - start > MAX_FRONTMATTER_BYTES {
        return Err(FrontmatterError::FrontmatterTooLarge);
    }
    Err(FrontmatterError::Unterminated)
}

/// The line of a byte offset, counted from 1.
pub(super) fn line_at_offset(bytes: &[u8], offset: usize) -> usize {
    let before = bytes.get(..offset).unwrap_or(bytes);
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The line at `at` with its ending, and the offset of the next one.
fn next_line(text: &str, at: usize) -> Option<(&str, usize)> {
    let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
    let end = rest.find('\n').map_or(rest.len(), |found| found + 1);
    Some((&rest[..end], at + end))
}

fn is_fence(line: &str) -> bool {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.strip_prefix(FENCE).is_some_and(|rest| rest.chars().all(|c| c == ' ' || c == '\t'))
}

/// Refuses lone carriage returns and control characters.
///
/// YAML counts a lone CR as a line break and forbids most control characters, but parsers differ about both.
fn check_characters(text: &str, yaml: &Range<usize>) -> Result<(), FrontmatterError> {
    let mut chars = text[yaml.clone()].char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let line = || line_at_offset(text.as_bytes(), yaml.start + at);
        match c {
            '\r' if chars.peek().is_none_or(|(_, next)| *next != '\n') => {
                return Err(FrontmatterError::LoneCarriageReturn { line: line() });
            }
            '\t' | '\n' | '\r' => {}
            c if c.is_control() && c != '\u{85}' => {
                return Err(FrontmatterError::ControlCharacter { line: line(), code: c.into() });
            }
            _ => {}
        }
    }
    Ok(())
}
