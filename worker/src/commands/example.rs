//! The command `steward example`: writes the example vault.
//!
//! The clock is read once, here; [`crate::example`] derives every date in the vault from it. That module refuses a
//! folder that is not empty.

use crate::cli::output::{CommandExit, CommandOutput};
use crate::example;
use chrono::Utc;
use std::path::Path;

pub(crate) fn run(folder: &Path, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let written = example::write_example_vault(folder, Utc::now())?;
    out.print_value(&written, || {
        format!(
            "{} matters, {} tasks and {} signals written to {folder}\n\
             next: steward up --tick-now --vault {folder}",
            written.matters,
            written.tasks,
            written.signals,
            folder = folder.display()
        )
    })?;
    Ok(CommandExit::Ok)
}
