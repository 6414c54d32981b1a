//! Notes in the log of a wiki that it was checked, and what was found.
//!
//! A wiki that is as it was at the last check is not noted again: a quiet wiki costs nothing.

use crate::action::writer::VaultWriter;
use crate::files::root::VaultRoot;
use crate::wiki::folder::WikiFolder;
use crate::wiki::health::{CheckedWiki, check_wiki};
use crate::wiki::kept::{change_log, read_log};
use crate::wiki::request::{WikiRunError, WikiRunRequest};
use crate::wiki::settle::{ManualRun, try_again};
use crate::wiki::state::{ReadWikiError, find_wiki_folder, read_current};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::plain_text::{count_noun, escape_one_line};
use steward_domain::wiki::assemble::{RunReport, assemble_entry};
use steward_domain::wiki::finding::{FindingCode, Severity, WikiFinding};
use steward_domain::wiki::log::{self, LogType};
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::plan::close;
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::{LOG_FILE, MAX_GENERATED_BYTES, OVERVIEW_FILE};

const CHECKS: &str = "lints.jsonl";
/// How many checks are kept.
const MAX_CHECKS: usize = 50;

/// A check that was noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NotedCheck {
    at: DateTime<Utc>,
    /// Of everything that a check looks at, and of what it found.
    digest: ContentHash,
}

/// When a wiki was checked last, or else when it began; `None` if nothing says so.
///
/// # Errors
/// [`ReadWikiError`].
pub fn find_last_check(root: &VaultRoot, wiki: &str) -> Result<Option<DateTime<Utc>>, ReadWikiError> {
    let noted: Vec<NotedCheck> = read_log(root, wiki, CHECKS)?;
    if let Some(check) = noted.last() {
        return Ok(Some(check.at));
    }
    let folder = find_wiki_folder(root, wiki)?;
    let failed = |source| ReadWikiError::Io { path: folder.clone(), source };
    let opened = WikiFolder::open(&root.path().join(&folder)).map_err(failed)?;
    let log = opened.read_text(LOG_FILE, MAX_GENERATED_BYTES).ok().flatten().unwrap_or_default();
    Ok(log::read_log(&log).entries.first().map(|entry| entry.at))
}

/// Whether a wiki is another one than at its last check. The moment decides which pages are too old.
///
/// # Errors
/// [`ReadWikiError`].
pub fn is_check_due(root: &VaultRoot, wiki: &str, checked: &CheckedWiki) -> Result<bool, ReadWikiError> {
    let noted: Vec<NotedCheck> = read_log(root, wiki, CHECKS)?;
    Ok(noted.last().is_none_or(|check| check.digest != hash_checked(checked)))
}

impl VaultWriter {
    /// Checks a wiki and notes that in its log, if the wiki is another one than at the last check. Repeated calls do it once.
    ///
    /// # Errors
    /// [`WikiRunError`].
    pub fn log_wiki_check(&self, request: &WikiRunRequest<'_>) -> Result<ManualRun, WikiRunError> {
        try_again(|| self.log_check_once(request))
    }

    fn log_check_once(&self, request: &WikiRunRequest<'_>) -> Result<ManualRun, WikiRunError> {
        let root = self.root();
        let folder = find_wiki_folder(root, request.wiki)?;
        let mut run = request.describe(ActionKind::Wiki, &folder, WikiRunType::Lint, &["lint"]);
        let checked = check_wiki(&root.path().join(&folder), request.at)?;
        let note = NotedCheck { at: request.at, digest: hash_checked(&checked) };
        if let Some(receipt) = self.find_run(&run)? {
            keep_check(root, request.wiki, note)?;
            return Ok(ManualRun { receipt: Some(receipt), displaced: Vec::new() });
        }
        if !is_check_due(root, request.wiki, &checked)? {
            return Ok(ManualRun { receipt: None, displaced: Vec::new() });
        }
        let count = |severity| checked.findings.iter().filter(|it| it.severity == severity).count() as u64;
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warn));
        run.reasoning = format!(
            "{} checked the wiki: {} and {}.",
            request.by,
            count_noun(errors, "error"),
            count_noun(warnings, "warning")
        );
        let subject = format!("{}, {}", count_noun(errors, "error"), count_noun(warnings, "warning"));
        let found = list_codes(&checked.findings);
        let bullets = std::iter::once(format!("run: {}", run.mark.run)).chain(found).collect();
        let report = RunReport::manual(&run.mark.run, request.at, subject, bullets);
        let report = RunReport { log_type: LogType::Lint, ..report };
        // The index stays as it is, even if it is an old one: a check fixes nothing.
        let log = read_current(root, &PagePath::new(&folder, LOG_FILE)?).map_err(WikiRunError::Refused)?;
        let assembled = assemble_entry(folder, log, &report)?;
        let receipt = self.commit_run(&close(run, assembled.files)?)?;
        keep_check(root, request.wiki, note)?;
        Ok(ManualRun { receipt: Some(receipt), displaced: Vec::new() })
    }
}

fn keep_check(root: &VaultRoot, wiki: &str, note: NotedCheck) -> Result<(), ReadWikiError> {
    change_log(root, wiki, CHECKS, |lines: &mut Vec<NotedCheck>| {
        lines.push(note);
        lines.drain(..lines.len().saturating_sub(MAX_CHECKS));
    })
}

/// One line for each code: how often it was found, and in which file first.
fn list_codes(findings: &[WikiFinding]) -> Vec<String> {
    let mut counts: BTreeMap<(Severity, FindingCode), (usize, &str)> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.severity != Severity::Info) {
        counts.entry((finding.severity, finding.code)).or_insert((0, &finding.file)).0 += 1;
    }
    counts
        .into_iter()
        .rev()
        .map(|((_, code), (count, file))| match count {
            1 => format!("{code}: {}", escape_one_line(file)),
            _ => format!("{code}: {count}, first in {}", escape_one_line(file)),
        })
        .collect()
}

/// The hash of what a check looks at, without the files that it changes itself.
fn hash_checked(checked: &CheckedWiki) -> ContentHash {
    let contents = &checked.contents;
    let pages: BTreeMap<&str, ContentHash> = contents
        .pages
        .iter()
        .filter(|page| page.file != OVERVIEW_FILE)
        .map(|page| (page.file.as_str(), ContentHash::hash_bytes(page.document.as_bytes())))
        .collect();
    // The words of a finding may say how many days ago something was.
    let found: Vec<(&str, FindingCode)> = checked.findings.iter().map(|it| (it.file.as_str(), it.code)).collect();
    let parts = (pages, &contents.source_hashes, &contents.index, &contents.guide, found);
    ContentHash::hash_bytes(&serde_json::to_vec(&parts).unwrap_or_default())
}
