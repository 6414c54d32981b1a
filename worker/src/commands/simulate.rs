//! The command `steward simulate`: writes a vault with a simulated month.
//!
//! The clock is read once, here, because the month ends now. [`crate::simulate`] decides what happens in it; this
//! module only prints the result.

use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput};
use crate::simulate::{self, SimulationOptions};
use chrono::Utc;

pub(crate) async fn run(arguments: &cli::SimulateArgs, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let options = SimulationOptions { days: arguments.days, seed: arguments.seed, now: Utc::now() };
    let written = simulate::write_simulation(&arguments.folder, &options).await?;
    out.print_value(&written, || {
        format!(
            "{} days, {} matters, {} sources and {} proposals written to {}\n\
             The ground truth is in {}: {} of the proposals are right.\n\
             {} clear signals of the last hours are not decided yet.",
            written.days,
            written.matters,
            written.sources,
            written.proposals,
            written.dir.display(),
            written.truth.display(),
            written.right,
            written.fresh
        )
    })?;
    Ok(CommandExit::Ok)
}
