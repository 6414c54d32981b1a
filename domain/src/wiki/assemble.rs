//! Completes a run: to the pages that change it adds the files that code renders, and the entry of the log.
//!
//! A file that people edited where code owns it is moved to the trash of the run, and named.

use super::graph::PageRelation;
use super::index_page::render_index;
use super::log::{LogType, read_log, render_entry};
use super::manifest::EffectiveManifest;
use super::overview::{OVERVIEW, OverviewFacts, has_same_disputes, has_same_sections, render_overview};
use super::page::{WikiPage, read_page};
use super::path::{PagePath, PagePathError};
use super::plan::RunFile;
use super::registry::{IngestedSource, SourceProvenance, read_provenance};
use super::run::{RunId, RunSource};
use super::standard::is_slug;
use super::{GRAPH_FILE, IDEAS_FILE, INDEX_FILE, LOG_FILE, OVERVIEW_FILE, PROVENANCE_FILE};
use crate::action::plan::ContentHash;
use crate::record::plain_text::escape_one_line;
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How the files of ideas and of the graph begin.
pub const IDEAS_HEADING: &str = "# Ideas\n\n";
pub const GRAPH_HEADING: &str = "# Graph\n\n";

/// The files of a wiki that code writes, as they are; `None` for one that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeneratedTexts {
    pub index: Option<Vec<u8>>,
    pub log: Option<Vec<u8>>,
    pub overview: Option<Vec<u8>>,
    pub provenance: Option<Vec<u8>>,
    pub ideas: Option<Vec<u8>>,
    pub graph: Option<Vec<u8>>,
    /// The hashes of what the last runs left in these files.
    pub rendered: BTreeSet<ContentHash>,
}

/// A wiki as a run finds it.
#[derive(Clone, Debug)]
pub struct WikiState {
    /// Its folder, relative to the root of the vault.
    pub folder: String,
    pub manifest: EffectiveManifest,
    /// Sorted by file.
    pub pages: Arc<Vec<WikiPage>>,
    /// The number of registered sources.
    pub sources: usize,
    pub texts: GeneratedTexts,
}

/// What a run does beside its pages.
#[derive(Clone, Debug)]
pub struct RunReport {
    pub run: RunId,
    pub at: DateTime<Utc>,
    pub log_type: LogType,
    pub subject: String,
    pub bullets: Vec<String>,
    pub provenance: ProvenanceChange,
    /// The number of sources that it adds to the registry.
    pub added_sources: usize,
    /// Lines that are added to the ideas.
    pub ideas: Vec<String>,
    /// Lines that are taken out of them.
    pub dropped_ideas: Vec<String>,
    /// Relations that are added to the graph.
    pub relations: Vec<PageRelation>,
    /// Relations that are taken out of it.
    pub dropped_relations: Vec<PageRelation>,
}

impl RunReport {
    /// What a person did, as one entry of the log and nothing else.
    #[must_use]
    pub fn manual(run: &RunId, at: DateTime<Utc>, subject: String, bullets: Vec<String>) -> Self {
        Self {
            run: run.clone(),
            at,
            log_type: LogType::Manual,
            subject,
            bullets,
            provenance: ProvenanceChange::Nothing,
            added_sources: 0,
            ideas: Vec::new(),
            dropped_ideas: Vec::new(),
            relations: Vec::new(),
            dropped_relations: Vec::new(),
        }
    }
}

/// What a run changes in `_manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvenanceChange {
    Nothing,
    /// The source became the pages of the run.
    Add(RunSource),
    /// The source is not ingested any more.
    Remove(RunSource),
}

/// The files of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssembledRun {
    pub files: Vec<RunFile>,
    /// Where files went that people had edited.
    pub displaced: Vec<PagePath>,
}

/// Why a run cannot be completed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Path(#[from] PagePathError),
    #[error("{PROVENANCE_FILE} cannot be read: restore the file")]
    Provenance,
}

/// Completes a run that changes these files.
///
/// # Errors
/// [`AssembleError`].
pub fn assemble_run(state: WikiState, files: Vec<RunFile>, report: &RunReport) -> Result<AssembledRun, AssembleError> {
    let expected = ExpectedTexts::render(&state, report.at);
    let mut assembly = Assembly { state, report, files, displaced: Vec::new() };
    apply_files(Arc::make_mut(&mut assembly.state.pages), &assembly.files);
    assembly.state.sources += report.added_sources;
    let log = assembly.add_log()?;
    assembly.add_overview(&log, expected.overview.as_deref())?;
    assembly.add_index(&expected)?;
    assembly.add_provenance()?;
    assembly.add_ideas()?;
    assembly.add_relations()?;
    Ok(AssembledRun { files: assembly.files, displaced: assembly.displaced })
}

