//! Reads a wiki of the vault as a run needs it: its pages, the files that code writes, and the manifest that is in force.
//!
//! The generated files are read first. So a run that is committed while the pages are read makes the reader start again.

use crate::action::chain::ChainError;
use crate::files::disk::disk_error_hint;
use crate::files::root::{VaultRoot, VaultRootError};
use crate::wiki::accept::{self, AcceptedFiles};
use crate::wiki::chain::resolve_chain;
use crate::wiki::create::list_wikis;
use crate::wiki::folder::{PageFacts, WikiContents, WikiFolder, WikiOutline, WikiSnapshot};
use crate::wiki::runs::{NamedRecord, list_records};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::frontmatter;
use steward_domain::wiki::assemble::{GeneratedTexts, WikiState};
use steward_domain::wiki::details::{FileRecord, WikiDetails};
use steward_domain::wiki::finding::Severity;
use steward_domain::wiki::manifest::{EffectiveManifest, ManifestLayer, merge_manifests};
use steward_domain::wiki::page::may_be_page;
use steward_domain::wiki::path::{PagePath, PagePathError};
use steward_domain::wiki::rollback::UnreadablePage;
use steward_domain::wiki::{
    GRAPH_FILE, IDEAS_FILE, INDEX_FILE, LOG_FILE, MANIFEST_FILE, MAX_GENERATED_BYTES, OVERVIEW_FILE, PROVENANCE_FILE,
};

/// A wiki that was read.
pub struct ReadWiki {
    pub state: WikiState,
    pub contents: Arc<WikiContents>,
    pub unreadable: Vec<UnreadablePage>,
    /// `None` if nobody has accepted the wiki.
    pub accepted: Option<AcceptedFiles>,
}

impl ReadWiki {
    /// Checks that a person has accepted the wiki of this name.
    ///
    /// # Errors
    /// What to do.
    pub fn check_accepted(&self, name: &str) -> Result<(), String> {
        let fix = format!("read its KNOWLEDGE.md and AGENTS.md, then run `steward wiki validate {name} --accept`");
        let refusal = || format!("nobody has accepted the wiki `{name}`: {fix}");
        self.accepted.is_some().then_some(()).ok_or_else(refusal)
    }
}

