//! `steward wiki ingest`: adds documents to a wiki and makes pages of them.
//!
//! A file from elsewhere is copied into `sources/`. Each source is one run: it changes all its pages, or none.

use super::{OpenedWikis, open_vault, preview};
use crate::cli::output::{CommandError, CommandExit, CommandOutput, escape_text};
use crate::commands::resolve::request_from_vault;
use crate::config::{ClerkChoice, StewardConfig};
use anyhow::{Context, bail};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steward_domain::record::plain_text::count_noun;
use steward_domain::wiki::run::{RunId, RunSource};
use steward_domain::wiki::writer::budget::RunLimits;
use steward_domain::wiki::{MAX_SOURCE_BYTES, SOURCES_FOLDER};
use steward_server::temporal::resolve::{PATIENCE, ResolutionClient, ResolutionRequestError};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::folder::{ReadFault, WikiContents, WikiFolder, read_bounded};
use steward_vault::wiki::pending::{FoundSource, find_registered, list_pending};
use steward_vault::wiki::staged::StagedRuns;
use steward_vault::wiki::state::find_wiki_folder;
use steward_workflows::{IngestInput, IngestOutput, WikiRequest, WikiRunInput, WikiRunOutput};

/// What names all sources of which no page was made.
const PENDING: &str = "pending";
/// How long one document may take: a minute by rules, and with a model longer than it may write.
const MODEL_PATIENCE: Duration = Duration::from_secs(70 * 60);
/// The most files of one command.
const MAX_FILES: usize = 500;

/// What is done with the documents.
#[derive(Clone, Debug)]
pub(super) struct IngestOptions {
    /// Only what it would take is shown.
    pub(super) dry_run: bool,
    /// The runs wait for a person.
    pub(super) draft: bool,
    /// No model checks the pages.
    pub(super) unverified: bool,
    pub(super) limits: RunLimits,
    /// The source that the document replaces.
    pub(super) supersedes: Option<String>,
}

/// A document that is to become pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IngestTarget {
    /// A registered source.
    Known(RunSource),
    /// A file below `sources/` that is not registered, by its path in the wiki.
    Unregistered(String),
    /// A file from elsewhere.
    New(PathBuf),
}

/// What became of one document.
#[derive(Debug, Serialize)]
struct IngestedDocument {
    document: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<WikiRunOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ingested: Option<IngestOutput>,
    /// Why its outcome is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

impl From<FoundSource> for IngestTarget {
    fn from(found: FoundSource) -> Self {
        match found {
            FoundSource::Registered(source) => Self::Known(source),
            FoundSource::Unregistered(path) => Self::Unregistered(path),
        }
    }
}

impl fmt::Display for IngestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(source) => f.write_str(&source.id),
            Self::Unregistered(path) => f.write_str(path),
            Self::New(file) => write!(f, "{}", file.display()),
        }
    }
}

