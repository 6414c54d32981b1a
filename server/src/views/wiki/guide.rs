//! What an assistant should know of a wiki before it asks anything: what is in force, what there is, and what waits.
//!
//! Pages and sources that did not change are not read again, a large overview is read at its beginning alone, and nothing is
//! checked anew: health is what was measured last. All texts but names of ours are untrusted.

use super::shorten_run;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use steward_domain::record::frontmatter;
use steward_domain::wiki::log::{LogEntry, LogType, read_log};
use steward_domain::wiki::manifest::EffectiveManifest;
use steward_domain::wiki::metrics::MetricReading;
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::template::CONTRACT;
use steward_domain::wiki::{GUIDE_FILE, MANIFEST_FILE, OVERVIEW_FILE, SOURCES_FOLDER};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::accept::{AcceptedFiles, find_accepted, read_acceptable};
use steward_vault::wiki::folder::{PageFacts, WikiFolder, WikiOutline};
use steward_vault::wiki::metrics::read_metrics;
use steward_vault::wiki::pending::list_pending;
use steward_vault::wiki::staged::{RunState, StagedRunSummary, StagedRuns};
use steward_vault::wiki::state::{ReadOutline, ReadWikiError, find_wiki_folder, read_manifest, read_wiki_outline};

/// How many entries of the log are shown.
const LOG_ENTRIES: usize = 15;
/// How much of the overview is read, in bytes: far more than is shown.
const OVERVIEW_START: u64 = 64 * 1024;
/// How much of the index is kept, in characters: far more than is shown.
const INDEX_START: usize = 8 * 1024;
/// How far back work counts as recent.
const RECENT: TimeDelta = TimeDelta::days(7);
/// The files of [`ACCEPTED_FILES`](steward_domain::wiki::ACCEPTED_FILES) for assistants, which a wiki need not have.
const SKILL_FILE: &str = "SKILL.md";
const IDENTITY_FILE: &str = "identity.md";
/// The lines around what of a file is for assistants.
const OPEN_MARK: &str = "<!-- guide -->";
const CLOSE_MARK: &str = "<!-- /guide -->";

/// What does not change until a person accepts other files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WikiContract {
    /// The name of the wiki.
    pub(crate) wiki: String,
    /// The version of the contract that its manifest pins.
    pub(crate) version: u64,
    /// The rules of the wiki's own; `None` if it has none, so that those of the contract hold.
    pub(crate) rules: Option<GuideText>,
    pub(crate) identity: GuideText,
}

/// A text of one file that is shown to assistants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GuideText {
    /// The file, relative to the wiki.
    pub(crate) file: &'static str,
    pub(crate) paragraphs: Vec<GuideParagraph>,
}

/// A paragraph, and where its author finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuideParagraph {
    /// As in `line 12`, or the name of a field of the manifest.
    pub(crate) place: String,
    pub(crate) text: String,
}

/// How a wiki stands now.
#[derive(Clone, Debug, Default)]
pub(crate) struct WikiSituation {
    pub(crate) pages: usize,
    /// The topics with the most pages first.
    pub(crate) topics: Vec<TopicCount>,
    /// The files in `sources/`, and those of them of which no page was made yet.
    pub(crate) raw_files: usize,
    pub(crate) new_sources: usize,
    pub(crate) last_ingest: Option<DateTime<Utc>>,
    /// The newest first.
    pub(crate) open_runs: Vec<OpenRun>,
    /// The streams that the configuration gives to the wiki.
    pub(crate) streams: Vec<StreamQueue>,
    pub(crate) metrics: Vec<MetricReading>,
    /// The newest check without a model that the log names.
    pub(crate) last_check: Option<CheckNote>,
    /// The files that are others than a person accepted.
    pub(crate) unreviewed: Vec<&'static str>,
    /// Whether a person ever accepted the wiki.
    pub(crate) is_accepted: bool,
    /// The newest first.
    pub(crate) log: Vec<LoggedWork>,
    pub(crate) recent_runs: usize,
    pub(crate) recent_pages: usize,
    /// The body of the overview, or its beginning.
    pub(crate) overview: String,
    /// Whether there is more of it.
    pub(crate) is_overview_cut: bool,
    /// The index, or its beginning.
    pub(crate) index: String,
    pub(crate) is_index_cut: bool,
}

