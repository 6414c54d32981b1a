//! The arguments of `steward fleet`: the database that many vaults share.
//!
//! They are declared here and run by `crate::commands::fleet`.

use clap::{Args, Subcommand};
use steward_domain::fleet::TenantId;
use steward_domain::gates::mode::Mode;

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Create the database's tables and roles, the Temporal namespace and its search attributes
    #[command(after_help = "Example:\n  STEWARD_FLEET_DB=postgres://postgres@db.example/steward \
        TEMPORAL_ADDRESS=temporal.example:7233 TEMPORAL_NAMESPACE=steward steward fleet init\n\n\
        Needs a database role that may create roles. It only adds, so it may run again.")]
    Init,
    /// Bring the database's tables up to this build
    #[command(
        after_help = "Example:\n  STEWARD_FLEET_DB=postgres://postgres@db.example/steward steward fleet migrate\n\n\
        Run it before the first process of a new build. It only adds."
    )]
    Migrate,
    /// Manage the tenants
    #[command(subcommand, after_help = "Example:\n  steward fleet tenant add acme")]
    Tenant(TenantCommand),
    /// Show every tenant: its owner, its build, its mode, and which limit binds
    #[command(after_help = "Example:\n  steward fleet status --json | jq '.[] | select(.owner == null)'\n\n\
        Exits with 4 if a process has another mode than the one that is expected of it.")]
    Status,
    /// Let this copy of a vault act instead of the one that owns it, which can then never act again
    #[command(
        after_help = "Example:\n  STEWARD_TENANT=acme steward fleet take acme --yes --vault /srv/steward/acme\n\n\
        For a vault that was restored from a backup. Without --yes it only shows who owns the vault."
    )]
    Take(ConfirmedTenantArgs),
    /// Make a tenant's vault one that stands alone
    #[command(after_help = "Example:\n  steward fleet release --vault /srv/steward/acme\n\n\
        Run it without STEWARD_TENANT, while no process serves the vault. Then `steward fleet tenant drop` removes its schedules.")]
    Release,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Create a tenant and its database role, and print the two settings that its process needs
    #[command(after_help = "Example:\n  steward fleet tenant add acme\n\nThe password is shown once.")]
    Add { tenant: TenantId },
    /// Set the most that a tenant may do, or the mode that its process should have
    #[command(
        after_help = "Example:\n  steward fleet tenant set acme --ceiling live --expect live_high_confidence_only\n\n\
        A lower ceiling binds within a second. A higher one needs a restart with STEWARD_LIVE_MODE, too."
    )]
    Set(TenantSetArgs),
    /// List the tenants, as `steward fleet status` does
    #[command(after_help = "Example:\n  steward fleet tenant list --json")]
    List,
    /// Remove a tenant's schedules, and never use its id again
    #[command(after_help = "Example:\n  steward fleet tenant drop acme --yes\n\n\
        Stop its process first. The vault stays as it is.")]
    Drop(ConfirmedTenantArgs),
}

#[derive(Args, Debug)]
pub(crate) struct TenantSetArgs {
    pub(crate) tenant: TenantId,
    /// Set the most that its processes may do: shadow, live_high_confidence_only or live
    #[arg(long, value_name = "MODE")]
    pub(crate) ceiling: Option<Mode>,
    /// Set the mode that its process should be started with
    #[arg(long, value_name = "MODE")]
    pub(crate) expect: Option<Mode>,
}

#[derive(Args, Debug)]
pub(crate) struct ConfirmedTenantArgs {
    pub(crate) tenant: TenantId,
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
}
