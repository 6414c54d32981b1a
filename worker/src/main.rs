//! The entry point of the binary `steward`.
//!
//! It parses the command line, loads the configuration and runs one command. It turns the outcome into an exit code
//! and an error into one line. It must not decide anything itself: each command has a module below `commands`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cli;
mod commands;
mod config;
mod example;
mod fleet;
mod preflight;
mod registrar;
mod remote;
mod runtime;
mod simulate;
mod telemetry;
mod temporal;

use clap::Parser;
use cli::output::{CommandError, CommandExit, CommandOutput};
use cli::style::TextStyle;
use cli::{Cli, CliCommand};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use steward_domain::action::undo::ResolutionKind;
use steward_server::temporal::resolve::ResolutionRequestError;
use steward_vault::action::writer::LockError;
use steward_vault::files::steward_folder::StewardFolderError;
use steward_vault::wiki::create::CreateWikiError;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return report_usage_error(&e),
    };
    if let CliCommand::ReadDocument { format } = cli.command {
        return commands::read_document::run(format);
    }
    let json = cli.json;
    TextStyle::choose(cli.long, cli.color).install();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return report_failure(&anyhow::Error::from(e).context("failed to start"), json),
    };
    let outcome = runtime.block_on(run_command(cli));
    // The command has shut everything down. A worker that lost its server may still wait on a thread of its own. It
    // would panic if the runtime were dropped before the process ends.
    std::mem::forget(runtime);
    match outcome {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(e) => report_failure(&e, json),
    }
}

/// Prints the help or the version with exit code 0, or a usage error with exit code 2.
fn report_usage_error(e: &clap::Error) -> ExitCode {
    // A closed output is no failure of ours.
    let _ = e.print();
    if e.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        cli::output::print_json_error(&e.to_string());
    }
    ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2))
}

/// Runs a command that needs no configuration, and gives any other back.
async fn run_without_config(
    command: CliCommand,
    vault: Option<&Path>,
    out: CommandOutput,
) -> ControlFlow<anyhow::Result<CommandExit>, CliCommand> {
    ControlFlow::Break(match command {
        CliCommand::Example { folder } => commands::example::run(&folder, out),
        CliCommand::Completions { shell } => commands::shell::print_completions(shell),
        CliCommand::Man { folder } => commands::shell::write_man_pages(&folder, out),
        CliCommand::Preflight(preflight) if preflight.needs_no_vault() => {
            commands::preflight::run_without_vault(&preflight, out).await
        }
        CliCommand::Simulate(simulate) => commands::simulate::run(&simulate, out).await,
        CliCommand::Fleet(fleet) => commands::fleet::run(fleet, vault, out).await,
        CliCommand::Wiki(wiki) => commands::wiki::run(wiki.command, vault, out).await,
        CliCommand::Stop { reason, scope } if scope.fleet => {
            commands::fleet::stops::stop_tenants(scope.tenant.as_ref(), reason, out).await
        }
        CliCommand::Resume { scope } if scope.fleet => {
            commands::fleet::stops::resume_tenants(scope.tenant.as_ref(), out).await
        }
        other => return ControlFlow::Continue(other),
    })
}

