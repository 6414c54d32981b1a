//! A plan: the exact changes of one run, and the audit record for them.
//!
//! Only [`close`] makes one, and only the vault writer takes one. It checks what holds for every run, whoever wrote it:
//! all files lie in one wiki, a source is only ever added, the log only grows, and the record can take everything back.

use super::details::{ClaimRecord, FileRecord, RecordedContent, WikiDetails};
use super::path::{PagePath, WikiFileKind};
use super::run::{REJECTED_SUFFIX, WikiMark, derive_record_id};
use super::{GRAPH_FILE, IDEAS_FILE};
use crate::action::audit::{ActionKind, AuditDraft, AuditRecord, ChainLink, MAX_WIKI_RECORD_BYTES, WorkflowRef};
use crate::action::plan::{ContentHash, Disposition};
use crate::record::path::{PathError, RecordKind, RecordPath, show_path};
use crate::steward::clerk::ClerkMark;
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

/// What a run is, before its files.
#[derive(Clone, Debug, PartialEq)]
pub struct WikiRun {
    pub kind: ActionKind,
    pub mark: WikiMark,
    pub at: DateTime<Utc>,
    /// One line for people.
    pub reasoning: String,
    pub workflow: WorkflowRef,
    /// The model that wrote, with all tokens of the run; `None` for fixed rules and people.
    pub clerk: Option<ClerkMark>,
    /// The claims that the run makes and removes.
    pub claims: Vec<ClaimRecord>,
    /// The files that a person accepts as they are.
    pub accepted: Vec<AcceptedFile>,
}

/// A file that a person accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedFile {
    /// One of [`super::ACCEPTED_FILES`].
    pub file: &'static str,
    pub text: String,
}

/// One file of a run: what stands there, and what the run wants to stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFile {
    pub path: PagePath,
    /// `None` if the file does not exist.
    pub before: Option<Vec<u8>>,
    /// `None` to remove the file.
    pub after: Option<Vec<u8>>,
}

/// A file that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    pub path: PagePath,
    pub before: Option<ContentHash>,
    pub after: Option<Vec<u8>>,
}

impl WikiRun {
    /// The draft of its audit record. It is the same for every try.
    ///
    /// # Errors
    /// [`PathError`] if the wiki's name is invalid.
    pub fn draft_record(&self) -> Result<AuditDraft, PathError> {
        if self.mark.wiki.ends_with(REJECTED_SUFFIX) {
            // Its records could be taken for those of runs of another wiki.
            let (path, part) = (show_path(&self.mark.folder), show_path(&self.mark.wiki));
            let fault = "ends as only the names of records of rejected runs do";
            return Err(PathError::Name { path, part, fault });
        }
        // It has no file, and no source's key has a dot.
        let target = RecordPath::new(RecordKind::Instinct, &format!("wiki.{}", self.mark.wiki))?;
        let id = derive_record_id(self.kind, self.mark.run.as_str(), &self.mark.wiki);
        let workflow = self.workflow.clone();
        // What a person accepted or added changes no page, and neither does a run that was rejected.
        let disposition = if self.kind == ActionKind::Wiki { Disposition::Live } else { Disposition::Recorded };
        Ok(AuditDraft {
            reasoning: self.reasoning.clone(),
            clerk: self.clerk.clone(),
            disposition,
            wiki: Some(self.mark.clone()),
            ..AuditDraft::new_recorded(self.kind, id, target, RecordKind::Instinct, workflow, self.at)
        })
    }
}

/// The changes of a run that may be committed, in the order of their exchange, and their audit record.
#[derive(Clone, Debug, PartialEq)]
pub struct WikiPlan {
    mark: WikiMark,
    draft: AuditDraft,
    details: WikiDetails,
    files: Vec<PlannedFile>,
}

/// Why the files of a run cannot be committed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WikiPlanError {
    #[error("{0}: named twice in one run")]
    Twice(PagePath),
    #[error("{0}: lies in a folder that would be a file of the same run")]
    Nested(PagePath),
    #[error("too many files: their names have {0} bytes, more than {MAX_NAME_BYTES}: split the run")]
    TooMany(usize),
    #[error("{0}: not in the wiki of the run")]
    Elsewhere(PagePath),
    #[error("{0}: {1} bytes, more than such a file may have")]
    TooLarge(PagePath, usize),
    #[error("{0}: a source is added once, and is never changed or removed by a run")]
    Source(PagePath),
    #[error("{0}: no run removes it")]
    NotRemovable(PagePath),
    #[error("{0}: entries are added at its end, and what stands above stays")]
    Log(PagePath),
    #[error("{0}: not UTF-8 text")]
    NotText(PagePath),
    #[error("the record would have {0} bytes, more than {MAX_WIKI_RECORD_BYTES}: split the run")]
    Record(usize),
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Makes a plan of the files of a run. Files that the run leaves as they are do not count.
///
/// # Errors
/// [`WikiPlanError`] for the first file that cannot be committed.
pub fn close(run: WikiRun, files: Vec<RunFile>) -> Result<WikiPlan, WikiPlanError> {
    let mut seen = BTreeSet::new();
    let (mut planned, mut records) = (Vec::new(), Vec::new());
    let mut files: Vec<RunFile> = files.into_iter().filter(|file| file.before != file.after).collect();
    files.sort_by(|a, b| (a.path.kind(), &a.path).cmp(&(b.path.kind(), &b.path)));
    check_names(&files)?;
    for file in files {
        check_file(&file, &run.mark)?;
        if !seen.insert(file.path.to_string().to_lowercase()) {
            return Err(WikiPlanError::Twice(file.path));
        }
        let hash = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(ContentHash::hash_bytes);
        let before = hash(&file.before);
        records.push(FileRecord {
            file: file.path.file().to_owned(),
            before: before.clone(),
            after: hash(&file.after),
            content: record_content(&file)?,
        });
        planned.push(PlannedFile { path: file.path, before, after: file.after });
    }
    records.extend(run.accepted.iter().map(|accepted| FileRecord::of_accepted(accepted.file, &accepted.text)));
    let (draft, details) = (run.draft_record()?, WikiDetails { files: records, claims: run.claims });
    let plan = WikiPlan { mark: run.mark, draft, details, files: planned };
    let size = plan.details.render().len();
    if size > MAX_WIKI_RECORD_BYTES - HEAD_BYTES {
        return Err(WikiPlanError::Record(size));
    }
    Ok(plan)
}

