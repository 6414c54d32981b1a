//! `steward wiki review` and `steward wiki lint --deep`: a model reads pages and says what is wrong with them or missing.
//!
//! A review becomes a page of the wiki. The deep lint only adds to what the lint finds.

use super::ingest::describe_ingested;
use super::{OpenedWikis, VaultWiki, open_vault};
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::commands::resolve::request_from_vault;
use crate::config::{ClerkChoice, StewardConfig};
use anyhow::Context;
use chrono::{DateTime, Utc};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use steward_domain::record::plain_text::count_noun;
use steward_domain::wiki::fidelity::EvalMethod;
use steward_domain::wiki::finding::WikiFinding;
use steward_domain::wiki::review::{EMPTY_WIKI, REVIEW_PAGES, ReviewFinding, WikiReview};
use steward_server::temporal::resolve::ResolutionClient;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::reviews::read_reviews;
use steward_vault::wiki::state::find_wiki_folder;
use steward_workflows::{EvalInput, EvalOutput, IngestOutput};

/// How long a person waits for a review.
const PATIENCE: Duration = Duration::from_secs(70 * 60);

/// The request for a review of at most so many pages.
fn describe_request(config: &StewardConfig, wiki: &str, pages: u32) -> anyhow::Result<EvalInput> {
    let by = steward_server::access::parse_caller_name(&config.operator)?;
    Ok(EvalInput {
        wiki: wiki.to_owned(),
        method: EvalMethod::Review,
        claims: pages,
        by,
        at: Utc::now(),
        needs_room: false,
    })
}

/// Says that it may take a while, if there is a verifier.
fn announce_reading(config: &StewardConfig) {
    if *config.wiki_verifier.as_ref().unwrap_or(&config.clerk) != ClerkChoice::Rules {
        eprintln!("A model reads the pages, which may take some minutes.");
    }
}

/// The review that was asked for at a moment.
fn find_review(root: &VaultRoot, wiki: &str, at: DateTime<Utc>) -> anyhow::Result<WikiReview> {
    let asked = read_reviews(root, wiki)?.into_iter().find(|review| review.at == at);
    asked.context("the review is not kept any more")
}

pub(super) async fn run(
    vault: Option<&Path>,
    wiki: &str,
    pages: Option<u32>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    find_wiki_folder(&root, wiki)?;
    let input = describe_request(&config, wiki, pages.unwrap_or(REVIEW_PAGES as u32))?;
    let since = input.at;
    announce_reading(&config);
    let output =
        request_from_vault(&config, async |client: ResolutionClient| client.request_review(input, PATIENCE).await)
            .await?;
    let refusal = match &output {
        IngestOutput::Refused { message, .. } => Some(message),
        _ => None,
    };
    if refusal.is_some_and(|message| message == EMPTY_WIKI) {
        out.print_value(&output, || EMPTY_WIKI.to_owned())?;
        return Ok(CommandExit::Ok);
    }
    // It may be one that somebody else asked for before, and that was under way.
    let own = find_review(&root, wiki, since);
    let review = match (own, refusal) {
        (Ok(review), _) => review,
        (Err(_), None) => read_reviews(&root, wiki)?.pop().context("the review is not kept any more")?,
        (Err(_), Some(message)) => {
            out.print_value(&output, || format!("refused: {}", escape_text(message)))?;
            return Ok(CommandExit::Refused);
        }
    };
    out.print_value(&json!({"review": &review, "filed": &output}), || {
        format!("{}\n{}", describe(&review), describe_filed(&output))
    })?;
    Ok(if refusal.is_some() { CommandExit::Refused } else { CommandExit::Ok })
}

fn describe_filed(output: &IngestOutput) -> String {
    match output {
        IngestOutput::Committed { run, pages, .. } => {
            format!("kept as {}; take it back: steward wiki runs revert {}", pages.join(", "), run.short())
        }
        output => describe_ingested(output),
    }
}

fn describe(review: &WikiReview) -> String {
    let mut lines = vec![format!(
        "{} read {}: {}, {}",
        review.model,
        count_noun(review.pages.len() as u64, "page"),
        count_noun(review.contradictions.len() as u64, "contradiction"),
        count_noun(review.findings.len() as u64, "other finding")
    )];
    for found in &review.contradictions {
        let [first, second] = &found.files;
        lines.push(format!(
            "  contradiction: {} in {first} and {} in {second}: {}",
            found.first, found.second, found.reason
        ));
    }
    lines.extend(review.findings.iter().map(|finding| match finding {
        ReviewFinding::StaleClaim { claim, reason } => format!("  stale: {claim}: {reason}"),
        ReviewFinding::MissingPage { title, reason } => format!("  no page: {title}: {reason}"),
        ReviewFinding::MissingLink { from, to } => format!("  no link: {from} to {to}"),
        ReviewFinding::Gap { gap, search } => format!("  gap: {gap} (search for: {search})"),
    }));
    lines.iter().map(|line| escape_text(line)).collect::<Vec<_>>().join("\n")
}

/// What a model finds wrong with pages, as findings of a lint. The error is why it was not asked.
pub(super) async fn find_deep(vault: &VaultWiki) -> anyhow::Result<Result<Vec<WikiFinding>, String>> {
    let input = describe_request(&vault.config, &vault.name, REVIEW_PAGES as u32)?;
    let since = input.at;
    announce_reading(&vault.config);
    let output =
        request_from_vault(&vault.config, async |client: ResolutionClient| client.request_eval(input, PATIENCE).await)
            .await?;
    match output {
        EvalOutput::Measured => Ok(Ok(find_review(&vault.root, &vault.name, since)?.list_as_findings())),
        EvalOutput::Refused { message, .. } if message == EMPTY_WIKI => Ok(Ok(Vec::new())),
        EvalOutput::Refused { message, .. } => Ok(Err(message)),
    }
}
