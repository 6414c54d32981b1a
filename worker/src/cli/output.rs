//! The output of commands: a table or lines for a person, JSON for a script.
//!
//! With `--json`, exactly one JSON value goes to standard output; everything else goes to standard error.
//! Control characters, invisible characters and characters that change the reading direction are escaped. So untrusted
//! text can neither forge a line, nor control the terminal, nor look like another text.

use super::style::TextStyle;
use anyhow::Context;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Write};
use steward_domain::record::plain_text::is_unseen;

/// The exit code of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandExit {
    /// The command succeeded.
    Ok = 0,
    /// The command could not look at everything.
    Incomplete = 1,
    /// It was called in a way that cannot be.
    Usage = 2,
    /// A rule refused the command; the message names the rule.
    Refused = 3,
    /// The command ran and found something wrong.
    Faults = 4,
}

/// A command did nothing because of a rule, or because of how it was called.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Refused(String),
}

impl CommandError {
    pub(crate) fn exit(&self) -> CommandExit {
        match self {
            Self::Usage(_) => CommandExit::Usage,
            Self::Refused(_) => CommandExit::Refused,
        }
    }
}

/// How output is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandOutput {
    pub(crate) json: bool,
}

impl CommandOutput {
    /// Prints a value as JSON, or as the text for a person.
    pub(crate) fn print_value(self, value: &impl Serialize, describe: impl FnOnce() -> String) -> anyhow::Result<()> {
        let text =
            if self.json { escape_json(&serde_json::to_string_pretty(value)?) } else { escape_lines(&describe()) };
        print_line(&text)
    }

    /// Prints a message for a person that is not the result. With `--json` it prints nothing.
    pub(crate) fn print_text(self, text: &str) -> anyhow::Result<()> {
        if self.json {
            return Ok(());
        }
        print_line(&escape_lines(text))
    }
}

/// Escapes invisible characters, except the line breaks and tabs of the layout and the colours of our own. Untrusted text was escaped
/// before it came here, so no colour is anybody else's.
fn escape_lines(text: &str) -> String {
    if !TextStyle::current().has_color {
        return escape_layout(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (at, part) in text.split('\u{1b}').enumerate() {
        match split_color(part).filter(|_| at > 0) {
            Some((color, rest)) => shown.extend(["\u{1b}", color, &escape_layout(rest)]),
            None => shown.push_str(&escape_layout(&if at > 0 { format!("\u{1b}{part}") } else { part.to_owned() })),
        }
    }
    shown
}

fn escape_layout(text: &str) -> String {
    escape_if(text, |c| is_unseen(c) && !matches!(c, '\n' | '\t'))
}

/// What follows an escape character, divided after the colour that it sets; `None` if it sets none.
fn split_color(text: &str) -> Option<(&str, &str)> {
    let end = text.strip_prefix('[')?.find(|c: char| !c.is_ascii_digit() && c != ';')? + 1;
    text[end..].starts_with('m').then(|| text.split_at(end + 1))
}

/// Escapes every invisible character of a JSON text. Such characters occur only in strings, where `\\u` and four digits
/// mean the same.
pub(crate) fn escape_json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unseen(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing into a string cannot fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Prints a line. A reader that went away (`| head`) is not an error.
fn print_line(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("failed to write to standard output"),
    }
}

/// Escapes untrusted text so that it is safe to print.
pub(crate) fn escape_text(text: &str) -> String {
    escape_if(text, is_unseen)
}

fn escape_if(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    text.chars().flat_map(|c| if is_escaped(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

/// Prints the one JSON value of a command that failed: `{"error": "…"}`.
pub(crate) fn print_json_error(message: &str) {
    // The message is on standard error already.
    let _ = print_line(&escape_json(&serde_json::json!({ "error": message.trim_end() }).to_string()));
}

/// Prints the progress of a long operation to standard error.
pub(crate) fn print_progress(operation: &str, done: usize, total: usize) {
    // A closed output is no failure of ours.
    let _ = writeln!(std::io::stderr(), "{done} of {total} {operation} …");
}

/// Formats an error and its causes on one line. A cause that the line already contains is not repeated.
pub(crate) fn format_causes(e: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in e.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    line
}

/// Asks a person at a terminal. Without a terminal the answer is no.
pub(crate) fn prompt_yes_no(question: &str) -> bool {
    let (input, output) = (std::io::stdin(), std::io::stdout());
    if !input.is_terminal() || !output.is_terminal() {
        return false;
    }
    let printed = write!(output.lock(), "{question} [y/N] ").and_then(|()| output.lock().flush());
    let mut answer = String::new();
    printed.is_ok() && input.lock().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_cannot_control_the_terminal() {
        assert_eq!(escape_text("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\nb");
        assert_eq!(escape_text("Zürich – ok"), "Zürich – ok");
    }

    #[test]
    fn invisible_and_direction_changing_characters_are_escaped() {
        assert_eq!(escape_text("gpj\u{202e}.exe\u{200b}\u{200d}\u{85}"), "gpj\\u{202e}.exe\\u{200b}\\u{200d}\\u{85}");
        assert_eq!(escape_lines("a\tb\n\u{2066}c\u{9b}31m"), "a\tb\n\\u{2066}c\\u{9b}31m");
        assert_eq!(escape_text("مرحبا – ﷺ 👍"), "مرحبا – ﷺ 👍", "visible letters of any direction stay as they are");
    }

    #[test]
    fn only_a_colour_is_told_from_other_controls_of_a_terminal() {
        assert_eq!(split_color("[38;5;10mlive"), Some(("[38;5;10m", "live")));
        for other in ["[2J", "]0;title\u{7}", "[", "[1", "c", ""] {
            assert_eq!(split_color(other), None, "{other}");
        }
    }

    #[test]
    fn escaped_json_has_the_same_value_in_visible_characters() {
        let value = serde_json::json!({"a\u{9b}": "\u{85}\u{7f}\u{202e}\u{2028}\u{e0041}\u{1b}\n\"\\ ok"});
        for text in [serde_json::to_string_pretty(&value).unwrap(), value.to_string()] {
            let safe = escape_json(&text);
            assert!(safe.chars().all(|c| !is_unseen(c) || c == '\n'), "{safe}");
            assert!(safe.contains("a\\u009b") && safe.contains("\\u202e") && safe.contains("\\udb40\\udc41"), "{safe}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
        }
    }

    #[test]
    fn a_cause_is_printed_once() {
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