/// The run that only adds its entry to the log of the wiki in a folder.
///
/// # Errors
/// [`AssembleError`].
pub fn assemble_entry(folder: String, log: Option<Vec<u8>>, report: &RunReport) -> Result<AssembledRun, AssembleError> {
    let texts = GeneratedTexts { log, ..GeneratedTexts::default() };
    let state = WikiState { folder, manifest: EffectiveManifest::default(), pages: Arc::default(), sources: 0, texts };
    let mut assembly = Assembly { state, report, files: Vec::new(), displaced: Vec::new() };
    assembly.add_log()?;
    Ok(AssembledRun { files: assembly.files, displaced: Vec::new() })
}

/// Changes the pages of a wiki as these files do.
pub fn apply_files(pages: &mut Vec<WikiPage>, files: &[RunFile]) {
    pages.retain(|page| !files.iter().any(|file| file.path.file() == page.file));
    pages.extend(files.iter().filter_map(|file| read_page(file.path.file(), file.after.as_ref()?).page));
    pages.sort_by(|a, b| a.file.cmp(&b.file));
}

/// What code would have written where it owns a file, for the pages as they are.
struct ExpectedTexts {
    index: String,
    /// The index of a new wiki, which no record has. It holds no word of a person, even if they made pages since.
    bare_index: String,
    /// `None` without an overview.
    overview: Option<String>,
}

impl ExpectedTexts {
    fn render(state: &WikiState, at: DateTime<Utc>) -> Self {
        let log = read_text(state.texts.log.as_deref());
        let overview = state.texts.overview.as_deref().map(|bytes| read_text(Some(bytes)));
        let bare: Vec<WikiPage> = state.pages.iter().filter(|page| page.file == OVERVIEW_FILE).cloned().collect();
        Self {
            index: render_index(&state.manifest, &state.pages),
            bare_index: render_index(&state.manifest, &bare),
            overview: overview.map(|text| state.render_overview(&log, Some(&text), at)),
        }
    }
}

impl WikiState {
    /// Whether the index shows the pages, and the overview the disputes, as they are.
    #[must_use]
    pub fn is_rendered(&self, at: DateTime<Utc>) -> bool {
        let expected = ExpectedTexts::render(self, at);
        let overview = self.texts.overview.as_deref().map(|bytes| read_text(Some(bytes)));
        let shows_disputes = overview.zip(expected.overview).is_none_or(|(now, then)| has_same_disputes(&now, &then));
        self.texts.index.as_deref() == Some(expected.index.as_bytes()) && shows_disputes
    }

    fn render_overview(&self, log: &str, current: Option<&str>, at: DateTime<Utc>) -> String {
        let entries = read_log(log).entries;
        let Self { manifest, pages, sources, .. } = self;
        render_overview(&OverviewFacts { manifest, pages, entries: &entries, sources: *sources }, current, at)
    }
}

fn read_text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

struct Assembly<'a> {
    state: WikiState,
    report: &'a RunReport,
    files: Vec<RunFile>,
    displaced: Vec<PagePath>,
}

