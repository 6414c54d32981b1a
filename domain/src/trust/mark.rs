//! Trust marks: the audit records of a pruned source, a demotion, the end of a demotion, and a ceiling that a person set.
//!
//! Nothing else is stored about them. The newest mark of each subject in the order of the chain is the valid one.
//! A mark names its subject by its key. A source's own name is untrusted, so it must never become part of a file name
//! and is only shown to people. All unknown sources are one subject, because a new name costs its sender nothing.

use crate::action::audit::{ActionKind, AuditDraft, WorkflowRef};
use crate::action::mutation::MutationClass;
use crate::action::plan::{ActionId, Plan, PlanBasis, PlannedChange};
use crate::gates::mode::{Ceiling, Mode};
use crate::record::path::{PathError, RecordKind, RecordPath};
use crate::record::plain_text;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest name of a source that is shown beside its key, in characters.
const MAX_NAME_CHARS: usize = 60;
/// The spelling on the command line for all unknown sources.
const UNKNOWN_SOURCES: &str = "unknown_sources";

/// A source or a class that is trusted or demoted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustSubject {
    /// A source, by its key ([`crate::signals::signal::source_key`]).
    Source(String),
    Class(MutationClass),
    /// All unknown sources: those that were never right before.
    #[serde(rename = "unknown_sources")]
    UnknownSources,
}

impl TrustSubject {
    /// Parses a person's input: a class, `unknown_sources`, or else a source.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text.trim() == UNKNOWN_SOURCES {
            return Self::UnknownSources;
        }
        text.trim().parse().map_or_else(|_| Self::Source(crate::signals::signal::source_key(text)), Self::Class)
    }

    /// The subject for people. A source is shown by its name, if that says more than its key, and its key.
    #[must_use]
    pub fn describe(&self, name: Option<&str>) -> String {
        match self {
            Self::Source(key) => match name.and_then(|name| short_source_name(key, name)) {
                Some(name) => format!("{name} ({key})"),
                None => key.clone(),
            },
            Self::Class(class) => class.as_str().to_owned(),
            Self::UnknownSources => format!("{UNKNOWN_SOURCES} (all sources that were never right before)"),
        }
    }

    /// The path of its instinct. That of a class or of unknown sources has no file, and no source's key has a dot.
    ///
    /// # Errors
    /// [`PathError`] if somebody edited a record so that it does not name a source's key.
    pub fn instinct_path(&self) -> Result<RecordPath, PathError> {
        match self {
            Self::Source(key) => RecordPath::new(RecordKind::Instinct, key),
            Self::Class(class) => RecordPath::new(RecordKind::Instinct, &format!("class.{}", class.as_str())),
            Self::UnknownSources => RecordPath::new(RecordKind::Instinct, &format!("all.{UNKNOWN_SOURCES}")),
        }
    }
}

impl fmt::Display for TrustSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(key) => write!(f, "{key}"),
            Self::Class(class) => write!(f, "{}", class.as_str()),
            Self::UnknownSources => write!(f, "{UNKNOWN_SOURCES}"),
        }
    }
}

/// A source's name on one line and shortened, or `None` if it says no more than the key.
#[must_use]
pub fn short_source_name(key: &str, name: &str) -> Option<String> {
    let name = plain_text::to_one_line(name);
    let name = name.trim();
    if name.is_empty() || name.to_lowercase() == key {
        return None;
    }
    let mut short: String = name.chars().take(MAX_NAME_CHARS).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    Some(short)
}

/// A change of trust in a source or a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum TrustMark {
    Pruned {
        subject: TrustSubject,
        /// The source's name in the newest record. Untrusted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// 0 to 1.
        confidence: f64,
    },
    Lowered {
        subject: TrustSubject,
        /// The source's name in the newest change that counted. Untrusted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        from: Mode,
        to: Mode,
        /// The number of live changes in the window that were undone.
        undone: u32,
        /// The number of live changes in the window.
        of: u32,
        /// The lower end of the rate's interval, 0 to 1.
        at_least: f64,
        /// The highest rate that is allowed, 0 to 1.
        budget: f64,
    },
    /// A drill found that an undo of this class does not restore the bytes.
    Unrestored {
        subject: TrustSubject,
        /// The error.
        why: String,
    },
    Raised {
        subject: TrustSubject,
    },
    /// A person set how far a source may go. Unlike the others it changes the source's instinct
    /// ([`crate::trust::ceiling`]).
    CeilingSet {
        subject: TrustSubject,
        /// The source's name in its newest case. Untrusted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// `None` if the instinct had none.
        from: Option<Ceiling>,
        to: Ceiling,
        /// The person's name, as they gave it. Untrusted.
        by: String,
    },
}

