//! Stages the page of an answer that is kept.
//!
//! It is judged as any other page. An archive whose text does not rest on quotes alone waits for a person.

use super::stage::{StageSettings, begin_once, check_accepted, check_stop, find_begun, finish_staging, refuse_run};
use super::{NOT_FOUND, UNPROCESSABLE};
use steward_domain::time::format_millis;
use steward_domain::wiki::query::FiledKind;
use steward_domain::wiki::run::{RunId, WikiRunType};
use steward_domain::wiki::writer::budget::RunLimits;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::answers::{read_answers, stage_answer_page};
use steward_vault::wiki::request::WikiRunError;
use steward_vault::wiki::runs::list_runs;
use steward_vault::wiki::staged::{RULES_WRITER, RunMeta, StagedRuns};
use steward_vault::wiki::state::{ReadWikiError, find_wiki_folder, read_wiki};
use steward_workflows::{FileAnswerInput, StageIngestOutput};

/// Stages the page of an answer, and says whether the run waits for a person.
pub(super) fn stage_filed_answer(
    writer: &VaultWriter,
    input: &FileAnswerInput,
    settings: &StageSettings,
) -> Result<StageIngestOutput, WikiRunError> {
    let root = writer.root();
    let folder = find_wiki_folder(root, &input.wiki)?;
    let runs = StagedRuns::new(root);
    let (at, kind) = (format_millis(input.at), input.kind.to_string());
    let name = RunId::derive(input.at, &["file-back", &input.wiki, &input.answer, &kind, &at]);
    if let Some(held) = check_stop(root, find_begun(&runs, &name)?.as_ref()) {
        return Ok(held);
    }
    let refuse = |status, message: &str| Ok(StageIngestOutput::Refused { status, message: message.to_owned() });
    let Some(answer) = read_answers(root, &input.wiki)?.into_iter().find(|answer| answer.id == input.answer) else {
        return refuse(NOT_FOUND, "there is no such answer: answers are kept for 30 days");
    };
    let is_by_rules = answer.clerk.is_none();
    if is_by_rules && answer.citations.is_empty() {
        return refuse(UNPROCESSABLE, "the wiki did not answer this question, so there is nothing to keep");
    }
    let wiki = read_wiki(root, &input.wiki, &folder)?;
    if let Some(refusal) = check_accepted(&wiki, &input.wiki) {
        return Ok(refusal);
    }
    let meta = RunMeta {
        run: name,
        wiki: input.wiki.clone(),
        folder,
        run_type: WikiRunType::Archive,
        by: input.by.clone(),
        began: input.at,
        source: None,
        answer: Some(answer.id.clone()),
        review: None,
        writer: if is_by_rules { RULES_WRITER.to_owned() } else { answer.writer.clone() },
        limits: RunLimits::default(),
        unattended: false,
    };
    if let Some(page) = find_kept_page(root, &input.wiki, &answer.id)?.filter(|page| *page != meta.run) {
        let reason = format!("the answer is kept already by the run {page}");
        return Ok(StageIngestOutput::Nothing { reason });
    }
    let run = match begin_once(writer, &runs, &meta)? {
        Ok(run) => run,
        Err(ended) => return Ok(ended),
    };
    match stage_answer_page(root, &wiki, &run, &answer, input.kind) {
        Ok(is_anchored) => {
            let is_archive = input.kind == FiledKind::Archive || answer.citations.is_empty();
            let is_draft = is_archive && !is_by_rules && !is_anchored;
            match finish_staging(writer, &wiki, run, settings, is_draft) {
                Ok(output) => Ok(output),
                // The session had the run, which is free again.
                Err(e) => refuse_run(writer, &runs.open(&meta.run)?, e),
            }
        }
        Err(e) => refuse_run(writer, &run, e),
    }
}

/// The run that keeps an answer already, if it was not taken back.
fn find_kept_page(root: &VaultRoot, wiki: &str, answer: &str) -> Result<Option<RunId>, WikiRunError> {
    let staged = StagedRuns::new(root).list()?.into_iter();
    let keeping: Vec<RunId> =
        staged.filter(|run| run.meta.answer.as_deref() == Some(answer)).map(|run| run.meta.run).collect();
    if keeping.is_empty() {
        return Ok(None);
    }
    let committed = list_runs(root, Some(wiki)).map_err(ReadWikiError::from)?;
    let kept = committed.into_iter().find(|run| keeping.contains(&run.run) && run.reverted_by.is_none());
    Ok(kept.map(|run| run.run))
}
