//! The arguments of `steward fleet`: the database that many vaults share.
//!
//! They are declared here and run by `crate::commands::fleet`.

use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::provider_gate::{RateLimit, parse_bucket_name};
use steward_domain::gates::mode::Mode;
use strum::IntoEnumIterator;

#[derive(Args, Debug)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
    /// State why, for the log of the fleet
    #[arg(long, global = true)]
    pub(crate) reason: Option<String>,
}

/// Whether a stop concerns the vault, or the tenants of a fleet.
#[derive(Args, Debug)]
pub(crate) struct FleetScopeArgs {
    /// Stop or resume all tenants of the fleet in STEWARD_FLEET_DB instead of a vault
    #[arg(long)]
    pub(crate) fleet: bool,
    /// Only this tenant
    #[arg(long, requires = "fleet")]
    pub(crate) tenant: Option<TenantId>,
}

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
    /// Manage the rate limits that tenants with one API key share
    #[command(subcommand, after_help = "Example:\n  steward fleet bucket list")]
    Bucket(BucketCommand),
    /// Show every tenant: its process, its build, its modes and its bucket
    #[command(after_help = "Example:\n  steward fleet status --json | jq '.[] | select(.owner == null)'\n\n\
        Exits with 4 if a process has another mode than the one that is expected of it.")]
    Status,
    /// Show what operators did, the newest first
    #[command(after_help = "Example:\n  steward fleet log --limit 20")]
    Log {
        /// Show so many events
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Serve metrics of all tenants, for Prometheus
    #[command(
        after_help = "Examples:\n  STEWARD_FLEET_DB=postgres://metrics@db.example/steward steward fleet export\n  \
        steward fleet export --listen 10.0.0.5:8430 --token-file /etc/steward/secrets/fleet_metrics\n\n\
        It answers /metrics and /healthz until it is ended. It needs a role in steward_reader, or an operator's, and no\n\
        vault. docs/operations.md lists the metrics."
    )]
    Export(ExportArgs),
    /// Let this copy of a vault act instead of the one that owns it, which can then never act again
    #[command(
        after_help = "Example:\n  STEWARD_TENANT=acme steward fleet take acme --yes --vault /srv/steward/acme\n\n\
        For a vault that was restored from a backup, as its tenant and not as an operator. Without --yes it only shows who owns\n\
        the vault."
    )]
    Take(TakeArgs),
    /// Make a tenant's vault one that stands alone
    #[command(after_help = "Example:\n  steward fleet release --vault /srv/steward/acme\n\n\
        Run it without STEWARD_TENANT, while no process serves the vault. Then `steward fleet tenant drop` removes its schedules.")]
    Release,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Create a tenant and its database role, and print the two settings that its process needs
    #[command(after_help = "Example:\n  steward fleet tenant add acme\n\nThe password is shown once.")]
    Add(TenantAddArgs),
    /// Set the most that a tenant may do, the mode that its process should have, or its bucket
    #[command(
        after_help = "Example:\n  steward fleet tenant set acme --max-mode live --expect live_high_confidence_only\n\n\
        A lower mode binds at the next change, a higher one at the next check of a matter. The process' own\n\
        STEWARD_LIVE_MODE stays the most that it may do."
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

#[derive(Debug, Subcommand)]
pub(crate) enum BucketCommand {
    /// Set the rate limits of an account at a provider, for all tenants together
    #[command(
        after_help = "Example:\n  steward fleet bucket set openai --calls 500/min --calls 10000/day --tokens 200000/min\n\n\
        A window is a number and s, min, h or day, up to a day. Limits that are not given are removed. They bind at the\n\
        next call."
    )]
    Set(BucketSetArgs),
    /// List the buckets: how full each window is, and whether the provider asked to wait
    #[command(after_help = "Example:\n  steward fleet bucket list --json")]
    List,
    /// Accept that a bucket has forgotten calls, after its database was restored
    #[command(after_help = "Example:\n  steward fleet bucket accept-loss openai\n\n\
        Calls of the last day are not counted then. Wait a day instead if the provider must not be over its limit.")]
    AcceptLoss { bucket: String },
    /// End a wait that the provider asked for; one call tests it first
    #[command(after_help = "Example:\n  steward fleet bucket lift openai")]
    Lift { bucket: String },
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8430")]
    pub(crate) listen: SocketAddr,
    /// Answer only who sends the bearer token in this file; an address that other machines can reach needs it
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct BucketSetArgs {
    /// Name the account as you like: lower-case letters, digits and hyphens
    #[arg(value_parser = parse_bucket_name)]
    pub(crate) bucket: String,
    /// Allow so many calls in a window, as in 500/min, 10000/day or 12/20s; may be given again
    #[arg(long, value_name = "LIMIT")]
    pub(crate) calls: Vec<RateLimit>,
    /// Allow so many tokens in a window, of question and answer together; may be given again
    #[arg(long, value_name = "LIMIT")]
    pub(crate) tokens: Vec<RateLimit>,
}

#[derive(Args, Debug)]
pub(crate) struct TenantAddArgs {
    pub(crate) tenant: TenantId,
    /// Count its calls to a model in this bucket
    #[arg(long, value_name = "NAME")]
    pub(crate) bucket: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct TenantSetArgs {
    pub(crate) tenant: TenantId,
    /// Set the most that its processes may do: shadow, live_high_confidence_only or live
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub(crate) max_mode: Option<Mode>,
    /// Set the mode that its process should be started with
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub(crate) expect: Option<Mode>,
    /// Count its calls to a model in this bucket
    #[arg(long, value_name = "NAME")]
    pub(crate) bucket: Option<String>,
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    let modes = Mode::iter().map(Mode::as_str).collect::<Vec<_>>().join(", ");
    text.parse().map_err(|_| format!("it is one of {modes}"))
}

#[derive(Args, Debug)]
pub(crate) struct TakeArgs {
    #[command(flatten)]
    pub(crate) confirmed: ConfirmedTenantArgs,
    /// Let a copy act again that was shut out, and give up what the other one did since
    #[arg(long, requires = "yes")]
    pub(crate) take_back: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ConfirmedTenantArgs {
    pub(crate) tenant: TenantId,
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
}
