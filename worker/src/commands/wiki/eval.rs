//! `steward wiki eval`: how well the verifier finds faults, measured on the claims of a wiki.
//!
//! It is a report: nothing opens or closes by it.

use super::{OpenedWikis, open_vault};
use crate::cli::output::{CommandExit, CommandOutput, create_table, escape_text};
use crate::cli::wiki::EvalCommand;
use crate::commands::resolve::request_from_vault;
use anyhow::Context;
use chrono::Utc;
use std::path::Path;
use std::time::Duration;
use steward_domain::record::plain_text::count_noun;
use steward_domain::trust::wilson::RateEstimate;
use steward_domain::wiki::planted::PlantedReport;
use steward_server::temporal::resolve::ResolutionClient;
use steward_vault::wiki::evals::read_evals;
use steward_vault::wiki::state::find_wiki_folder;
use steward_workflows::{EvalInput, EvalOutput};

/// How long a person waits for a measurement.
const PATIENCE: Duration = Duration::from_secs(70 * 60);

pub(super) async fn run(vault: Option<&Path>, command: EvalCommand, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    match command {
        EvalCommand::Run { wiki, claims, planted: _ } => {
            find_wiki_folder(&root, &wiki)?;
            eprintln!("The verifier is asked about claims and about copies with faults, 12 for each call.");
            let by = steward_server::access::parse_caller_name(&config.operator)?;
            let at = Utc::now();
            let input = EvalInput { wiki: wiki.clone(), claims, by: by.clone(), at };
            let output = request_from_vault(&config, async |client: ResolutionClient| {
                client.request_eval(input, PATIENCE).await
            })
            .await?;
            if let EvalOutput::Refused { message, .. } = &output {
                out.print_value(&output, || format!("refused: {}", escape_text(message)))?;
                return Ok(CommandExit::Refused);
            }
            let report = read_evals(&root, &wiki)?.into_iter().rev().find(|report| report.by == by && report.at == at);
            let report = report.context("the report is not kept any more")?;
            out.print_value(&report, || describe(&report))?;
        }
        EvalCommand::Report { wiki } => {
            let reports = read_evals(&root, &wiki)?;
            out.print_value(&reports, || match reports.last() {
                None => format!("no verifier was measured on {wiki} yet: `steward wiki eval run {wiki} --planted`"),
                Some(_) => reports.iter().map(describe).collect::<Vec<_>>().join("\n\n"),
            })?;
        }
    }
    Ok(CommandExit::Ok)
}

fn describe(report: &PlantedReport) -> String {
    let mut table = create_table(&["fault", "planted", "found", "share found, 95 %"]);
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
        "{} on {}, {}\n{table}\nfound {} of {} faults: {}\nrefused {} of {} as they stand: {}\n{} tokens in, {} out",
        escape_text(&report.model),
        report.wiki,
        report.at.format("%Y-%m-%d %H:%M UTC"),
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

fn describe_rate(rate: &RateEstimate) -> String {
    match rate.share {
        Some(share) => format!("{:.0} % ({:.0} to {:.0} %)", share * 100.0, rate.low * 100.0, rate.high * 100.0),
        None => "nothing was counted".to_owned(),
    }
}
