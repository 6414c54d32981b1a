//! How text is shown to a person: how wide, how long, in colour, and moments by their age.
//!
//! A pipe gets everything, at full length and without colour, because a script copies ids and moments.

use chrono::{DateTime, Utc};
use clap::ColorChoice;
use std::io::IsTerminal;
use std::sync::OnceLock;
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
        let _ = STYLE.set(self);
    }

    /// The style of this process; that of a pipe unless another one was installed.
    pub(crate) fn current() -> Self {
        STYLE.get().copied().unwrap_or(Self { width: None, is_long: true, has_color: false })
    }

    /// An id as a list shows it: its first 8 digits, which commands take as well.
    pub(crate) fn show_id(self, id: &str) -> String {
        if self.is_long { id.to_owned() } else { id.chars().take(8).collect() }
    }

    /// A moment as a list shows it: how long ago it was.
    pub(crate) fn show_moment(self, at: DateTime<Utc>) -> String {
        if self.is_long { format_seconds(at) } else { format_age(at, Utc::now()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
