//! The command `steward fleet`: the tenants of a database, who owns each vault, and taking one over.
//!
//! Most of it needs no vault, only `STEWARD_FLEET_DB`. A password is printed once and kept nowhere.

mod buckets;
pub(crate) mod export;
mod log;
mod server;
pub(crate) mod stops;

use crate::cli::fleet::{
    ConfirmedTenantArgs, FleetArgs, FleetCommand, TakeArgs, TenantAddArgs, TenantCommand, TenantSetArgs,
};
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::style::TextStyle;
use crate::cli::table::create_wide_table;
use crate::config::StewardConfig;
use crate::fleet::{CheckedTenant, check_vault};
use crate::temporal;
use anyhow::{Context, bail};
use serde_json::json;
use std::cmp::Ordering;
use std::path::Path;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::ownership::{AWAY_AFTER, OwnerRow, VaultCopy};
use steward_domain::time::format_seconds;
use steward_fleet::admin::build_tenant_url;
use steward_fleet::tenants::{TenantChange, TenantRow, TenantState, TenantUpdate};
use steward_fleet::{ConnectedRole, FleetError, FleetStore, Operator};
use steward_vault::action::chain;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::copy_id::{find_copy_id, read_or_create_copy_id};
use steward_vault::files::root::VaultRoot;
use uuid::Uuid;

const DATABASE: &str = "STEWARD_FLEET_DB";

/// Runs a command that needs the database alone; `vault` is the folder of the command line.
pub(crate) async fn run(
    FleetArgs { command, reason }: FleetArgs,
    vault: Option<&Path>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let operator = find_operator(reason);
    match command {
        FleetCommand::Init => initialise(out).await,
        FleetCommand::Migrate => {
            FleetStore::initialise(&read_database_url()?).await?;
            out.print_value(&json!({"migrated": true}), || "the database has the tables of this build".to_owned())?;
            Ok(CommandExit::Ok)
        }
        FleetCommand::Tenant(TenantCommand::Add(add)) => add_tenant(&add, &operator, out).await,
        FleetCommand::Bucket(command) => buckets::run(command, &operator, out).await,
        FleetCommand::Tenant(TenantCommand::Set(set)) => change_tenant(&set, &operator, out).await,
        FleetCommand::Tenant(TenantCommand::List) | FleetCommand::Status => show_status(out).await,
        FleetCommand::Tenant(TenantCommand::Drop(drop)) => drop_tenant(&drop, &operator, out).await,
        FleetCommand::Take(take) => take_vault(&take, vault, operator, out).await,
        FleetCommand::Log { limit } => log::run(limit, out).await,
        FleetCommand::Export(export) => export::run(&export, out).await,
        FleetCommand::Release => release_vault(vault, out),
    }
}

/// The URL of the database. A process of a vault wants the tenant too; these commands do not.
fn read_database_url() -> anyhow::Result<String> {
    let url = std::env::var(DATABASE).ok().filter(|url| !url.trim().is_empty());
    url.with_context(|| {
        format!("set {DATABASE} to the fleet's database, such as postgres://postgres@db.example/steward")
    })
}

/// Connects for a command of an operator. A tenant's role would see one tenant and no bucket but its own, and a reader's
/// could change nothing.
pub(super) async fn connect_as_operator() -> anyhow::Result<FleetStore> {
    let store = FleetStore::connect(&read_database_url()?).await?;
    match store.find_connected_role().await? {
        ConnectedRole::Operator => Ok(store),
        role => bail!("{DATABASE} has {role}: this command needs an operator's, as for `steward fleet init`"),
    }
}

/// A commit without an answer may come to pass all the same, as when a standby is back.
fn explain_silence(e: FleetError) -> anyhow::Error {
    let is_unknown = e.is_unanswered_commit();
    let error = anyhow::Error::from(e);
    if is_unknown {
        error.context("it may have happened, or happen later: look at `steward fleet status`")
    } else {
        error
    }
}

