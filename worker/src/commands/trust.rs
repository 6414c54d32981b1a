//! `steward trust report|backtest|raise`: how often the steward is right, and which settings that supports.
//!
//! The report reads the index, so it works with and without a worker. It must not change anything. It also verifies the
//! chain of audit records as the index knows it, because numbers from changed records need a warning.
//! [`steward_domain::trust`] counts the cases and decides what they support. This module holds the texts, the page and
//! the names of the settings.

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
use steward_domain::trust::report::headline::describe_headline;
use steward_domain::trust::report::{TrustReport, TrustReportPass};
use steward_vault::action::chain::{self, ChainVerification};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{ActionLookup, Index};

/// From this many records on, the command says that it verifies them: the walk takes seconds.
const MANY: u64 = 20_000;

/// The report with what only the configuration and the vault can add.
#[derive(Serialize)]
struct TrustReportDocument {
    told_at: DateTime<Utc>,
    /// What a decision maker can do now, in a sentence or two. It may hold the names of sources.
    headline: String,
    /// The verification of the records that the report counts.
    chain: ChainVerification,
    #[serde(flatten)]
    report: TrustReport,
    /// The recommended settings; `None` if the cases support none.
    settings: Option<RecommendedSettings>,
    lowered: Vec<TrustReportDemotion>,
}

/// A source or class that was demoted after too many undos and waits for a human to restore it.
#[derive(Serialize)]
struct TrustReportDemotion {
    /// A source's key, a class, or all unknown sources.
    subject: TrustSubject,
    /// The source's name in the newest record, if it says more than the key. Untrusted.
    name: Option<String>,
    mode: Mode,
    since: DateTime<Utc>,
    action: Option<ActionId>,
    record: Option<RecordPath>,
    /// The command that restores it.
    command: String,
}

pub(crate) async fn run(
    config: &StewardConfig,
    command: cli::TrustCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    match command {
        cli::TrustCommand::Raise(args) => crate::commands::resolve::restore_subject(config, args, out).await,
        cli::TrustCommand::Backtest(args) => backtest::run(config, &args, out).await,
        cli::TrustCommand::Report { html } => run_report(config, html.as_deref(), out).await,
    }
}

async fn run_report(config: &StewardConfig, html: Option<&Path>, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let document = build_report(config, Utc::now()).await?;
    let exit = if document.chain.faults.is_empty() { CommandExit::Ok } else { CommandExit::Faults };
    let Some(file) = html else {
        out.print_value(&document, || text::describe_trust_report(&document))?;
        return Ok(exit);
    };
    std::fs::write(file, page::render_page(&document)?)
        .with_context(|| format!("failed to write {}", file.display()))?;
    out.print_value(&json!({"page": file}), || format!("wrote the report to {}", file.display()))?;
    Ok(exit)
}

/// Verifies the chain as the index knows it. A chain that cannot be read counts as broken.
async fn read_known_chain(vault: &ReadOnlyVault) -> ChainVerification {
    vault.index.actions().verify_indexed_chain(&vault.root).await.unwrap_or_else(|e| report_unreadable_chain(&e))
}

fn report_unreadable_chain(error: &dyn Display) -> ChainVerification {
    ChainVerification { faults: vec![error.to_string()], ..ChainVerification::default() }
}

/// Verifies the chain in the files themselves. A chain that cannot be read counts as broken.
fn verify_chain(root: &VaultRoot) -> ChainVerification {
    if let Ok(head) = chain::read_head(root)
        && head.seq > MANY
    {
        print_progress("records verified", 0, usize::try_from(head.seq).unwrap_or(usize::MAX));
    }
    chain::verify_chain(root).unwrap_or_else(|e| report_unreadable_chain(&e))
}

/// Describes the first fault of the chain in a sentence; `None` if no fault is known.
fn describe_broken_chain(chain: &ChainVerification) -> Option<String> {
    let first = chain.faults.first()?;
    let more = match chain.faults.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(format!(
        "the chain of audit records is broken: {}{more}; `steward audit verify` lists all faults",
        escape_text(first)
    ))
}

async fn build_report(config: &StewardConfig, now: DateTime<Utc>) -> anyhow::Result<TrustReportDocument> {
    let vault = super::open_read_only(config).await?;
    let chain = read_known_chain(&vault).await;
    let mut pass = TrustReportPass::new(&config.policy, now);
    vault.index.trust().for_each_case(now, |case| pass.add_case(case)).await?;
    let report = pass.into_report(config.reversal_budget);
    let files = vault.index.trust().list_instinct_files().await?;
    let settings = report.choice.as_ref().map(|choice| RecommendedSettings::from_choice(choice, config, &files));
    let lowered = list_report_demotions(&vault.index).await?;
    let headline = write_headline(&report, &chain, &lowered);
    Ok(TrustReportDocument { told_at: now, headline, chain, report, settings, lowered })
}

/// The first sentence of the report. Numbers from changed records are no reason to act, and a demotion holds whatever
/// the cases support.
fn write_headline(report: &TrustReport, chain: &ChainVerification, lowered: &[TrustReportDemotion]) -> String {
    if !chain.faults.is_empty() {
        return "Change no settings now: the records behind the numbers below are not as Steward wrote them."
            .to_owned();
    }
    let is_chosen = |subject: &TrustSubject| {
        report.choice.as_ref().is_some_and(|choice| match subject {
            TrustSubject::Source(key) => choice.sources.contains(key),
            TrustSubject::Class(class) => choice.classes.contains(class),
            TrustSubject::UnknownSources => false,
        })
    };
    let held = lowered.iter().find(|demotion| is_chosen(&demotion.subject));
    let first = held.map(|demotion| format!(" A demotion holds that back: `{}` ends it.", demotion.command));
    describe_headline(report) + &first.unwrap_or_default()
}

async fn list_report_demotions(index: &Index) -> anyhow::Result<Vec<TrustReportDemotion>> {
    let mut demotions = Vec::new();
    for (subject, cap) in index.trust().read_mode_caps().await? {
        let Some(mode) = cap.mode else { continue };
        let action = index.trust().find_last_demotion(&subject).await?;
        let record = match &action {
            Some(id) => match index.actions().find_action(id.as_str()).await? {
                ActionLookup::One(path) => Some(path),
                ActionLookup::None | ActionLookup::Many(_) => None,
            },
            None => None,
        };
        let command = format!("steward trust raise {subject}");
        let name = index.trust().find_subject_name(&subject).await?;
        demotions.push(TrustReportDemotion { subject, name, mode, since: cap.since, action, record, command });
    }
    Ok(demotions)
}
