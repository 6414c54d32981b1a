//! The one binary: `steward`.
//!
//! Reads the configuration, starts the telemetry, and hands over to a command. Commands that act
//! on the vault ask its stewards through Temporal; commands that only look read the index.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cli;
mod commands;
mod config;
mod example;
mod registrar;
mod remote;
mod replay;
mod runtime;
mod simulate;
mod telemetry;
mod temporal;

use clap::Parser;
use cli::output::{CommandExit, CommandOutput};
use cli::{Cli, CliCommand};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return report_usage_error(&e),
    };
    let json = cli.json;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return report_failure(&anyhow::Error::from(e).context("failed to start"), json),
    };
    let ended = runtime.block_on(run_command(cli));
    // What had to end has ended. A worker that lost its server may still wait on a thread of its own, and
    // would panic if the runtime went before the process.
    std::mem::forget(runtime);
    match ended {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(e) => report_failure(&e, json),
    }
}

/// Help and the version are answers, everything else was wrong usage.
fn report_usage_error(e: &clap::Error) -> ExitCode {
    // Nobody who reads it is no trouble.
    let _ = e.print();
    if e.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        cli::output::print_json_error(&e.to_string());
    }
    ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2))
}

async fn run_command(cli: Cli) -> anyhow::Result<CommandExit> {
    let out = CommandOutput { json: cli.json };
    match cli.command {
        CliCommand::Example { folder } => return commands::example::run(&folder, out),
        CliCommand::Replay { histories } => return commands::replay::run(&histories, out).await,
        CliCommand::Simulate(simulate) => return commands::simulate::run(&simulate, out).await,
        _ => {}
    }
    let config = config::StewardConfig::load(cli.vault.as_deref())?;
    match cli.command {
        CliCommand::Up(up) => commands::up::run(&config, &up, out).await,
        CliCommand::Worker => commands::up::run_worker(&config, out).await,
        CliCommand::Serve => commands::serve::run(&config, out).await,
        CliCommand::Token(what) => commands::token::run(&config, &what, out),
        CliCommand::Login(login) => commands::token::print_login_link(&config, &login, out),
        CliCommand::Schedules(what) => commands::schedules::run(&config, &what, out).await,
        CliCommand::Tick(tick) => commands::tick::run(&config, &tick, out).await,
        CliCommand::Signals(what) => commands::signals::run(&config, &what, out).await,
        CliCommand::Audit(what) => commands::audit::run(&config, &what, out).await,
        CliCommand::Why { record } => commands::why::run(&config, &record, out).await,
        CliCommand::Undo(answer) => commands::resolve::undo_actions(&config, answer, out).await,
        CliCommand::Confirm(answer) => commands::resolve::confirm_actions(&config, answer, out).await,
        CliCommand::Dismiss(answer) => commands::resolve::dismiss_actions(&config, answer, out).await,
        CliCommand::Trust(trust) => commands::trust::run(&config, trust, out).await,
        CliCommand::Backtest(backtest) => {
            commands::trust::run(&config, cli::TrustCommand::Backtest(backtest), out).await
        }
        CliCommand::Policy(what) => commands::policy::run(&config, &what, out).await,
        CliCommand::Stop { reason } => commands::stop::stop_vault(&config, reason, out),
        CliCommand::Resume => commands::stop::resume_vault(&config, out),
        CliCommand::Streams(what) => commands::streams::run(&config, what, out).await,
        CliCommand::Status => commands::status::run(&config, out).await,
        CliCommand::Doctor(doctor) => commands::doctor::run(&config, doctor, out).await,
        CliCommand::Index(what) => commands::index::run(&config, &what, out).await,
        CliCommand::Example { .. } | CliCommand::Replay { .. } | CliCommand::Simulate(_) => Ok(CommandExit::Ok),
    }
}

/// Errors are for the person who meets them, on one line with their causes; a program gets them as a value too.
fn report_failure(e: &anyhow::Error, json: bool) -> ExitCode {
    use std::io::Write;
    let message = cli::output::format_causes(e);
    let _ = writeln!(std::io::stderr(), "steward: {}", cli::output::escape_text(&message));
    if json {
        cli::output::print_json_error(&message);
    }
    // A namespace that is another vault's is a refusal; everything else that ends a command is a failure.
    let refused = e.chain().any(|cause| cause.is::<registrar::NamespaceConflict>());
    ExitCode::from(if refused { CommandExit::Refused as u8 } else { 1 })
}
