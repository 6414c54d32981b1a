//! What a wiki said at an earlier moment, as far as the records of its runs tell.
//!
//! A record holds both sides of every page that a run changed. A page that no run ever changed is taken as it is now, and so are the
//! sources: quotes are always compared with the words that stand there today.

use super::{MAX_FOUND, WhyPages, WhyReport};
use crate::files::root::{VaultRoot, VaultRootError};
use crate::wiki::folder::WikiFolder;
use crate::wiki::runs::{list_runs, read_run};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;
use steward_domain::wiki::details::RecordedContent;
use steward_domain::wiki::page::read_page;
use steward_domain::wiki::search::{PageFilter, search_pages};

impl WhyPages {
    /// Reads all pages of a wiki of the vault as runs had left them at a moment.
    ///
    /// # Errors
    /// The folder of the records cannot be listed.
    pub(super) fn read_past(
        folder: &WikiFolder,
        root: &VaultRoot,
        wiki: &str,
        what: &str,
        until: DateTime<Utc>,
    ) -> Result<Self, VaultRootError> {
        let mut texts: BTreeMap<String, Option<String>> = BTreeMap::new();
        for run in list_runs(root, Some(wiki))? {
            for file in read_run(root, &run.record).map(|details| details.files).unwrap_or_default() {
                let RecordedContent::Page { before, after } = file.content else { continue };
                if run.at <= until {
                    texts.insert(file.file, file.after.map(|_| after));
                } else {
                    texts.entry(file.file).or_insert_with(|| file.before.map(|_| before));
                }
            }
        }
        let mut contents = folder.read();
        let pages = Arc::make_mut(&mut contents.pages);
        pages.retain(|page| !texts.contains_key(&page.file));
        let past = texts.iter().filter_map(|(file, text)| read_page(file, text.as_ref()?.as_bytes()).page);
        pages.extend(past);
        pages.sort_by(|a, b| a.file.cmp(&b.file));
        let hits = search_pages(&contents.pages, what, &PageFilter::default(), MAX_FOUND);
        Ok(Self { contents, best: hits.into_iter().map(|hit| hit.file).collect() })
    }
}

impl WhyReport {
    /// Keeps what was known at a moment, and the claims that a run made or changed since another one.
    pub(super) fn restrict(&mut self, since: Option<DateTime<Utc>>, until: Option<DateTime<Utc>>) {
        for claim in &mut self.claims {
            claim.history.retain(|event| until.is_none_or(|until| event.at <= until));
            for event in &mut claim.history {
                if until.is_some_and(|until| event.reverted_at.is_some_and(|at| at > until)) {
                    (event.reverted_by, event.reverted_at) = (None, None);
                }
            }
        }
        if let Some(since) = since {
            self.claims.retain(|claim| claim.history.iter().any(|event| event.at >= since));
        }
    }
}