pub(super) fn report_missing_tenant(tenant: &TenantId) -> anyhow::Error {
    anyhow::anyhow!("there is no tenant {tenant}: see `steward fleet tenant list`")
}

/// Who runs this command, as the log of the fleet names them.
fn find_operator(reason: Option<String>) -> Operator {
    let name =
        ["STEWARD_OPERATOR", "USER"].iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    Operator { name: name.unwrap_or_else(|| "operator".to_owned()), reason: reason.unwrap_or_default() }
}

async fn initialise(out: CommandOutput) -> anyhow::Result<CommandExit> {
    FleetStore::initialise(&read_database_url()?).await?;
    let namespace = if temporal::is_server_configured() { Some(server::prepare_namespace().await?) } else { None };
    out.print_value(&json!({"database": true, "namespace": namespace}), || match &namespace {
        Some(namespace) => {
            format!("the database and the namespace {namespace} are ready: `steward fleet tenant add <tenant>`")
        }
        None => "the database is ready; set TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE and run it again for the namespace"
            .to_owned(),
    })?;
    Ok(CommandExit::Ok)
}

async fn add_tenant(add: &TenantAddArgs, operator: &Operator, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let TenantAddArgs { tenant, bucket } = add;
    let url = read_database_url()?;
    let store = connect_as_operator().await?;
    if let Some(bucket) = bucket {
        buckets::ensure_exists(&store, bucket).await?;
    }
    let password = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    if !store.add_tenant(tenant, bucket.as_deref(), &password, operator).await.map_err(explain_silence)? {
        bail!("there is, or was, a tenant {tenant}: choose another id");
    }
    let database = build_tenant_url(&url, tenant, &password);
    out.print_value(&json!({"tenant": tenant, "fleet_db": database}), || {
        format!("STEWARD_TENANT={tenant}\nSTEWARD_FLEET_DB={database}\nThe password is not shown again.")
    })?;
    Ok(CommandExit::Ok)
}

async fn change_tenant(set: &TenantSetArgs, operator: &Operator, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let change = TenantChange { mode_ceiling: set.max_mode, expected_mode: set.expect, bucket: set.bucket.clone() };
    if change == TenantChange::default() {
        bail!("nothing to set: give --max-mode, --expect or --bucket");
    }
    let store = connect_as_operator().await?;
    if let Some(bucket) = &set.bucket {
        buckets::ensure_exists(&store, bucket).await?;
    }
    match store.change_tenant(&set.tenant, change, operator).await.map_err(explain_silence)? {
        TenantUpdate::Changed => {}
        TenantUpdate::Missing => return Err(report_missing_tenant(&set.tenant)),
        TenantUpdate::CallsUnderWay => bail!(
            "{} has calls under way in its bucket: try again in a moment, or first `steward stop --fleet --tenant {}`",
            set.tenant,
            set.tenant
        ),
    }
    print_tenants(&store.list_tenants(Some(&set.tenant)).await?, out)?;
    Ok(CommandExit::Ok)
}

async fn show_status(out: CommandOutput) -> anyhow::Result<CommandExit> {
    let tenants = connect_as_operator().await?.list_tenants(None).await?;
    print_tenants(&tenants, out)?;
    Ok(if tenants.iter().any(has_wrong_mode) { CommandExit::Faults } else { CommandExit::Ok })
}

/// Whether the process has another mode than an operator expects of it.
fn has_wrong_mode(row: &TenantRow) -> bool {
    let owner = row.owner.as_ref().filter(|_| row.state == TenantState::Active);
    owner.is_some_and(|owner| owner.info.mode != row.expected_mode)
}

