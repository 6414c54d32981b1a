//! Writes a vault with a simulated month: sources of known reliability, and a principal with known habits.
//!
//! [`calendar`] draws all messages beforehand. Then [`month`] plays them in order, through the same code as a real
//! month. Everything depends only on the seed and on `now`, the end of the month, so two calls with the same values
//! write the same bytes. The truth (which proposals were right) is kept in a file beside the vault, which no steward
//! reads ([`truth`]). It must not write into a folder that holds anything.

mod calendar;
mod household;
mod month;
mod principal;
mod proposal;
#[cfg(test)]
mod tests;
mod truth;
mod vault;

use crate::example::find_first_entry;
use anyhow::{Context, bail};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use steward_domain::time;
use uuid::Uuid;

/// The values that determine a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulationOptions {
    /// 1 to 366.
    pub(crate) days: u32,
    pub(crate) seed: u64,
    /// The end of the simulated time; fractions of a second are dropped.
    pub(crate) now: DateTime<Utc>,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SimulationSummary {
    /// The folder that is now a vault, as the caller named it.
    pub(crate) dir: PathBuf,
    /// The file that holds the truth.
    pub(crate) truth: PathBuf,
    pub(crate) days: u32,
    pub(crate) seed: u64,
    pub(crate) matters: usize,
    pub(crate) sources: usize,
    /// Changes that were proposed or made.
    pub(crate) proposals: usize,
    /// The proposals that were right.
    pub(crate) right: usize,
    /// Clear signals of the last hours on which no steward has decided yet.
    pub(crate) fresh: usize,
}

/// Writes a simulated month into `dir`, which is created if it does not exist.
///
/// # Errors
/// `dir` is not empty, or the file for the truth exists; nothing is written then. If a later write fails, earlier files
/// stay.
pub(crate) async fn write_simulation(dir: &Path, options: &SimulationOptions) -> anyhow::Result<SimulationSummary> {
    let options = SimulationOptions { now: time::truncate_to_seconds(options.now), ..*options };
    let truth_file = truth_path(dir)?;
    let found = find_first_entry(dir).with_context(|| format!("failed to list {}", dir.display()))?;
    if let Some(found) = found {
        bail!("{} already holds {found:?}; name a folder that is empty or does not exist", dir.display());
    }
    if truth_file.exists() {
        bail!("{} already exists; move it away, or name another folder", truth_file.display());
    }
    let state = TemporaryStateDir(std::env::temp_dir().join(format!("steward-{}", Uuid::new_v4())));
    let truth = month::simulate_month(dir, &state.0, &options)
        .await
        .with_context(|| format!("failed to simulate a month; remove {} before you try again", dir.display()))?;
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&truth_file)?;
        serde_json::to_writer_pretty(&mut file, &truth)?;
        file.write_all(b"\n")
    };
    write().with_context(|| format!("failed to write {}", truth_file.display()))?;
    Ok(SimulationSummary {
        dir: dir.to_path_buf(),
        truth: truth_file,
        days: options.days,
        seed: options.seed,
        matters: household::MATTERS.len(),
        sources: household::SOURCES.len(),
        proposals: truth.actions.len(),
        right: truth.actions.values().filter(|action| action.right).count(),
        fresh: truth.undecided.len(),
    })
}

/// `<dir>.truth.json`: beside the vault, never inside it.
fn truth_path(dir: &Path) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(dir).with_context(|| format!("{} is not a valid folder", dir.display()))?;
    let Some(name) = absolute.file_name() else { bail!("{} has no name: no file can be put beside it", dir.display()) };
    let mut name = name.to_owned();
    name.push(".truth.json");
    Ok(absolute.with_file_name(name))
}

/// The folder of the simulation's index, removed on drop. The vault's own index is built from its files later.
struct TemporaryStateDir(PathBuf);

impl Drop for TemporaryStateDir {
    fn drop(&mut self) {
        // A leftover is harmless: it lies in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
