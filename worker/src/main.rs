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
mod reading;
mod registrar;
mod remote;
mod replay;
mod schedules;
mod simulate;
mod stamper;
mod streams;
mod telemetry;
mod temporal;
mod web;
mod webhooks;

use clap::Parser;
use cli::{Cli, Command};
use out::{Exit, Out};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return misused(&e),
    };
    let json = cli.json;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return fail(&anyhow::Error::from(e).context("failed to start"), json),
    };
    let ended = runtime.block_on(run(cli));
    // What had to end has ended. A worker that lost its server may still wait on a thread of its own, and
    // would panic if the runtime went before the process.
    std::mem::forget(runtime);
    match ended {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(e) => fail(&e, json),
    }
}

/// Help and the version are answers, everything else was wrong usage.
fn misused(e: &clap::Error) -> ExitCode {
    // Nobody who reads it is no trouble.
    let _ = e.print();
    if e.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        out::error_as_json(&e.to_string());
    }
    ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2))
}

async fn run(cli: Cli) -> anyhow::Result<Exit> {
    let out = Out { json: cli.json };
    match cli.command {
        Command::Example { folder } => return commands::example::run(&folder, out),
        Command::Replay { histories } => return commands::replay::run(&histories, out).await,
        Command::Simulate(simulate) => return commands::simulate::run(&simulate, out).await,
        _ => {}
    }
    let config = config::Config::load(cli.vault.as_deref())?;
    match cli.command {
        Command::Up(up) => commands::up::run(&config, &up, out).await,
        Command::Worker => commands::up::worker(&config, out).await,
        Command::Serve => commands::serve::run(&config, out).await,
        Command::Token(what) => commands::token::run(&config, &what, out),
        Command::Login(login) => commands::token::login(&config, &login, out),
        Command::Schedules(what) => commands::schedules::run(&config, &what, out).await,
        Command::Tick(tick) => commands::tick::run(&config, &tick, out).await,
        Command::Signals(what) => commands::signals::run(&config, &what, out).await,
        Command::Audit(what) => commands::audit::run(&config, &what, out).await,
        Command::Why { record } => commands::why::run(&config, &record, out).await,
        Command::Undo(answer) => commands::answer::undo(&config, answer, out).await,
        Command::Confirm(answer) => commands::answer::confirm(&config, answer, out).await,
        Command::Dismiss(answer) => commands::answer::dismiss(&config, answer, out).await,
        Command::Trust(trust) => commands::trust::run(&config, trust, out).await,
        Command::Backtest(backtest) => commands::trust::run(&config, cli::Trust::Backtest(backtest), out).await,
        Command::Policy(what) => commands::policy::run(&config, &what, out).await,
        Command::Stop { reason } => commands::brake::stop(&config, reason, out),
        Command::Resume => commands::brake::resume(&config, out),
        Command::Streams(what) => commands::streams::run(&config, what, out).await,
        Command::Status => commands::status::run(&config, out).await,
        Command::Doctor(doctor) => commands::doctor::run(&config, doctor, out).await,
        Command::Index(what) => commands::index::run(&config, &what, out).await,
        Command::Example { .. } | Command::Replay { .. } | Command::Simulate(_) => Ok(Exit::Ok),
    }
}

/// Errors are for the person who meets them, on one line with their causes; a program gets them as a value too.
fn fail(e: &anyhow::Error, json: bool) -> ExitCode {
    use std::io::Write;
    let message = out::causes(e);
    let _ = writeln!(std::io::stderr(), "steward: {}", out::shown(&message));
    if json {
        out::error_as_json(&message);
    }
    ExitCode::from(1)
}
