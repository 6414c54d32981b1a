//! Takes a committed run back, below later changes of people and of other runs.
//!
//! Each page gets a three-way merge of what the run left, what stands now and what was there before it. Hunks that nobody
//! touched go back, and everything else stays. Where others wrote right beside what the run added, its blocks alone go. A
//! page that the run made goes to the trash, unless somebody edited or uses it since. Files that code renders, and the log, are no part of this: they are rendered anew, and the log keeps both
//! entries.

mod blocks;

use super::assemble::apply_files;
use super::details::{FileRecord, RecordedContent, WikiDetails};
use super::lint::map_missed_pages;
use super::merge::{PageMergeError, merge_page};
use super::page::{WikiPage, read_page};
use super::path::{PagePath, PagePathError, WikiFileKind};
use super::plan::RunFile;
use super::settle::{RolledBackPage, unwrap_single_sides};
use crate::action::plan::ContentHash;
use blocks::take_out_blocks;
use chrono::{DateTime, Utc};

/// What a rollback would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollbackPlan {
    /// The pages that change.
    pub files: Vec<RunFile>,
    /// Pages of the run that stay, and why.
    pub kept: Vec<KeptPage>,
    /// What stands in the way. Nothing may be changed while there is any.
    pub conflicts: Vec<RollbackConflict>,
    /// Pages that are no longer where the run left them: the file and the slug.
    gone: Vec<GonePage>,
}

/// A page that is no longer where the run left it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GonePage {
    file: String,
    slug: String,
}

/// A page that the run made and that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPage {
    pub file: String,
    pub reason: KeptReason,
}

/// Why a page stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeptReason {
    #[error("edited since")]
    Edited,
    #[error("{0} links to it")]
    Used(String),
    #[error("it is {0} now")]
    Moved(String),
}

/// A page that cannot be taken back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}{}", .words.as_ref().map(|words| format!(": {words}")).unwrap_or_default())]
pub struct RollbackConflict {
    /// Relative to the wiki.
    pub file: String,
    pub reason: String,
    /// The words that stand there, for a person.
    pub words: Option<String>,
}

/// A page whose frontmatter cannot be read, so that its links are unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadablePage {
    pub file: String,
    pub text: String,
}

/// What to do with pages that were edited where the run changed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditedPages {
    /// They stand in the way.
    Refuse,
    /// They stay as they are, and the others are taken back.
    Keep,
}

/// Plans to take a run back; [`RollbackPlan::settle_names`] completes it.
///
/// `folder` is that of the wiki, and `missing` are the files that the run did not reach. `read` gives the present content of
/// a file, `None` if it does not exist, or why it cannot be read. `at` is the moment of the rollback. Where it leaves one side of a
/// dispute, that side stays without the block.
///
/// # Errors
/// A path in the record that is none of a wiki: the record was edited.
pub fn invert(
    details: &WikiDetails,
    folder: &str,
    missing: &[String],
    edited: EditedPages,
    at: DateTime<Utc>,
    read: impl Fn(&PagePath) -> Result<Option<Vec<u8>>, String>,
) -> Result<RollbackPlan, PagePathError> {
    let mut plan = RollbackPlan::default();
    for record in &details.files {
        let path = PagePath::new(folder, &record.file)?;
        let RecordedContent::Page { before, after } = &record.content else { continue };
        if path.kind() != WikiFileKind::Page || missing.contains(&path.to_string()) {
            continue;
        }
        let now = match read(&path) {
            Ok(now) => now,
            Err(reason) => {
                plan.conflicts.push(RollbackConflict { file: record.file.clone(), reason, words: None });
                continue;
            }
        };
        let sides = PageSides { before, after, now };
        match plan_page(record, &path, sides) {
            PageRollback::Nothing => {}
            PageRollback::Gone => {
                let slug = read_page(&record.file, after.as_bytes()).page.map(|page| page.slug.clone());
                plan.gone.extend(slug.map(|slug| GonePage { file: record.file.clone(), slug }));
            }
            PageRollback::Change(file) => plan.files.push(unwrap_disputes(file, before, at)),
            PageRollback::Kept(reason) => plan.kept.push(KeptPage { file: record.file.clone(), reason }),
            PageRollback::Conflict(_) | PageRollback::Overlap { .. } if edited == EditedPages::Keep => {
                plan.kept.push(KeptPage { file: record.file.clone(), reason: KeptReason::Edited });
            }
            PageRollback::Conflict(reason) => {
                plan.conflicts.push(RollbackConflict { file: record.file.clone(), reason, words: None });
            }
            PageRollback::Overlap { reason, words } => {
                plan.conflicts.push(RollbackConflict { file: record.file.clone(), reason, words: Some(words) });
            }
        }
    }
    Ok(plan)
}

