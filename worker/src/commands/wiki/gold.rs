//! `steward wiki eval gold`: answers that a person found good, and how alike those of today are.
//!
//! They are kept beside the vault's notes, so no process that holds the vault is needed.

use super::eval::{describe_head, describe_rate};
use crate::cli::output::{CommandError, CommandExit, CommandOutput, escape_text};
use crate::cli::table::create_table;
use crate::config::StewardConfig;
use anyhow::{Context, bail};
use chrono::Utc;
use serde_json::json;
use steward_domain::record::plain_text::count_noun;
use steward_domain::wiki::gold::{GoldQuery, GoldReport, GoldScore};
use steward_domain::wiki::metrics::WikiMetric;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::answers::read_answers;
use steward_vault::wiki::gold::{keep_gold, read_gold, remove_gold};

/// Keeps an answer, or the last one of the wiki.
pub(super) fn keep(
    config: &StewardConfig,
    root: &VaultRoot,
    wiki: &str,
    id: Option<&str>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let answers = read_answers(root, wiki)?.into_iter().filter(|answer| id.is_none_or(|id| answer.id == id));
    let answer = answers.max_by_key(|answer| answer.at).with_context(|| match id {
        Some(id) => format!("{wiki} has no answer `{}`: answers are kept for 30 days", escape_text(id)),
        None => format!("nothing was asked in the last 30 days: `steward wiki query {wiki} <question>`"),
    })?;
    let by = steward_server::access::parse_caller_name(&config.operator)?;
    let Some(gold) = keep_gold(root, &answer, &by, Utc::now())? else {
        let question = escape_text(&answer.question);
        bail!(CommandError::Refused(format!(
            "the answer to `{question}` cites nothing, so there is nothing to compare"
        )));
    };
    out.print_value(&gold, || {
        format!(
            "{} is kept with {} and {}: {}\n`steward wiki eval run {wiki} --gold` asks it again",
            gold.id,
            count_noun(gold.topics.len() as u64, "topic"),
            count_noun(gold.citations.len() as u64, "quote"),
            escape_text(&gold.question)
        )
    })?;
    Ok(CommandExit::Ok)
}

pub(super) fn list(root: &VaultRoot, wiki: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let queries = read_gold(root, wiki)?;
    out.print_value(&queries, || {
        if queries.is_empty() {
            return format!("no answer is kept as good: `steward wiki eval gold {wiki}` keeps the last one");
        }
        let mut table = create_table(&["id", "kept", "topics", "quotes", "question"], &["topics", "question"]);
        for GoldQuery { id, question, topics, citations, at, .. } in &queries {
            let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
            table.add_row([
                escape_text(id),
                at.format("%Y-%m-%d").to_string(),
                escape_text(&topics.join(", ")),
                citations.len().to_string(),
                escape_text(question),
            ]);
        }
        table.to_string()
    })?;
    Ok(CommandExit::Ok)
}

pub(super) fn remove(root: &VaultRoot, wiki: &str, id: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let shown = escape_text(id);
    if !remove_gold(root, wiki, id)? {
        bail!("{wiki} has no gold question `{shown}`: `steward wiki eval gold {wiki} --list` shows all");
    }
    out.print_value(&json!({"removed": id}), || format!("{shown} is not asked again"))?;
    Ok(CommandExit::Ok)
}

/// What asking the gold queries again came to.
pub(super) fn describe_gold(report: &GoldReport) -> String {
    let before = report.before.map(|before| format!(", {:.0} % before", before * 100.0)).unwrap_or_default();
    let head = format!(
        "{} {}: {}{before} {}",
        report.answers.len(),
        WikiMetric::Retroactive.explain(),
        describe_rate(&report.rate()),
        report.state()
    );
    let changed = report.answers.iter().filter(|answer| answer.value() < 1.0).map(describe_score);
    let lines = [describe_head(&report.model, &report.wiki, report.at), head];
    let text: Vec<String> = lines.into_iter().chain(changed).map(|line| escape_text(&line)).collect();
    format!("{}\n{} tokens in, {} out", text.join("\n"), report.tokens.prompt_tokens, report.tokens.completion_tokens)
}

/// An answer that is not the same.
fn describe_score(score: &GoldScore) -> String {
    let lost: Vec<&str> = score.lost.iter().map(String::as_str).collect();
    let lost = if lost.is_empty() { String::new() } else { format!("; not cited any more: {}", lost.join(", ")) };
    let [all, topics, citations] = [score.value(), score.topics, score.citations].map(|share| share * 100.0);
    format!("  {} {}: {all:.0} % (topics {topics:.0} %, quotes {citations:.0} %){lost}", score.id, score.question)
}