/// Both for one wiki, of the same moment.
pub(crate) struct WikiGuide {
    pub(crate) contract: WikiContract,
    pub(crate) situation: WikiSituation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicCount {
    pub(crate) topic: String,
    pub(crate) pages: usize,
}

/// A stream, and how many of its events no page was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamQueue {
    /// As the configuration names it.
    pub(crate) name: String,
    pub(crate) events: u64,
}

/// A run that was neither committed nor given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenRun {
    /// The 8 characters by which it is named.
    pub(crate) run: String,
    pub(crate) run_type: WikiRunType,
    pub(crate) began: DateTime<Utc>,
    pub(crate) state: RunState,
    /// Whether it waits for a person.
    pub(crate) waits: bool,
    /// The id of the source.
    pub(crate) source: Option<String>,
    /// Who began it.
    pub(crate) by: String,
}

impl OpenRun {
    /// Whether it was left before it was complete: an ingest that neither waits for a person nor is checked.
    pub(crate) fn is_partial(&self) -> bool {
        self.run_type == WikiRunType::Ingest && self.state == RunState::Pending && !self.waits
    }
}

/// A check that the log names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckNote {
    pub(crate) at: DateTime<Utc>,
    pub(crate) found: String,
}

/// An entry of the log, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedWork {
    pub(crate) at: DateTime<Utc>,
    /// `None` for a type of an older wiki.
    pub(crate) log_type: Option<LogType>,
    /// The 8 characters at the end of the run's name.
    pub(crate) run: Option<String>,
    /// The pages that it touched, without the overview.
    pub(crate) touched: Vec<String>,
}

/// Reads what is in force for a wiki. Of its pages none is read.
///
/// # Errors
/// [`ReadWikiError`].
pub(crate) fn read_wiki_contract(root: &VaultRoot, wiki: &str) -> Result<WikiContract, ReadWikiError> {
    let accepted = find_accepted(root, wiki)?;
    let manifest = read_manifest(root, wiki, accepted.as_ref())?;
    Ok(describe_contract(wiki, accepted.as_ref(), &manifest))
}

/// Reads a wiki for an assistant, without its streams, which are for the configuration to say. Call it on a blocking thread.
///
/// # Errors
/// [`ReadWikiError`].
pub(crate) fn read_wiki_guide(root: &VaultRoot, wiki: &str, now: DateTime<Utc>) -> Result<WikiGuide, ReadWikiError> {
    let path = find_wiki_folder(root, wiki)?;
    let ReadOutline { outline, manifest, accepted } = read_wiki_outline(root, wiki, &path)?;
    let WikiOutline { contents, pages } = &*outline;
    let folder = WikiFolder::open(&root.path().join(&path))
        .map_err(|source| ReadWikiError::Io { path: path.clone(), source })?;
    let entries = read_log(contents.log.as_deref().unwrap_or_default()).entries;
    let pending = list_pending(root, wiki, contents, usize::MAX)
        .map_err(|e| ReadWikiError::File { path: path.clone(), reason: e.to_string() })?;
    let staged = StagedRuns::new(root).list().unwrap_or_default();
    let open = staged.into_iter().rev().filter(|run| run.meta.wiki == wiki).filter_map(describe_open_run);
    let is_recent = |entry: &&LogEntry| entry.at >= now - RECENT && entry.find_run().is_some();
    let recent: Vec<&LogEntry> = entries.iter().filter(is_recent).collect();
    let recent_pages: BTreeSet<&str> = recent.iter().flat_map(|entry| list_touched_pages(entry)).collect();
    let check = entries.iter().rev().find(|entry| entry.log_type == Some(LogType::Lint));
    let ingest = entries.iter().rev().find(|entry| entry.log_type == Some(LogType::Ingest));
    let (overview, is_overview_cut) = read_overview(&folder);
    let index = contents.index.as_deref().unwrap_or_default();
    let situation = WikiSituation {
        pages: pages.iter().filter(|page| page.file != OVERVIEW_FILE).count(),
        topics: count_topics(pages),
        raw_files: contents.files.range(format!("{SOURCES_FOLDER}/")..format!("{SOURCES_FOLDER}0")).count(),
        new_sources: pending.len(),
        last_ingest: ingest.map(|entry| entry.at),
        open_runs: open.collect(),
        streams: Vec::new(),
        metrics: read_metrics(root, wiki)?,
        last_check: check.map(|entry| CheckNote { at: entry.at, found: entry.subject.clone() }),
        unreviewed: list_unreviewed(root, &path, accepted.as_ref()),
        is_accepted: accepted.is_some(),
        log: entries.iter().rev().take(LOG_ENTRIES).map(describe_entry).collect(),
        recent_runs: recent.len(),
        recent_pages: recent_pages.len(),
        overview,
        is_overview_cut,
        index: index.chars().take(INDEX_START).collect(),
        is_index_cut: index.chars().nth(INDEX_START).is_some(),
    };
    Ok(WikiGuide { contract: describe_contract(wiki, accepted.as_ref(), &manifest), situation })
}