impl Assembly<'_> {
    fn add(&mut self, file: &str, before: Option<Vec<u8>>, after: String) -> Result<(), PagePathError> {
        let path = PagePath::new(&self.state.folder, file)?;
        self.files.push(RunFile { path, before, after: Some(after.into_bytes()) });
        Ok(())
    }

    /// Keeps what people wrote where code owns the file.
    fn displace(&mut self, file: &str, content: &[u8]) -> Result<(), PagePathError> {
        let path = PagePath::new(&self.state.folder, file)?.in_trash(&self.report.run);
        self.files.push(RunFile { path: path.clone(), before: None, after: Some(content.to_vec()) });
        self.displaced.push(path);
        Ok(())
    }

    /// Whether one of the last runs left a file like this. Pages may have changed since, but nobody edited the file.
    fn is_rendered(&self, content: &[u8]) -> bool {
        self.state.texts.rendered.contains(&ContentHash::hash_bytes(content))
    }

    /// Adds the entry. Returns the whole log.
    fn add_log(&mut self) -> Result<String, PagePathError> {
        let RunReport { at, log_type, subject, bullets, .. } = self.report;
        let before = self.state.texts.log.clone();
        let mut log = before.clone().unwrap_or_else(|| b"# Log\n".to_vec());
        if !log.is_empty() && !log.ends_with(b"\n") {
            log.push(b'\n');
        }
        log.extend_from_slice(render_entry(*at, *log_type, subject, bullets).as_bytes());
        let path = PagePath::new(&self.state.folder, LOG_FILE)?;
        let text = String::from_utf8_lossy(&log).into_owned();
        self.files.push(RunFile { path, before, after: Some(log) });
        Ok(text)
    }

    fn add_overview(&mut self, log: &str, expected: Option<&str>) -> Result<(), PagePathError> {
        let before = self.state.texts.overview.clone();
        let current = before.as_deref().map(|bytes| read_text(Some(bytes)));
        // Only an ingest makes one. A file there that is no page is none of ours.
        if current.is_none() && self.report.log_type != LogType::Ingest {
            return Ok(());
        }
        if current.as_ref().is_some_and(|text| read_page(OVERVIEW_FILE, text.as_bytes()).page.is_none()) {
            return Ok(());
        }
        let is_edited = |current: &String| {
            let is_expected = expected.is_some_and(|expected| has_same_sections(current, expected));
            !is_expected && !self.is_rendered(current.as_bytes())
        };
        if let Some(text) = current.as_ref().filter(|current| is_edited(current)) {
            self.displace(OVERVIEW_FILE, text.as_bytes())?;
        }
        let rendered = self.state.render_overview(log, current.as_deref(), self.report.at);
        self.add(OVERVIEW_FILE, before, rendered)?;
        apply_files(Arc::make_mut(&mut self.state.pages), &self.files[self.files.len() - 1..]);
        Ok(())
    }

    fn add_index(&mut self, expected: &ExpectedTexts) -> Result<(), PagePathError> {
        let before = self.state.texts.index.clone();
        let is_expected =
            |index: &[u8]| [&expected.index, &expected.bare_index].iter().any(|it| it.as_bytes() == index);
        let is_edited = |index: &&Vec<u8>| !is_expected(index) && !self.is_rendered(index);
        if let Some(index) = before.as_ref().filter(is_edited) {
            self.displace(INDEX_FILE, index)?;
        }
        let rendered = render_index(&self.state.manifest, &self.state.pages);
        self.add(INDEX_FILE, before, rendered)
    }

    fn add_provenance(&mut self) -> Result<(), AssembleError> {
        let before = self.state.texts.provenance.clone();
        let text = before.as_deref().map(|bytes| read_text(Some(bytes)));
        let mut provenance = match text {
            Some(text) => read_provenance(&text).map_err(|_| AssembleError::Provenance)?,
            None => SourceProvenance { version: 1, hash_algo: "sha256".to_owned(), ..SourceProvenance::default() },
        };
        match &self.report.provenance {
            ProvenanceChange::Nothing => return Ok(()),
            ProvenanceChange::Add(source) => {
                let changed = self.files.iter().filter(|file| file.after.is_some());
                let pages = changed.filter_map(|file| read_page(file.path.file(), file.after.as_ref()?).page);
                let slugs: BTreeSet<String> = pages.map(|page| page.slug.clone()).collect();
                let content_hash = source.content_hash.trim_start_matches("sha256:").to_owned();
                provenance
                    .sources
                    .insert(source.path.clone(), IngestedSource { content_hash, slugs, ..IngestedSource::default() });
            }
            ProvenanceChange::Remove(source) => drop(provenance.sources.remove(&source.path)),
        }
        let text = serde_json::to_string(&provenance).unwrap_or_default();
        Ok(self.add(PROVENANCE_FILE, before, format!("{text}\n"))?)
    }

    fn add_ideas(&mut self) -> Result<(), PagePathError> {
        let (before, report) = (self.state.texts.ideas.clone(), self.report);
        self.change_lines(IDEAS_FILE, IDEAS_HEADING, before, &report.dropped_ideas, &report.ideas)
    }

    fn add_relations(&mut self) -> Result<(), PagePathError> {
        let render = |relations: &[PageRelation]| relations.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (before, report) = (self.state.texts.graph.clone(), self.report);
        let (dropped, added) = (render(&report.dropped_relations), render(&report.relations));
        self.change_lines(GRAPH_FILE, GRAPH_HEADING, before, &dropped, &added)
    }

    /// Takes lines out of a list and adds others at its end, each of which stands there once. A file that is no text is left alone.
    fn change_lines(
        &mut self,
        file: &str,
        heading: &str,
        before: Option<Vec<u8>>,
        dropped: &[String],
        added: &[String],
    ) -> Result<(), PagePathError> {
        let current = before.as_deref().map_or(Ok(heading), std::str::from_utf8).map(str::to_owned);
        let Some(current) = current.ok().filter(|text| !text.contains('\0')) else { return Ok(()) };
        let mut lines: Vec<&str> = current.split_inclusive('\n').collect();
        for dropped in dropped {
            if let Some(at) = lines.iter().rposition(|line| line.trim_end() == dropped) {
                lines.remove(at);
            }
        }
        let mut text = lines.concat();
        for line in added.iter().filter(|added| !current.lines().any(|line| line == added.as_str())) {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(line);
            text.push('\n');
        }
        if text == current { Ok(()) } else { self.add(file, before, text) }
    }
}

/// The line of an idea.
#[must_use]
pub fn render_idea(question: &str, source: &str, at: DateTime<Utc>) -> String {
    let question = escape_one_line(question);
    format!("- {question} ({source}, {})", at.format("%Y-%m-%d"))
}

/// Links to pages, for a bullet of the log.
#[must_use]
pub fn link_pages(slugs: &[String]) -> String {
    // A person may write any slug into a page.
    let known = slugs.iter().map(|slug| match is_slug(slug) {
        true => format!("[[{slug}]]"),
        false => escape_one_line(slug),
    });
    known.chain([format!("[[{OVERVIEW}]]")]).collect::<Vec<_>>().join(", ")
}
