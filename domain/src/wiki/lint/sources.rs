//! Sources: those that are not there, those whose bytes are others now, and how old those of a page are.
//!
//! The hashes come from whoever read the files. A source without a known time is never old.

use super::{WikiFacts, report};
use crate::record::plain_text::count_noun;
use crate::wiki::finding::{FindingCode, Severity, WikiFinding};
use crate::wiki::names::name_summary;
use crate::wiki::page::{ARCHIVE_KIND, WikiPage};
use crate::wiki::standard::FieldPath;
use crate::wiki::{SOURCES_FILE, SOURCES_FOLDER};
use std::collections::BTreeSet;

/// What rests on a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceImpact {
    /// The claims, and the files of their pages.
    pub claims: u64,
    pub pages: BTreeSet<String>,
    /// How many of these pages are archives.
    pub archives: u64,
    /// The quotes that do not stand in the source any more; `None` if its text cannot be read.
    pub gone: Option<u64>,
}

impl SourceImpact {
    fn describe(&self) -> String {
        let archives = match self.archives {
            0 => String::new(),
            count => format!(" ({} among them)", count_noun(count, "archive")),
        };
        let gone = match self.gone {
            None => String::new(),
            Some(0) => "; all their quotes still stand in it".to_owned(),
            Some(count) => format!("; {} of them not in it any more", count_noun(count, "quote")),
        };
        let (claims, pages) = (count_noun(self.claims, "claim"), count_noun(self.pages.len() as u64, "page"));
        format!("{claims} on {pages}{archives} rest on it{gone}")
    }
}

pub(super) fn check_sources(facts: &WikiFacts<'_>) -> Vec<WikiFinding> {
    let mut found = Vec::new();
    for source in facts.sources.values() {
        let impact = facts.impacts.get(&source.id).filter(|impact| impact.claims > 0);
        let rests = impact.is_some();
        let impact = impact.map_or_else(String::new, |impact| format!(": {}", impact.describe()));
        let (code, problem, fix) = match facts.source_hashes.get(&source.path) {
            None => continue,
            Some(None) => {
                let problem = format!("the source `{}` is not there{impact}", source.id);
                (
                    FindingCode::SourceMissing,
                    problem,
                    if rests { "put the file back: pages rest on it" } else { "put the file back" },
                )
            }
            Some(Some(hash)) if hash.eq_ignore_ascii_case(&source.content_hash) => continue,
            Some(Some(_)) => {
                let problem =
                    format!("the bytes of the source `{}` are not those that were registered{impact}", source.id);
                let fix = "restore the file; a changed document is a new source";
                (FindingCode::SourceMutated, problem, fix)
            }
        };
        let severity = if facts.has_registry { Severity::Error } else { Severity::Warn };
        found.push(WikiFinding::new(code, severity, &source.path, &problem, fix));
    }
    for page in facts.pages {
        for (at, id) in page.sources.iter().enumerate().filter(|(_, id)| !facts.sources.contains_key(*id)) {
            let problem = format!("there is no source `{id}`");
            let place = if facts.has_registry { SOURCES_FILE } else { SOURCES_FOLDER };
            let fix = format!("name the id of a source in {place}, or add the source");
            let field = FieldPath::from_key("sources").join_item(at);
            found.push(report(page, FindingCode::SourceMissing, Severity::Error, &field, &problem, &fix));
        }
        if page.kind == ARCHIVE_KIND {
            found.extend(check_archive(page, facts));
            continue;
        }
        let replaced = |(at, id): (usize, &String)| {
            let newer = facts.sources.get(id)?.superseded_by.as_ref().filter(|newer| !page.sources.contains(newer))?;
            // Whoever confirmed the page since has compared it. The summary of the old source says what that one says.
            let added = facts.sources.get(newer).and_then(|newer| newer.captured_at);
            let is_compared = page.find_confirmed_at().is_some_and(|at| added.is_some_and(|added| at > added));
            (!is_compared && page.slug != name_summary(id)).then(|| (at, id.clone(), newer))
        };
        for (at, id, newer) in page.sources.iter().enumerate().filter_map(replaced) {
            let problem = format!("it rests on the source `{id}`, which `{newer}` replaces");
            let fix = format!(
                "compare it with `{newer}`; then add that to `sources`, or confirm it: `steward wiki lint <wiki> --confirm {}`",
                page.slug
            );
            let field = FieldPath::from_key("sources").join_item(at);
            found.push(report(page, FindingCode::SourceSuperseded, Severity::Info, &field, &problem, &fix));
        }
    }
    found
}

/// An archive shows the state of its day, so it is only said that its sources are others now.
fn check_archive(page: &WikiPage, facts: &WikiFacts<'_>) -> Vec<WikiFinding> {
    let mut found = Vec::new();
    for (at, id) in page.sources.iter().enumerate() {
        let Some(source) = facts.sources.get(id) else { continue };
        let hash = facts.source_hashes.get(&source.path).and_then(Option::as_ref);
        let is_changed = hash.is_some_and(|hash| !hash.eq_ignore_ascii_case(&source.content_hash));
        let what = match &source.superseded_by {
            Some(newer) => format!("which `{newer}` replaces"),
            None if is_changed => "whose bytes were changed".to_owned(),
            None => continue,
        };
        let problem = format!("it cites the source `{id}`, {what}");
        let field = FieldPath::from_key("sources").join_item(at);
        let fix = "ask again if you need today's answer; an archive shows the state of its day";
        found.push(report(page, FindingCode::ArchiveSourceUpdated, Severity::Info, &field, &problem, fix));
    }
    found
}

/// How many days ago the newest source of a page was captured or a person confirmed the page, if that is more than `limit` days.
pub(super) fn find_age(page: &WikiPage, facts: &WikiFacts<'_>, limit: f64) -> Option<i64> {
    let captured = page.sources.iter().map(|id| facts.sources.get(id)?.captured_at);
    // A source of unknown age may be new.
    let newest =
        captured.collect::<Option<Vec<_>>>()?.into_iter().max()?.max(page.find_confirmed_at().unwrap_or_default());
    let days = (facts.now - newest).num_days();
    (days as f64 > limit).then_some(days)
}
