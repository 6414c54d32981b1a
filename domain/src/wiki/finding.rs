//! What a check of a wiki found: where, what, and how to fix it.
//!
//! A finding never holds more than a line of outside text, and that without characters that hide or turn text.

use super::standard::{FaultKind, FieldPath, FieldStep};
use crate::record::frontmatter::Document;
use crate::record::plain_text::to_one_line;
use serde::Serialize;

/// How much a finding matters.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    strum::Display,
    strum::EnumString,
    strum::EnumIter,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    Info,
    Warn,
    Error,
}

/// What was found. Scripts may rely on the names; `docs/wiki.md` explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::Display, strum::EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FindingCode {
    /// There is no `KNOWLEDGE.md`.
    SchemaMissing,
    /// `KNOWLEDGE.md` is not valid, or cannot be read.
    KnowledgeWorkspaceInvalid,
    /// A page is not valid, or cannot be read.
    EntryInvalid,
    /// The registry of sources is not valid, or cannot be read.
    SourceInvalid,
    KnowledgeExtendsMissing,
    KnowledgeExtendsCycle,
    KnowledgeExtendsDepthExceeded,
    KnowledgeAppliestoUnresolvable,
    #[serde(rename = "governance:override_refused")]
    #[strum(serialize = "governance:override_refused")]
    GovernanceOverrideRefused,
    #[serde(rename = "governance:lint_softening_refused")]
    #[strum(serialize = "governance:lint_softening_refused")]
    GovernanceLintSofteningRefused,
    /// A key or value that this version does not know. It is kept.
    NewerThanSchema,
    /// A page of an earlier draft: `schema: knowledge/v1`.
    LegacySchema,
    /// `type:` instead of `kind:`.
    LegacyType,
    /// A source's path where its id belongs.
    SourcePath,
    /// A page in a folder that is not the one of its kind.
    PathHint,
    SlugDigitFirst,
    KindUndeclared,
    FieldMissing,
    DuplicateId,
    DuplicateTitle,
    IndexStale,
    BrokenRef,
    /// Two pages share a tag and rare words, and neither links the other.
    SeeAlso,
    Orphan,
    Unlinked,
    Stale,
    MinConfidence,
    RequireSource,
    UnresolvedContradiction,
    /// A contradiction that is marked in one or two of three places: callout, block and `contradicts`.
    HedgeIncomplete,
    SourceMutated,
    SourceMissing,
    /// A page rests on a source that another one replaces, and not on that one.
    SourceSuperseded,
    /// An archive cites a source that another one replaces or that was changed.
    ArchiveSourceUpdated,
    /// A run did not reach all of its files.
    PartialIngest,
    /// The words of a quote do not stand in its source.
    SourceDrifted,
    /// The words or the source of a footnote were changed, so its label does not fit them.
    QuoteEdited,
    /// A mark has no footnote.
    ClaimUnanchored,
    LinkInlineToSource,
    LogUnreadable,
    WikiSchemaDrift,
    /// A file that says how the wiki is written is another one than a person accepted.
    ManifestUnreviewed,
    /// A lint of the manifest that this version cannot run.
    LintUnknown,
    /// A model finds that two claims contradict each other, and no dispute marks it.
    Contradiction,
    /// A model finds a claim outdated by its own words.
    StaleClaim,
    /// A model finds that pages speak of something that has no page.
    MissingPage,
    /// A model finds that a page should link another one.
    MissingLink,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WikiFinding {
    /// Relative to the folder that was checked.
    pub file: String,
    /// From 1.
    pub line: Option<usize>,
    pub field: Option<FieldPath>,
    pub code: FindingCode,
    pub severity: Severity,
    pub problem: String,
    pub fix: String,
}

impl WikiFinding {
    /// A finding about a file as a whole.
    #[must_use]
    pub fn new(code: FindingCode, severity: Severity, file: &str, problem: &str, fix: &str) -> Self {
        let [file, problem, fix] = [file, problem, fix].map(to_one_line);
        Self { file, line: None, field: None, code, severity, problem, fix }
    }

    /// The same finding at a line, from 1.
    #[must_use]
    pub fn with_line(self, line: Option<usize>) -> Self {
        Self { line, ..self }
    }

    /// The same finding at a field of a frontmatter.
    #[must_use]
    pub fn with_field(self, document: &Document, path: &FieldPath) -> Self {
        Self { line: find_line(document, path), field: Some(path.clone()), ..self }
    }
}

impl std::fmt::Display for WikiFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file)?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))?;
        write!(f, ": {} {}", self.severity, self.code)?;
        self.field.as_ref().map_or(Ok(()), |field| write!(f, " at {field}"))?;
        write!(f, ": {}: {}", self.problem, self.fix)
    }
}

/// What a reader makes of a fault: what a later version may have added is kept with a warning, anything else is an error with this
/// code.
#[must_use]
pub fn judge_fault(kind: FaultKind, otherwise: FindingCode) -> (FindingCode, Severity) {
    match kind {
        FaultKind::UnknownKey | FaultKind::UnknownValue => (FindingCode::NewerThanSchema, Severity::Warn),
        FaultKind::NoDoctype | FaultKind::Missing | FaultKind::Invalid => (otherwise, Severity::Error),
    }
}

/// The line of a field, or of the field around it if there is none.
#[must_use]
pub fn find_line(document: &Document, path: &FieldPath) -> Option<usize> {
    let steps: Vec<String> = path
        .steps()
        .iter()
        .map(|step| match step {
            FieldStep::Key(name) => name.clone(),
            FieldStep::Item(position) => position.to_string(),
        })
        .collect();
    let keys: Vec<&str> = steps.iter().map(String::as_str).collect();
    (1..=keys.len()).rev().find_map(|length| document.line_of_key(&keys[..length])).or(Some(1))
}
