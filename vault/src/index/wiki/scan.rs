//! Reads the pages of a wiki for the index. It runs on blocking threads and uses no database.
//!
//! A commit exchanges its files one by one and the log last. A reading during a commit would show a part of it, so such a
//! reading is dropped.

use crate::action::journal::list_open_intents;
use crate::files::root::VaultRoot;
use crate::wiki::folder::{FileStat, ReadFault, WikiFolder, WikiSnapshot};
use crate::wiki::threads::map_in_threads;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::Arc;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::claims::read_claims;
use steward_domain::wiki::page::{WikiPage, read_page};
use steward_domain::wiki::search::{is_searchable, list_page_words};
use steward_domain::wiki::{LOG_FILE, MAX_PAGE_BYTES};

/// What the index knows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownPage {
    pub(super) stat: FileStat,
    pub(super) hash: Option<String>,
}

/// How the files of a wiki differ from the index.
#[derive(Debug, Default)]
pub(super) struct WikiChanges {
    /// Files that are new, or whose size, time or inode changed.
    pub(super) to_read: Vec<(String, FileStat)>,
    pub(super) gone: Vec<String>,
    /// The log, which a commit exchanges last.
    log: Option<FileStat>,
}

/// The rows of one file.
#[derive(Debug, Serialize)]
pub(super) struct PageRows {
    pub(super) file: String,
    #[serde(flatten)]
    stat: FileStat,
    pub(super) hash: Option<String>,
    #[serde(flatten)]
    page: Option<PageColumns>,
    claims: Vec<ProvenanceRow>,
    /// `None` for a file that is not found by its words.
    words: Option<String>,
}

#[derive(Debug, Serialize)]
struct PageColumns {
    slug: String,
    kind: String,
    names: Vec<String>,
    title: String,
    summary: String,
    tags: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Hash, Serialize)]
struct ProvenanceRow {
    claim: String,
    label: String,
    source: String,
}

/// The files of a wiki at one moment.
#[derive(Debug)]
pub(super) struct PageListing {
    snapshot: Arc<WikiSnapshot>,
    log: Option<FileStat>,
}

impl PageListing {
    /// Lists the files; `None` while a commit is under way.
    pub(super) fn read(root: &VaultRoot, wiki: &WikiFolder) -> io::Result<Option<Self>> {
        if is_committing(root)? {
            return Ok(None);
        }
        let log = wiki.stat(LOG_FILE);
        let snapshot = wiki.look(root.read_cache());
        snapshot.check_complete()?;
        Ok(Some(Self { snapshot, log }))
    }

    /// A number that is the same as long as no file is another one.
    pub(super) fn digest(&self) -> u64 {
        self.snapshot.digest()
    }

    /// How the files differ from what the index knows. With `everything`, each file is to be read.
    pub(super) fn compare(&self, known: &HashMap<String, KnownPage>, everything: bool) -> WikiChanges {
        let mut changes = WikiChanges { log: self.log, ..WikiChanges::default() };
        let mut gone: BTreeSet<&str> = known.keys().map(String::as_str).collect();
        for (file, stat) in self.snapshot.page_stats() {
            gone.remove(file);
            if everything || known.get(file).is_none_or(|known| known.stat != stat) {
                changes.to_read.push((file.to_owned(), stat));
            }
        }
        changes.gone = gone.into_iter().map(str::to_owned).collect();
        changes
    }
}

/// Whether nothing was committed since the changes were listed.
pub(super) fn is_unchanged_since(root: &VaultRoot, wiki: &WikiFolder, changes: &WikiChanges) -> io::Result<bool> {
    Ok(!is_committing(root)? && wiki.stat(LOG_FILE) == changes.log)
}

/// Whether an action on files of a wiki has begun whose record is not filed yet.
fn is_committing(root: &VaultRoot) -> io::Result<bool> {
    let intents = list_open_intents(root)?;
    let mut begun = intents.iter().filter(|intent| !intent.reverted && intent.subject().as_record().is_none());
    Ok(begun
        .any(|intent| intent.filing().is_some_and(|filing| !matches!(root.find_entry(&filing.record), Ok(Some(_))))))
}

/// Reads files and makes their rows.
pub(super) fn read_pages(wiki: &WikiFolder, files: &[(String, FileStat)]) -> Vec<PageRows> {
    map_in_threads(files, |(file, stat)| read_rows(wiki, file, *stat))
}

/// Hashes a file as its row does; `None` if it cannot be read.
pub(super) fn hash_file(wiki: &WikiFolder, file: &str) -> Option<String> {
    let bytes = wiki.read_bytes(file, MAX_PAGE_BYTES).ok()?;
    Some(ContentHash::hash_bytes(&bytes).as_str().to_owned())
}

fn read_rows(wiki: &WikiFolder, file: &str, stat: FileStat) -> PageRows {
    let bytes: Result<Vec<u8>, ReadFault> = wiki.read_bytes(file, MAX_PAGE_BYTES);
    let hash = bytes.as_ref().ok().map(|bytes| ContentHash::hash_bytes(bytes).as_str().to_owned());
    let page = bytes.ok().and_then(|bytes| read_page(file, &bytes).page);
    PageRows {
        file: file.to_owned(),
        stat,
        hash,
        claims: page.as_ref().map(list_provenance).unwrap_or_default(),
        words: page
            .as_ref()
            .filter(|page| is_searchable(page))
            .map(|page| list_page_words(page).collect::<Vec<_>>().join(" ")),
        page: page.map(|page| PageColumns {
            names: std::iter::once(&page.title).chain(&page.aliases).map(|name| name.to_lowercase()).collect(),
            slug: page.slug.clone(),
            kind: page.kind.clone(),
            title: page.title.clone(),
            summary: page.summary.clone(),
            tags: page.tags.clone(),
        }),
    }
}

fn list_provenance(page: &WikiPage) -> Vec<ProvenanceRow> {
    let read = read_claims(page.document.body(), &page.body.disputed);
    let mut rows = HashSet::new();
    for claim in &read.claims {
        for anchor in claim.labels.iter().filter_map(|label| read.anchors.get(label)) {
            rows.insert(ProvenanceRow {
                claim: claim.id.clone(),
                label: anchor.label.clone(),
                source: anchor.source.clone(),
            });
        }
    }
    rows.into_iter().collect()
}
