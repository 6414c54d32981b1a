//! `steward wiki eval`: how many claims their quotes carry, how well the verifier finds faults in copies of them, how alike the answers
//! to gold queries are, and what the pages took.
//!
//! Runs wait while a metric is broken. A person who knows of it can let them go on.

use super::gold::{self, describe_gold};
use super::{OpenedWikis, open_vault};
use crate::cli::output::{CommandExit, CommandOutput, escape_text, prompt_yes_no};
use crate::cli::table::create_table;
use crate::cli::wiki::EvalCommand;
use crate::commands::resolve::request_from_vault;
use crate::config::StewardConfig;
use anyhow::Context;
use chrono::{DateTime, Utc};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use steward_domain::record::plain_text::{count_noun, to_one_line};
use steward_domain::trust::wilson::RateEstimate;
use steward_domain::wiki::cost::WikiCost;
use steward_domain::wiki::fidelity::{EvalMethod, FidelityReport};
use steward_domain::wiki::gold::MAX_GOLD;
use steward_domain::wiki::metrics::{MetricReading, WikiMetric};
use steward_domain::wiki::pairs::ConsistencyReport;
use steward_domain::wiki::planted::PlantedReport;
use steward_server::temporal::resolve::ResolutionClient;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::cost::read_cost;
use steward_vault::wiki::evals::{EvalReport, read_evals};
use steward_vault::wiki::metrics::{MetricAcknowledgement, acknowledge_metric, read_metrics};
use steward_vault::wiki::state::find_wiki_folder;
use steward_workflows::{EvalInput, EvalOutput};

/// How long a person waits for a measurement.
const PATIENCE: Duration = Duration::from_secs(70 * 60);

/// How many claims are taken at most.
const DEFAULT_CLAIMS: u32 = 50;
const DEFAULT_PLANTED: u32 = 40;

pub(super) async fn run(vault: Option<&Path>, command: EvalCommand, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    match command {
        EvalCommand::Run { wiki, claims, planted, pairs, gold } => {
            find_wiki_folder(&root, &wiki)?;
            let (method, most, about) = match (planted, pairs) {
                _ if gold => (EvalMethod::Gold, MAX_GOLD as u32, ""),
                (true, _) => (EvalMethod::Planted, DEFAULT_PLANTED, "claims and about copies with faults"),
                (_, true) => (EvalMethod::Consistency, DEFAULT_CLAIMS, "pairs of claims"),
                _ => (EvalMethod::Fidelity, DEFAULT_CLAIMS, "claims as they stand"),
            };
            match gold {
                true => eprintln!("At most {MAX_GOLD} gold questions are asked again."),
                false => eprintln!("The verifier is asked about {about}, 12 for each call."),
            }
            let claims = claims.unwrap_or(most);
            let by = steward_server::access::parse_caller_name(&config.operator)?;
            let at = Utc::now();
            let input = EvalInput { wiki: wiki.clone(), method, claims, by: by.clone(), at, needs_room: false };
            let output = request_from_vault(&config, async |client: ResolutionClient| {
                client.request_eval(input, PATIENCE).await
            })
            .await?;
            if let EvalOutput::Refused { message, .. } = &output {
                out.print_value(&output, || format!("refused: {}", escape_text(message)))?;
                return Ok(CommandExit::Refused);
            }
            let report =
                read_evals(&root, &wiki)?.into_iter().rev().find(|report| report.find_request() == (by.as_str(), at));
            let report = report.context("the report is not kept any more")?;
            out.print_value(&report, || describe(&report))?;
        }
        EvalCommand::Ack { wiki, metric, reason } => return acknowledge(&config, &root, &wiki, metric, &reason, out),
        EvalCommand::Gold { wiki, answer, list, remove } => {
            return match remove {
                _ if list => gold::list(&root, &wiki, out),
                Some(id) => gold::remove(&root, &wiki, &id, out),
                None => gold::keep(&config, &root, &wiki, answer.as_deref(), out),
            };
        }
        EvalCommand::Report { wiki } => {
            let (reports, cost) = (read_evals(&root, &wiki)?, read_cost(&root, &wiki)?);
            out.print_value(&json!({"reports": &reports, "cost": &cost}), || {
                let shown = match reports.last() {
                    None => format!("nothing was measured on {wiki} yet: `steward wiki eval run {wiki}`"),
                    Some(_) => reports.iter().map(describe).collect::<Vec<_>>().join("\n\n"),
                };
                format!("{shown}\n\n{}", describe_cost(&cost))
            })?;
        }
    }
    Ok(CommandExit::Ok)
}

/// Lets runs go on although a metric is broken, after a person agreed in a terminal.
fn acknowledge(
    config: &StewardConfig,
    root: &VaultRoot,
    wiki: &str,
    metric: WikiMetric,
    reason: &str,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    if reason.trim().is_empty() {
        eprintln!("error: --reason needs some words");
        return Ok(CommandExit::Usage);
    }
    let readings = read_metrics(root, wiki)?;
    let reading = readings.iter().find(|reading| reading.metric == metric && reading.is_broken());
    let Some(reading) = reading else {
        eprintln!("{metric} is not broken in {wiki}, so nothing waits because of it");
        return Ok(CommandExit::Refused);
    };
    eprintln!("{}", describe_reading(reading));
    if !prompt_yes_no("Let runs go on?") {
        eprintln!("nothing was changed. Answer `y` in a terminal.");
        return Ok(CommandExit::Refused);
    }
    let by = steward_server::access::parse_caller_name(&config.operator)?;
    let line = MetricAcknowledgement { metric, at: Utc::now(), by, reason: to_one_line(reason) };
    acknowledge_metric(root, wiki, line)?;
    out.print_value(&read_metrics(root, wiki)?, || {
        format!("{metric}: what was measured so far does not count any more")
    })?;
    Ok(CommandExit::Ok)
}