pub(super) async fn run(
    vault: Option<&Path>,
    wiki: &str,
    documents: &[String],
    options: IngestOptions,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    let folder = find_wiki_folder(&root, wiki)?;
    let contents = WikiFolder::open(&root.path().join(&folder))?.read();
    // What was taken back is repeated only if a person names it.
    let pending = list_pending(&root, wiki, &contents, MAX_FILES)?;
    let targets = find_targets(&root.path().join(&folder), &contents, pending, documents)?;
    if targets.is_empty() {
        out.print_value(&Vec::<IngestedDocument>::new(), || {
            let is_pending = documents.iter().any(|name| name == PENDING);
            let what = if is_pending {
                "each source had a run: name one by its id to try it again"
            } else {
                "there is no document in it"
            };
            what.to_owned()
        })?;
        return Ok(CommandExit::Ok);
    }
    if options.unverified && !config.wiki_allow_unverified {
        bail!(CommandError::Refused("--no-verify needs STEWARD_WIKI_ALLOW_UNVERIFIED=true".to_owned()));
    }
    match &options.supersedes {
        Some(_) if targets.len() > 1 => {
            bail!(CommandError::Usage("--supersedes needs exactly one document".to_owned()))
        }
        Some(old) if !contents.sources.contains_key(old) => {
            bail!("--supersedes: there is no source `{}`: `steward wiki sources {wiki}` shows all", escape_text(old))
        }
        _ => {}
    }
    if options.dry_run {
        return preview::run(&config, &root, &root.path().join(&folder), &targets, &options, out).await;
    }
    let by = steward_server::access::parse_caller_name(&config.operator)?;
    let (is_by_model, patience) = (has_model(&config), find_patience(&config));
    if is_by_model {
        eprintln!(
            "A model writes the pages, which takes some minutes. If you stop waiting, it goes on beside a running `steward up`."
        );
    }
    let session = IngestSession { root: &root, wiki, by, options, patience };
    let done = request_from_vault(&config, async |client: ResolutionClient| {
        let mut done = Vec::new();
        for target in targets {
            let document = target.to_string();
            match session.ingest(&client, target).await {
                Ok(one) => done.push(one),
                Err(e) => {
                    // What was done before stays done, and is shown.
                    let failed = Some(e.to_string());
                    done.push(IngestedDocument { document, added: None, ingested: None, failed });
                    break;
                }
            }
        }
        Ok(done)
    })
    .await?;
    out.print_value(&done, || {
        let lines = done.iter().map(describe).collect::<Vec<_>>().join("\n");
        if done.len() > 1 { format!("{lines}\n\n{}", count_outcomes(&done)) } else { lines }
    })?;
    Ok(match () {
        () if done.iter().any(|one| one.failed.is_some()) => CommandExit::Incomplete,
        () if done.iter().any(IngestedDocument::is_refused) => CommandExit::Refused,
        () => CommandExit::Ok,
    })
}

/// How many documents became pages, and what became of the others.
fn count_outcomes(done: &[IngestedDocument]) -> String {
    let count = |is: fn(&IngestedDocument) -> bool| done.iter().filter(|one| is(one)).count();
    let counts = [
        (count(|one| matches!(one.ingested, Some(IngestOutput::Committed { .. }))), "became pages"),
        (count(|one| matches!(one.ingested, Some(IngestOutput::Pending { .. }))), "wait for you"),
        (count(IngestedDocument::is_refused), "refused"),
        (count(|one| one.failed.is_some()), "failed"),
    ];
    let known: usize = counts.iter().map(|(count, _)| count).sum();
    let rest = (done.len().saturating_sub(known), "without a new page");
    let parts = counts.into_iter().chain([rest]).filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
    format!("{}: {}", count_noun(done.len() as u64, "document"), parts.join(", "))
}

/// Whether a model writes the wikis.
pub(super) fn has_model(config: &StewardConfig) -> bool {
    *config.wiki_clerk.as_ref().unwrap_or(&config.clerk) != ClerkChoice::Rules
}

/// How long a run may take.
pub(super) fn find_patience(config: &StewardConfig) -> Duration {
    if has_model(config) { MODEL_PATIENCE } else { PATIENCE }
}

/// What is the same for all documents of a command.
struct IngestSession<'a> {
    root: &'a VaultRoot,
    wiki: &'a str,
    by: String,
    options: IngestOptions,
    patience: Duration,
}

