//! Stages the pages of a source: by fixed rules at once, or as a model has written them.
//!
//! Nothing of the wiki is changed here. A run that nobody but its writer has checked waits for a person.

use super::assistant::stage_changes;
use super::{CONFLICT, STOPPED, read_files, refuse, reject};
use chrono::Utc;
use std::collections::BTreeMap;
use std::sync::Arc;
use steward_domain::action::plan::ContentHash;
use steward_domain::gates::mode::Mode;
use steward_domain::time::format_millis;
use steward_domain::wiki::effects::list_effects;
use steward_domain::wiki::gates::{RunCause, RunDisposition, RunGates, UNVERIFIED, WikiSettings};
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
    let refuse = |message| StageIngestOutput::Refused { status: CONFLICT, message };
    wiki.check_accepted(name).err().map(refuse)
}

/// Begins a run, or goes on with it. One that has ended is refused.
fn begin_run(
    writer: &VaultWriter,
    runs: &StagedRuns,
    meta: &RunMeta,
) -> Result<Result<StagedRun, StageIngestOutput>, WikiRunError> {
    let is_on_record = |meta: &RunMeta| writer.has_end_record(meta);
    if let Err(error) = writer.record_ended_runs().and_then(|_| runs.remove_old(Utc::now(), is_on_record)) {
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
            (true, _) if disposition.reasons.iter().any(|reason| reason == UNVERIFIED) => String::new(),
            (true, _) => format!("; {UNVERIFIED}"),
            (false, true) => ", and a model checked every claim".to_owned(),
            (false, false) => String::new(),
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

/// How a run that waits was made again.
pub(super) enum RestagedRun {
    /// It does the same. Its hash.
    Same(ContentHash),
    /// It does something else, and waits for a person again.
    Changed,
    /// Only a new run can do it.
    Impossible,
    /// It cannot be made now, and waits as before.
    Refused { status: u16, message: String },
}

/// Makes the pages of a run that waits again, because pages of the wiki changed meanwhile. It keeps waiting, whatever comes of it.
pub(super) fn stage_again(writer: &VaultWriter, run: &RunId) -> Result<RestagedRun, WikiRunError> {
    let root = writer.root();
    let run = StagedRuns::new(root).open(run)?;
    let waits = run.read_status()?.is_some_and(|status| status.waits);
    let may_stage = run.meta.source.is_some() || run.meta.is_by_assistant();
    let Some((plan, files)) = run.read_staged()?.filter(|_| waits && may_stage) else {
        return Ok(RestagedRun::Impossible);
    };
    let seen = (list_effects(&files), plan.ideas, plan.relations);
    let is_same = |run: &StagedRun| -> Result<Option<ContentHash>, WikiRunError> {
        let same = run.read_staged()?.filter(|(plan, files)| {
            (&list_effects(files), &plan.ideas, &plan.relations) == (&seen.0, &seen.1, &seen.2)
        });
        Ok(same.map(|(plan, _)| plan.hash()))
    };
    let wiki = read_wiki(root, &run.meta.wiki, &run.meta.folder)?;
    if run.meta.is_by_rules() {
        // Fixed rules see more pages by now. What the person saw may be done all the same.
        let only = files.iter().map(|file| file.path.file().to_owned()).collect();
        stage_by_rules(root, &wiki, &run, Some(&only))?;
        if let Some(hash) = is_same(&run)? {
            return Ok(RestagedRun::Same(hash));
        }
    }
    let (run, wiki) = match try_stage_pages(root, wiki, run) {
        Ok(Some(staged)) => *staged,
        Ok(None) => return Ok(RestagedRun::Impossible),
        Err(e) => {
            let (status, message) = refuse(e)?;
            return Ok(RestagedRun::Refused { status, message });
        }
    };
    if let Some(hash) = is_same(&run)? {
        return Ok(RestagedRun::Same(hash));
    }
    match leave_to_person(writer, &wiki, &run, "; its pages changed, so it was made again")? {
        Some((status, message)) => Ok(RestagedRun::Refused { status, message }),
        None => Ok(RestagedRun::Changed),
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

/// Stages the pages of a run, by fixed rules or as a model has written them. A refusal ends the run.
fn stage_pages(writer: &VaultWriter, wiki: ReadWiki, run: StagedRun) -> Result<StagedPages, WikiRunError> {
    let (root, name) = (writer.root(), run.meta.run.clone());
    match try_stage_pages(root, wiki, run) {
        Ok(Some(staged)) => Ok(StagedPages::Staged(staged)),
        Ok(None) => Ok(StagedPages::Writing),
        Err(e) => {
            let (status, message) = reject(writer, &StagedRuns::new(root).open(&name)?, e)?;
            Ok(StagedPages::Refused { status, message })
        }
    }
}

/// Stages the pages of a run; `None` if its model has not ended. The run is free again if it fails.
fn try_stage_pages(
    root: &VaultRoot,
    wiki: ReadWiki,
    run: StagedRun,
) -> Result<Option<Box<(StagedRun, ReadWiki)>>, WikiRunError> {
    if run.meta.is_by_rules() {
        stage_by_rules(root, &wiki, &run, None)?;
        return Ok(Some(Box::new((run, wiki))));
    }
    if run.meta.is_by_assistant() {
        return stage_changes(root, wiki, run).map(|staged| Some(Box::new(staged)));
    }
    let mut session = WriterSession::open(root, wiki, run)?;
    match session.advance()? {
        SessionStep::Done => {
            session.stage()?;
            Ok(Some(Box::new(session.into_run())))
        }
        SessionStep::Send { .. } | SessionStep::Failed(_) => Ok(None),
    }
}