/// Why a wiki cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadWikiError {
    #[error("there is no wiki `{name}`{}", list_others(.others))]
    Unknown { name: String, others: Vec<String> },
    #[error(transparent)]
    Path(#[from] PagePathError),
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
    #[error("{path}: {source}{}", disk_error_hint(source))]
    Io { path: String, source: io::Error },
    #[error(transparent)]
    Root(#[from] VaultRootError),
    #[error(transparent)]
    Chain(#[from] ChainError),
}

fn list_others(others: &[String]) -> String {
    if others.is_empty() {
        ": `steward wiki init` makes one".to_owned()
    } else {
        format!("; the vault has {}", others.join(", "))
    }
}

/// The folder of a wiki of the vault, relative to its root.
///
/// # Errors
/// [`ReadWikiError::Unknown`] if there is none of this name.
pub fn find_wiki_folder(root: &VaultRoot, name: &str) -> Result<String, ReadWikiError> {
    let wikis = list_wikis(root).map_err(|source| ReadWikiError::Io { path: "wiki".to_owned(), source })?;
    match wikis.iter().find(|(known, _)| known == name) {
        Some((_, folder)) => {
            let relative = folder.strip_prefix(root.path()).unwrap_or(folder);
            Ok(relative.to_string_lossy().into_owned())
        }
        None => {
            let others = wikis.into_iter().map(|(name, _)| name).collect();
            Err(ReadWikiError::Unknown { name: name.to_owned(), others })
        }
    }
}

/// What a wiki holds, without the texts of its pages, and what is in force for it.
pub struct ReadOutline {
    pub outline: Arc<WikiOutline>,
    pub manifest: EffectiveManifest,
    /// `None` if nobody has accepted the wiki.
    pub accepted: Option<AcceptedFiles>,
}

/// What the wiki in a folder of the vault holds now.
#[must_use]
pub fn look_at_wiki(root: &VaultRoot, folder: &WikiFolder) -> Arc<WikiSnapshot> {
    folder.look(root.read_cache())
}

/// What lists say of some files of a wiki; `None` for one that is no page.
#[must_use]
pub fn read_page_facts(root: &VaultRoot, folder: &WikiFolder, files: &[String]) -> Vec<Option<Arc<PageFacts>>> {
    folder.read_page_facts(&folder.look(root.read_cache()), files)
}

/// Reads what the wiki in a folder of the vault holds. Pages that did not change are not read again, and none is kept.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_wiki_outline(root: &VaultRoot, name: &str, folder: &str) -> Result<ReadOutline, ReadWikiError> {
    let failed = |source| ReadWikiError::Io { path: folder.to_owned(), source };
    let opened = WikiFolder::open(&root.path().join(folder)).map_err(failed)?;
    let outline = opened.outline(&opened.look(root.read_cache()), root.read_cache());
    let accepted = accept::find_accepted(root, name)?;
    let index = outline.contents.index.as_deref().map(str::as_bytes);
    let manifest = find_manifest(root, &opened, accepted.as_ref(), index);
    Ok(ReadOutline { outline, manifest, accepted })
}

/// The manifest that is in force for a wiki. No page is read.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_manifest(
    root: &VaultRoot,
    name: &str,
    accepted: Option<&AcceptedFiles>,
) -> Result<EffectiveManifest, ReadWikiError> {
    let folder = find_wiki_folder(root, name)?;
    let opened = WikiFolder::open(&root.path().join(&folder))
        .map_err(|source| ReadWikiError::Io { path: folder.clone(), source })?;
    Ok(find_manifest(root, &opened, accepted, None))
}

/// Reads the wiki in a folder of the vault.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_wiki(root: &VaultRoot, name: &str, folder: &str) -> Result<ReadWiki, ReadWikiError> {
    let text = |file: &str| read_generated(root, folder, file);
    let texts = GeneratedTexts {
        rendered: list_rendered(root, name)?,
        index: text(INDEX_FILE)?,
        log: text(LOG_FILE)?,
        overview: text(OVERVIEW_FILE)?,
        provenance: text(PROVENANCE_FILE)?,
        ideas: text(IDEAS_FILE)?,
        graph: text(GRAPH_FILE)?,
    };
    read_wiki_with(root, name, folder, texts)
}

/// As [`read_wiki`], to stage pages: without the texts that code renders when a run is committed.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_wiki_to_stage(root: &VaultRoot, name: &str, folder: &str) -> Result<ReadWiki, ReadWikiError> {
    read_wiki_with(root, name, folder, GeneratedTexts::default())
}

fn read_wiki_with(
    root: &VaultRoot,
    name: &str,
    folder: &str,
    texts: GeneratedTexts,
) -> Result<ReadWiki, ReadWikiError> {
    let failed = |source| ReadWikiError::Io { path: folder.to_owned(), source };
    let opened = WikiFolder::open(&root.path().join(folder)).map_err(failed)?;
    let contents = opened.read_changed(root.read_cache());
    let pages = Arc::clone(&contents.pages);
    let broken = contents.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let mut broken: Vec<&String> = broken.map(|finding| &finding.file).filter(|file| may_be_page(file)).collect();
    broken.retain(|file| pages.iter().all(|page| page.file != **file));
    broken.dedup();
    let unreadable = broken.into_iter().filter_map(|file| {
        let text = opened.read_text(file, MAX_GENERATED_BYTES).ok()??;
        Some(UnreadablePage { file: file.clone(), text })
    });
    let unreadable = unreadable.collect();
    let accepted = accept::find_accepted(root, name)?;
    let index = contents.index.as_deref().map(str::as_bytes);
    let manifest = find_manifest(root, &opened, accepted.as_ref(), index);
    let state = WikiState { folder: folder.to_owned(), manifest, pages, sources: contents.sources.len(), texts };
    Ok(ReadWiki { state, contents, unreadable, accepted })
}