async fn run_command(cli: Cli) -> anyhow::Result<CommandExit> {
    let out = CommandOutput { json: cli.json };
    let command = match run_without_config(cli.command, cli.vault.as_deref(), out).await {
        ControlFlow::Continue(command) => command,
        ControlFlow::Break(done) => return done,
    };
    let named = if let CliCommand::Init(init) = &command { init.vault_folder.as_deref() } else { None };
    let config = config::StewardConfig::load(cli.vault.as_deref().or(named))?;
    if !matches!(command, CliCommand::Stop { .. } | CliCommand::Resume { .. }) {
        commands::refuse_root_for_others(&config)?;
        fleet::refuse_other_tenant(&config)?;
    }
    if matches!(command, CliCommand::Schedules(_) | CliCommand::Drain(_) | CliCommand::Tick(_)) {
        fleet::refuse_other_copy(&config).await?;
    }
    match command {
        CliCommand::Up(up) => commands::up::run(&config, &up, out).await,
        CliCommand::Worker => commands::up::run_worker(&config, out).await,
        CliCommand::Serve => commands::serve::run(&config, out).await,
        CliCommand::Token(command) => commands::token::run(&config, &command, out),
        CliCommand::Login(login) => commands::token::print_login_link(&config, &login, out),
        CliCommand::Schedules(command) => commands::schedules::run(&config, &command, out).await,
        CliCommand::Tick(tick) => commands::tick::run(&config, &tick, out).await,
        CliCommand::Signals(command) => commands::signals::run(&config, &command, out).await,
        CliCommand::Audit(command) => commands::audit::run(&config, &command, out).await,
        CliCommand::Why { record } => commands::why::run(&config, &record, out).await,
        CliCommand::Undo(resolution) => commands::resolve::undo_actions(&config, resolution, out).await,
        CliCommand::Confirm(resolution) => commands::resolve::confirm_actions(&config, resolution, out).await,
        CliCommand::Right(cli::RightArgs { answer, done }) => {
            let kind = if done { ResolutionKind::RightDone } else { ResolutionKind::Right };
            commands::resolve::answer_in_person(&config, kind, answer, out).await
        }
        CliCommand::Wrong(resolution) => {
            commands::resolve::answer_in_person(&config, ResolutionKind::Wrong, resolution, out).await
        }
        CliCommand::Reopen(resolution) => {
            commands::resolve::answer_in_person(&config, ResolutionKind::Reopen, resolution, out).await
        }
        CliCommand::Dismiss(resolution) => commands::resolve::dismiss_actions(&config, resolution, out).await,
        CliCommand::Trust(trust) => commands::trust::run(&config, trust, out).await,
        CliCommand::Backtest(backtest) => {
            commands::trust::run(&config, cli::TrustCommand::Backtest(backtest), out).await
        }
        CliCommand::Clerk(command) => commands::clerk::run(&config, command, out).await,
        CliCommand::Policy(command) => commands::policy::run(&config, &command, out).await,
        CliCommand::Stop { reason, .. } => commands::stop::stop_vault(&config, reason, out),
        CliCommand::Resume { .. } => commands::stop::resume_vault(&config, out),
        CliCommand::Streams(command) => commands::streams::run(&config, command, out).await,
        CliCommand::Status { healthz: true } => commands::healthz::run(&config, out).await,
        CliCommand::Status { healthz: false } => commands::status::run(&config, out).await,
        CliCommand::Doctor(doctor) => commands::doctor::run(&config, doctor, out).await,
        CliCommand::Backup(command) => commands::backup::run(&config, command, out).await,
        CliCommand::Mcp(command) => commands::mcp::run(&config, command, out).await,
        CliCommand::Index(command) => commands::index::run(&config, &command, out).await,
        CliCommand::Moved(moved) => commands::moved::run(&config, &moved, out).await,
        CliCommand::Init(init) => commands::init::run(&config, &init, out).await,
        CliCommand::Drain(drain) => commands::drain::run(&config, &drain, out).await,
        CliCommand::Preflight(preflight) => commands::preflight::check_server(&config, &preflight, out).await,
        CliCommand::Example { .. }
        | CliCommand::Completions { .. }
        | CliCommand::Man { .. }
        | CliCommand::Simulate(_)
        | CliCommand::Fleet(_)
        | CliCommand::Wiki(_)
        | CliCommand::ReadDocument { .. } => Ok(CommandExit::Ok),
    }
}

/// Prints an error with its causes on one line, and with `--json` also as a JSON value.
fn report_failure(e: &anyhow::Error, json: bool) -> ExitCode {
    use std::io::{IsTerminal, Write};
    let message = cli::output::format_causes(e);
    let line = format!("steward: {}", cli::output::escape_text(&message));
    let is_terminal = std::io::stderr().is_terminal();
    let shown = if is_terminal { TextStyle::current().wrap_lines(&line) } else { line };
    let _ = writeln!(std::io::stderr(), "{shown}");
    if json {
        cli::output::print_json_error(&message);
    }
    if let Some(error) = e.chain().find_map(|cause| cause.downcast_ref::<CommandError>()) {
        return ExitCode::from(error.exit() as u8);
    }
    // A namespace of another vault, a mapping that nobody accepted, more runs than allowed and a drain are refusals (3). Any other error is a failure (1).
    let is_refusal = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<registrar::NamespaceConflict>()
            || cause.is::<config::mapping::MappingNotAccepted>()
            || cause.is::<config::mapping::MappingBroken>()
            || cause.is::<StewardFolderError>()
            || cause.is::<preflight::TooManyRuns>()
            || cause.is::<fleet::FleetRefusal>()
            || matches!(cause.downcast_ref(), Some(CreateWikiError::Exists(_)))
            || cause.is::<commands::fleet::export::ExportRefusal>()
            || matches!(cause.downcast_ref(), Some(LockError::StewardFolder(_)))
            || matches!(cause.downcast_ref(), Some(ResolutionRequestError::Paused { .. }))
    };
    let refused = e.chain().any(is_refusal);
    ExitCode::from(if refused { CommandExit::Refused as u8 } else { 1 })
}