fn print_tenants(tenants: &[TenantRow], out: CommandOutput) -> anyhow::Result<()> {
    out.print_value(&tenants, || {
        if tenants.is_empty() {
            return "no tenant yet: `steward fleet tenant add <tenant>`".to_owned();
        }
        let mut table = create_wide_table(
            &[
                "tenant",
                "acts in",
                "set by",
                "expected",
                "bucket",
                "owner",
                "build",
                "since",
                "last check",
                "late",
                "seen",
            ],
            &["bucket", "owner", "seen"],
            &["set by", "expected", "build", "since"],
        );
        for row in tenants {
            table.add_row(describe_tenant_row(row));
        }
        let mut stops: Vec<String> = tenants.iter().filter_map(|row| row.stop.as_ref()).map(stops::describe).collect();
        stops.dedup();
        [vec![table.to_string()], stops].concat().join("\n")
    })
}

/// The cells of a tenant. It acts in the lower one of the mode of its process and the highest that the fleet allows.
fn describe_tenant_row(row: &TenantRow) -> Vec<String> {
    let owner = row.owner.as_ref();
    let mode = owner.map(|owner| owner.info.mode.min(row.mode_ceiling));
    let (acts_in, set_by) = match (owner, mode) {
        _ if row.state == TenantState::Dropped => ("dropped", ""),
        _ if row.stop.is_some() => ("stopped", ""),
        (Some(owner), Some(mode)) => {
            let set_by = match owner.info.mode.cmp(&row.mode_ceiling) {
                Ordering::Less => "process",
                Ordering::Equal => "both",
                Ordering::Greater => "fleet",
            };
            (mode.as_str(), set_by)
        }
        (None, _) | (_, None) => ("never started", ""),
    };
    let expected = match owner {
        Some(owner) if has_wrong_mode(row) => {
            format!("{}, and the process has {}", row.expected_mode.as_str(), owner.info.mode.as_str())
        }
        Some(_) | None => row.expected_mode.as_str().to_owned(),
    };
    let seen = owner.map(|owner| {
        let away = row.silent_seconds.is_some_and(|seconds| seconds > AWAY_AFTER.num_seconds());
        if away { format!("away since {}", format_seconds(owner.seen)) } else { "now".to_owned() }
    });
    let text = |describe: fn(&OwnerRow) -> String| owner.map(describe).unwrap_or_default();
    vec![
        row.id.to_string(),
        acts_in.to_owned(),
        set_by.to_owned(),
        expected,
        row.bucket.clone().unwrap_or_else(|| "none".to_owned()),
        text(|owner| escape_text(&owner.info.instance)),
        text(|owner| escape_text(&owner.info.build)),
        text(|owner| TextStyle::current().show_moment(owner.since)),
        text(|owner| owner.progress.last_check.map(|at| TextStyle::current().show_moment(at)).unwrap_or_default()),
        text(|owner| owner.progress.matters_late.to_string()),
        seen.unwrap_or_default(),
    ]
}

/// Drops a tenant, and then removes its schedules.
async fn drop_tenant(
    drop: &ConfirmedTenantArgs,
    operator: &Operator,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let tenant = &drop.tenant;
    let store = connect_as_operator().await?;
    let rows = store.list_tenants(Some(tenant)).await?;
    let Some(row) = rows.first() else { return Err(report_missing_tenant(tenant)) };
    let is_heard = row.silent_seconds.is_some_and(|seconds| seconds < AWAY_AFTER.num_seconds());
    if row.state == TenantState::Active && is_heard {
        out.print_text(&format!(
            "nothing was dropped: the process of {tenant} was heard a moment ago. Stop it, and wait a minute"
        ))?;
        return Ok(CommandExit::Refused);
    }
    let found = server::list_tenant_schedules(tenant, row.vault_id.as_deref()).await?;
    if !drop.yes {
        out.print_value(&json!({"schedules": found}), || {
            format!(
                "{tenant} has {} schedules. `steward fleet tenant drop {tenant} --yes` removes them and drops it",
                found.len()
            )
        })?;
        return Ok(CommandExit::Ok);
    }
    // First, so that no process can register them again. A second call deletes what this one could not.
    store.drop_tenant(tenant, operator).await.map_err(explain_silence)?;
    server::delete_schedules(&found).await?;
    out.print_value(&json!({"dropped": tenant, "schedules": found}), || {
        format!("{tenant} is dropped, and its {} schedules are removed. Its id is not used again", found.len())
    })?;
    Ok(CommandExit::Ok)
}

