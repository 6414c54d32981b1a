//! Opens runs for their callers, and says why a change was refused.
//!
//! A run is its caller's alone: for anybody else it is not there. Calls of one run follow each other.

use crate::mcp::error::{CONFLICT, REASON, ToolError, ToolErrorCode, refuse_request, shorten_outside, show_reason};
use crate::mcp::tool::ToolCall;
use crate::mcp::workspace::Workspace;
use chrono::Utc;
use std::time::{Duration, Instant};
use steward_domain::wiki::SOURCES_FOLDER;
use steward_domain::wiki::registry::to_source_file;
use steward_domain::wiki::run::{RunId, RunSource, WikiRunType};
use steward_domain::wiki::writer::refusal::DraftFault;
use steward_vault::wiki::guardian::{GuardianError, GuardianSession, NewGuardianRun, is_under_way};
use steward_vault::wiki::pending::{FoundSource, find_registered};
use steward_vault::wiki::request::WikiRunError;
use steward_vault::wiki::staged::{RunMeta, StagedRunError, StagedRuns};
use steward_vault::wiki::state::{ReadWiki, find_wiki_folder, read_wiki_to_stage};
use steward_workflows::{WikiRequest, WikiRunInput, WikiRunOutput};
use tokio::runtime::Handle;

/// How long a call waits for another one of the same run.
const BUSY_PATIENCE: Duration = Duration::from_secs(30);
/// How often it looks.
const BUSY_INTERVAL: Duration = Duration::from_millis(20);
/// How often a withdrawal is requested again while a check holds the run.
const WITHDRAWAL_INTERVAL: Duration = Duration::from_secs(2);

/// The run that a call means, or begins.
#[derive(Clone, Copy, Debug)]
pub(in crate::mcp::wiki) struct RunChoice<'a> {
    pub(in crate::mcp::wiki) run: Option<&'a str>,
    pub(in crate::mcp::wiki) run_type: Option<WikiRunType>,
    pub(in crate::mcp::wiki) source: Option<&'a str>,
}

/// Opens the run of a call. Returns whether it is a new one.
///
/// # Errors
/// The run is not the caller's, or is closed, or the wiki cannot be used.
pub(in crate::mcp::wiki) fn open_run(
    call: &ToolCall,
    workspace: &Workspace<'_>,
    choice: &RunChoice<'_>,
) -> Result<(GuardianSession, bool), ToolError> {
    let root = workspace.vault.root();
    let read = || -> Result<(String, ReadWiki), ToolError> {
        let folder = find_wiki_folder(root, &workspace.name).map_err(ToolError::internal)?;
        let wiki = read_wiki_to_stage(root, &workspace.name, &folder).map_err(ToolError::internal)?;
        Ok((folder, wiki))
    };
    if let Some(name) = choice.run {
        if choice.run_type.is_some() || choice.source.is_some() {
            let what = "`run_type` and `source` belong to the first call of a run";
            return Err(ToolError::new(ToolErrorCode::BadArguments, what, "Leave them out, or leave out `run_id`"));
        }
        let run = find_own_run(call, workspace, name)?;
        let began = Instant::now();
        loop {
            let (_, wiki) = read()?;
            match GuardianSession::open(root, wiki, &run, &call.caller.name, Utc::now()) {
                Ok(session) => return Ok((session, false)),
                Err(GuardianError::Staged(StagedRunError::Busy(_))) if began.elapsed() < BUSY_PATIENCE => {
                    std::thread::sleep(BUSY_INTERVAL);
                }
                Err(error) => return Err(refuse_change(error)),
            }
        }
    }
    let (folder, mut wiki) = read()?;
    let source = match choice.source {
        Some(name) if needs_registration(&wiki, name) => {
            register_source(call, workspace, name)?;
            (_, wiki) = read()?;
            Some(find_source(&wiki, name)?)
        }
        Some(name) => Some(find_source(&wiki, name)?),
        None => None,
    };
    let run_type = choice.run_type.unwrap_or(if source.is_some() { WikiRunType::Ingest } else { WikiRunType::Manual });
    check_source(run_type, source.as_ref(), &wiki)?;
    let run = NewGuardianRun {
        wiki: &workspace.name,
        folder: &folder,
        run_type,
        by: &call.caller.name,
        at: Utc::now(),
        source: source.as_ref(),
    };
    let mut nonce = [0_u8; 8];
    getrandom::fill(&mut nonce).map_err(ToolError::internal)?;
    let meta = run.describe(&u64::from_le_bytes(nonce).to_string());
    let session = GuardianSession::begin(root, wiki, &meta).map_err(refuse_change)?;
    Ok((session, true))
}