/// A metric in one line.
pub(super) fn describe_reading(reading: &MetricReading) -> String {
    let held = match (reading.is_broken(), reading.metric.holds_attended()) {
        (false, _) => "",
        (true, true) => "; runs wait for you",
        (true, false) => "; runs that nobody asked for wait for you",
    };
    let MetricReading { metric, state, rate, .. } = reading;
    let counted = match metric {
        // A mean of scores counts nothing.
        WikiMetric::Retroactive => format!("{} {}:", rate.of, metric.explain()),
        _ => format!("{} of {} {},", rate.count, rate.of, metric.explain()),
    };
    format!("{metric} {state}: {counted} {}{held}", describe_rate(rate))
}

/// What the pages took, in one line.
fn describe_cost(cost: &WikiCost) -> String {
    let WikiCost { sources, tokens, question_tokens } = cost;
    let question = format!("one question to all sources as they are would take about {question_tokens}");
    if sources.is_empty() {
        return format!("cost: no ingest took tokens; {question} tokens");
    }
    format!(
        "cost: {} took {} tokens in and {} out, {} for each; {question}",
        count_noun(sources.len() as u64, "ingested source"),
        tokens.prompt_tokens,
        tokens.completion_tokens,
        cost.tokens_per_source()
    )
}

fn describe(report: &EvalReport) -> String {
    match report {
        EvalReport::Fidelity(report) => describe_fidelity(report),
        EvalReport::Consistency(report) => describe_consistency(report),
        EvalReport::Planted(report) => describe_planted(report),
        EvalReport::Gold(report) => describe_gold(report),
    }
}

/// Who measured what, and when.
pub(super) fn describe_head(model: &str, wiki: &str, at: DateTime<Utc>) -> String {
    let model = if model.is_empty() { "no verifier" } else { model };
    format!("{model} on {wiki}, {}", at.format("%Y-%m-%d %H:%M UTC"))
}

fn describe_consistency(report: &ConsistencyReport) -> String {
    let rate = report.consistency();
    let found = report.contradictions.iter().map(|it| {
        let [first, second] = &it.files;
        format!("  {} in {first} and {} in {second}: {}", it.first, it.second, it.reason)
    });
    let lines = [
        describe_head(&report.model, &report.wiki, report.at),
        format!(
            "{} of {} that are alike do not contradict each other: {} {}",
            rate.count,
            count_noun(rate.of, "pair"),
            describe_rate(&rate),
            report.state()
        ),
    ];
    let text: Vec<String> = lines.into_iter().chain(found).map(|line| escape_text(&line)).collect();
    format!("{}\n{} tokens in, {} out", text.join("\n"), report.tokens.prompt_tokens, report.tokens.completion_tokens)
}

fn describe_fidelity(report: &FidelityReport) -> String {
    let rate = report.fidelity();
    let head = describe_head(&report.model, &report.wiki, report.at);
    let refused = report.refused.iter().map(|it| format!("  {} in {}: {}", it.claim, it.file, it.reason));
    let lines = [
        head,
        format!(
            "the quotes carry {} of {}: {} {}",
            rate.count,
            count_noun(rate.of, "claim"),
            describe_rate(&rate),
            report.state()
        ),
    ];
    let text: Vec<String> = lines.into_iter().chain(refused).map(|line| escape_text(&line)).collect();
    format!("{}\n{} tokens in, {} out", text.join("\n"), report.tokens.prompt_tokens, report.tokens.completion_tokens)
}

fn describe_planted(report: &PlantedReport) -> String {
    let mut table = create_table(&["fault", "planted", "found", "share found, 95 %"], &["fault"]);
    for score in &report.faults {
        let share = describe_rate(&RateEstimate::new(score.found, score.planted));
        table.add_row([
            score.fault.to_string().replace('_', " "),
            score.planted.to_string(),
            score.found.to_string(),
            share,
        ]);
    }
    let (recall, alarms) = (report.recall(), report.false_alarms());
    format!(
        "{}\n{table}\nfound {} of {} faults: {}\nrefused {} of {} as they stand: {}\n{} tokens in, {} out",
        escape_text(&describe_head(&report.model, &report.wiki, report.at)),
        recall.count,
        recall.of,
        describe_rate(&recall),
        alarms.count,
        count_noun(alarms.of, "claim"),
        describe_rate(&alarms),
        report.tokens.prompt_tokens,
        report.tokens.completion_tokens,
    )
}

pub(super) fn describe_rate(rate: &RateEstimate) -> String {
    match rate.share {
        Some(share) => format!("{:.0} % ({:.0} to {:.0} %)", share * 100.0, rate.low * 100.0, rate.high * 100.0),
        None => "nothing was counted".to_owned(),
    }
}
