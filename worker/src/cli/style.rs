//! How text is shown to a person: how wide, how long, in colour, and moments by their age.
//!
//! A pipe gets everything, at full length and without colour, because a script copies ids and moments.

use chrono::{DateTime, Utc};
use clap::ColorChoice;
use std::io::IsTerminal;
use std::sync::OnceLock;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::time::{format_age, format_seconds};

/// The narrowest width for which tables are laid out, in columns.
const MIN_WIDTH: u16 = 40;

/// The style of this process.
static STYLE: OnceLock<TextStyle> = OnceLock::new();

/// How text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextStyle {
    /// How wide tables are, in columns; `None` for as wide as they need.
    pub(crate) width: Option<u16>,
    /// Whether ids and moments are shown in full.
    pub(crate) is_long: bool,
    pub(crate) has_color: bool,
}

impl TextStyle {
    /// Chooses the style from the flags, the standard output and `NO_COLOR`.
    pub(crate) fn choose(is_long: bool, color: ColorChoice) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let width = terminal_size::terminal_size().map(|(width, _)| width.0.max(MIN_WIDTH));
        Self {
            width: width.filter(|_| is_terminal && !is_long),
            is_long: is_long || !is_terminal,
            has_color: match color {
                ColorChoice::Always => true,
                ColorChoice::Never => false,
                ColorChoice::Auto => is_terminal && !is_unwanted && !is_dumb,
            },
        }
    }

    /// Uses this style from now on. The first call counts.
    pub(crate) fn install(self) {
        // It would look at NO_COLOR itself, which a flag overrides.
        crossterm::style::force_color_output(self.has_color);
        let _ = STYLE.set(self);
    }

    /// The style of this process; that of a pipe unless another one was installed.
    pub(crate) fn current() -> Self {
        STYLE.get().copied().unwrap_or(Self { width: None, is_long: true, has_color: false })
    }

    /// A text in a colour, if colours are wanted.
    pub(crate) fn paint(self, text: &str, color: TextColor) -> String {
        let code = match color {
            TextColor::Red => 31,
            TextColor::Yellow => 33,
        };
        if self.has_color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// An id as a list shows it: its first 8 digits, which commands take as well.
    pub(crate) fn show_id(self, id: &str) -> String {
        if self.is_long { id.to_owned() } else { id.chars().take(8).collect() }
    }

    /// A note as a list shows it: a task of the folder `task/` by its name alone, which commands take as well.
    pub(crate) fn show_record(self, path: &RecordPath) -> String {
        let is_task = path.scanned_kind() == Some(RecordKind::Task);
        if is_task && !self.is_long { path.slug().to_owned() } else { path.to_string() }
    }

    /// Breaks lines that are wider than the terminal between words. Later lines begin where the text of the first one does.
    pub(crate) fn wrap_lines(self, text: &str) -> String {
        match self.width {
            Some(width) => text.lines().map(|line| wrap_line(line, width.into())).collect::<Vec<_>>().join("\n"),
            None => text.to_owned(),
        }
    }

    /// A moment as a list shows it: how long ago it was.
    pub(crate) fn show_moment(self, at: DateTime<Utc>) -> String {
        if self.is_long { format_seconds(at) } else { format_age(at, Utc::now()) }
    }
}

/// A colour of a state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TextColor {
    /// Something is wrong.
    Red,
    /// Something waits or is closed.
    Yellow,
}

/// How many characters of a text are seen: all but those that set a colour.
fn count_shown(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().map_or(0, |part| part.chars().count());
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count())).sum::<usize>()
}

/// The widest label before the text of a line, in characters.
const MAX_LABEL: usize = 24;

/// One line as several. A label stands before the last wide gap near the beginning.
fn wrap_line(line: &str, width: usize) -> String {
    if count_shown(line) <= width {
        return line.to_owned();
    }
    let start: String = line.chars().take(MAX_LABEL).collect();
    let label = start.rfind("  ").map_or(0, |at| at + 2);
    let (label, rest) = line.split_at(label);
    let indent = if label.trim().is_empty() { label.chars().count() + 2 } else { count_shown(label) };
    let (mut shown, mut used) = (label.to_owned(), count_shown(label));
    for (at, word) in rest.split(' ').enumerate() {
        let length = count_shown(word);
        if at > 0 && used + 1 + length > width {
            shown.push('\n');
            shown.push_str(&" ".repeat(indent));
            used = indent;
        } else if at > 0 {
            shown.push(' ');
            used += 1;
        }
        shown.push_str(word);
        used += length;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_goes_on_below_its_text() {
        let line = "signal     for: one two three four five six seven";
        assert_eq!(wrap_line(line, 30), "signal     for: one two three\n           four five six seven");
        assert_eq!(wrap_line("short", 30), "short");
        assert_eq!(wrap_line("  a sentence that is too wide", 20), "  a sentence that is\n    too wide");
        let link = format!("dashboard  http://{}", "x".repeat(60));
        assert_eq!(wrap_line(&link, 30), link, "a word is never broken");
    }

    #[test]
    fn a_pipe_gets_whole_ids_and_moments() {
        let pipe = TextStyle { width: None, is_long: true, has_color: false };
        let terminal = TextStyle { width: Some(80), is_long: false, has_color: true };
        let at = Utc::now() - chrono::TimeDelta::minutes(3);
        assert_eq!(pipe.show_id("3f9a1c22b07d4e51"), "3f9a1c22b07d4e51");
        assert_eq!(terminal.show_id("3f9a1c22b07d4e51"), "3f9a1c22");
        assert_eq!(terminal.show_moment(at), "3 min ago");
        assert_eq!(pipe.show_moment(at), format_seconds(at));
    }
}
