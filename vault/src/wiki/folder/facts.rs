//! Reads what lists say of the pages of a wiki, without keeping the pages.
//!
//! Ten thousand pages take far more memory than their titles and topics. A page that did not change is not read again; what is kept of
//! it is no proof of anything, and nothing is decided by it.

use super::{ListedFile, WikiContents, WikiFolder};
use crate::files::read_cache::{FileStamp, KeptFacts, ReadCache};
use crate::wiki::threads::map_in_threads;
use chrono::{DateTime, Utc};
use std::sync::Arc;
use steward_domain::wiki::MAX_PAGE_BYTES;
use steward_domain::wiki::page::{PageHead, may_be_page, read_page_head};

/// What lists say of a page. Its texts are untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFacts {
    /// Relative to the wiki.
    pub file: String,
    pub kind: String,
    pub title: String,
    /// The first tag, or the kind if there is none.
    pub topic: String,
    /// As the page says.
    pub updated_at: Option<DateTime<Utc>>,
    /// Whether a person pinned it.
    pub is_pinned: bool,
}

impl PageFacts {
    fn new(file: &str, head: PageHead) -> Self {
        let PageHead { kind, title, topic, updated_at, is_pinned } = head;
        Self { file: file.to_owned(), kind, title, topic, updated_at, is_pinned }
    }
}

/// A wiki without its pages, and what lists say of them.
#[derive(Debug, Default)]
pub struct WikiOutline {
    pub contents: WikiContents,
    /// By file.
    pub pages: Vec<Arc<PageFacts>>,
}

impl WikiOutline {
    /// What lists say of the page in a file.
    #[must_use]
    pub fn find_page(&self, file: &str) -> Option<Arc<PageFacts>> {
        let at = self.pages.binary_search_by(|page| page.file.as_str().cmp(file)).ok()?;
        self.pages.get(at).cloned()
    }
}

impl WikiFolder {
    /// Reads everything but pages that are as they were when they were read last, and hashes no source.
    pub(super) fn read_outline(&self, files: &[ListedFile], cache: &ReadCache) -> WikiOutline {
        let mut wiki = WikiContents::default();
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
        wiki.files = files.iter().map(|file| file.path.clone()).collect();
        self.read_registry(&mut wiki);
        self.read_rendered(&mut wiki);
        WikiOutline { contents: wiki, pages }
    }

    fn read_facts_unless_known(
        &self,
        file: &ListedFile,
        known: &KeptFacts,
    ) -> (Option<Arc<PageFacts>>, Option<FileStamp>) {
        let stamp = file.stamp;
        match stamp.and_then(|stamp| known.find(&file.path, stamp)) {
            Some(facts) => (facts, stamp),
            None => self.read_facts(&file.path),
        }
    }

    /// What lists say of a page. What cannot be read is no page here; a check of the wiki names it.
    pub(super) fn read_facts(&self, file: &str) -> (Option<Arc<PageFacts>>, Option<FileStamp>) {
        match self.read_stamped(file, MAX_PAGE_BYTES) {
            Ok((bytes, stamp)) => {
                (read_page_head(&bytes).map(|head| Arc::new(PageFacts::new(file, head))), Some(stamp))
            }
            Err(_) => (None, None),
        }
    }
}