/// The file that a name means, or the name itself.
fn to_source_path(name: &str) -> String {
    to_source_file(name.trim_start_matches('/'))
}

/// Whether a name is the path of a document that lies there and is no source yet.
fn needs_registration(wiki: &ReadWiki, name: &str) -> bool {
    let path = to_source_path(name);
    let is_file = path.starts_with(SOURCES_FOLDER) && wiki.contents.files.contains(&path);
    is_file && find_registered(&wiki.contents, &path).is_none()
}

/// Has a document registered that a person put into the folder of sources. The process that holds the vault does that.
fn register_source(call: &ToolCall, workspace: &Workspace<'_>, name: &str) -> Result<(), ToolError> {
    let input = WikiRunInput {
        wiki: workspace.name.clone(),
        by: call.caller.name.clone(),
        at: Utc::now(),
        request: WikiRequest::AddSource { path: to_source_path(name), upload: None },
    };
    let holder = Handle::current().block_on(workspace.vault.reach_holder())?;
    match Handle::current().block_on(holder.request_wiki_run(input)) {
        Ok(WikiRunOutput::Done { .. }) => Ok(()),
        Ok(WikiRunOutput::Refused { message, .. }) => {
            let what = "the document was not added to the sources";
            Err(ToolError::new(ToolErrorCode::Refused, what, "`steward wiki lint` says more")
                .with_outside(REASON, &message))
        }
        Err(e) => {
            let what = show_reason(&e.to_string());
            Err(ToolError::new(ToolErrorCode::EngineAway, what, "Start it with `steward up`, then try again"))
        }
    }
}

/// The source that a call names, by its id or its path.
fn find_source(wiki: &ReadWiki, name: &str) -> Result<RunSource, ToolError> {
    match find_registered(&wiki.contents, &to_source_path(name)) {
        Some(FoundSource::Registered(source)) => Ok(source),
        Some(FoundSource::Unregistered(_)) | None => {
            let what = format!("there is no source `{}`", shorten_outside(name));
            let fix = "`sources` lists them; a person puts documents into the folder sources/ of the wiki";
            Err(ToolError::new(ToolErrorCode::SourceMissing, what, fix))
        }
    }
}

