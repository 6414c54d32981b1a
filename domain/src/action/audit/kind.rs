//! The kinds of audit records: decisions, their resolutions, their outcomes, and changes of trust.
//!
//! The spelling is the record's `type` and the start of its file name. It must never change. A record that follows
//! another one is named after that one, so that two of a kind have the same file name and only one can be created. The
//! record of a run that was not committed has the name of the run's own record, with a suffix.

use crate::record::frontmatter::MAX_RECORD_BYTES;
use crate::record::path::{RecordKind, RecordPath};
use serde::{Deserialize, Serialize};

/// The prefixes of audit records' file names. Other files in `event/` belong to people.
const PREFIXES: [&str; 7] = [
    "steward-action",
    "steward-source-pruned",
    "steward-trust",
    "steward-ceiling",
    "steward-mapping",
    "steward-notes",
    "steward-wiki",
];

/// Whether a file in `event/` has the name of an audit record.
#[must_use]
pub fn is_audit_file_name(file_name: &str) -> bool {
    PREFIXES.iter().any(|prefix| file_name.starts_with(prefix))
}

/// The most bytes of the record of a wiki: room for 27 pages of the largest size, with both sides of their changes.
pub const MAX_WIKI_RECORD_BYTES: usize = 8 * 1024 * 1024;

/// The most bytes that a file may have to be read as a record.
#[must_use]
pub fn max_record_bytes(path: &RecordPath) -> usize {
    let is_wiki = path.own_kind() == Some(RecordKind::Event) && path.slug().starts_with(ActionKind::Wiki.as_str());
    if is_wiki { MAX_WIKI_RECORD_BYTES } else { MAX_RECORD_BYTES }
}

