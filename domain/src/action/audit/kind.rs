//! The kinds of audit records: decisions, a human's answers to them, what came of them, and what follows for trust.
//!
//! The word is the record's `type` and the start of its file name. What follows another record is named after
//! that one, so that two of a kind meet in one file name and only one can be created.

use serde::{Deserialize, Serialize};

/// How the names of audit records begin; the other files in `event/` are people's own.
const PREFIXES: [&str; 3] = ["steward-action", "steward-source-pruned", "steward-trust"];

/// Whether a file in `event/` is named like an audit record.
#[must_use]
pub fn is_audit_file_name(file_name: &str) -> bool {
    PREFIXES.iter().any(|prefix| file_name.starts_with(prefix))
}

/// What a record remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActionKind {
    /// A clerk's decision, with or without a change.
    #[serde(rename = "steward-action")]
    Action,
    /// A human took a change back.
    #[serde(rename = "steward-action-reversed")]
    Reversed,
    /// A human let a pending proposal happen.
    #[serde(rename = "steward-action-confirmed")]
    Confirmed,
    /// A human turned a pending proposal down.
    #[serde(rename = "steward-action-dismissed")]
    Dismissed,
    /// What a change owed to the tracker is settled.
    #[serde(rename = "steward-action-tracked")]
    Tracked,
    /// What a change owes to the tracker was tried in vain for the first time.
    #[serde(rename = "steward-action-track-failed")]
    TrackFailed,
    /// What was only proposed was later done by hand.
    #[serde(rename = "steward-action-done-anyway")]
    DoneAnyway,
    /// Something else was later done by hand.
    #[serde(rename = "steward-action-opposed")]
    Opposed,
    /// A source is taken for a stranger again.
    #[serde(rename = "steward-source-pruned")]
    Pruned,
    /// A source or a class was undone too often, or a class does not restore: its mode is lower.
    #[serde(rename = "steward-trust-lowered")]
    Lowered,
    /// A human let it go as far as the mode allows again.
    #[serde(rename = "steward-trust-raised")]
    Raised,
}

impl ActionKind {
    /// The `type` of the record and the start of its file name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Action => "steward-action",
            Self::Reversed => "steward-action-reversed",
            Self::Confirmed => "steward-action-confirmed",
            Self::Dismissed => "steward-action-dismissed",
            Self::Tracked => "steward-action-tracked",
            Self::TrackFailed => "steward-action-track-failed",
            Self::DoneAnyway => "steward-action-done-anyway",
            Self::Opposed => "steward-action-opposed",
            Self::Pruned => "steward-source-pruned",
            Self::Lowered => "steward-trust-lowered",
            Self::Raised => "steward-trust-raised",
        }
    }

    /// What is said of the action that it follows: `undone` by somebody.
    #[must_use]
    pub fn outcome_label(self) -> &'static str {
        match self {
            Self::Reversed => "Undone",
            Self::Confirmed => "Confirmed",
            Self::Dismissed => "Dismissed",
            Self::Tracked | Self::TrackFailed => "Told the tracker",
            Self::DoneAnyway => "Done anyway",
            Self::Opposed => "Decided otherwise",
            Self::Raised => "Raised",
            Self::Action | Self::Pruned | Self::Lowered => "Answered",
        }
    }

    /// Whether it decides nothing about its target, but says what came of an earlier record or of a source.
    #[must_use]
    pub fn has_no_disposition(self) -> bool {
        match self {
            Self::Action | Self::Reversed | Self::Confirmed | Self::Dismissed => false,
            Self::Tracked | Self::TrackFailed | Self::DoneAnyway | Self::Opposed => true,
            Self::Pruned | Self::Lowered | Self::Raised => true,
        }
    }

    /// Whether it tells what came of an earlier one in the tracker, and no human's answer to it.
    #[must_use]
    pub fn is_tracker_outcome(self) -> bool {
        matches!(self, Self::Tracked | Self::TrackFailed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_named_like_a_record() {
        use ActionKind::{
            Action, Confirmed, Dismissed, DoneAnyway, Lowered, Opposed, Pruned, Raised, Reversed, TrackFailed, Tracked,
        };
        for kind in
            [Action, Reversed, Confirmed, Dismissed, Tracked, TrackFailed, DoneAnyway, Opposed, Pruned, Lowered, Raised]
        {
            assert!(is_audit_file_name(&format!("{}-20261122T080000000Z-x.md", kind.as_str())), "{kind:?}");
        }
        assert!(!is_audit_file_name("steward-meeting.md") && !is_audit_file_name("signal-action-reversed-1.md"));
    }
}