impl TrustMark {
    /// The source or the class.
    #[must_use]
    pub fn subject(&self) -> &TrustSubject {
        match self {
            Self::Pruned { subject, .. }
            | Self::Lowered { subject, .. }
            | Self::Unrestored { subject, .. }
            | Self::Raised { subject }
            | Self::CeilingSet { subject, .. } => subject,
        }
    }

    pub(crate) fn action_kind(&self) -> ActionKind {
        match self {
            Self::Pruned { .. } => ActionKind::Pruned,
            Self::Lowered { .. } | Self::Unrestored { .. } => ActionKind::Lowered,
            Self::Raised { .. } => ActionKind::Raised,
            Self::CeilingSet { .. } => ActionKind::CeilingSet,
        }
    }

    /// Plans its record.
    ///
    /// The record's name comes from the id and the moment of the cause, so it is the same for every try.
    ///
    /// # Errors
    /// The same as [`TrustSubject::instinct_path`].
    pub fn into_plan(
        self,
        cause: &str,
        at: DateTime<Utc>,
        mode: Mode,
        workflow: WorkflowRef,
    ) -> Result<Plan, PathError> {
        let (kind, target) = (self.action_kind(), self.subject().instinct_path()?);
        let id = ActionId::derive(&[kind.as_str(), target.as_str(), cause]);
        let draft = AuditDraft {
            mode,
            trust: Some(self),
            ..AuditDraft::new_recorded(kind, id, target, RecordKind::Instinct, workflow, at)
        };
        Ok(Plan { draft, basis: PlanBasis::Fields, change: PlannedChange::Nothing })
    }
}

