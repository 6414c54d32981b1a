//! `steward simulate`: writes a vault with a simulated month.
//!
//! The clock is read here, once: the month ends now. What happens in it is [`crate::simulate`]'s; here are only the
//! words for who asked.

use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput};
use crate::simulate::{self, SimulationOptions};
use chrono::Utc;

pub(crate) async fn run(asked: &cli::SimulateArgs, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let ask = SimulationOptions { days: asked.days, seed: asked.seed, now: Utc::now() };
    let written = simulate::write_simulation(&asked.folder, &ask).await?;
    out.print_value(&written, || {
        format!(
            "{} days, {} matters, {} sources, {} proposals in {}\nthe truth is kept in {}: {} of them were right\n\
             {} clear signals of the last hours are not decided upon yet",
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
