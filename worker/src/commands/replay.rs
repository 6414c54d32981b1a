//! The command `steward replay`: replays recorded workflow histories against this build.
//!
//! It needs neither a server nor a vault, and it changes no history. [`crate::replay`] judges each file. If a history
//! does not replay, the exit code is 4.

use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::replay::replay_histories;
use std::path::PathBuf;

pub(crate) async fn run(histories: &[PathBuf], out: CommandOutput) -> anyhow::Result<CommandExit> {
    let replayed = replay_histories(histories).await;
    let faults = replayed.iter().any(|r| !r.is_ok());
    out.print_value(&replayed, || replayed.iter().map(|r| escape_text(&r.to_string())).collect::<Vec<_>>().join("\n"))?;
    Ok(if faults { CommandExit::Faults } else { CommandExit::Ok })
}
