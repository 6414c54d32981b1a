//! `steward wiki query` and `steward wiki save`: a question to a wiki, and the page of its answer.
//!
//! The process that holds the vault answers and keeps the answer. The command reads it from where it is kept.

use super::ingest::{describe_ingested, find_patience, has_model};
use super::{OpenedWikis, open_vault};
use crate::cli::output::{CommandError, CommandExit, CommandOutput, escape_text};
use crate::commands::resolve::request_from_vault;
use anyhow::{Context, bail};
use chrono::Utc;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use steward_domain::record::plain_text::count_noun;
use steward_domain::wiki::query::{Citation, FiledKind, MAX_QUESTION, NO_PAGE, WikiAnswer, number_marks};
use steward_server::temporal::resolve::ResolutionClient;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::answers::read_answers;
use steward_vault::wiki::create::list_wikis;
use steward_vault::wiki::state::find_wiki_folder;
use steward_workflows::{FileAnswerInput, IngestOutput, QueryInput, QueryOutput};

/// How long a person waits for an answer: three calls of 4 minutes, and the waits between them.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

pub(super) async fn ask(
    vault: Option<&Path>,
    wiki: &str,
    question: &str,
    save: bool,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    find_wiki_folder(&root, wiki)?;
    let length = question.chars().count();
    if length > MAX_QUESTION {
        bail!(CommandError::Usage(format!(
            "a question has at most {MAX_QUESTION} characters, and this one has {length}"
        )));
    }
    let by = steward_server::access::parse_caller_name(&config.operator)?;
    let (filed_by, patience) = (by.clone(), find_patience(&config));
    if has_model(&config) {
        eprintln!("A model reads the pages and answers, which may take a minute.");
    }
    let input = QueryInput { wiki: wiki.to_owned(), question: question.to_owned(), by, at: Utc::now() };
    let (output, filed) = request_from_vault(&config, async |client: ResolutionClient| {
        let output = client.request_answer(input, PATIENCE).await?;
        let filed = match &output {
            QueryOutput::Answered { answer } if save => {
                let (wiki, answer, by) = (wiki.to_owned(), answer.clone(), filed_by);
                let input = FileAnswerInput { wiki, answer, kind: FiledKind::Archive, by, at: Utc::now() };
                Some(client.request_filing(input, patience).await?)
            }
            QueryOutput::Answered { .. } | QueryOutput::Refused { .. } => None,
        };
        Ok((output, filed))
    })
    .await?;
    let answer = match &output {
        QueryOutput::Refused { message, .. } => {
            out.print_value(&output, || format!("refused: {}", escape_text(message)))?;
            return Ok(CommandExit::Refused);
        }
        QueryOutput::Answered { answer: id } => {
            let found = read_answers(&root, wiki)?.into_iter().find(|answer| answer.id == *id);
            found.with_context(|| format!("the answer {id} is not kept any more"))?
        }
    };
    out.print_value(&json!({"answer": &answer, "filed": &filed}), || {
        let kept = filed.as_ref().map(describe_ingested).or_else(|| suggest_saving(&answer));
        format!("{}{}", describe(&answer), kept.map(|kept| format!("\n{kept}")).unwrap_or_default())
    })?;
    Ok(find_exit(filed.as_ref()))
}

pub(super) async fn save(
    vault: Option<&Path>,
    answer: Option<&str>,
    kind: &str,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    let WikiAnswer { id, wiki, .. } = find_answer(&root, answer)?;
    let by = steward_server::access::parse_caller_name(&config.operator)?;
    let input = FileAnswerInput { wiki, answer: id, kind: kind.parse()?, by, at: Utc::now() };
    let patience = find_patience(&config);
    let output =
        request_from_vault(&config, async |client: ResolutionClient| client.request_filing(input, patience).await)
            .await?;
    out.print_value(&output, || describe_ingested(&output))?;
    Ok(find_exit(Some(&output)))
}

/// The answer with this id, or the last one of all wikis.
fn find_answer(root: &VaultRoot, id: Option<&str>) -> anyhow::Result<WikiAnswer> {
    let mut answers = Vec::new();
    for (wiki, _) in list_wikis(root)? {
        answers.extend(read_answers(root, &wiki)?);
    }
    answers.retain(|answer| id.is_none_or(|id| answer.id == id));
    match (answers.into_iter().max_by_key(|answer| answer.at), id) {
        (Some(answer), _) => Ok(answer),
        (None, Some(id)) => bail!("there is no answer `{}`: answers are kept for 30 days", escape_text(id)),
        (None, None) => bail!("nothing was asked in the last 30 days: `steward wiki query <wiki> <question>`"),
    }
}

fn find_exit(filed: Option<&IngestOutput>) -> CommandExit {
    match filed {
        Some(IngestOutput::Refused { .. }) => CommandExit::Refused,
        Some(_) | None => CommandExit::Ok,
    }
}

fn suggest_saving(answer: &WikiAnswer) -> Option<String> {
    let is_worth_it = !answer.citations.is_empty();
    is_worth_it.then(|| format!("`steward wiki save {}` keeps the answer as a page of the wiki", answer.id))
}

fn describe(answer: &WikiAnswer) -> String {
    let text: Vec<String> = number_marks(&answer.text, &answer.citations).lines().map(escape_text).collect();
    let mut parts = vec![text.join("\n")];
    let cited: Vec<String> =
        answer.citations.iter().enumerate().map(|(at, cited)| describe_citation(at, cited)).collect();
    if !cited.is_empty() {
        parts.push(cited.join("\n"));
    }
    if !answer.unknown.is_empty() {
        let unknown = escape_text(&answer.unknown.join(", "));
        parts.push(format!("Taken out, because the pages do not have it: {unknown}"));
    }
    if !answer.sources.is_empty() {
        let sources = escape_text(&answer.sources.join(", "));
        parts.push(format!("These sources hold the words of the question, and are not cited: {sources}"));
    }
    if answer.text == NO_PAGE && answer.clerk.is_none() {
        let hint = "Pages are found by the very words of the question: try those of your documents.";
        parts.push(hint.to_owned());
    }
    if !answer.pages.is_empty() && answer.text != NO_PAGE {
        let by = match answer.writer.as_str() {
            "rules" => "By fixed rules".to_owned(),
            model => format!("By {}", escape_text(model)),
        };
        parts.push(format!(
            "{by}, from {}: {}",
            count_noun(answer.pages.len() as u64, "page"),
            escape_text(&answer.pages.join(", "))
        ));
    }
    parts.join("\n\n")
}

fn describe_citation(at: usize, citation: &Citation) -> String {
    let Citation { page, anchor, is_disputed, fault, superseded_by } = citation;
    let [page, source, quote] = [page, &anchor.source, &anchor.quote].map(|text| escape_text(text));
    let disputed = if *is_disputed { ", disputed" } else { "" };
    let state =
        fault.as_ref().map_or_else(String::new, |fault| format!("\n      NOT VERIFIED: {}", escape_text(fault)));
    let replaced = superseded_by.as_ref().map(|by| format!(", replaced by {}", escape_text(by))).unwrap_or_default();
    format!("  [{}] {source}: \"{quote}\"\n      {page}#{}{disputed}{replaced}{state}", at + 1, anchor.label)
}