/// What holds for a wiki, of files as a person accepted them.
fn describe_contract(wiki: &str, accepted: Option<&AcceptedFiles>, manifest: &EffectiveManifest) -> WikiContract {
    let text = |file: &str| accepted.and_then(|accepted| accepted.files.get(file)).map(String::as_str);
    let find_rules = |file| find_marked(file, text(file)?);
    let pinned = manifest.fields.get("metadata").and_then(|it| it.get("steward")?.get("contract")?.as_u64());
    let identity = match text(IDENTITY_FILE).filter(|text| !text.trim().is_empty()) {
        Some(text) => GuideText { file: IDENTITY_FILE, paragraphs: split_paragraphs(text, 1) },
        None => describe_manifest(wiki, manifest),
    };
    WikiContract {
        wiki: wiki.to_owned(),
        version: pinned.unwrap_or(u64::from(CONTRACT)),
        rules: find_rules(SKILL_FILE).or_else(|| find_rules(GUIDE_FILE)),
        identity,
    }
}

/// What stands between the marks of a file; `None` without them, or if nothing does.
fn find_marked(file: &'static str, text: &str) -> Option<GuideText> {
    let begin = text.find(OPEN_MARK)? + OPEN_MARK.len();
    let end = begin + text[begin..].find(CLOSE_MARK)?;
    let line = text[..begin].matches('\n').count() + 1;
    let paragraphs = split_paragraphs(&text[begin..end], line);
    (!paragraphs.is_empty()).then_some(GuideText { file, paragraphs })
}

/// The paragraphs of a text, of which the first line has this number.
fn split_paragraphs(text: &str, first: usize) -> Vec<GuideParagraph> {
    let mut paragraphs: Vec<GuideParagraph> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        match paragraphs.last_mut().filter(|_| is_open) {
            _ if line.trim().is_empty() => {}
            Some(paragraph) => {
                paragraph.text.push('\n');
                paragraph.text.push_str(line.trim_end());
            }
            None => {
                let place = format!("line {}", first + at);
                paragraphs.push(GuideParagraph { place, text: line.trim_end().to_owned() });
            }
        }
        is_open = !line.trim().is_empty();
    }
    paragraphs
}