impl IngestSession<'_> {
    async fn ingest(
        &self,
        client: &ResolutionClient,
        target: IngestTarget,
    ) -> Result<IngestedDocument, ResolutionRequestError> {
        let document = target.to_string();
        let (added, source) = match target {
            IngestTarget::Known(source) => (None, Some(source)),
            IngestTarget::Unregistered(path) => self.add(client, WikiRequest::AddSource { path, upload: None }).await?,
            IngestTarget::New(file) => match upload(self.root, &file, Utc::now()) {
                Ok(request) => self.add(client, request).await?,
                Err(e) => {
                    let message = crate::cli::output::format_causes(&e);
                    (Some(WikiRunOutput::Refused { status: 422, message }), None)
                }
            },
        };
        // A source without text is kept, and no page can be made of it.
        let has_text = !matches!(&added, Some(WikiRunOutput::Done { notes, .. }) if !notes.is_empty());
        if let (Some(source), Some(old), true) = (&source, &self.options.supersedes, has_text) {
            let request = WikiRequest::Supersede { old: old.clone(), new: source.id.clone() };
            if let (refused @ Some(WikiRunOutput::Refused { .. }), _) = self.add(client, request).await? {
                return Ok(IngestedDocument { document, added: refused, ingested: None, failed: None });
            }
        }
        let ingested = match source.filter(|_| has_text) {
            Some(source) => {
                let (wiki, by) = (self.wiki.to_owned(), self.by.clone());
                let IngestOptions { draft, unverified, limits, .. } = self.options;
                let at = Utc::now();
                let input = IngestInput { wiki, source, by, at, draft, unverified, limits, unattended: false };
                Some(client.request_ingest(input, self.patience).await?)
            }
            None => None,
        };
        Ok(IngestedDocument { document, added, ingested, failed: None })
    }

    async fn add(
        &self,
        client: &ResolutionClient,
        request: WikiRequest,
    ) -> Result<(Option<WikiRunOutput>, Option<RunSource>), ResolutionRequestError> {
        let (wiki, by) = (self.wiki.to_owned(), self.by.clone());
        let output = client.request_wiki_run(WikiRunInput { wiki, by, at: Utc::now(), request }).await?;
        let source = match &output {
            WikiRunOutput::Done { source, .. } => source.clone(),
            WikiRunOutput::Refused { .. } => None,
        };
        Ok((Some(output), source))
    }
}

/// Keeps the bytes of a file for the process that holds the vault.
fn upload(root: &VaultRoot, file: &Path, now: DateTime<Utc>) -> anyhow::Result<WikiRequest> {
    let name = file.file_name().and_then(|name| name.to_str()).context("its name is not UTF-8: rename it")?;
    let bytes = read_bounded(file, MAX_SOURCE_BYTES).map_err(|e| match e {
        ReadFault::TooLarge(_) => anyhow::anyhow!("too_large: {e}: divide it"),
        ReadFault::Io(_) | ReadFault::Link | ReadFault::NotAFile => e.into(),
    })?;
    let is_dated = name.get(..10).is_some_and(|day| chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok());
    let dated = if is_dated { name.to_owned() } else { format!("{}-{name}", now.format("%Y-%m-%d")) };
    let run = RunId::derive(now, &["upload", &file.display().to_string(), &now.timestamp_micros().to_string()]);
    StagedRuns::new(root).upload_source(&run, &bytes)?;
    Ok(WikiRequest::AddSource { path: format!("{SOURCES_FOLDER}/{dated}"), upload: Some(run) })
}