/// Checks that the type of a run fits its source.
fn check_source(run_type: WikiRunType, source: Option<&RunSource>, wiki: &ReadWiki) -> Result<(), ToolError> {
    let refuse = |what: &str, fix: &str| Err(ToolError::new(ToolErrorCode::BadArguments, what, fix));
    match (run_type, source) {
        (WikiRunType::Ingest, None) => {
            refuse("an ingest names its `source`", "Give the document, or use run_type manual")
        }
        (WikiRunType::Ingest, Some(source)) if wiki.contents.is_ingested(source) => refuse(
            "this source was ingested before",
            "Use run_type manual without `source`; footnotes name their sources",
        ),
        (WikiRunType::Ingest, Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => refuse("only an ingest has a `source`", "Leave it out: footnotes name their sources"),
    }
}

/// The caller's run with this name.
fn find_own_run(call: &ToolCall, workspace: &Workspace<'_>, name: &str) -> Result<RunId, ToolError> {
    let staged = StagedRuns::new(workspace.vault.root()).list_named(name).map_err(ToolError::internal)?;
    let is_own = |meta: &RunMeta| meta.is_by_assistant() && meta.by == call.caller.name && meta.wiki == workspace.name;
    let found: Vec<RunId> = staged.into_iter().filter(|it| is_own(&it.meta)).map(|it| it.meta.run).collect();
    match found.as_slice() {
        [run] => Ok(run.clone()),
        [] => Err(refuse_unknown(name)),
        found => Err(refuse_ambiguous(name, found)),
    }
}

/// Several runs have this name.
pub(in crate::mcp::wiki) fn refuse_ambiguous(name: &str, runs: &[RunId]) -> ToolError {
    let ids = runs.iter().map(RunId::as_str).collect::<Vec<_>>().join(", ");
    let what = format!("several runs end in `{}`: {ids}", shorten_outside(name));
    ToolError::new(ToolErrorCode::RunAmbiguous, what, "Give the whole id")
}

fn refuse_unknown(name: &str) -> ToolError {
    let what = format!("you have no run `{}` in this workspace", shorten_outside(name));
    ToolError::new(
        ToolErrorCode::RunUnknown,
        what,
        "`history(mine=true)` lists yours; a call without `run_id` begins one",
    )
}

/// Gives up a run of the caller, and returns its id. The process that holds the vault ends one that was submitted.
///
/// # Errors
/// As [`open_run`]; [`ToolErrorCode::RunClosed`] for a run that was committed or has ended.
pub(in crate::mcp::wiki) fn abandon_run(
    call: &ToolCall,
    workspace: &Workspace<'_>,
    name: &str,
    reason: &str,
) -> Result<String, ToolError> {
    let run = find_own_run(call, workspace, name)?;
    if is_submitted_run(workspace, &run)? && withdraw_run(call, workspace, &run, reason)? {
        return Ok(run.to_string());
    }
    let choice = RunChoice { run: Some(run.as_str()), run_type: None, source: None };
    let (session, _) = open_run(call, workspace, &choice)?;
    let reason = format!("its assistant gave it up: {}", show_reason(reason));
    session.end_open(Utc::now(), &reason).map_err(ToolError::internal)?;
    Ok(session.run().meta.run.to_string())
}

/// Whether a run was submitted and has not ended.
fn is_submitted_run(workspace: &Workspace<'_>, run: &RunId) -> Result<bool, ToolError> {
    let staged = StagedRuns::new(workspace.vault.root()).peek(run).map_err(ToolError::internal)?;
    is_under_way(&staged).map_err(ToolError::internal)
}

/// Has a submitted run ended before it is committed; `false` if it has ended or is open again meanwhile. A check that is under way holds
/// the run, so it is waited for.
fn withdraw_run(call: &ToolCall, workspace: &Workspace<'_>, run: &RunId, reason: &str) -> Result<bool, ToolError> {
    let holder = Handle::current().block_on(workspace.vault.reach_holder())?;
    let began = Instant::now();
    loop {
        let input = WikiRunInput {
            wiki: workspace.name.clone(),
            by: call.caller.name.clone(),
            at: Utc::now(),
            request: WikiRequest::Reject { run: run.clone(), reason: Some(reason.to_owned()) },
        };
        let output = Handle::current().block_on(holder.request_wiki_run(input)).map_err(|e| refuse_request(&e))?;
        let WikiRunOutput::Refused { status, message } = output else { return Ok(true) };
        if !is_submitted_run(workspace, run)? {
            return Ok(false);
        }
        // Only a check that is under way will be over soon.
        if status != CONFLICT || began.elapsed() >= BUSY_PATIENCE {
            let what = format!("the run {} is not given up yet", run.short());
            return Err(ToolError::new(ToolErrorCode::WorkspaceBusy, what, "Try again in a minute")
                .with_outside(REASON, &message));
        }
        std::thread::sleep(WITHDRAWAL_INTERVAL);
    }
}

/// Removes a run that was just begun and of which nothing is staged: nobody was told its name.
///
/// # Errors
/// Its folder cannot be removed.
pub(in crate::mcp::wiki) fn discard_empty_run(session: GuardianSession) -> Result<(), ToolError> {
    session.discard().map_err(ToolError::internal)
}

/// Why a change was not staged.
pub(in crate::mcp::wiki) fn refuse_change(error: GuardianError) -> ToolError {
    let show = |text: &str| show_reason(text.strip_prefix("error: ").unwrap_or(text));
    match error {
        GuardianError::Draft(refusal) => {
            let fix = describe_fix(refusal.fault);
            let error = ToolError::new(ToolErrorCode::Draft(refusal.fault), show(&refusal.text), fix);
            match &refusal.outside {
                Some(outside) => error.with_outside(outside.name, &outside.words),
                None => error,
            }
        }
        GuardianError::Unknown(run) => refuse_unknown(&run),
        GuardianError::Closed { run, reason } => {
            let fix = "`history` shows its state; a call without `run_id` begins another run";
            ToolError::new(ToolErrorCode::RunClosed, format!("the run {run} takes no changes"), fix)
                .with_outside(REASON, &reason)
        }
        GuardianError::Incomplete(what) => {
            ToolError::new(ToolErrorCode::RunIncomplete, show(&what), "Stage what is missing, or name what is staged")
        }
        linked @ GuardianError::Link { .. } => {
            let fix = "A person can put the file or the folder itself in its place";
            ToolError::new(ToolErrorCode::IsALink, show(&linked.to_string()), fix)
        }
        stale @ GuardianError::StaleBase { .. } => {
            ToolError::new(ToolErrorCode::StaleBase, show(&stale.to_string()), "Read the page again")
        }
        stale @ GuardianError::Stale { .. } => {
            let fix = "Give the run up by delete(path=\"runs/<id>\"), read the page again, and begin anew";
            ToolError::new(ToolErrorCode::StaleBase, show(&stale.to_string()), fix)
        }
        GuardianError::Staged(busy @ StagedRunError::Busy(_)) => {
            ToolError::new(ToolErrorCode::WorkspaceBusy, show(&busy.to_string()), "Try again in a moment")
        }
        GuardianError::Staged(error) => ToolError::internal(error),
        GuardianError::Run(WikiRunError::Refused(reason)) => {
            let (code, what) = match reason.split(':').next() {
                Some("source_drifted" | "source_mutated") => {
                    (ToolErrorCode::SourceDrifted, "a source is not as it was registered")
                }
                Some("source_missing") => (ToolErrorCode::SourceMissing, "a source is not registered, or not there"),
                _ => (ToolErrorCode::Refused, "the wiki does not allow it"),
            };
            ToolError::new(code, what, "`steward wiki lint` says more").with_outside(REASON, &reason)
        }
        GuardianError::Run(error) => ToolError::internal(error),
    }
}

/// What to do about a refused change.
fn describe_fix(fault: DraftFault) -> &'static str {
    match fault {
        DraftFault::QuoteNotFound => "Copy the quote from the document, word for word; `grep` finds it",
        DraftFault::QuoteMissing | DraftFault::NoCitation | DraftFault::ClaimUnanchored => {
            "End the statement in a mark, and add `[^1]: <source> — \"its words\"` with 8 to 400 characters"
        }
        DraftFault::StatementTooLong => "Divide it into statements of at most 280 characters, each with its mark",
        DraftFault::NoMatch | DraftFault::ManyMatches => {
            "Give text that stands on the page exactly once, as `read` shows it"
        }
        DraftFault::KindUnknown | DraftFault::FolderTooDeep => {
            "Use a kind of this wiki and its folder; `list` shows pages"
        }
        DraftFault::TemplateMissing => "Begin with a frontmatter that holds `title` and `kind`",
        DraftFault::DropsClaims | DraftFault::PersonWroteThis => {
            "Keep what stands there; add beside it, or set both sides into a `::: disputed` block"
        }
        DraftFault::QuotaReached => "Submit this run, and begin another one",
        DraftFault::NameCollides => "Change that page instead, or choose another name",
        DraftFault::ArchiveImmutable | DraftFault::ProtectedFile => "Write another page",
        DraftFault::NotFound => "`list` shows all paths",
        DraftFault::BadArguments | DraftFault::RulesFault => "Correct it, and call again",
    }
}
