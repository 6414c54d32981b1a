//! Reads what lists say of the pages of a wiki, without keeping the pages.
//!
//! Ten thousand pages take far more memory than their titles and topics. A page that did not change is not read again; what is kept of
//! it is no proof of anything, and nothing is decided by it.

use super::{ListedFile, ListingDepth, WikiContents, WikiFolder};
use crate::files::read_cache::{FileStamp, KeptFacts, ReadCache};
use crate::wiki::threads::map_in_threads;
use chrono::{DateTime, Utc};
use std::sync::Arc;
use steward_domain::wiki::page::{WikiPage, may_be_page};

/// What lists say of a page. Its texts are untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFacts {
    /// Relative to the wiki.
    pub file: String,
    pub title: String,
    /// The first tag, or the kind if there is none.
    pub topic: String,
    /// As the page says.
    pub updated_at: Option<DateTime<Utc>>,
    /// Whether a person pinned it.
    pub is_pinned: bool,
}

impl PageFacts {
    fn new(page: &WikiPage) -> Self {
        Self {
            file: page.file.clone(),
            title: page.title.clone(),
            topic: page.topic().to_owned(),
            updated_at: page.document.fields().get("updated_at").and_then(|at| at.as_str()?.parse().ok()),
            is_pinned: page.is_pinned(),
        }
    }
}

/// A wiki without its pages, and what lists say of them.
#[derive(Debug, Default)]
pub struct WikiOutline {
    pub contents: WikiContents,
    /// By file.
    pub pages: Vec<Arc<PageFacts>>,
}

impl WikiFolder {
    /// Reads everything but pages that are as they were when they were read last, and hashes no source.
    pub(crate) fn read_outline(&self, cache: &ReadCache) -> WikiOutline {
        let mut wiki = WikiContents::default();
        let (files, _) = self.list_entries(ListingDepth::Metadata, &mut wiki.findings);
        let candidates: Vec<&ListedFile> = files.iter().filter(|file| may_be_page(&file.path)).collect();
        let known = cache.find_facts(self.path());
        let read = map_in_threads(&candidates, |file| self.read_facts_unless_known(file, &known));
        let mut kept = KeptFacts::default();
        let mut pages = Vec::new();
        for (file, (facts, stamp)) in candidates.iter().zip(read) {
            if let Some(stamp) = stamp {
                kept.add(&file.path, stamp, facts.clone());
            }
            pages.extend(facts);
        }
        cache.keep_facts(self.path(), kept);
        wiki.files = files.into_iter().map(|file| file.path).collect();
        self.read_registry(&mut wiki);
        self.read_rendered(&mut wiki);
        WikiOutline { contents: wiki, pages }
    }

    fn read_facts_unless_known(
        &self,
        file: &ListedFile,
        known: &KeptFacts,
    ) -> (Option<Arc<PageFacts>>, Option<FileStamp>) {
        let stamp = file.meta.as_ref().map(FileStamp::new);
        match stamp.and_then(|stamp| known.find(&file.path, stamp)) {
            Some(facts) => (facts, stamp),
            None => {
                let (read, stamp) = self.read_one(&file.path);
                (read.page.as_ref().map(|page| Arc::new(PageFacts::new(page))), stamp)
            }
        }
    }
}
