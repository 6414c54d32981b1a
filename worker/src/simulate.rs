//! Writes a vault with a simulated month: sources of known reliability, and a principal of known habits.
//!
//! What the month brings is drawn beforehand ([`calendar`]); then it happens, moment by moment, through the code that
//! a real month goes through ([`month`]). Everything follows from the seed and from `now`, at which the month ends, so
//! two calls with the same write the same bytes. The truth (which proposals were right) is kept in a file beside the
//! vault, where no steward looks ([`truth`]). It must not write into a folder that holds anything.

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

/// What a simulation follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulationOptions {
    /// 1 to 366.
    pub(crate) days: u32,
    pub(crate) seed: u64,
    /// When the simulated time ends; what is below a second is dropped.
    pub(crate) now: DateTime<Utc>,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SimulationSummary {
    /// The folder that now is a vault, as the caller named it.
    pub(crate) dir: PathBuf,
    /// Where the truth is kept.
    pub(crate) truth: PathBuf,
    pub(crate) days: u32,
    pub(crate) seed: u64,
    pub(crate) matters: usize,
    pub(crate) sources: usize,
    /// Changes that were proposed or made.
    pub(crate) proposals: usize,
    /// Those of them that were right.
    pub(crate) right: usize,
    /// Clear signals of the last hours, about which nothing is decided yet.
    pub(crate) fresh: usize,
}

/// Simulates a month into `dir`, which is created when it is not there.
///
/// # Errors
/// When `dir` holds anything or its truth is there already, nothing is written. When the disk refuses, what was
/// written before that stays.
pub(crate) async fn write_simulation(dir: &Path, ask: &SimulationOptions) -> anyhow::Result<SimulationSummary> {
    let ask = SimulationOptions { now: time::truncate_to_seconds(ask.now), ..*ask };
    let beside = truth_path(dir)?;
    let found = find_first_entry(dir).with_context(|| format!("failed to look into {}", dir.display()))?;
    if let Some(found) = found {
        bail!("{} already holds {found:?}; name a folder that is empty or not there yet", dir.display());
    }
    if beside.exists() {
        bail!("{} is there already; move it away, or name another folder", beside.display());
    }
    let state = TemporaryStateDir(std::env::temp_dir().join(format!("steward-{}", Uuid::new_v4())));
    let truth = month::simulate_month(dir, &state.0, &ask)
        .await
        .with_context(|| format!("failed to simulate; remove {} before trying again", dir.display()))?;
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
        serde_json::to_writer_pretty(&mut file, &truth)?;
        file.write_all(b"\n")
    };
    write().with_context(|| format!("failed to write {}", beside.display()))?;
    Ok(SimulationSummary {
        dir: dir.to_path_buf(),
        truth: beside,
        days: ask.days,
        seed: ask.seed,
        matters: household::MATTERS.len(),
        sources: household::SOURCES.len(),
        proposals: truth.actions.len(),
        right: truth.actions.values().filter(|action| action.right).count(),
        fresh: truth.undecided.len(),
    })
}

/// `<dir>.truth.json`, never inside.
fn truth_path(dir: &Path) -> anyhow::Result<PathBuf> {
    let whole = std::path::absolute(dir).with_context(|| format!("{} names no folder", dir.display()))?;
    let Some(name) = whole.file_name() else { bail!("{} names no folder that a file could lie beside", dir.display()) };
    let mut name = name.to_owned();
    name.push(".truth.json");
    Ok(whole.with_file_name(name))
}

/// Where the index of the simulation lies; the vault's own is made from its files later. Goes when it is dropped.
struct TemporaryStateDir(PathBuf);

impl Drop for TemporaryStateDir {
    fn drop(&mut self) {
        // Left over it is no harm: a folder among the temporary ones.
        let _ = fs::remove_dir_all(&self.0);
    }
}