/// Room for the part of a record above its details.
const HEAD_BYTES: usize = 128 * 1024;
/// The most bytes of the names of all files: a record may have to list them in its frontmatter, which may have 64 KiB.
const MAX_NAME_BYTES: usize = 40 * 1024;

fn check_names(files: &[RunFile]) -> Result<(), WikiPlanError> {
    let names: BTreeSet<String> = files.iter().map(|file| file.path.to_string()).collect();
    // Each is written in quotes on a line of its own.
    let bytes = names.iter().map(|name| name.len() + 8).sum();
    if bytes > MAX_NAME_BYTES {
        return Err(WikiPlanError::TooMany(bytes));
    }
    let has_file_above = |file: &&RunFile| {
        let name = file.path.to_string();
        name.match_indices('/').any(|(at, _)| names.contains(&name[..at]))
    };
    files.iter().find(has_file_above).map_or(Ok(()), |file| Err(WikiPlanError::Nested(file.path.clone())))
}

fn check_file(file: &RunFile, mark: &WikiMark) -> Result<(), WikiPlanError> {
    let path = || file.path.clone();
    if file.path.wiki() != mark.folder {
        return Err(WikiPlanError::Elsewhere(path()));
    }
    let size = file.after.as_ref().map_or(0, Vec::len);
    if size > file.path.max_bytes() {
        return Err(WikiPlanError::TooLarge(path(), size));
    }
    match file.path.kind() {
        WikiFileKind::Source | WikiFileKind::SourceText if file.before.is_some() => Err(WikiPlanError::Source(path())),
        WikiFileKind::Displaced if file.before.is_some() => Err(WikiPlanError::Twice(path())),
        WikiFileKind::Page => Ok(()),
        _ if file.after.is_none() => Err(WikiPlanError::NotRemovable(path())),
        _ => Ok(()),
    }
}

/// What the record keeps of a file.
fn record_content(file: &RunFile) -> Result<RecordedContent, WikiPlanError> {
    let text = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.as_deref().unwrap_or_default();
        let not_text = || WikiPlanError::NotText(file.path.clone());
        // A record with a NUL could not be read back.
        let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
        text.map(str::to_owned).ok_or_else(not_text)
    };
    match file.path.kind() {
        // Their lines can be taken out again.
        WikiFileKind::Generated if [IDEAS_FILE, GRAPH_FILE].contains(&file.path.file()) => {
            let (before, after) = (text(&file.before)?, text(&file.after)?);
            let added = after.strip_prefix(&before).filter(|added| added.ends_with('\n'));
            Ok(added.map_or(RecordedContent::Hashes, |added| RecordedContent::Entry(added.to_owned())))
        }
        WikiFileKind::Displaced
        | WikiFileKind::Source
        | WikiFileKind::SourceText
        | WikiFileKind::Generated
        | WikiFileKind::Index => Ok(RecordedContent::Hashes),
        WikiFileKind::Page | WikiFileKind::Overview => {
            Ok(RecordedContent::Page { before: text(&file.before)?, after: text(&file.after)? })
        }
        WikiFileKind::Log => {
            let (before, after) = (text(&file.before)?, text(&file.after)?);
            let entry = after.strip_prefix(&before).filter(|entry| entry.ends_with('\n'));
            entry.map(|entry| RecordedContent::Entry(entry.to_owned())).ok_or(WikiPlanError::Log(file.path.clone()))
        }
    }
}

impl WikiPlan {
    /// The run.
    #[must_use]
    pub fn mark(&self) -> &WikiMark {
        &self.mark
    }

    /// The draft of its audit record.
    #[must_use]
    pub fn draft(&self) -> &AuditDraft {
        &self.draft
    }

    /// The files that change, in the order of their exchange.
    #[must_use]
    pub fn files(&self) -> &[PlannedFile] {
        &self.files
    }

    /// Renders the record at a place of the chain, and returns it with its text.
    ///
    /// # Errors
    /// Why it would not read back as it was written.
    pub fn render_record(&self, link: ChainLink) -> Result<(AuditRecord, String), String> {
        let record = AuditRecord::from_draft(self.draft.clone(), Vec::new(), link);
        let text = format!("{}{}", record.render().map_err(|e| e.to_string())?, self.details.render());
        let read = AuditRecord::parse(text.as_bytes()).map_err(|e| e.to_string())?;
        let details = WikiDetails::parse(&text).map_err(|e| e.to_string())?;
        match read == record && details == self.details && text.len() <= MAX_WIKI_RECORD_BYTES {
            true => Ok((record, text)),
            false => Err("the record would not read back as it was written".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
