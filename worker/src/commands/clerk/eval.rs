//! `steward clerk eval`: asks the clerk labelled cases, and shows how well it judges.
//!
//! The fixed rules answer in this process, because they ask nobody. A model is asked by the process that holds the vault, case by case,
//! while this command says that it waits. What was answered is kept, so the same command goes on where it ended.

use super::cases::choose_cases;
use super::text::describe_report;
use crate::cli::clerk::EvalArgs;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::commands::resolve::request_from_vault;
use crate::config::StewardConfig;
use crate::runtime::clerks::create_clerk;
use chrono::Utc;
use serde::Serialize;
use std::io::Write;
use std::time::Duration;
use steward_activities::steward::clerks::Clerk;
use steward_activities::steward::clerks::remote::KeyHealth;
use steward_activities::steward::clerks::rules;
use steward_activities::steward::eval::answer_by_rules;
use steward_domain::steward::eval::cases::EvalCase;
use steward_domain::steward::eval::report::{CaseAnswer, EvalReport, TokenPrices};
use steward_domain::trust::report::advice::EvidenceBar;
use steward_server::temporal::resolve::ResolutionClient;
use steward_vault::files::root::VaultRoot;
use steward_vault::steward::eval::ClerkEval;
use steward_workflows::{ClerkEvalInput, ClerkEvalOutput};

/// How long the command waits for all cases: a day.
const PATIENCE: Duration = Duration::from_secs(86_400);
/// How often it says that it waits, and shows how far the measurement has come.
const INTERVAL: Duration = Duration::from_secs(2);

/// What the command prints with `--json`.
#[derive(Serialize)]
struct EvalResult {
    /// The provider and the model.
    clerk: String,
    #[serde(flatten)]
    report: EvalReport,
    /// Why not all cases were answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
}

pub(super) async fn run(config: &StewardConfig, args: &EvalArgs, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let cases = choose_cases(config, args).await?;
    let clerk = create_clerk(config, KeyHealth::default())?;
    let (name, answers, ended) = match &clerk {
        Clerk::Rules(_) => (format!("{}/{}", rules::PROVIDER, rules::MODEL), answer_by_rules(&cases), None),
        Clerk::Remote(_) => {
            let name = clerk.describe_model().unwrap_or_default();
            let (answers, ended) = ask_model(config, args, &clerk.identify(), &cases).await?;
            (name, answers, ended)
        }
    };
    let prices = config.clerk_prices.map(|(prompt, completion)| TokenPrices { prompt, completion });
    let bar = EvidenceBar::from_budget(config.reversal_budget);
    let report = EvalReport::new(&cases, &answers, bar, prices);
    let is_complete = report.answered == report.cases;
    let result = EvalResult { clerk: name, report, ended };
    out.print_value(&result, || {
        let mut text = describe_report(&result.clerk, &result.report, bar);
        if let Some(ended) = &result.ended {
            text.push_str(&format!(
                "\n\nEnded before all cases were answered: {}. The same command goes on.",
                escape_text(ended)
            ));
        }
        text
    })?;
    Ok(if is_complete { CommandExit::Ok } else { CommandExit::Incomplete })
}

/// Has a model asked what it has not answered yet.
async fn ask_model(
    config: &StewardConfig,
    args: &EvalArgs,
    clerk: &str,
    cases: &[EvalCase],
) -> anyhow::Result<(Vec<CaseAnswer>, Option<String>)> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    let eval = ClerkEval::begin(&root, clerk, cases)?;
    if args.again {
        eval.forget_answers()?;
    }
    let known = eval.read_answers()?;
    if known.len() >= cases.len() {
        eprintln!("All cases were answered before ({}); --again asks them anew.", cases.len());
        return Ok((known, None));
    }
    eval.note_waiter(Utc::now())?;
    let input = ClerkEvalInput { eval: eval.id().to_owned() };
    let asking =
        request_from_vault(config, async |client: ResolutionClient| client.request_clerk_eval(input, PATIENCE).await);
    let outcome = tokio::select! {
        outcome = asking => Some(outcome),
        // Showing it never ends by itself.
        never = show_progress(&eval, cases.len()) => match never {},
        _ = tokio::signal::ctrl_c() => None,
    };
    eval.end_wait();
    finish_progress();
    let ended = match outcome.transpose()? {
        Some(ClerkEvalOutput::Measured) => None,
        Some(ClerkEvalOutput::Ended { reason }) => Some(reason),
        None => Some("you asked for it".to_owned()),
    };
    Ok((eval.read_answers()?, ended))
}

/// Says every few seconds that somebody waits, and how far it has come.
async fn show_progress(eval: &ClerkEval, of: usize) -> std::convert::Infallible {
    loop {
        if let Err(e) = eval.note_waiter(Utc::now()) {
            tracing::warn!("the measurement may end: {e}");
        }
        let done = eval.read_answers().map_or(0, |answers| answers.len());
        // A closed output is no failure of ours.
        let _ = write!(std::io::stderr(), "\r{done} of {of} cases answered …");
        let _ = std::io::stderr().flush();
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Ends the line of the progress.
fn finish_progress() {
    let _ = writeln!(std::io::stderr());
}
