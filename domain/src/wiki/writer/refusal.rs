//! Why a change of a draft is refused: the reply to who wrote it, and a code for programs.
//!
//! A reply begins with `error: `, names what is wrong, and what would be right.

use crate::wiki::verify::{RunFault, RunFinding};

/// What is wrong with a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum DraftFault {
    /// The arguments do not fit each other or the wiki.
    BadArguments,
    /// An archive is made once, and never changed.
    ArchiveImmutable,
    /// A paragraph, list item or table row has no source.
    ClaimUnanchored,
    /// A claim that stood on a page would be lost.
    DropsClaims,
    FolderTooDeep,
    KindUnknown,
    ManyMatches,
    /// Another page or file has this name.
    NameCollides,
    /// A page, or a footnote, names no source.
    NoCitation,
    NoMatch,
    NotFound,
    /// Only code or people write this file.
    ProtectedFile,
    /// What a person wrote, or what stood on the page, would be changed or lost.
    PersonWroteThis,
    QuotaReached,
    /// A mark without a quote, or a quote of the wrong length.
    QuoteMissing,
    QuoteNotFound,
    StatementTooLong,
    /// A page without a title or kind, or with a frontmatter that cannot be read.
    TemplateMissing,
    /// The rules of the verifier find another fault.
    RulesFault,
}

/// A refused change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct DraftRefusal {
    pub fault: DraftFault,
    /// The whole reply.
    pub text: String,
}

impl DraftRefusal {
    /// A refusal with its reply, which begins with `error: `.
    #[must_use]
    pub fn new(fault: DraftFault, text: impl Into<String>) -> Self {
        Self { fault, text: text.into() }
    }

    /// What is said to who wrote about a fault.
    #[must_use]
    pub fn from_finding(finding: &RunFinding) -> Self {
        let RunFinding { fault, problem, .. } = finding;
        let text = match fault {
            RunFault::DropsClaims => {
                format!("error: {}: keep it or mark it disputed", problem.replacen("it drops", "drops", 1))
            }
            RunFault::BlockChanged => format!("error: what stands on the page stays: {problem}"),
            RunFault::CodeNotInSource => format!("error: not in source: say it in prose or leave it out: {problem}"),
            RunFault::ClaimUnanchored => {
                format!("error: {}: {}", fault.explain(), problem.trim_start_matches("it has no source: "))
            }
            RunFault::NoFootnote => format!("error: {}", fault.explain()),
            fault => format!("error: {}: {problem}", fault.explain()),
        };
        let fault = match fault {
            RunFault::DropsClaims => DraftFault::DropsClaims,
            RunFault::BlockChanged => DraftFault::PersonWroteThis,
            RunFault::ClaimUnanchored => DraftFault::ClaimUnanchored,
            RunFault::NoFootnote => DraftFault::NoCitation,
            RunFault::FootnoteForm | RunFault::SourceMissing => DraftFault::QuoteMissing,
            RunFault::FabricatedQuote => DraftFault::QuoteNotFound,
            RunFault::StatementTooLong => DraftFault::StatementTooLong,
            RunFault::OverQuota => DraftFault::QuotaReached,
            RunFault::DuplicateId => DraftFault::NameCollides,
            _ => DraftFault::RulesFault,
        };
        Self::new(fault, text)
    }
}

impl From<String> for DraftRefusal {
    fn from(text: String) -> Self {
        Self { fault: DraftFault::BadArguments, text }
    }
}

impl From<&str> for DraftRefusal {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}
