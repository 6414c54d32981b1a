//! Stages the pages of a source: by fixed rules at once, or as a model has written them.
//!
//! Nothing of the wiki is changed here. A run that nobody but its writer has checked waits for a person.

use super::{CONFLICT, STOPPED, read_files, reject};
use chrono::Utc;
use std::collections::BTreeMap;
use std::sync::Arc;
use steward_domain::action::plan::ContentHash;
use steward_domain::gates::mode::Mode;
use steward_domain::time::format_millis;
use steward_domain::wiki::effects::list_claim_effects;
use steward_domain::wiki::gates::{RunCause, RunDisposition, RunGates, WikiSettings};
use steward_domain::wiki::run::{RunId, WikiMode, WikiRunType};
use steward_domain::wiki::verifier::VerifierStep;
use steward_domain::wiki::verify::Verdict;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop;
use steward_vault::wiki::check::VerifierSession;
use steward_vault::wiki::ingest::{judge_run, stage_by_rules};
use steward_vault::wiki::metrics::list_broken_metrics;
use steward_vault::wiki::pending::note_tried;
use steward_vault::wiki::request::WikiRunError;
use steward_vault::wiki::runs::find_run_records;
use steward_vault::wiki::staged::{RULES_WRITER, RunMeta, RunState, StagedRun, StagedRunError, StagedRuns};
use steward_vault::wiki::state::{ReadWiki, ReadWikiError, find_wiki_folder, read_wiki};
use steward_vault::wiki::verdicts::log_rules_verdict;
use steward_vault::wiki::write::{SessionStep, WriterSession};
use steward_workflows::{IngestInput, StageIngestOutput};

/// Stages a source, and says whether the run waits for a person.
pub(super) fn stage_source(
    writer: &VaultWriter,
    input: &IngestInput,
    settings: &StageSettings,
) -> Result<StageIngestOutput, WikiRunError> {
    let root = writer.root();
    if input.unverified && !settings.allows_unverified {
        let message = "--no-verify needs STEWARD_WIKI_ALLOW_UNVERIFIED=true".to_owned();
        return Ok(StageIngestOutput::Refused { status: CONFLICT, message });
    }
    let settings = &StageSettings { has_verifier: settings.has_verifier && !input.unverified, ..settings.clone() };
    let folder = find_wiki_folder(root, &input.wiki)?;
    let runs = StagedRuns::new(root);
    let at = format_millis(input.at);
    let name = RunId::derive(input.at, &["ingest", &input.wiki, &input.source.content_hash, &at]);
    let begun = find_begun(&runs, &name)?;
    if let Some(held) = check_stop(root, begun.as_ref()) {
        return Ok(held);
    }
    let wiki = read_wiki(root, &input.wiki, &folder)?;
    if let Some(refusal) = check_accepted(&wiki, &input.wiki) {
        return Ok(refusal);
    }
    if wiki.state.manifest.find_text(&["sources", "signing"]) == Some("required") {
        let message = "the manifest wants signed sources (`signing: required`), and signatures are not checked here: set `optional`";
        return Ok(StageIngestOutput::Refused { status: CONFLICT, message: message.to_owned() });
    }
    let writer_name = begun.map(|meta| meta.writer).or_else(|| settings.model.clone());
    let meta = RunMeta {
        run: name,
        wiki: input.wiki.clone(),
        folder,
        run_type: WikiRunType::Ingest,
        by: input.by.clone(),
        began: input.at,
        source: Some(input.source.clone()),
        answer: None,
        review: None,
        writer: writer_name.unwrap_or_else(|| RULES_WRITER.to_owned()),
        limits: input.limits,
        unattended: input.unattended,
    };
    // A repeat after a crash finds its own run committed.
    if wiki.contents.is_ingested(&input.source)
        && find_run_records(root, meta.run.as_str()).map_err(ReadWikiError::from)?.is_empty()
    {
        return Ok(StageIngestOutput::Nothing { reason: "it was ingested before".to_owned() });
    }
    if let Some(waiting) = find_waiting(&runs, &meta)? {
        let reason = format!("the run {waiting} of it waits: approve or reject that one first");
        return Ok(StageIngestOutput::Nothing { reason });
    }
    let run = match begin_run(writer, &runs, &meta)? {
        Ok(run) => run,
        Err(refusal) => return Ok(refusal),
    };
    if let Some(source) = meta.source.as_ref().filter(|_| meta.unattended) {
        note_tried(root, &meta.wiki, &source.path, meta.began)?;
    }
    let (run, wiki) = match stage_pages(writer, wiki, run)? {
        StagedPages::Staged(staged) => *staged,
        StagedPages::Writing => return Ok(StageIngestOutput::Writing { run: meta.run }),
        StagedPages::Refused { status, message } => return Ok(StageIngestOutput::Refused { status, message }),
    };
    finish_staging(writer, &wiki, run, settings, input.draft)
}