/// The documents that a person named, each once.
fn find_targets(
    wiki: &Path,
    contents: &WikiContents,
    pending: Vec<FoundSource>,
    named: &[String],
) -> anyhow::Result<Vec<IngestTarget>> {
    let mut targets = Vec::new();
    for name in named {
        let found = match name.as_str() {
            PENDING => pending.iter().cloned().map(IngestTarget::from).collect(),
            _ => find_target(wiki, contents, name)?,
        };
        for target in found {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    if targets.len() > MAX_FILES {
        bail!(CommandError::Usage(format!(
            "{} files are too many for one command, which takes at most {MAX_FILES}: name fewer",
            targets.len()
        )));
    }
    Ok(targets)
}

fn find_target(wiki: &Path, contents: &WikiContents, name: &str) -> anyhow::Result<Vec<IngestTarget>> {
    if let Some(known) = find_registered(contents, name) {
        return Ok(vec![known.into()]);
    }
    let path = Path::new(name);
    if path.is_dir() {
        return Ok(list_files(path)?.into_iter().map(|file| place_file(wiki, contents, file)).collect());
    }
    if path.is_file() {
        return Ok(vec![place_file(wiki, contents, path.to_owned())]);
    }
    if contents.files.contains(name) && name.starts_with("sources/") {
        return Ok(vec![IngestTarget::Unregistered(name.to_owned())]);
    }
    bail!("there is no source and no file `{}`", escape_text(name));
}

/// A file below `sources/` of the wiki is a source, any other one is copied.
fn place_file(wiki: &Path, contents: &WikiContents, file: PathBuf) -> IngestTarget {
    let real = file.canonicalize().unwrap_or_else(|_| file.clone());
    let inside = real.strip_prefix(wiki.canonicalize().unwrap_or_else(|_| wiki.to_owned())).ok();
    match inside.and_then(Path::to_str).filter(|path| path.starts_with("sources/")) {
        Some(path) => find_registered(contents, path)
            .map_or_else(|| IngestTarget::Unregistered(path.to_owned()), IngestTarget::from),
        None => IngestTarget::New(file),
    }
}

/// The files in a folder and below it, without hidden ones.
fn list_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut files, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = waiting.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| format!("failed to list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            match entry.file_name().to_string_lossy().starts_with('.') {
                true => {}
                false if kind.is_dir() => waiting.push(entry.path()),
                false if kind.is_file() => files.push(entry.path()),
                false => {}
            }
        }
        if files.len() > MAX_FILES {
            bail!(CommandError::Usage(format!("{} holds more than {MAX_FILES} files: name fewer", folder.display())));
        }
    }
    files.sort();
    Ok(files)
}

impl IngestedDocument {
    fn is_refused(&self) -> bool {
        let is_added = !matches!(&self.added, Some(WikiRunOutput::Refused { .. }));
        !is_added || matches!(&self.ingested, Some(IngestOutput::Refused { .. }))
    }
}

fn describe(done: &IngestedDocument) -> String {
    let mut lines = Vec::new();
    match &done.added {
        Some(WikiRunOutput::Done { record, source, notes }) => {
            let id = source.as_ref().map_or("", |source| source.id.as_str());
            let what = if record.is_some() { "added as" } else { "is the source" };
            lines.push(format!("{what} {}", escape_text(id)));
            lines.extend(notes.iter().map(|note| format!("no page: {}", escape_text(note))));
        }
        Some(WikiRunOutput::Refused { message, .. }) => {
            lines.push(format!("refused: {}", escape_text(message)));
        }
        None => {}
    }
    lines.extend(done.ingested.as_ref().map(describe_ingested));
    lines.extend(done.failed.iter().map(|reason| format!("stopped here: {}", escape_text(reason))));
    format!("{}: {}", escape_text(&done.document), lines.join("\n"))
}

/// What became of a run, in words.
pub(super) fn describe_ingested(output: &IngestOutput) -> String {
    let mut lines = Vec::new();
    match output {
        IngestOutput::Committed { run, pages, notes, record, writer } => {
            let how = match writer.as_str() {
                "rules" => "of sentences that fixed rules copied; no model read them".to_owned(),
                model => format!("by {}", escape_text(model)),
            };
            lines.push(format!("{} {how}; see {record}", count_noun(pages.len() as u64, "page")));
            lines.extend(pages.iter().map(|page| format!("  {}", escape_text(page))));
            lines.extend(notes.iter().map(|note| escape_text(note)));
            lines.push(format!("take it back: steward wiki runs revert {}", run.short()));
        }
        IngestOutput::Pending { run } => {
            let run = run.short();
            lines.push(format!("it waits: steward wiki runs show {run}, then approve or reject it"));
        }
        IngestOutput::Nothing { reason } => lines.push(escape_text(reason)),
        IngestOutput::Refused { message, .. } => {
            lines.push(format!("refused: {}", escape_text(message)));
        }
    }
    lines.join("\n")
}
