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

/// Words of pages and documents that a refusal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalWords {
    /// What they are, as a fence around them is called.
    pub name: &'static str,
    /// What stands between the text and them in a reply.
    pub lead: &'static str,
    pub words: String,
}

/// A refused change. As a whole reply the outside words follow the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}{}", join_words(.outside))]
pub struct DraftRefusal {
    pub fault: DraftFault,
    /// The reply in words of ours and of who wrote.
    pub text: String,
    pub outside: Option<RefusalWords>,
}

impl DraftRefusal {
    /// A refusal with its reply, which begins with `error: `.
    #[must_use]
    pub fn new(fault: DraftFault, text: impl Into<String>) -> Self {
        Self { fault, text: text.into(), outside: None }
    }

    /// The same with words of pages and documents; without any it stays as it is.
    #[must_use]
    pub fn with_outside(self, name: &'static str, lead: &'static str, words: String) -> Self {
        Self { outside: (!words.is_empty()).then_some(RefusalWords { name, lead, words }), ..self }
    }

    /// What is said to who wrote about a fault.
    #[must_use]
    pub fn from_finding(finding: &RunFinding) -> Self {
        let RunFinding { fault, problem, .. } = finding;
        // A line that is judged may hold older words than those of who wrote.
        let (text, found) = match fault {
            // Marks of a page may be called anything.
            RunFault::DropsClaims => {
                let text = "error: it drops what stood there: keep it or mark it disputed";
                (text.to_owned(), problem.trim_start_matches("it drops "))
            }
            RunFault::BlockChanged => ("error: what stands on the page stays".to_owned(), problem.as_str()),
            RunFault::CodeNotInSource => {
                ("error: not in source: say it in prose or leave it out".to_owned(), problem.as_str())
            }
            RunFault::ClaimUnanchored => {
                (format!("error: {}", fault.explain()), problem.trim_start_matches("it has no source: "))
            }
            RunFault::NoFootnote => (format!("error: {}", fault.explain()), ""),
            fault => (format!("error: {}", fault.explain()), problem.as_str()),
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
        Self::new(fault, text).with_outside("found", ": ", found.to_owned())
    }
}

/// The outside words as they follow a text.
fn join_words(outside: &Option<RefusalWords>) -> String {
    outside.as_ref().map(|it| format!("{}{}", it.lead, it.words)).unwrap_or_default()
}

impl From<String> for DraftRefusal {
    fn from(text: String) -> Self {
        Self::new(DraftFault::BadArguments, text)
    }
}

impl From<&str> for DraftRefusal {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(fault: RunFault, problem: &str) -> DraftRefusal {
        DraftRefusal::from_finding(&RunFinding { file: String::new(), fault, problem: problem.to_owned() })
    }

    #[test]
    fn words_of_a_page_stand_apart_and_a_whole_reply_holds_them() {
        let refusal = refuse(RunFault::BlockChanged, "this line stood there: My own note.");
        assert_eq!(refusal.text, "error: what stands on the page stays");
        assert_eq!(refusal.outside.as_ref().unwrap().words, "this line stood there: My own note.");
        assert_eq!(refusal.to_string(), "error: what stands on the page stays: this line stood there: My own note.");
        let refusal = refuse(RunFault::HiddenText, "line 3: x");
        assert!(!refusal.text.contains("line 3"), "{refusal}");
        let refusal = refuse(RunFault::NoFootnote, "it quotes nothing");
        assert_eq!((refusal.to_string(), refusal.outside), (refusal.text.clone(), None));
        assert_eq!(DraftRefusal::from("error: x").with_outside("nearest", "; ", String::new()).outside, None);
    }
}