fn read_generated(root: &VaultRoot, folder: &str, file: &str) -> Result<Option<Vec<u8>>, ReadWikiError> {
    let path = PagePath::new(folder, file)?;
    read_current(root, &path).map_err(|reason| ReadWikiError::File { path: path.to_string(), reason })
}

/// The present content of a file of a wiki; `None` if it does not exist.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn read_current(root: &VaultRoot, path: &PagePath) -> Result<Option<Vec<u8>>, String> {
    match root.read_page(path) {
        Ok(current) => Ok(Some(current.bytes)),
        Err(VaultRootError::Missing { .. }) => Ok(None),
        Err(e) => Err(e.to_string()),
    }
}

/// A chain of manifests in which the last one is as it was accepted. Others above it count only if the accepted one names them.
#[must_use]
pub fn apply_accepted(mut layers: Vec<ManifestLayer>, accepted: Option<&AcceptedFiles>) -> Vec<ManifestLayer> {
    let text = accepted.and_then(|accepted| accepted.files.get(MANIFEST_FILE));
    let Some(document) = text.and_then(|text| frontmatter::read_document(text.as_bytes()).ok()) else { return layers };
    let own = layers.pop();
    if own.as_ref().and_then(|own| own.document.fields().get("extends")) != document.fields().get("extends") {
        layers.clear();
    }
    let file = own.map_or_else(|| MANIFEST_FILE.to_owned(), |own| own.file);
    layers.push(ManifestLayer { file, document });
    layers
}

/// How many of the newest records say what code left in a wiki.
const RECENT_RECORDS: usize = 8;

/// The hashes of what the last runs left in the index and the overview.
fn list_rendered(root: &VaultRoot, wiki: &str) -> Result<BTreeSet<ContentHash>, ReadWikiError> {
    let kinds = [ActionKind::WikiSource, ActionKind::WikiManifest, ActionKind::Wiki];
    let mut newest = list_records(root, &kinds, Some(wiki))?;
    newest.sort_by(|a, b| b.run.cmp(&a.run));
    let mut hashes = BTreeSet::new();
    for NamedRecord { path, .. } in newest.into_iter().take(RECENT_RECORDS) {
        let Ok(record) = root.read_file(&path) else { continue };
        let Ok(details) = WikiDetails::parse(&String::from_utf8_lossy(&record.bytes)) else { continue };
        let is_rendered = |file: &FileRecord| [INDEX_FILE, OVERVIEW_FILE].contains(&file.file.as_str());
        hashes.extend(details.files.into_iter().filter(is_rendered).filter_map(|file| file.after));
    }
    Ok(hashes)
}

/// The manifest as it was accepted, or the one that stands there. One that cannot be read must not keep anybody from taking
/// a run back.
fn find_manifest(
    root: &VaultRoot,
    wiki: &WikiFolder,
    accepted: Option<&AcceptedFiles>,
    index: Option<&[u8]>,
) -> EffectiveManifest {
    let layers = match resolve_chain(&wiki.path().join(MANIFEST_FILE), Some(root.path())) {
        Ok(chain) => chain.layers,
        Err(_) => Vec::new(),
    };
    let layers = apply_accepted(layers, accepted);
    if layers.is_empty() {
        let index = String::from_utf8_lossy(index.unwrap_or_default()).into_owned();
        let title = index.lines().next().and_then(|line| line.strip_prefix("# Index: ")).unwrap_or("Wiki");
        let fields = [("title".to_owned(), title.into())].into_iter().collect();
        return EffectiveManifest::new(fields, BTreeMap::new());
    }
    merge_manifests(&layers).0
}