/// The kind of an audit record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActionKind {
    /// A clerk's decision, with or without a change.
    #[serde(rename = "steward-action")]
    Action,
    /// A human undid a change.
    #[serde(rename = "steward-action-reversed")]
    Reversed,
    /// A human confirmed a pending proposal.
    #[serde(rename = "steward-action-confirmed")]
    Confirmed,
    /// A human dismissed a pending proposal or a question.
    #[serde(rename = "steward-action-dismissed")]
    Dismissed,
    /// A human said that a proposal made in Watch is right.
    #[serde(rename = "steward-action-right")]
    Right,
    /// A human said that a proposal made in Watch is wrong.
    #[serde(rename = "steward-action-wrong")]
    Wrong,
    /// A human took back a dismissal, a `right` or a `wrong`.
    #[serde(rename = "steward-action-reopened")]
    Reopened,
    /// The tracker's part of a change is settled.
    #[serde(rename = "steward-action-tracked")]
    Tracked,
    /// The first delivery to the tracker failed. Later failures are no records.
    #[serde(rename = "steward-action-track-failed")]
    TrackFailed,
    /// A human later made a proposed change by hand.
    #[serde(rename = "steward-action-done-anyway")]
    DoneAnyway,
    /// A human later made another change by hand.
    #[serde(rename = "steward-action-opposed")]
    Opposed,
    /// A source counts as unknown again.
    #[serde(rename = "steward-source-pruned")]
    Pruned,
    /// A source or a class was demoted: it was undone too often, or the drill could not restore the class.
    #[serde(rename = "steward-trust-lowered")]
    Lowered,
    /// A human ended a demotion.
    #[serde(rename = "steward-trust-raised")]
    Raised,
    /// A human set how far a source may go.
    #[serde(rename = "steward-ceiling-set")]
    CeilingSet,
    /// A human accepted a mapping of the vault's notes.
    #[serde(rename = "steward-mapping-accepted")]
    MappingAccepted,
    /// Notes were renamed or moved.
    #[serde(rename = "steward-notes-moved")]
    NotesMoved,
    /// A run changed a wiki.
    #[serde(rename = "steward-wiki")]
    Wiki,
    /// A source was added to a wiki.
    #[serde(rename = "steward-wiki-source")]
    WikiSource,
    /// A human accepted the files that say how a wiki is written.
    #[serde(rename = "steward-wiki-manifest")]
    WikiManifest,
    /// A run of a wiki ended without a commit.
    #[serde(rename = "steward-wiki-rejected")]
    WikiRejected,
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
            Self::Right => "steward-action-right",
            Self::Wrong => "steward-action-wrong",
            Self::Reopened => "steward-action-reopened",
            Self::Tracked => "steward-action-tracked",
            Self::TrackFailed => "steward-action-track-failed",
            Self::DoneAnyway => "steward-action-done-anyway",
            Self::Opposed => "steward-action-opposed",
            Self::Pruned => "steward-source-pruned",
            Self::Lowered => "steward-trust-lowered",
            Self::Raised => "steward-trust-raised",
            Self::CeilingSet => "steward-ceiling-set",
            Self::MappingAccepted => "steward-mapping-accepted",
            Self::NotesMoved => "steward-notes-moved",
            Self::Wiki => "steward-wiki",
            Self::WikiSource => "steward-wiki-source",
            Self::WikiManifest => "steward-wiki-manifest",
            Self::WikiRejected => "steward-wiki-rejected",
        }
    }

    /// The outcome of the action that it follows, as in `Undone` by somebody.
    #[must_use]
    pub fn outcome_label(self) -> &'static str {
        match self {
            Self::Reversed => "Undone",
            Self::Confirmed => "Confirmed",
            Self::Dismissed => "Dismissed",
            Self::Right => "Called right",
            Self::Wrong => "Called wrong",
            Self::Reopened => "Reopened",
            Self::Tracked | Self::TrackFailed => "Reported to the tracker",
            Self::DoneAnyway => "Done anyway",
            Self::Opposed => "Decided otherwise",
            Self::Raised => "Raised",
            Self::CeilingSet => "Set",
            Self::Action | Self::Pruned | Self::Lowered | Self::MappingAccepted | Self::NotesMoved => "Answered",
            Self::Wiki | Self::WikiSource | Self::WikiManifest | Self::WikiRejected => "Answered",
        }
    }

    /// What the record reports, as a word or two for a list.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Action => "decided",
            Self::Reversed => "undone",
            Self::Confirmed => "confirmed",
            Self::Dismissed => "dismissed",
            Self::Right => "called right",
            Self::Wrong => "called wrong",
            Self::Reopened => "reopened",
            Self::Tracked => "sent to the tracker",
            Self::TrackFailed => "tracker failed",
            Self::DoneAnyway => "done by hand",
            Self::Opposed => "done differently",
            Self::Pruned => "source pruned",
            Self::Lowered => "demoted",
            Self::Raised => "restored",
            Self::CeilingSet => "ceiling set",
            Self::MappingAccepted => "mapping accepted",
            Self::NotesMoved => "notes moved",
            Self::Wiki => "wiki changed",
            Self::WikiSource => "source added",
            Self::WikiManifest => "wiki accepted",
            Self::WikiRejected => "run not committed",
        }
    }

    /// Whether it is no decision about its target, but reports on an earlier record or a source.
    #[must_use]
    pub fn has_no_disposition(self) -> bool {
        match self {
            Self::Action | Self::Reversed | Self::Confirmed | Self::Dismissed | Self::CeilingSet => false,
            Self::Right | Self::Wrong | Self::Reopened => true,
            Self::Tracked | Self::TrackFailed | Self::DoneAnyway | Self::Opposed => true,
            Self::Pruned | Self::Lowered | Self::Raised | Self::MappingAccepted | Self::NotesMoved => true,
            Self::Wiki | Self::WikiSource | Self::WikiManifest | Self::WikiRejected => true,
        }
    }

    /// Whether it changes the file of its target, so that it has an undo recipe.
    #[must_use]
    pub fn is_change(self) -> bool {
        matches!(self, Self::Action | Self::Confirmed | Self::CeilingSet)
    }

    /// Whether a human may take it back, so that its action is open again.
    #[must_use]
    pub fn can_be_taken_back(self) -> bool {
        matches!(self, Self::Dismissed | Self::Right | Self::Wrong)
    }

    /// Whether a record of this kind ends the action that it follows. To say that a proposal is right claims nothing,
    /// unless the human has made the change (`done`).
    #[must_use]
    pub fn ends_action(self, done: bool) -> bool {
        match self {
            Self::Right => done,
            Self::Reopened => false,
            Self::Action | Self::Reversed | Self::Confirmed | Self::Dismissed | Self::Wrong => true,
            Self::CeilingSet => true,
            Self::Tracked | Self::TrackFailed | Self::DoneAnyway | Self::Opposed => true,
            Self::Pruned | Self::Lowered | Self::Raised | Self::MappingAccepted | Self::NotesMoved => true,
            Self::Wiki | Self::WikiSource | Self::WikiManifest | Self::WikiRejected => true,
        }
    }

    /// Whether it reports an earlier record's outcome in the tracker. Then it is not a human's resolution.
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
            Action, CeilingSet, Confirmed, Dismissed, DoneAnyway, Lowered, MappingAccepted, NotesMoved, Opposed,
            Pruned, Raised, Reopened, Reversed, Right, TrackFailed, Tracked, Wiki, WikiManifest, WikiRejected,
            WikiSource, Wrong,
        };
        for kind in [
            Action,
            Reversed,
            Confirmed,
            Dismissed,
            Right,
            Wrong,
            Reopened,
            Tracked,
            TrackFailed,
            DoneAnyway,
            Opposed,
            Pruned,
            Lowered,
            Raised,
            CeilingSet,
            MappingAccepted,
            NotesMoved,
            Wiki,
            WikiSource,
            WikiManifest,
            WikiRejected,
        ] {
            assert!(is_audit_file_name(&format!("{}-20261122T080000000Z-x.md", kind.as_str())), "{kind:?}");
        }
        let limit = |path: &str| max_record_bytes(&RecordPath::parse(path).unwrap());
        assert_eq!(limit("event/steward-wiki-r-20261122T091504Z-3f9a1c22-plot.md"), MAX_WIKI_RECORD_BYTES);
        assert_eq!(limit("event/steward-action-1.md"), MAX_RECORD_BYTES);
        assert_eq!(limit("Notes/steward-wiki-1.md"), MAX_RECORD_BYTES);
        assert!(!is_audit_file_name("steward-meeting.md") && !is_audit_file_name("signal-action-reversed-1.md"));
    }
}
