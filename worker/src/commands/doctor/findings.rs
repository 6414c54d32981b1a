//! The findings of `steward doctor`, and how they are shown.
//!
//! A finding is `ok`, a `note` that needs nothing, or `WRONG` with the problem and its fix. The checks add them; nothing here
//! looks at anything.

use crate::cli::output::escape_text;
use crate::cli::style::{TextColor, TextStyle};
use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FindingLevel {
    Ok,
    /// Worth knowing. It needs nothing, and does not change the exit code.
    Note,
    Wrong,
}

impl FindingLevel {
    /// The word of a line, as wide as the others.
    fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok   ",
            Self::Note => "note ",
            Self::Wrong => "WRONG",
        }
    }

    /// The label in its colour.
    fn show(self) -> String {
        let style = TextStyle::current();
        match self {
            Self::Ok => self.label().to_owned(),
            Self::Note => style.paint(self.label(), TextColor::Yellow),
            Self::Wrong => style.paint(self.label(), TextColor::Red),
        }
    }
}

/// One finding.
#[derive(Serialize)]
pub(super) struct DoctorFinding {
    pub(super) check: &'static str,
    pub(super) level: FindingLevel,
    /// Whether nothing is wrong, for scripts that know no levels.
    pub(super) ok: bool,
    /// The finding, with the fix if something is wrong.
    pub(super) found: String,
}

/// What was found, in the order of the checks.
#[derive(Default)]
pub(super) struct DoctorFindings(Vec<DoctorFinding>);

impl DoctorFindings {
    pub(super) fn add_ok(&mut self, check: &'static str, found: impl Into<String>) {
        self.add_finding(check, FindingLevel::Ok, found);
    }

    pub(super) fn add_note(&mut self, check: &'static str, found: impl Into<String>) {
        self.add_finding(check, FindingLevel::Note, found);
    }

    pub(super) fn add_fault(&mut self, check: &'static str, found: impl Into<String>) {
        self.add_finding(check, FindingLevel::Wrong, found);
    }

    fn add_finding(&mut self, check: &'static str, level: FindingLevel, found: impl Into<String>) {
        self.0.push(DoctorFinding { check, level, ok: level != FindingLevel::Wrong, found: found.into() });
    }

    pub(super) fn list(&self) -> &[DoctorFinding] {
        &self.0
    }

    /// Whether something is wrong.
    pub(super) fn has_faults(&self) -> bool {
        self.0.iter().any(|finding| !finding.ok)
    }

    /// A line for each finding.
    pub(super) fn describe(&self) -> String {
        let line = |it: &DoctorFinding| format!("{} {:<14} {}", it.level.show(), it.check, escape_text(&it.found));
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}
