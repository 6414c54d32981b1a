//! What commands print: a table or a line for a person, JSON for a script.
//!
//! With `--json` exactly one JSON value goes to standard output; everything else goes to standard
//! error. Text that came from outside has its control characters escaped, and what hides or turns the
//! reading direction, so that it can neither forge a line nor drive a terminal nor read as something else.

use anyhow::Context;
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;
use steward_domain::record::plain_text::is_unseen;

/// A line under the headings and nothing else; see comfy-table's presets for the places.
const PLAIN: &str = "     ──            ";

/// How a command ended, for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandExit {
    /// It did what was asked.
    Ok = 0,
    /// It was refused: the message says by which rule.
    Refused = 3,
    /// It looked and found something wrong.
    Faults = 4,
}

/// Where output goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandOutput {
    pub(crate) json: bool,
}

impl CommandOutput {
    /// Prints a value: as JSON, or as what a person reads.
    pub(crate) fn print_value(self, value: &impl Serialize, human: impl FnOnce() -> String) -> anyhow::Result<()> {
        let text = if self.json { escape_json(&serde_json::to_string_pretty(value)?) } else { escape_lines(&human()) };
        print_line(&text)
    }

    /// Says something to a person that is no result.
    pub(crate) fn print_text(self, text: &str) -> anyhow::Result<()> {
        if self.json {
            return Ok(());
        }
        print_line(&escape_lines(text))
    }
}

/// Printed lines with everything escaped that is no part of their layout.
fn escape_lines(text: &str) -> String {
    escape_if(text, |c| is_unseen(c) && !matches!(c, '\n' | '\t'))
}

/// Printed JSON with every character escaped that does not show. Such characters stand in strings alone, where
/// `\\u` and four digits mean the same.
pub(crate) fn escape_json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unseen(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // A string takes whatever is written into it.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// A reader that went away (`| head`) is not an error of ours.
fn print_line(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("failed to write to standard output"),
    }
}

/// An empty table with these headings.
pub(crate) fn create_table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(PLAIN).set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(160);
    }
    table.set_header(headings);
    table
}

/// Text from outside, safe to show.
pub(crate) fn escape_text(text: &str) -> String {
    escape_if(text, is_unseen)
}

fn escape_if(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    text.chars().flat_map(|c| if is_escaped(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

/// The one JSON value of a command that failed: `{"error": "…"}`.
pub(crate) fn print_json_error(message: &str) {
    // Standard error has said it already.
    let _ = print_line(&escape_json(&serde_json::json!({ "error": message.trim_end() }).to_string()));
}

/// How far something long has come, for whoever waits for it.
pub(crate) fn print_progress(what: &str, done: usize, of: usize) {
    // Nobody who reads it is no trouble.
    let _ = writeln!(std::io::stderr(), "{done} of {of} {what} …");
}

/// An error and its causes on one line; a cause that the error has already told is not told again.
pub(crate) fn format_causes(e: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in e.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.contains(&cause) {
            told.push_str(": ");
            told.push_str(&cause);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_drives_no_terminal() {
        assert_eq!(escape_text("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\nb");
        assert_eq!(escape_text("Zürich – ok"), "Zürich – ok");
    }

    #[test]
    fn what_turns_or_hides_is_shown_as_what_it_is() {
        assert_eq!(escape_text("gpj\u{202e}.exe\u{200b}\u{200d}\u{85}"), "gpj\\u{202e}.exe\\u{200b}\\u{200d}\\u{85}");
        assert_eq!(escape_lines("a\tb\n\u{2066}c\u{9b}31m"), "a\tb\n\\u{2066}c\\u{9b}31m");
        assert_eq!(escape_text("مرحبا – ﷺ 👍"), "مرحبا – ﷺ 👍", "letters of any direction show themselves");
    }

    #[test]
    fn json_says_the_same_in_characters_that_show() {
        let value = serde_json::json!({"a\u{9b}": "\u{85}\u{7f}\u{202e}\u{2028}\u{e0041}\u{1b}\n\"\\ ok"});
        for text in [serde_json::to_string_pretty(&value).unwrap(), value.to_string()] {
            let safe = escape_json(&text);
            assert!(safe.chars().all(|c| !is_unseen(c) || c == '\n'), "{safe}");
            assert!(safe.contains("a\\u009b") && safe.contains("\\u202e") && safe.contains("\\udb40\\udc41"), "{safe}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
        }
    }

    #[test]
    fn a_cause_is_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("vault: {source}: set STEWARD_VAULT")]
        struct Outer {
            source: std::io::Error,
        }
        let outer = Outer { source: std::io::Error::other("no such folder") };
        assert_eq!(format_causes(&anyhow::Error::from(outer)), "vault: no such folder: set STEWARD_VAULT");
        let plain = anyhow::Error::from(std::io::Error::other("full")).context("failed to write x");
        assert_eq!(format_causes(&plain), "failed to write x: full");
    }
}