/// Makes the copy of the vault here the one that may act.
async fn take_vault(
    TakeArgs { confirmed: take, take_back }: &TakeArgs,
    vault: Option<&Path>,
    operator: Operator,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let config = StewardConfig::load(vault)?;
    if config.fleet.as_ref().is_none_or(|fleet| fleet.tenant != take.tenant) {
        bail!("set STEWARD_TENANT={} and {DATABASE}, as for its process", take.tenant);
    }
    super::refuse_root_for_others(&config)?;
    let root = VaultRoot::open(config.vault_folder()?)?;
    let CheckedTenant { store, row } = check_vault(&config, &root).await?.context("no tenant is set")?;
    let owner = row.owner;
    let owner = owner.with_context(|| format!("nobody owns the vault of {}: start its process", take.tenant))?;
    let chain = chain::read_head(&root)?;
    let lacks = owner.count_missing(&chain);
    let ours = find_copy_id(&root)?;
    if ours.as_ref() == Some(&owner.copy) && lacks.is_none() {
        out.print_text("this copy owns the vault already")?;
        return Ok(CommandExit::Ok);
    }
    let lacks = match lacks {
        None => "The vault here has all audit records that the fleet has seen".to_owned(),
        Some(missing) => {
            format!("The vault here lacks {missing} of the {} audit records that the fleet has seen", owner.chain.seq)
        }
    };
    let holder = format!(
        "{} owns the vault of {}, last heard {}. {lacks}",
        escape_text(&owner.info.instance),
        take.tenant,
        format_seconds(owner.seen)
    );
    if ours.as_ref().is_some_and(|ours| owner.has_shut_out(ours)) && !take_back {
        out.print_text(&format!(
            "{holder}. The copy here was shut out: leave it stopped. To give up what the other one did since, add --yes --take-back"
        ))?;
        return Ok(CommandExit::Refused);
    }
    if !take.yes {
        out.print_text(&format!(
            "{holder}. If that copy must not act any more: `steward fleet take {} --yes`",
            take.tenant
        ))?;
        return Ok(CommandExit::Refused);
    }
    let copy = read_or_create_copy_id(&root)?;
    let operator = Operator { name: config.operator.clone(), ..operator };
    let vault = row.vault_id.unwrap_or_default();
    store.take_vault(&take.tenant, &VaultCopy { vault, copy, chain }, &operator).await.map_err(explain_silence)?;
    out.print_value(&json!({"taken": take.tenant}), || {
        format!(
            "this copy owns the vault of {} now, and {} is shut out. {lacks}. Start the process here",
            take.tenant,
            escape_text(&owner.info.instance)
        )
    })?;
    Ok(CommandExit::Ok)
}

/// Removes the tenant from the vault's identity.
fn release_vault(vault: Option<&Path>, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let config = StewardConfig::load(vault)?;
    if config.fleet.is_some() {
        bail!("STEWARD_TENANT and {DATABASE} are set: run this without them");
    }
    super::refuse_root_for_others(&config)?;
    let writer = VaultWriter::lock(VaultRoot::open(config.vault_folder()?)?)?;
    let Some(tenant) = writer.identity().tenant.clone() else {
        out.print_text("this vault belongs to no tenant")?;
        return Ok(CommandExit::Ok);
    };
    writer.identity().write_tenant(writer.root(), None)?;
    out.print_value(&json!({"released": tenant}), || {
        format!("this vault stands alone now. Give it a Temporal namespace of its own, and run `steward fleet tenant drop {tenant}`")
    })?;
    Ok(CommandExit::Ok)
}
