//! Does for wikis what nobody has to ask for: makes pages of new sources, where the settings of a wiki allow it, checks wikis
//! at night, and files the records of rejected runs that could not be filed before.
//!
//! It looks at the folders of sources and starts a workflow only if something is new. So a quiet wiki costs no call and no history.
//! It must not write into a wiki itself.

use super::create_interval;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use steward_domain::action::plan::ContentHash;
use steward_domain::gates::mode::Mode;
use steward_domain::wiki::SOURCES_FOLDER;
use steward_domain::wiki::gates::{AutoIngest, RunCause, RunGates, WikiSettings};
use steward_domain::wiki::run::{RunSource, WikiMode};
use steward_domain::wiki::writer::budget::RunLimits;
use steward_server::temporal::resolve::ResolutionClient;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::accept::find_accepted;
use steward_vault::wiki::create::list_wikis;
use steward_vault::wiki::folder::WikiFolder;
use steward_vault::wiki::health::check_wiki;
use steward_vault::wiki::lint_log::{find_last_check, is_check_due};
use steward_vault::wiki::metrics::list_broken_metrics;
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
/// When a source is tried again that was refused for now: 10 min.
const RETRY: Duration = Duration::from_secs(600);
/// The night begins at 01:00 UTC, and checks are spread over four hours of it.
const NIGHT_BEGINS: i64 = 60;
const NIGHT_MINUTES: u64 = 240;

/// The loops over the wikis of a vault.
pub(super) struct WikiLoop {
    pub(super) root: VaultRoot,
    pub(super) writer: Arc<VaultWriter>,
    pub(super) client: ResolutionClient,
    pub(super) settings: Arc<BTreeMap<String, WikiSettings>>,
    /// How far that may go which nobody asked for.
    pub(super) live_mode: Mode,
    /// The seconds between two rounds.
    pub(super) seconds: u64,
}

/// The list of sources of a wiki as it was when nothing more could be done about them.
struct SeenSources {
    listing: ContentHash,
    at: Instant,
}

impl WikiLoop {
    /// Makes pages of new sources until the process ends. A model may take hours for one round.
    pub(super) async fn ingest_sources(self, is_stopped: impl Fn() -> bool) {
        let (mut rounds, mut seen) = (create_interval(self.seconds), BTreeMap::new());
        loop {
            rounds.tick().await;
            let is_wanted = |wiki: &String| self.find_settings(wiki).auto_ingest != AutoIngest::Off;
            if is_stopped() || !self.settings.keys().any(is_wanted) {
                continue;
            }
            for wiki in self.list().await.into_iter().filter(is_wanted) {
                if let Err(e) = self.ingest_new(&wiki, &mut seen, &is_stopped).await {
                    tracing::warn!(wiki, "failed to look for new sources, trying again later: {e:#}");
                }
            }
        }
    }

    /// Checks wikis at night until the process ends. Each round also files records that a crash or a stop held.
    pub(super) async fn check_wikis(self, is_stopped: impl Fn() -> bool) {
        let (mut rounds, mut checked) = (create_interval(self.seconds), BTreeMap::new());
        let (known, names) = (self.list().await, self.settings.keys());
        for name in names.filter(|name| !known.contains(name)) {
            tracing::warn!("the configuration has settings for the wiki `{name}`, and the vault has none of this name");
        }
        loop {
            rounds.tick().await;
            if is_stopped() {
                continue;
            }
            self.record_ended_runs().await;
            for wiki in self.list().await {
                if let Err(e) = self.check_at_night(&wiki, &mut checked).await {
                    tracing::warn!(wiki, "failed to check the wiki, trying again later: {e:#}");
                }
            }
        }
    }

    async fn record_ended_runs(&self) {
        let writer = Arc::clone(&self.writer);
        let record = move || writer.abandon_late_runs(Utc::now()).and_then(|()| writer.record_ended_runs());
        if let Ok(Err(e)) = tokio::task::spawn_blocking(record).await {
            tracing::warn!(error = %e, "failed to look for rejected runs without a record, trying again later");
        }
    }