/// Another run of the same source that waits for a person.
fn find_waiting(runs: &StagedRuns, meta: &RunMeta) -> Result<Option<RunId>, WikiRunError> {
    let mut others = runs.list()?.into_iter().filter(|other| other.meta.run != meta.run && other.status.waits);
    let waiting = others.find(|other| other.meta.wiki == meta.wiki && other.meta.source == meta.source);
    Ok(waiting.map(|other| other.meta.run))
}

/// What is known of a run that was begun. It goes on with the writer that it was begun with.
pub(super) fn find_begun(runs: &StagedRuns, name: &RunId) -> Result<Option<RunMeta>, WikiRunError> {
    match runs.open(name) {
        Ok(run) => Ok(Some(run.meta.clone())),
        Err(StagedRunError::Unknown(_)) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// What a stop does to a run: one that a model has begun waits, and any other is refused.
pub(super) fn check_stop(root: &VaultRoot, begun: Option<&RunMeta>) -> Option<StageIngestOutput> {
    let refused = || StageIngestOutput::Refused { status: CONFLICT, message: STOPPED.to_owned() };
    let held = begun.filter(|meta| !meta.is_by_rules()).map_or_else(refused, |_| StageIngestOutput::Stopped);
    stop::is_stopped(root).then_some(held)
}

/// The refusal of a wiki that nobody has accepted.
pub(super) fn check_accepted(wiki: &ReadWiki, name: &str) -> Option<StageIngestOutput> {
    let fix = format!("read its KNOWLEDGE.md and AGENTS.md, then run `steward wiki validate {name} --accept`");
    let message = format!("nobody has accepted the wiki `{name}`: {fix}");
    wiki.accepted.is_none().then_some(StageIngestOutput::Refused { status: CONFLICT, message })
}

/// Begins a run, or goes on with it. One that has ended is refused.
fn begin_run(
    writer: &VaultWriter,
    runs: &StagedRuns,
    meta: &RunMeta,
) -> Result<Result<StagedRun, StageIngestOutput>, WikiRunError> {
    // What is removed must be on record.
    if let Err(error) = writer.record_ended_runs().and_then(|_| runs.remove_old(Utc::now())) {
        tracing::warn!(%error, "old staged runs were not removed");
    }
    let run = runs.begin(meta)?;
    if let Some(status) = run.read_status()?.filter(|it| matches!(it.state, RunState::Rejected | RunState::Abandoned)) {
        let message = format!("the run is {}: {}", status.state, status.reason);
        return Ok(Err(StageIngestOutput::Refused { status: CONFLICT, message }));
    }
    run.set_status(RunState::Pending, Utc::now(), "it is being written")?;
    Ok(Ok(run))
}

/// Begins a run as [`begin_run`] does. A repeat after a crash finds its own run committed.
pub(super) fn begin_once(
    writer: &VaultWriter,
    runs: &StagedRuns,
    meta: &RunMeta,
) -> Result<Result<StagedRun, StageIngestOutput>, WikiRunError> {
    let begun = begin_run(writer, runs, meta)?;
    let is_committed = !find_run_records(writer.root(), meta.run.as_str()).map_err(ReadWikiError::from)?.is_empty();
    let committed = || StageIngestOutput::Staged { run: meta.run.clone(), waits: false };
    Ok(begun.and_then(|run| if is_committed { Err(committed()) } else { Ok(run) }))
}

/// Ends a run that is refused, and says so.
pub(super) fn refuse_run(
    writer: &VaultWriter,
    run: &StagedRun,
    error: WikiRunError,
) -> Result<StageIngestOutput, WikiRunError> {
    let (status, message) = reject(writer, run, error)?;
    Ok(StageIngestOutput::Refused { status, message })
}

/// Decides what comes after a run is staged: a check by a model, a person, or the commit.
pub(super) fn finish_staging(
    writer: &VaultWriter,
    wiki: &ReadWiki,
    run: StagedRun,
    settings: &StageSettings,
    is_draft: bool,
) -> Result<StageIngestOutput, WikiRunError> {
    let (root, meta) = (writer.root(), run.meta.clone());
    let (run, is_verified) = match check_pages(root, wiki, run, settings)? {
        CheckedPages::Checked { run, is_verified } => (*run, is_verified),
        CheckedPages::Verifying => return Ok(StageIngestOutput::Verifying { run: meta.run }),
    };
    let is_unverified = !meta.is_by_rules() && !is_verified;
    let disposition = settings.decide(root, wiki, &meta, is_draft, is_unverified)?;
    let waits = disposition.mode != WikiMode::Live;
    if waits {
        let checked = match (is_unverified, is_verified) {
            (true, _) => "; unverified: no second model checked it",
            (false, true) => ", and a model checked every claim",
            (false, false) => "",
        };
        let shown = if disposition.mode == WikiMode::Shadow { "; in shadow" } else { "" };
        let checked = format!("{checked}{shown}; {}", disposition.reasons.join("; "));
        if let Some((status, message)) = leave_to_person(writer, wiki, &run, &checked)? {
            return Ok(StageIngestOutput::Refused { status, message });
        }
    }
    Ok(StageIngestOutput::Staged { run: meta.run, waits })
}

/// Leaves a run to a person, if the rules find no fault. Returns the refusal if they do.
fn leave_to_person(
    writer: &VaultWriter,
    wiki: &ReadWiki,
    run: &StagedRun,
    checked: &str,
) -> Result<Option<(u16, String)>, WikiRunError> {
    let verdict = judge_run(writer.root(), wiki, &run.meta, &read_files(run)?)?;
    log_rules_verdict(writer.root(), &run.meta, &verdict);
    run.write_verdict(&verdict)?;
    if verdict.verdict != Verdict::Commit {
        return reject(writer, run, WikiRunError::Verdict(Box::new(verdict))).map(Some);
    }
    let reason = format!("it waits for a person; the rules found no fault{checked}");
    run.leave_to_person(Utc::now(), &reason)?;
    Ok(None)
}

/// What decides how a source is staged.
#[derive(Clone)]
pub(super) struct StageSettings {
    /// What happens to runs that a person asked for.
    pub(super) mode: WikiMode,
    /// How far runs go that nobody asked for.
    pub(super) live_mode: Mode,
    pub(super) wikis: Arc<BTreeMap<String, WikiSettings>>,
    /// The model that writes; `None` for fixed rules.
    pub(super) model: Option<String>,
    /// Whether pages that no second model checked may be committed without a person.
    pub(super) allows_unverified: bool,
    /// Whether a model checks what another one wrote.
    pub(super) has_verifier: bool,
}

impl StageSettings {
    /// Whether a run that was staged to be committed at once may still be: a mode or a metric may have changed since.
    pub(super) fn still_commits(&self, root: &VaultRoot, meta: &RunMeta) -> Result<bool, ReadWikiError> {
        let broken = list_broken_metrics(root, &meta.wiki)?;
        let gates = RunGates::new(self.find_cause(meta), &broken);
        Ok(gates.decide().mode == WikiMode::Live)
    }

    fn find_cause(&self, meta: &RunMeta) -> RunCause {
        let auto_ingest = || self.wikis.get(&meta.wiki).copied().unwrap_or_default().auto_ingest;
        match meta.unattended {
            true => RunCause::Unattended(auto_ingest(), self.live_mode),
            false => RunCause::Attended(self.mode),
        }
    }

    /// Decides what happens to a run that passed.
    pub(super) fn decide(
        &self,
        root: &VaultRoot,
        wiki: &ReadWiki,
        meta: &RunMeta,
        is_draft: bool,
        is_unverified: bool,
    ) -> Result<RunDisposition, ReadWikiError> {
        let broken = list_broken_metrics(root, &meta.wiki)?;
        let gates = RunGates {
            is_draft,
            is_deferred: wiki.state.manifest.find_text(&["curation", "conflictResolution"]) == Some("defer"),
            is_unverified: is_unverified && !self.allows_unverified,
            ..RunGates::new(self.find_cause(meta), &broken)
        };
        Ok(gates.decide())
    }
}

/// Whether the pages of a run were checked by a model.
enum CheckedPages {
    Checked {
        run: Box<StagedRun>,
        is_verified: bool,
    },
    /// A model has not checked all claims, or has found something.
    Verifying,
}

fn check_pages(
    root: &VaultRoot,
    wiki: &ReadWiki,
    run: StagedRun,
    settings: &StageSettings,
) -> Result<CheckedPages, WikiRunError> {
    if run.meta.is_by_rules() || !settings.has_verifier {
        return Ok(CheckedPages::Checked { run: Box::new(run), is_verified: false });
    }
    let session = VerifierSession::open(root, wiki, run)?;
    match session.find_next_step() {
        VerifierStep::Passed => Ok(CheckedPages::Checked { run: Box::new(session.into_run()), is_verified: true }),
        VerifierStep::Send { .. } | VerifierStep::Found(_) | VerifierStep::Spent => Ok(CheckedPages::Verifying),
    }
}

/// What staging a run again came to.
pub(super) enum StagedAgain {
    /// It does the same to every claim. Its hash.
    Same(ContentHash),
    /// It does something else, and waits for a person again.
    Changed,
    /// Only a new run can do it.
    Impossible,
    Refused {
        status: u16,
        message: String,
    },
}

/// Makes the pages of a run that waits again, because pages of the wiki changed meanwhile.
pub(super) fn stage_again(writer: &VaultWriter, run: &RunId) -> Result<StagedAgain, WikiRunError> {
    let root = writer.root();
    let run = StagedRuns::new(root).open(run)?;
    if run.meta.source.is_none() {
        return Ok(StagedAgain::Impossible);
    }
    let seen = list_claim_effects(&read_files(&run)?);
    let wiki = read_wiki(root, &run.meta.wiki, &run.meta.folder)?;
    if run.meta.is_by_rules() {
        // Fixed rules see more pages by now. What the person saw may be done all the same.
        let only = read_files(&run)?.iter().map(|file| file.path.file().to_owned()).collect();
        stage_by_rules(root, &wiki, &run, Some(&only))?;
        if let Some((plan, _)) = run.read_staged()?.filter(|(_, files)| list_claim_effects(files) == seen) {
            return Ok(StagedAgain::Same(plan.hash()));
        }
    }
    let (run, wiki) = match stage_pages(writer, wiki, run)? {
        StagedPages::Staged(staged) => *staged,
        StagedPages::Writing => return Ok(StagedAgain::Impossible),
        StagedPages::Refused { status, message } => return Ok(StagedAgain::Refused { status, message }),
    };
    match run.read_staged()? {
        Some((plan, files)) if list_claim_effects(&files) == seen => Ok(StagedAgain::Same(plan.hash())),
        _ => match leave_to_person(writer, &wiki, &run, "; its pages changed, so it was made again")? {
            Some((status, message)) => Ok(StagedAgain::Refused { status, message }),
            None => Ok(StagedAgain::Changed),
        },
    }
}

/// What staging the pages of a run came to.
enum StagedPages {
    Staged(Box<(StagedRun, ReadWiki)>),
    /// The model has not ended.
    Writing,
    Refused {
        status: u16,
        message: String,
    },
}

/// Stages the pages of a run, by fixed rules or as a model has written them.
fn stage_pages(writer: &VaultWriter, wiki: ReadWiki, run: StagedRun) -> Result<StagedPages, WikiRunError> {
    let root = writer.root();
    let refuse =
        |run: &StagedRun, e| reject(writer, run, e).map(|(status, message)| StagedPages::Refused { status, message });
    if run.meta.is_by_rules() {
        return match stage_by_rules(root, &wiki, &run, None) {
            Ok(()) => Ok(StagedPages::Staged(Box::new((run, wiki)))),
            Err(e) => refuse(&run, e),
        };
    }
    let (meta, runs) = (run.meta.clone(), StagedRuns::new(root));
    let opened = WriterSession::open(root, wiki, run);
    let mut session = match opened {
        Ok(session) => session,
        // The session had the run, which is free again.
        Err(e) => return refuse(&runs.open(&meta.run)?, e),
    };
    match session
        .advance()
        .and_then(|step| if matches!(step, SessionStep::Done) { session.stage().map(|()| step) } else { Ok(step) })
    {
        Ok(SessionStep::Done) => Ok(StagedPages::Staged(Box::new(session.into_run()))),
        Ok(SessionStep::Send { .. } | SessionStep::Failed(_)) => Ok(StagedPages::Writing),
        Err(e) => refuse(session.run(), e),
    }
}