impl RollbackPlan {
    /// Compares the plan with the names of the pages: those of the wiki now are `pages`, and `unreadable` are texts of pages that
    /// cannot be read.
    ///
    /// A page that others would miss stays. A page that moved is named. A page whose slug another one has by now is not
    /// brought back.
    pub fn settle_names(&mut self, pages: &[WikiPage], unreadable: &[UnreadablePage], edited: EditedPages) {
        for gone in std::mem::take(&mut self.gone) {
            let moved = pages.iter().find(|page| page.slug == gone.slug && page.file != gone.file);
            let kept = moved.map(|page| KeptPage { file: gone.file, reason: KeptReason::Moved(page.file.clone()) });
            self.kept.extend(kept);
        }
        while let Some((at, taken)) = self.find_taken_name(pages) {
            let file = self.files.remove(at).path.file().to_owned();
            match edited {
                EditedPages::Keep => self.kept.push(KeptPage { file, reason: KeptReason::Moved(taken) }),
                EditedPages::Refuse => {
                    let reason = format!("{taken} has its slug by now");
                    self.conflicts.push(RollbackConflict { file, reason, words: None });
                }
            }
        }
        while let Some((at, user)) = self.find_missed_page(pages, unreadable) {
            let file = self.files.remove(at).path.file().to_owned();
            // It may use others of them in turn.
            self.kept.push(KeptPage { file, reason: KeptReason::Used(user) });
        }
    }

    /// A page that would be brought back although another one has its slug, and that other one.
    fn find_taken_name(&self, pages: &[WikiPage]) -> Option<(usize, String)> {
        let after = self.apply_to(pages);
        self.files.iter().enumerate().filter(|(_, file)| file.before.is_none()).find_map(|(at, file)| {
            let slug = read_page(file.path.file(), file.after.as_ref()?).page?.slug.clone();
            let other = after.iter().find(|page| page.slug == slug && page.file != file.path.file())?;
            Some((at, other.file.clone()))
        })
    }

    /// A page that would be removed although others use it, and one of them.
    fn find_missed_page(&self, pages: &[WikiPage], unreadable: &[UnreadablePage]) -> Option<(usize, String)> {
        let missed = map_missed_pages(pages, &self.apply_to(pages));
        self.files.iter().enumerate().filter(|(_, file)| file.after.is_none()).find_map(|(at, file)| {
            let name = file.path.file();
            let slug = pages.iter().find(|page| page.file == name).map(|page| format!("[[{}", page.slug));
            let last = name.rsplit('/').next().unwrap_or(name);
            let may_use = |page: &&UnreadablePage| {
                page.text.contains(last) || slug.as_ref().is_some_and(|slug| page.text.contains(slug))
            };
            let user = missed.get(name).or_else(|| unreadable.iter().find(may_use).map(|page| &page.file));
            user.map(|user| (at, user.clone()))
        })
    }

    /// The pages as they would be after the rollback.
    #[must_use]
    pub fn apply_to(&self, pages: &[WikiPage]) -> Vec<WikiPage> {
        let mut after = pages.to_vec();
        apply_files(&mut after, &self.files);
        after
    }
}

fn unwrap_disputes(mut file: RunFile, before: &str, at: DateTime<Utc>) -> RunFile {
    if let Some(now) = &file.before {
        let pages = RolledBackPage { before, now };
        file.after = file.after.map(|left| unwrap_single_sides(file.path.file(), pages, left, at));
    }
    file
}

/// A page before the run, as the run left it, and as it is now.
struct PageSides<'a> {
    before: &'a str,
    after: &'a str,
    now: Option<Vec<u8>>,
}

enum PageRollback {
    Nothing,
    /// The page is not where the run left it.
    Gone,
    Change(RunFile),
    Kept(KeptReason),
    Conflict(String),
    /// People changed the lines that would go back.
    Overlap {
        reason: String,
        words: String,
    },
}

fn plan_page(record: &FileRecord, path: &PagePath, sides: PageSides<'_>) -> PageRollback {
    let PageSides { before, after, now } = sides;
    let change = |now: Option<Vec<u8>>, wanted: Option<&str>| {
        let after = wanted.map(|text| text.as_bytes().to_vec());
        PageRollback::Change(RunFile { path: path.clone(), before: now, after })
    };
    match (&record.before, &record.after, now) {
        // The run made the page, or changed one that somebody has removed since.
        (_, Some(_), None) => PageRollback::Gone,
        (None, Some(made), Some(now)) => {
            if &ContentHash::hash_bytes(&now) == made {
                return change(Some(now), None);
            }
            let left = std::str::from_utf8(&now).ok().and_then(|text| take_out_blocks(None, after, text));
            match left {
                Some(left) => change(Some(now), Some(&left)),
                None => PageRollback::Kept(KeptReason::Edited),
            }
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
                    if let Some(left) = take_out_blocks(Some(before), after, &text) {
                        return change(Some(text.into_bytes()), Some(&left));
                    }
                    let words = conflict.theirs.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                    let words: String = words.chars().take(80).collect();
                    PageRollback::Overlap { reason: format!("line {} was changed since", conflict.line), words }
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
