//! Stages the page of a review.
//!
//! Code writes it, and the rules judge it as any other page. Nothing of the wiki is changed here.

use super::NOT_FOUND;
use super::eval::name_eval;
use super::stage::{StageSettings, begin_once, check_accepted, finish_staging, refuse_run};
use steward_domain::time::format_millis;
use steward_domain::wiki::run::{RunId, WikiRunType};
use steward_domain::wiki::writer::budget::RunLimits;
use steward_vault::action::writer::VaultWriter;
use steward_vault::gates::stop;
use steward_vault::wiki::request::WikiRunError;
use steward_vault::wiki::reviews::{read_reviews, stage_review_page};
use steward_vault::wiki::staged::{FiledReview, RULES_WRITER, RunMeta, StagedRuns};
use steward_vault::wiki::state::{find_wiki_folder, read_wiki};
use steward_workflows::{EvalInput, StageIngestOutput};

/// Stages the page of a review, and says whether the run waits for a person.
pub(super) fn stage_review(
    writer: &VaultWriter,
    input: &EvalInput,
    settings: &StageSettings,
) -> Result<StageIngestOutput, WikiRunError> {
    let root = writer.root();
    let folder = find_wiki_folder(root, &input.wiki)?;
    let runs = StagedRuns::new(root);
    let id = name_eval(input);
    let name = RunId::derive(input.at, &["review", &input.wiki, &id, &format_millis(input.at)]);
    // The calls are paid for, so it waits.
    if stop::is_stopped(root) {
        return Ok(StageIngestOutput::Stopped);
    }
    let Some(review) = read_reviews(root, &input.wiki)?.into_iter().find(|review| review.id == id) else {
        let message = "there is no such review".to_owned();
        return Ok(StageIngestOutput::Refused { status: NOT_FOUND, message });
    };
    let wiki = read_wiki(root, &input.wiki, &folder)?;
    if let Some(refusal) = check_accepted(&wiki, &input.wiki) {
        return Ok(refusal);
    }
    let meta = RunMeta {
        run: name,
        wiki: input.wiki.clone(),
        folder,
        run_type: WikiRunType::Lint,
        by: input.by.clone(),
        began: input.at,
        source: None,
        answer: None,
        review: Some(FiledReview { id, model: review.model.clone() }),
        // Code writes the page, and the words of the model stand in it as plain text.
        writer: RULES_WRITER.to_owned(),
        limits: RunLimits::default(),
        unattended: false,
    };
    let run = match begin_once(writer, &runs, &meta)? {
        Ok(run) => run,
        Err(ended) => return Ok(ended),
    };
    match stage_review_page(root, &wiki, &run, &review) {
        Ok(()) => finish_staging(writer, &wiki, run, settings, false),
        Err(e) => refuse_run(writer, &run, e),
    }
}