/// The identity of a wiki without a file for it.
fn describe_manifest(wiki: &str, manifest: &EffectiveManifest) -> GuideText {
    let kinds: Vec<&str> = manifest.entity_types.iter().map(|kind| kind.name.as_str()).collect();
    let field = |name: &str| manifest.find_text(&[name]).map(str::to_owned);
    let fields = [
        ("name", Some(wiki.to_owned())),
        ("title", field("title")),
        ("description", field("description")),
        ("governance", field("governance")),
        ("entityTypes", Some(kinds.join(", ")).filter(|kinds| !kinds.is_empty())),
        ("curator", field("curator")),
    ];
    let describe = |(name, value): (&str, Option<String>)| {
        let text = format!("{name}: {}", value?.split_whitespace().collect::<Vec<_>>().join(" "));
        Some(GuideParagraph { place: format!("`{name}`"), text })
    };
    GuideText { file: MANIFEST_FILE, paragraphs: fields.into_iter().filter_map(describe).collect() }
}

/// The files that are not as a person accepted them.
fn list_unreviewed(root: &VaultRoot, folder: &str, accepted: Option<&AcceptedFiles>) -> Vec<&'static str> {
    // What cannot be read is another one than was accepted.
    let now = read_acceptable(root, folder).unwrap_or_default();
    let files = steward_domain::wiki::ACCEPTED_FILES.into_iter();
    let is_other = |file: &&str| {
        let current = now.iter().find(|it| it.file == *file).map(|it| &it.text);
        current != accepted.and_then(|accepted| accepted.files.get(*file))
    };
    files.filter(is_other).collect()
}

fn count_topics(pages: &[Arc<PageFacts>]) -> Vec<TopicCount> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for page in pages.iter().filter(|page| page.file != OVERVIEW_FILE) {
        *counts.entry(&page.topic).or_default() += 1;
    }
    let mut topics: Vec<TopicCount> =
        counts.into_iter().map(|(topic, pages)| TopicCount { topic: topic.to_owned(), pages }).collect();
    topics.sort_by(|a, b| b.pages.cmp(&a.pages).then_with(|| a.topic.cmp(&b.topic)));
    topics
}

fn describe_open_run(StagedRunSummary { meta, status }: StagedRunSummary) -> Option<OpenRun> {
    let is_open = matches!(status.state, RunState::Pending | RunState::Verifying);
    is_open.then(|| OpenRun {
        run: meta.run.short().to_owned(),
        run_type: meta.run_type,
        began: meta.began,
        state: status.state,
        waits: status.waits,
        source: meta.source.map(|source| source.id),
        by: meta.by,
    })
}

fn describe_entry(entry: &LogEntry) -> LoggedWork {
    // The log is a file of the wiki, so what it names as a run may be anything.
    let run =
        entry.find_run().map(shorten_run).filter(|run| run.len() == 8 && run.chars().all(|c| c.is_ascii_hexdigit()));
    LoggedWork {
        at: entry.at,
        log_type: entry.log_type,
        run: run.map(str::to_owned),
        touched: list_touched_pages(entry).map(str::to_owned).collect(),
    }
}

/// The slugs of the pages that an entry names, without the files that code writes.
fn list_touched_pages(entry: &LogEntry) -> impl Iterator<Item = &str> {
    let names = entry.list_touched().into_iter();
    let slugs = names.map(|name| name.rsplit('/').next().unwrap_or(name).trim_end_matches(".md"));
    slugs.filter(|slug| !["overview", "index", "log", "_index", "_log"].contains(slug))
}

/// The body of the overview, and whether there is more of it.
fn read_overview(folder: &WikiFolder) -> (String, bool) {
    let Ok(bytes) = folder.read_start(OVERVIEW_FILE, OVERVIEW_START) else { return (String::new(), false) };
    let is_cut = bytes.len() as u64 == OVERVIEW_START;
    // The cut may have divided a character.
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    let body = match frontmatter::read_note(text.as_bytes()) {
        Ok(document) => document.body().to_owned(),
        Err(_) => text.to_owned(),
    };
    let is_mark = |line: &&str| line.trim_start().starts_with("<!--") && line.trim_end().ends_with("-->");
    let lines: Vec<&str> = body.lines().filter(|line| !is_mark(line)).collect();
    (lines.join("\n").trim().to_owned(), is_cut)
}
