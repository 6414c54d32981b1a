//! Does for wikis what nobody has to ask for: makes pages of new sources, where the settings of a wiki allow it, and checks wikis
//! at night.
//!
//! It looks at the folders of sources and starts a workflow only if something is new. So a quiet wiki costs no call and no history.
//! It must not write into a wiki itself.

use super::create_interval;
use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::SOURCES_FOLDER;
use steward_domain::wiki::gates::{AutoIngest, WikiSettings};
use steward_domain::wiki::run::RunSource;
use steward_domain::wiki::writer::budget::RunLimits;
use steward_server::temporal::resolve::ResolutionClient;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::create::list_wikis;
use steward_vault::wiki::folder::WikiFolder;
use steward_vault::wiki::health::check_wiki;
use steward_vault::wiki::lint_log::{find_last_check, is_check_due};
use steward_vault::wiki::pending::{FoundSource, list_untried, note_tried};
use steward_vault::wiki::state::find_wiki_folder;
use steward_workflows::{IngestInput, IngestOutput, WikiRequest, WikiRunInput, WikiRunOutput};

/// Who asks, in records and logs.
const BY: &str = "steward";
/// The most sources of one wiki in one round.
const MAX_SOURCES: usize = 20;
/// How long a file in `sources/` must not have changed: 10 s. It may still be copied.
const SETTLED: Duration = Duration::from_secs(10);
/// How long an ingest is waited for: a model may write an hour.
const PATIENCE: Duration = Duration::from_secs(70 * 60);
/// The night begins at 01:00 UTC, and checks are spread over four hours of it.
const NIGHT_BEGINS: i64 = 60;
const NIGHT_MINUTES: u64 = 240;

/// The loop over the wikis of a vault.
pub(super) struct WikiLoop {
    pub(super) root: VaultRoot,
    pub(super) client: ResolutionClient,
    pub(super) settings: Arc<BTreeMap<String, WikiSettings>>,
    /// The seconds between two rounds.
    pub(super) seconds: u64,
}

/// What a process has seen of its wikis.
#[derive(Default)]
struct SeenWikis {
    /// The hash of the list of sources, when nothing was left to do about them.
    sources: BTreeMap<String, ContentHash>,
    /// When a check found that nothing had changed.
    unchanged: BTreeMap<String, DateTime<Utc>>,
}

impl WikiLoop {
    /// Runs until the process ends.
    pub(super) async fn run(self, is_stopped: impl Fn() -> bool) {
        let (mut rounds, mut seen) = (create_interval(self.seconds), SeenWikis::default());
        loop {
            rounds.tick().await;
            if is_stopped() {
                continue;
            }
            for wiki in self.list().await {
                if let Err(e) = self.ingest_new(&wiki, &mut seen).await {
                    tracing::warn!(wiki, "failed to look for new sources, trying again later: {e:#}");
                }
                if let Err(e) = self.check_at_night(&wiki, &mut seen).await {
                    tracing::warn!(wiki, "failed to check the wiki, trying again later: {e:#}");
                }
            }
        }
    }

