//! The one binary: `steward`.
//!
//! Reads the configuration, starts the telemetry, and hands over to a command. Commands that act
//! on the vault ask its stewards through Temporal; commands that only look read the index.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod clerks;
mod cli;
mod commands;
mod config;
#[cfg(test)]
mod devserver;
mod engine;
mod example;
mod fleet;
mod out;
mod registrar;
mod replay;
mod schedules;
mod stamper;
mod telemetry;
mod temporal;

use clap::Parser;
use cli::{Cli, Command};
use out::{Exit, Out};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return fail(&anyhow::Error::from(e).context("failed to start")),
    };
    let ended = runtime.block_on(run(cli));
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    match ended {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(e) => fail(&e),
    }
}

async fn run(cli: Cli) -> anyhow::Result<Exit> {
    let out = Out { json: cli.json };
    match cli.command {
        Command::Example { folder } => return commands::example::run(&folder, out),
        Command::Replay { histories } => return commands::replay::run(&histories, out).await,
        _ => {}
    }
    let config = config::Config::load(cli.vault.as_deref())?;
    match cli.command {
        Command::Up(up) => commands::up::run(&config, &up, out).await,
        Command::Worker => commands::up::worker(&config, out).await,
        Command::Schedules(what) => commands::schedules::run(&config, &what, out).await,
        Command::Tick(tick) => commands::tick::run(&config, &tick, out).await,
        Command::Audit(what) => commands::audit::run(&config, &what, out).await,
        Command::Undo(answer) => commands::answer::undo(&config, answer, out).await,
        Command::Confirm(answer) => commands::answer::confirm(&config, answer, out).await,
        Command::Dismiss(answer) => commands::answer::dismiss(&config, answer, out).await,
        Command::Stop { reason } => commands::brake::stop(&config, reason, out),
        Command::Resume => commands::brake::resume(&config, out),
        Command::Status => commands::status::run(&config, out).await,
        Command::Doctor { accept_ledger_loss } => commands::doctor::run(&config, accept_ledger_loss, out).await,
        Command::Index(what) => commands::index::run(&config, &what, out).await,
        Command::Example { .. } | Command::Replay { .. } => Ok(Exit::Ok),
    }
}

/// Errors are for the person who meets them: one line, the causes after colons.
fn fail(e: &anyhow::Error) -> ExitCode {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "steward: {}", out::shown(&format!("{e:#}")));
    ExitCode::from(1)
}
