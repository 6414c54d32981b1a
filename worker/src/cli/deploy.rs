//! The arguments of the commands around a new build.
//!
//! They are declared here and explained in `docs/operations.md`. The command `preflight` checks the open runs, and `drain`
//! lets them end.

use clap::Args;
use std::path::PathBuf;
use steward_domain::fleet::TenantId;

/// The options of `steward drain`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DrainArgs {
    /// End the drain and resume the schedules
    #[arg(long)]
    pub(crate) end: bool,
}

/// The options of `steward preflight`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PreflightArgs {
    /// Replay the newest N ended runs of each shape: of those that took the same steps
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) closed: usize,
    /// Look at the runs that ended in the last N hours
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=8760))]
    pub(crate) hours: u32,
    /// Refuse to look at more than N runs
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) max: usize,
    /// Check histories in files or folders instead, as `temporal workflow show -o json` prints them; needs no server
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["closed", "hours", "max"])]
    pub(crate) from: Vec<PathBuf>,
    /// Check the runs of one tenant, as an operator of its fleet
    #[arg(long, conflicts_with = "from")]
    pub(crate) tenant: Option<TenantId>,
    /// Check the runs of each tenant, as an operator of the fleet
    #[arg(long, conflicts_with_all = ["from", "tenant"])]
    pub(crate) all: bool,
}

impl PreflightArgs {
    /// Whether it is about files, or about tenants as their operator sees them.
    pub(crate) fn needs_no_vault(&self) -> bool {
        !self.from.is_empty() || self.all || self.tenant.is_some()
    }
}