    async fn list(&self) -> Vec<String> {
        let root = self.root.clone();
        let listed = tokio::task::spawn_blocking(move || list_wikis(&root)).await;
        match listed {
            Ok(Ok(wikis)) => wikis.into_iter().map(|(name, _)| name).collect(),
            Ok(Err(e)) => {
                tracing::warn!(error = %e, "failed to list the wikis, trying again later");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    /// Makes pages of the sources that are new, one after the other.
    async fn ingest_new(&self, wiki: &str, seen: &mut SeenWikis) -> anyhow::Result<()> {
        let settings = self.settings.get(wiki).copied().unwrap_or_default();
        if settings.auto_ingest == AutoIngest::Off {
            return Ok(());
        }
        let (root, name, known) = (self.root.clone(), wiki.to_owned(), seen.sources.get(wiki).cloned());
        let listed = tokio::task::spawn_blocking(move || find_new(&root, &name, known.as_ref())).await??;
        let Some(NewSources { listing, sources, is_complete }) = listed else { return Ok(()) };
        for source in sources {
            let path = source.path().to_owned();
            if self.ingest(wiki, source).await.with_context(|| format!("failed to ingest {path}"))? {
                let (root, name) = (self.root.clone(), wiki.to_owned());
                tokio::task::spawn_blocking(move || note_tried(&root, &name, &path, Utc::now())).await??;
            }
        }
        if is_complete {
            seen.sources.insert(wiki.to_owned(), listing);
        }
        Ok(())
    }

    /// Makes pages of a source. Returns whether that was a run, whatever its outcome.
    async fn ingest(&self, wiki: &str, source: FoundSource) -> anyhow::Result<bool> {
        let path = source.path().to_owned();
        let source = match source {
            FoundSource::Registered(source) => source,
            FoundSource::Unregistered(path) => match self.register(wiki, path).await? {
                Some(source) => source,
                None => return Ok(true),
            },
        };
        let input = IngestInput {
            wiki: wiki.to_owned(),
            source,
            by: BY.to_owned(),
            at: Utc::now(),
            draft: false,
            unverified: false,
            limits: RunLimits::default(),
            unattended: true,
        };
        let output = self.client.request_ingest(input, PATIENCE).await?;
        let (outcome, was_run) = match output {
            IngestOutput::Committed { run, .. } => (format!("committed by {run}"), true),
            IngestOutput::Pending { run } => (format!("{run} waits for a person"), true),
            IngestOutput::Nothing { reason } => (reason, true),
            IngestOutput::Refused { run, message, .. } => (format!("refused: {message}"), run.is_some()),
        };
        tracing::info!(wiki, source = path, outcome, "made pages of a source that nobody asked about");
        Ok(was_run)
    }

    /// Registers a source; `None` if no page can be made of it.
    async fn register(&self, wiki: &str, path: String) -> anyhow::Result<Option<RunSource>> {
        let request = WikiRequest::AddSource { path: path.clone(), upload: None };
        match self.request(wiki, request).await? {
            WikiRunOutput::Done { source, notes, .. } => Ok(source.filter(|_| notes.is_empty())),
            WikiRunOutput::Refused { message, .. } => {
                tracing::warn!(wiki, source = path, "a source was refused: {message}");
                Ok(None)
            }
        }
    }

    /// Notes in the log of a wiki that it was checked, if it changed since its last check and a night has begun.
    async fn check_at_night(&self, wiki: &str, seen: &mut SeenWikis) -> anyhow::Result<()> {
        let now = Utc::now();
        let due = find_due(wiki, now);
        if seen.unchanged.get(wiki).is_some_and(|at| *at >= due) {
            return Ok(());
        }
        let (root, name) = (self.root.clone(), wiki.to_owned());
        let is_changed = tokio::task::spawn_blocking(move || -> anyhow::Result<bool> {
            if find_last_check(&root, &name)?.is_some_and(|at| at >= due) {
                return Ok(false);
            }
            let checked = check_wiki(&root.path().join(find_wiki_folder(&root, &name)?), now)?;
            Ok(is_check_due(&root, &name, &checked)?)
        })
        .await??;
        if is_changed {
            if self.settings.get(wiki).is_some_and(|settings| settings.lint_fix) {
                self.request(wiki, WikiRequest::Fix).await?;
            }
            if let WikiRunOutput::Refused { message, .. } = self.request(wiki, WikiRequest::Lint).await? {
                anyhow::bail!("refused: {message}");
            }
        }
        seen.unchanged.insert(wiki.to_owned(), now);
        Ok(())
    }

    async fn request(&self, wiki: &str, request: WikiRequest) -> anyhow::Result<WikiRunOutput> {
        let input = WikiRunInput { wiki: wiki.to_owned(), by: BY.to_owned(), at: Utc::now(), request };
        Ok(self.client.request_wiki_run(input).await?)
    }
}

/// The last moment at which the check of a wiki was due. Its minute follows from the name, so that many wikis do not begin at once.
fn find_due(wiki: &str, now: DateTime<Utc>) -> DateTime<Utc> {
    let hash = ContentHash::hash_bytes(wiki.as_bytes());
    let phase = u64::from_str_radix(&hash.as_str()[..8], 16).unwrap_or_default() % NIGHT_MINUTES;
    let minutes = TimeDelta::minutes(NIGHT_BEGINS + i64::try_from(phase).unwrap_or_default());
    let today = now.date_naive().and_time(chrono::NaiveTime::MIN).and_utc() + minutes;
    if today <= now { today } else { today - TimeDelta::days(1) }
}

/// The new sources of a wiki.
struct NewSources {
    /// The hash of the list of all sources.
    listing: ContentHash,
    sources: Vec<FoundSource>,
    /// Nothing is left for another round.
    is_complete: bool,
}

/// Finds the sources that had no run, if the list of sources is another one than is known.
fn find_new(root: &VaultRoot, wiki: &str, known: Option<&ContentHash>) -> anyhow::Result<Option<NewSources>> {
    let folder = root.path().join(find_wiki_folder(root, wiki)?);
    let (listing, newest) = list_files(&folder.join(SOURCES_FOLDER))?;
    if known == Some(&listing) {
        return Ok(None);
    }
    let is_settled = newest.is_none_or(|at| at.elapsed().is_ok_and(|age| age >= SETTLED));
    if !is_settled {
        return Ok(None);
    }
    let contents = WikiFolder::open(&folder)?.read();
    let mut sources = list_untried(root, wiki, &contents, MAX_SOURCES + 1)?;
    let is_complete = sources.len() <= MAX_SOURCES;
    sources.truncate(MAX_SOURCES);
    Ok(Some(NewSources { listing, sources, is_complete }))
}

/// The hash of the names, sizes and times of all files, and when one of them changed last.
fn list_files(folder: &std::path::Path) -> anyhow::Result<(ContentHash, Option<SystemTime>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        files.push((entry.file_name(), meta.len(), meta.modified()?));
    }
    files.sort();
    let newest = files.iter().map(|(_, _, modified)| *modified).max();
    Ok((ContentHash::hash_bytes(format!("{files:?}").as_bytes()), newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_due_once_a_night_at_a_minute_of_its_own() {
        let at = |text: &str| -> DateTime<Utc> { text.parse().unwrap() };
        let due = find_due("allotment", at("2026-11-27T12:00:00Z"));
        assert!(due >= at("2026-11-27T01:00:00Z") && due < at("2026-11-27T05:00:00Z"), "{due}");
        assert_eq!(find_due("allotment", due), due);
        assert_eq!(find_due("allotment", due - TimeDelta::seconds(1)), due - TimeDelta::days(1));
        assert_ne!(find_due("house", at("2026-11-27T12:00:00Z")), due);
    }
}
