//! Takes a committed run back, below later changes of people and of other runs.
//!
//! Each page gets a three-way merge of what the run left, what stands now and what was there before it. Hunks that nobody
//! touched go back, and everything else stays. A page that the run made goes to the trash, unless somebody edited or uses
//! it since. Files that code renders, and the log, are no part of this: they are rendered anew, and the log keeps both
//! entries.

use super::details::{FileRecord, RecordedContent, WikiDetails};
use super::lint::map_users;
use super::merge::{PageMergeError, merge_page};
use super::page::{WikiPage, read_page};
use super::path::{PagePath, PagePathError, WikiFileKind};
use super::plan::RunFile;
use crate::action::plan::ContentHash;

/// What a rollback would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollbackPlan {
    /// The pages that change.
    pub files: Vec<RunFile>,
    /// Pages of the run that stay, and why.
    pub kept: Vec<KeptPage>,
    /// What stands in the way. Nothing may be changed while there is any.
    pub conflicts: Vec<RollbackConflict>,
}

/// A page that the run made and that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPage {
    pub file: String,
    pub reason: KeptReason,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeptReason {
    #[error("edited since")]
    Edited,
    #[error("{0} links to it")]
    Used(String),
}

/// A page that cannot be taken back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct RollbackConflict {
    /// Relative to the wiki.
    pub file: String,
    pub reason: String,
}

/// What to do with pages that were edited where the run changed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditedPages {
    /// They stand in the way.
    Refuse,
    /// They stay as they are, and the others are taken back.
    Keep,
}

/// Plans to take a run back. `folder` is that of the wiki, and `missing` are the files that the run did not reach. `read` gives the
/// present content of a file, `None` if it does not exist, or why it cannot be read.
///
/// # Errors
/// A path in the record that is none of a wiki: the record was edited.
pub fn invert(
    details: &WikiDetails,
    folder: &str,
    missing: &[String],
    edited: EditedPages,
    read: impl Fn(&PagePath) -> Result<Option<Vec<u8>>, String>,
) -> Result<RollbackPlan, PagePathError> {
    let mut plan = RollbackPlan::default();
    for record in &details.files {
        let path = PagePath::new(folder, &record.file)?;
        let is_page = matches!(path.kind(), WikiFileKind::Page | WikiFileKind::Overview);
        let RecordedContent::Page { before, after } = &record.content else { continue };
        if !is_page || missing.contains(&path.to_string()) {
            continue;
        }
        let now = match read(&path) {
            Ok(now) => now,
            Err(reason) => {
                plan.conflicts.push(RollbackConflict { file: record.file.clone(), reason });
                continue;
            }
        };
        let sides = PageSides { before, after, now };
        match plan_page(record, &path, sides) {
            PageRollback::Nothing => {}
            PageRollback::Change(file) => plan.files.push(file),
            PageRollback::Kept(reason) => plan.kept.push(KeptPage { file: record.file.clone(), reason }),
            PageRollback::Conflict(_) if edited == EditedPages::Keep => {
                plan.kept.push(KeptPage { file: record.file.clone(), reason: KeptReason::Edited });
            }
            PageRollback::Conflict(reason) => {
                plan.conflicts.push(RollbackConflict { file: record.file.clone(), reason });
            }
        }
    }
    Ok(plan)
}

impl RollbackPlan {
    /// Lets pages stay that would be removed although others still use them. `pages` are those of the wiki now.
    pub fn keep_used_pages(&mut self, pages: &[WikiPage]) {
        loop {
            let users = map_users(pages, &self.apply_to(pages));
            let is_used = |file: &RunFile| file.after.is_none() && users.contains_key(file.path.file());
            let Some(at) = self.files.iter().position(is_used) else { return };
            let file = self.files.remove(at).path.file().to_owned();
            let user = users.get(&file).cloned().unwrap_or_default();
            // It may use others of them in turn.
            self.kept.push(KeptPage { file, reason: KeptReason::Used(user) });
        }
    }

    /// The pages as they would be after the rollback.
    #[must_use]
    pub fn apply_to(&self, pages: &[WikiPage]) -> Vec<WikiPage> {
        let is_changed = |page: &&WikiPage| self.files.iter().any(|file| file.path.file() == page.file);
        let unchanged = pages.iter().filter(|page| !is_changed(page)).cloned();
        let changed = self.files.iter().filter_map(|file| read_page(file.path.file(), file.after.as_ref()?).page);
        let mut after: Vec<WikiPage> = unchanged.chain(changed).collect();
        after.sort_by(|a, b| a.file.cmp(&b.file));
        after
    }
}

/// A page before the run, as the run left it, and as it is now.
struct PageSides<'a> {
    before: &'a str,
    after: &'a str,
    now: Option<Vec<u8>>,
}

enum PageRollback {
    Nothing,
    Change(RunFile),
    Kept(KeptReason),
    Conflict(String),
}

fn plan_page(record: &FileRecord, path: &PagePath, sides: PageSides<'_>) -> PageRollback {
    let PageSides { before, after, now } = sides;
    let change = |now: Option<Vec<u8>>, wanted: Option<&str>| {
        let after = wanted.map(|text| text.as_bytes().to_vec());
        PageRollback::Change(RunFile { path: path.clone(), before: now, after })
    };
    match (&record.before, &record.after, now) {
        // The run made the page, or changed one that somebody has removed since.
        (_, Some(_), None) => PageRollback::Nothing,
        (None, Some(made), Some(now)) => {
            if &ContentHash::hash_bytes(&now) != made {
                return PageRollback::Kept(KeptReason::Edited);
            }
            change(Some(now), None)
        }
        (_, None, None) => change(None, Some(before)),
        (_, None, Some(now)) if now == before.as_bytes() => PageRollback::Nothing,
        (_, None, Some(_)) => PageRollback::Conflict("another page stands there by now".to_owned()),
        (Some(_), Some(_), Some(now)) => {
            let Ok(text) = String::from_utf8(now) else {
                return PageRollback::Conflict("it is not UTF-8 text any more".to_owned());
            };
            match merge_page(after, before, &text) {
                Ok(merged) if merged == text => PageRollback::Nothing,
                Ok(merged) => change(Some(text.into_bytes()), Some(&merged)),
                Err(PageMergeError::Overlap(conflict)) => {
                    let shown = conflict.theirs.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                    let shown: String = shown.chars().take(80).collect();
                    PageRollback::Conflict(format!("line {} was changed since: {shown}", conflict.line))
                }
                Err(e @ (PageMergeError::Frontmatter(_) | PageMergeError::Footnote(_))) => {
                    PageRollback::Conflict(e.to_string())
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
