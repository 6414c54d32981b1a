//! The commands `steward clerk …`.
//!
//! They change no note and open no gate.

mod cases;
mod eval;
mod text;

use crate::cli::clerk::ClerkCommand;
use crate::cli::output::{CommandExit, CommandOutput};
use crate::config::StewardConfig;

pub(crate) async fn run(
    config: &StewardConfig,
    command: ClerkCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    match command {
        ClerkCommand::Eval(eval) => eval::run(config, &eval, out).await,
    }
}