    fn find_settings(&self, wiki: &str) -> WikiSettings {
        self.settings.get(wiki).copied().unwrap_or_default()
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
    async fn ingest_new(
        &self,
        wiki: &str,
        seen: &mut BTreeMap<String, SeenSources>,
        is_stopped: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        let known = seen.get(wiki).filter(|seen| seen.at.elapsed() < RETRY).map(|seen| seen.listing.clone());
        let (root, name) = (self.root.clone(), wiki.to_owned());
        let listed = tokio::task::spawn_blocking(move || find_new(&root, &name, known.as_ref())).await??;
        let Some(NewSources { listing, sources, is_complete }) = listed else { return Ok(()) };
        let mut is_done = true;
        for source in sources {
            if is_stopped() {
                return Ok(());
            }
            let path = source.path().to_owned();
            match self.ingest(wiki, source).await {
                Ok(was_run) => is_done &= was_run,
                Err(e) => {
                    is_done = false;
                    tracing::warn!(wiki, source = path, "failed to make pages of a source, trying again later: {e:#}");
                }
            }
        }
        // The rest of many follows in the next round. What was refused for now is tried again after a while.
        if is_complete || !is_done {
            seen.insert(wiki.to_owned(), SeenSources { listing, at: Instant::now() });
        }
        Ok(())
    }

    /// Makes pages of a source. Returns whether that was a run, whatever its outcome.
    async fn ingest(&self, wiki: &str, source: FoundSource) -> anyhow::Result<bool> {
        let path = source.path().to_owned();
        let source = match source {
            FoundSource::Registered(source) => source,
            FoundSource::Unregistered(path) => match self.register(wiki, path).await? {
                RegisteredSource::Readable(source) => source,
                RegisteredSource::Unreadable => return Ok(true),
                RegisteredSource::Refused => return Ok(false),
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

    /// Registers a source. One of which no page can be made counts as tried.
    async fn register(&self, wiki: &str, path: String) -> anyhow::Result<RegisteredSource> {
        let request = WikiRequest::AddSource { path: path.clone(), upload: None };
        match self.request(wiki, request).await? {
            WikiRunOutput::Done { source: Some(source), notes, .. } if notes.is_empty() => {
                Ok(RegisteredSource::Readable(source))
            }
            WikiRunOutput::Done { .. } => {
                let (root, name) = (self.root.clone(), wiki.to_owned());
                tokio::task::spawn_blocking(move || note_tried(&root, &name, &path, Utc::now())).await??;
                Ok(RegisteredSource::Unreadable)
            }
            WikiRunOutput::Refused { message, .. } => {
                tracing::warn!(wiki, source = path, "a source was refused: {message}");
                Ok(RegisteredSource::Refused)
            }
        }
    }

    /// Notes in the log of a wiki that it was checked, if it changed since its last check and a night has begun. What is refused is
    /// left for the next night.
    async fn check_at_night(&self, wiki: &str, checked: &mut BTreeMap<String, DateTime<Utc>>) -> anyhow::Result<()> {
        let now = Utc::now();
        let due = find_due(wiki, now);
        if checked.get(wiki).is_some_and(|at| *at >= due) {
            return Ok(());
        }
        let (root, name) = (self.root.clone(), wiki.to_owned());
        let is_changed = tokio::task::spawn_blocking(move || -> anyhow::Result<bool> {
            if find_last_check(&root, &name)?.is_some_and(|at| at >= due) || find_accepted(&root, &name)?.is_none() {
                return Ok(false);
            }
            let checked = check_wiki(&root.path().join(find_wiki_folder(&root, &name)?), now)?;
            Ok(is_check_due(&root, &name, &checked)?)
        })
        .await??;
        let requests = match (is_changed, self.may_fix(wiki).await?) {
            (false, _) => Vec::new(),
            (true, false) => vec![WikiRequest::Lint],
            (true, true) => vec![WikiRequest::Fix { pages: false }, WikiRequest::Lint],
        };
        let mut is_refused = false;
        for request in requests {
            if let WikiRunOutput::Refused { message, .. } = self.request(wiki, request).await? {
                is_refused = true;
                tracing::warn!(wiki, "the check of this night is refused: {message}");
            }
        }
        // An equal request of an earlier process that is still open answers for this one, so the next round looks once more.
        if !is_changed || is_refused {
            checked.insert(wiki.to_owned(), now);
        }
        Ok(())
    }

    /// Whether the nightly check may render the index anew, though nobody asked for it.
    async fn may_fix(&self, wiki: &str) -> anyhow::Result<bool> {
        if !self.find_settings(wiki).lint_fix {
            return Ok(false);
        }
        let (root, name, live_mode) = (self.root.clone(), wiki.to_owned(), self.live_mode);
        let broken = tokio::task::spawn_blocking(move || list_broken_metrics(&root, &name)).await??;
        let gates = RunGates::new(RunCause::Unattended(AutoIngest::Land, live_mode), &broken);
        Ok(gates.decide().mode == WikiMode::Live)
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

/// What registering a source came to.
enum RegisteredSource {
    Readable(RunSource),
    /// It is registered, and no page can be made of it.
    Unreadable,
    /// Not now.
    Refused,
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
    // A time in the future says nothing.
    let is_settled = newest.is_none_or(|at| at.elapsed().map_or(true, |age| age >= SETTLED));
    if !is_settled || find_accepted(root, wiki)?.is_none() {
        return Ok(None);
    }
    let contents = WikiFolder::open(&folder)?.read();
    let mut sources = list_untried(root, wiki, &contents, MAX_SOURCES + 1)?;
    let is_complete = sources.len() <= MAX_SOURCES;
    sources.truncate(MAX_SOURCES);
    Ok(Some(NewSources { listing, sources, is_complete }))
}

/// The hash of the names, sizes and times of all files, and when one of them changed last.
fn list_files(folder: &Path) -> anyhow::Result<(ContentHash, Option<SystemTime>)> {
    let mut files = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        entries => Some(entries?),
    };
    for entry in entries.into_iter().flatten() {
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
