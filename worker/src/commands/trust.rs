//! `steward trust report|backtest|raise`: how right the steward is, how sure that is, and what may be set because of it.
//!
//! The report reads the index, so it works with and without a worker, and changes nothing. It also walks the chain of
//! records as the index knows them: numbers from records that somebody changed must not be told as if nothing had
//! happened. What is counted and what it supports is [`steward_domain::trust`]'s; here are the words, the page and the
//! names of the settings.

mod backtest;
mod page;
mod settings;
mod text;

use super::ReadOnlyVault;
use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text, print_progress};
use crate::config::StewardConfig;
use anyhow::Context;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use settings::RecommendedSettings;
use std::fmt::Display;
use std::path::Path;
use steward_domain::action::plan::ActionId;
use steward_domain::gates::mode::Mode;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::mark::TrustSubject;
use steward_domain::trust::report::{TrustReport, TrustReportPass};
use steward_vault::action::chain::{self, ChainVerification};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{ActionLookup, Index};

/// From so many records on it is said that they are walked.
const MANY: u64 = 20_000;

/// The report, and what only the configuration and the vault can add to it.
#[derive(Serialize)]
struct TrustReportDocument {
    told_at: DateTime<Utc>,
    /// Whether the records are whole from which all this is told.
    chain: ChainVerification,
    #[serde(flatten)]
    report: TrustReport,
    /// What to set, if anything is supported.
    settings: Option<RecommendedSettings>,
    lowered: Vec<TrustReportDemotion>,
}

/// What was undone too often and waits for a human to raise it.
#[derive(Serialize)]
struct TrustReportDemotion {
    /// A source's key, a class, or all strangers.
    subject: TrustSubject,
    /// As the newest record names a source, where that says more than its key. Untrusted.
    name: Option<String>,
    mode: Mode,
    since: DateTime<Utc>,
    action: Option<ActionId>,
    record: Option<RecordPath>,
    /// What takes it back up.
    command: String,
}

pub(crate) async fn run(
    config: &StewardConfig,
    what: cli::TrustCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    match what {
        cli::TrustCommand::Raise(raise) => crate::commands::resolve::restore_subject(config, raise, out).await,
        cli::TrustCommand::Backtest(ask) => backtest::run(config, &ask, out).await,
        cli::TrustCommand::Report { html } => run_report(config, html.as_deref(), out).await,
    }
}

async fn run_report(config: &StewardConfig, html: Option<&Path>, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let told = build_report(config, Utc::now()).await?;
    let exit = if told.chain.faults.is_empty() { CommandExit::Ok } else { CommandExit::Faults };
    let Some(file) = html else {
        out.print_value(&told, || text::describe_trust_report(&told))?;
        return Ok(exit);
    };
    std::fs::write(file, page::render_page(&told)?).with_context(|| format!("failed to write {}", file.display()))?;
    out.print_value(&json!({"page": file}), || format!("{} holds the report", file.display()))?;
    Ok(exit)
}

/// The chain as the index knows it; one that cannot be read is broken too.
async fn read_known_chain(look: &ReadOnlyVault) -> ChainVerification {
    look.index.verify_indexed_chain(&look.root).await.unwrap_or_else(|e| report_unreadable_chain(&e))
}

fn report_unreadable_chain(error: &dyn Display) -> ChainVerification {
    ChainVerification { faults: vec![error.to_string()], ..ChainVerification::default() }
}

/// Walks the chain in the files themselves.
fn verify_chain(root: &VaultRoot) -> ChainVerification {
    if let Ok(head) = chain::read_head(root)
        && head.seq > MANY
    {
        print_progress("records verified", 0, usize::try_from(head.seq).unwrap_or(usize::MAX));
    }
    chain::verify_chain(root).unwrap_or_else(|e| report_unreadable_chain(&e))
}

/// What is wrong with the chain, in a sentence; `None` if nothing is known to be.
fn describe_broken_chain(chain: &ChainVerification) -> Option<String> {
    let first = chain.faults.first()?;
    let more = match chain.faults.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(format!(
        "the chain of audit records is broken: {}{more}; `steward audit verify` lists all",
        escape_text(first)
    ))
}

async fn build_report(config: &StewardConfig, now: DateTime<Utc>) -> anyhow::Result<TrustReportDocument> {
    let look = super::open_read_only(config).await?;
    let chain = read_known_chain(&look).await;
    let mut reporting = TrustReportPass::new(&config.policy, now);
    look.index.for_each_case(now, |case| reporting.add_case(case)).await?;
    let report = reporting.into_report(config.reversal_budget);
    let files = look.index.list_instinct_files().await?;
    let settings = report.choice.as_ref().map(|choice| RecommendedSettings::from_choice(choice, config, &files));
    Ok(TrustReportDocument {
        told_at: now,
        chain,
        report,
        settings,
        lowered: list_report_demotions(&look.index).await?,
    })
}

async fn list_report_demotions(index: &Index) -> anyhow::Result<Vec<TrustReportDemotion>> {
    let mut lowered = Vec::new();
    for (subject, cap) in index.read_mode_caps().await? {
        let Some(mode) = cap.mode else { continue };
        let action = index.find_last_demotion(&subject).await?;
        let record = match &action {
            Some(id) => match index.find_action(id.as_str()).await? {
                ActionLookup::One(path) => Some(path),
                ActionLookup::None | ActionLookup::Many(_) => None,
            },
            None => None,
        };
        let command = format!("steward trust raise {subject}");
        let name = index.find_subject_name(&subject).await?;
        lowered.push(TrustReportDemotion { subject, name, mode, since: cap.since, action, record, command });
    }
    Ok(lowered)
}