impl fmt::Display for TrustMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pruned { subject, name, confidence } => {
                let subject = subject.describe(name.as_deref());
                write!(f, "{subject} counts as unknown again: its confidence is {confidence:.2}")
            }
            Self::Lowered { subject, name, from, to, undone, of, at_least, budget } => write!(
                f,
                "{} went from {} to {}: {undone} of {of} live changes of the last 7 days were undone, \
                 so the rate is at least {:.1} %, and the budget is {:.1} %; \
                 `steward trust raise {subject}` restores it",
                subject.describe(name.as_deref()),
                from.as_str(),
                to.as_str(),
                at_least * 100.0,
                budget * 100.0
            ),
            Self::Unrestored { subject, why } => write!(
                f,
                "{subject} went to shadow: its undo does not restore the old bytes: {why}; \
                 `steward trust raise {subject}` restores it"
            ),
            Self::Raised { subject } => write!(f, "{subject} may go as far as the mode allows again"),
            Self::CeilingSet { subject, name, from, to, by } => write!(
                f,
                "{by} set the ceiling of {} from {} to {}",
                subject.describe(name.as_deref()),
                from.map_or("none", Ceiling::as_str),
                to.as_str()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::audit::{AuditRecord, ChainLink};
    use crate::action::plan::ContentHash;
    use crate::time;

    fn lowered(subject: TrustSubject) -> TrustMark {
        let (from, to) = (Mode::Live, Mode::LiveHighConfidenceOnly);
        TrustMark::Lowered { subject, name: None, from, to, undone: 2, of: 3, at_least: 0.144, budget: 0.05 }
    }

    #[test]
    fn a_mark_is_filed_once_for_each_cause_and_reads_back() {
        let at = time::parse("2026-11-22T08:00:00.123Z").unwrap();
        let plan = |cause: &str| {
            let mark = lowered(TrustSubject::Source("mail-0123".into()));
            mark.into_plan(cause, at, Mode::Live, WorkflowRef { id: "w".into(), run_id: "r".into() }).unwrap()
        };
        assert_eq!((plan("a").id(), plan("a").id() == plan("b").id()), (plan("a").id(), false));
        let path = plan("a").draft().record_path().unwrap();
        assert_eq!(path.as_str(), "event/steward-trust-lowered-20261122T080000123Z-mail-0123.md");
        let record = AuditRecord::from_draft(
            plan("a").draft().clone(),
            Vec::new(),
            ChainLink { seq: 1, prev: ContentHash::genesis() },
        );
        let text = record.render().unwrap();
        assert!(text.contains("2 of 3 live changes of the last 7 days were undone"), "{text}");
        assert_eq!(AuditRecord::parse(text.as_bytes()).unwrap(), record);
    }

    #[test]
    fn a_class_is_no_source() {
        assert_eq!(TrustSubject::parse("related"), TrustSubject::Class(MutationClass::Related));
        assert_eq!(TrustSubject::parse("Gmail"), TrustSubject::Source("gmail".into()));
        assert_eq!(
            TrustSubject::Class(MutationClass::Related).instinct_path().unwrap().as_str(),
            "instinct/class.related.md"
        );
        for name in ["class.related", "class.state_change", "CLASS.related"] {
            let key = crate::signals::signal::source_key(name);
            assert!(!key.contains('.'), "{key}");
        }
        assert!(TrustSubject::Source("../task/x".into()).instinct_path().is_err());
    }

    #[test]
    fn unknown_sources_are_one_subject_and_no_source_of_that_name() {
        let source = TrustSubject::Source(crate::signals::signal::source_key("unknown_sources"));
        assert_eq!(
            (TrustSubject::parse(" unknown_sources "), TrustSubject::parse("Unknown_sources")),
            (TrustSubject::UnknownSources, source.clone())
        );
        assert_ne!(
            TrustSubject::UnknownSources.to_string(),
            source.to_string(),
            "no key of a source has an underscore"
        );
        assert_ne!(TrustSubject::UnknownSources.instinct_path().unwrap(), source.instinct_path().unwrap());
        let at = time::parse("2026-11-22T08:00:00Z").unwrap();
        let workflow = WorkflowRef { id: "w".into(), run_id: "r".into() };
        for subject in [TrustSubject::UnknownSources, source] {
            let plan = lowered(subject).into_plan("a", at, Mode::Live, workflow.clone()).unwrap();
            let link = ChainLink { seq: 1, prev: ContentHash::genesis() };
            let record = AuditRecord::from_draft(plan.draft().clone(), Vec::new(), link);
            assert_eq!(AuditRecord::parse(record.render().unwrap().as_bytes()).unwrap(), record);
        }
    }

    #[test]
    fn a_source_is_shown_by_its_name_and_the_key_that_restores_it() {
        let key = crate::signals::signal::source_key("mail:Ann@b.example");
        let shown = |name: &str| TrustSubject::Source(key.clone()).describe(Some(name));
        assert_eq!(shown("mail:Ann@b.example"), format!("mail:Ann@b.example ({key})"));
        assert_eq!(shown("a\n\u{1b}[2Jb"), format!("{} ({key})", plain_text::to_one_line("a\n\u{1b}[2Jb")));
        assert_eq!((shown(" "), shown(&key)), (key.clone(), key.clone()), "nothing is shown twice");
        assert_eq!(shown(&"x".repeat(200)).chars().count(), 61 + key.len() + 3);
        let TrustMark::Lowered { subject, from, to, undone, of, at_least, budget, .. } =
            lowered(TrustSubject::Source(key))
        else {
            panic!()
        };
        let name = Some("mail:Ann@b.example".to_owned());
        let mark = TrustMark::Lowered { subject: subject.clone(), name, from, to, undone, of, at_least, budget };
        let text = mark.to_string();
        assert!(text.starts_with("mail:Ann@b.example (mail-ann-b-example-"), "{text}");
        assert!(text.contains(&format!("`steward trust raise {subject}`")), "{text}");
    }
}
