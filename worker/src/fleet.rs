//! The place of this process in a fleet: claiming the vault at the start, and saying that it lives.
//!
//! A vault without a tenant does nothing here. The rules are in `steward_domain::fleet`, the database in
//! `steward_fleet`. A claim comes after the vault's lock, which proves that no other process of this machine has it.

use crate::cli::output::format_causes;
use crate::config::{FleetMembership, StewardConfig};
use crate::temporal::clock::compute_offset;
use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::action::audit::ChainHead;
use steward_domain::action::plan::ContentHash;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::ownership::{OwnerInfo, VaultCopy};
use steward_domain::steward::guard::{GuardCap, GuardRefusal};
use steward_domain::time::format_seconds;
use steward_fleet::owner::ClaimError;
use steward_fleet::tenants::TenantRow;
use steward_fleet::{ConnectedRole, FleetError, FleetStore, PermitRefusal, VaultOwnership};
use steward_vault::action::chain;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::copy_id::{find_copy_id, read_or_create_copy_id};
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::VaultRoot;

/// The pause before a claim is tried again: 2 s.
const PAUSE: Duration = Duration::from_secs(2);

/// Why a vault must not be used by this process, until a person changes something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FleetRefusal {
    #[error(
        "this vault belongs to the tenant {tenant}, and STEWARD_TENANT {}: set STEWARD_TENANT={tenant} and STEWARD_FLEET_DB, or \
         make it a vault alone with `steward fleet release`", describe_tenant(set.as_ref())
    )]
    OtherTenant { tenant: TenantId, set: Option<TenantId> },
    #[error(
        "STEWARD_FLEET_DB has {role}, and STEWARD_TENANT is {tenant}: use the URL that `steward fleet tenant add {tenant}` printed"
    )]
    OtherRole { tenant: TenantId, role: ConnectedRole },
    #[error(transparent)]
    Claim(ClaimError),
    #[error("{0}: this process ends")]
    Lost(PermitRefusal),
}

fn describe_tenant(set: Option<&TenantId>) -> String {
    set.map_or_else(|| "is not set".to_owned(), |set| format!("is {set}"))
}

/// Refuses a vault of another tenant, or a tenant's vault without its tenant. Reads one small file.
///
/// # Errors
/// [`FleetRefusal::OtherTenant`], or the file cannot be read.
pub(crate) fn refuse_other_tenant(config: &StewardConfig) -> anyhow::Result<()> {
    let Some(folder) = &config.vault else { return Ok(()) };
    let Ok(root) = VaultRoot::open(folder) else { return Ok(()) };
    let set = config.fleet.as_ref().map(|fleet| fleet.tenant.clone());
    match VaultIdentity::read(&root)?.and_then(|identity| identity.tenant) {
        Some(tenant) if Some(&tenant) != set.as_ref() => Err(FleetRefusal::OtherTenant { tenant, set }.into()),
        Some(_) | None => Ok(()),
    }
}

/// The fleet's database, and what it knows of the tenant.
pub(crate) struct CheckedTenant {
    pub(crate) store: FleetStore,
    pub(crate) row: TenantRow,
}

/// Connects to the fleet's database and checks that the vault in this folder is the tenant's, before anything is locked or
/// written: an empty mount must not be taken for the vault. `None` for a vault alone. Waits while the database gives no
/// answer.
///
/// # Errors
/// [`FleetRefusal`], or a fault that only a person can fix.
pub(crate) async fn check_vault(config: &StewardConfig, root: &VaultRoot) -> anyhow::Result<Option<CheckedTenant>> {
    let Some(FleetMembership { tenant, database }) = &config.fleet else { return Ok(None) };
    let mut wait = DatabaseWait::default();
    loop {
        let checked = async {
            let store = FleetStore::connect(database).await?;
            let role = store.find_connected_role().await?;
            let row = store.list_tenants(Some(tenant)).await?.pop();
            Ok::<_, FleetError>((store, role, row))
        };
        match checked.await {
            Ok((_, role, _)) if role != ConnectedRole::Tenant(tenant.clone()) => {
                return Err(FleetRefusal::OtherRole { tenant: tenant.clone(), role }.into());
            }
            Ok((_, _, None)) => return Err(FleetRefusal::Claim(ClaimError::Unknown(tenant.clone())).into()),
            Ok((store, _, Some(row))) => {
                let here = VaultIdentity::read(root)?.map(|identity| identity.id.to_string());
                match &row.vault_id {
                    Some(registered) if here.as_ref() != Some(registered) => {
                        let (tenant, registered) = (tenant.clone(), registered.clone());
                        let here = here.unwrap_or_else(|| "none".to_owned());
                        return Err(FleetRefusal::Claim(ClaimError::OtherVault { tenant, registered, here }).into());
                    }
                    Some(_) | None => return Ok(Some(CheckedTenant { store, row })),
                }
            }
            Err(e) => wait.log_or_fail(e).await?,
        }
    }
}

/// Claims the vault for the process that has just taken its lock. Waits while the database gives no answer.
///
/// # Errors
/// [`FleetRefusal`], the vault's files cannot be written, or a fault that only a person can fix.
pub(crate) async fn claim_vault(
    config: &StewardConfig,
    store: &FleetStore,
    writer: &VaultWriter,
) -> anyhow::Result<VaultOwnership> {
    let tenant = &config.fleet.as_ref().context("no tenant is set")?.tenant;
    let copy = read_or_create_copy_id(writer.root()).context("failed to write .steward/copy")?;
    let chain = writer.watch_chain();
    let here = VaultCopy { vault: writer.identity().id.to_string(), copy, chain: chain.read() };
    let info = describe_process(config, &writer.identity().place.host);
    let mut wait = DatabaseWait::default();
    loop {
        match store.claim_vault(tenant, &here, &info).await {
            Ok(permit) => {
                writer.identity().write_tenant(writer.root(), Some(tenant))?;
                tracing::info!(%tenant, epoch = permit.epoch(), "this process owns the vault");
                return Ok(VaultOwnership::start(permit, Arc::new(move || chain.read())).await);
            }
            Err(ClaimError::Fleet(e)) => wait.log_or_fail(e).await?,
            Err(e) => return Err(FleetRefusal::Claim(e).into()),
        }
    }
}

/// A wait for the database, and since when.
struct DatabaseWait {
    since: DateTime<Utc>,
}

impl Default for DatabaseWait {
    fn default() -> Self {
        Self { since: Utc::now() }
    }
}

impl DatabaseWait {
    /// Waits a moment if the call may succeed later.
    async fn log_or_fail(&mut self, error: FleetError) -> anyhow::Result<()> {
        if !error.is_transient() {
            return Err(error.into());
        }
        let (since, error) = (format_seconds(self.since), anyhow::Error::from(error));
        tracing::warn!("waiting for the fleet's database since {since}: {}", format_causes(&error));
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }
}

/// Why the fleet would refuse a call or a change now; `None` if it would not, and for a vault alone.
pub(crate) async fn find_fleet_refusal(config: &StewardConfig) -> Option<GuardRefusal> {
    let FleetMembership { tenant, database } = config.fleet.as_ref()?;
    let checked = async {
        let store = FleetStore::connect(database).await?;
        store.check_commits(tenant).await?;
        Ok::<_, FleetError>(if config.clerk.is_remote() { store.find_gate_refusal(tenant).await } else { None })
    };
    checked.await.unwrap_or_else(|e| {
        let reason = match e.is_unanswered_commit() {
            true => "the fleet's database answers no commit: a Postgres that lost its standby still reads".to_owned(),
            false => e.to_string(),
        };
        Some(GuardRefusal { cap: GuardCap::Gate, clears_at: None, reason })
    })
}

/// The clock of the fleet's database minus the local one. `None` for a vault alone, and while the database gives no answer.
pub(crate) async fn measure_clock_offset(config: &StewardConfig) -> Option<TimeDelta> {
    let store = FleetStore::connect(&config.fleet.as_ref()?.database).await.ok()?;
    let before = Utc::now();
    let seen = store.read_clock().await.ok()?;
    Some(compute_offset(before, seen, Utc::now()))
}

/// How far the fleet has seen the audit chain come. `None` for a vault alone, before the first start, and while the database
/// gives no answer.
pub(crate) async fn find_seen_chain(config: &StewardConfig) -> Option<ChainHead> {
    let FleetMembership { tenant, database } = config.fleet.as_ref()?;
    let store = FleetStore::connect(database).await.ok()?;
    store.list_tenants(Some(tenant)).await.ok()?.pop()?.owner.map(|owner| owner.chain)
}

/// Refuses a command that starts runs or changes schedules for a copy of a tenant's vault that does not own it.
///
/// # Errors
/// [`FleetRefusal`], or the database gives no answer.
pub(crate) async fn refuse_other_copy(config: &StewardConfig) -> anyhow::Result<()> {
    if config.fleet.is_none() {
        return Ok(());
    }
    let root = VaultRoot::open(config.vault_folder()?)?;
    let Some(CheckedTenant { row, .. }) = check_vault(config, &root).await? else { return Ok(()) };
    compare_owner(row, &root)
}

/// As [`refuse_other_copy`], but without waiting: a database that does not answer is no refusal.
///
/// # Errors
/// [`FleetRefusal`].
pub(crate) async fn refuse_other_owner(config: &StewardConfig, root: &VaultRoot) -> anyhow::Result<()> {
    let Some(FleetMembership { tenant, database }) = &config.fleet else { return Ok(()) };
    let Ok(store) = FleetStore::connect(database).await else { return Ok(()) };
    let row = store.list_tenants(Some(tenant)).await.ok().and_then(|mut rows| rows.pop());
    row.map_or(Ok(()), |row| compare_owner(row, root))
}

fn compare_owner(row: TenantRow, root: &VaultRoot) -> anyhow::Result<()> {
    let Some(owner) = row.owner.map(Box::new) else { return Ok(()) };
    match find_copy_id(root)? {
        Some(copy) if copy == owner.copy => match owner.count_missing(&chain::read_head(root)?) {
            None => Ok(()),
            Some(missing) => Err(FleetRefusal::Claim(ClaimError::SetBack { owner, missing }).into()),
        },
        Some(copy) if owner.has_shut_out(&copy) => Err(FleetRefusal::Claim(ClaimError::ShutOut(owner)).into()),
        Some(_) | None => Err(FleetRefusal::Claim(ClaimError::OtherCopy(owner)).into()),
    }
}

fn describe_process(config: &StewardConfig, host: &str) -> OwnerInfo {
    let policy = serde_json::to_vec(&config.policy).unwrap_or_default();
    OwnerInfo {
        instance: format!("{}@{host}", std::process::id()),
        address: config.listen.map(|listen| listen.to_string()).unwrap_or_default(),
        build: env!("CARGO_PKG_VERSION").to_owned(),
        mode: config.policy.mode,
        policy_hash: ContentHash::hash_bytes(&policy).as_str()[..16].to_owned(),
    }
}

/// Waits until the vault is lost, and says why the process ends. Without a fleet it waits for ever.
pub(crate) async fn wait_for_loss(ownership: Option<VaultOwnership>) -> anyhow::Error {
    match ownership {
        Some(ownership) => FleetRefusal::Lost(ownership.wait_until_lost().await).into(),
        None => pending().await,
    }
}

/// Says in the log, and by `report`, when the database stops answering and when it is back.
pub(crate) async fn report_faults(ownership: VaultOwnership, report: impl Fn(Option<&str>)) {
    let mut known: Option<String> = None;
    loop {
        known = ownership.wait_for_fault_change(known.as_deref()).await;
        match &known {
            Some(reason) => tracing::warn!(reason, "nothing lands until the fleet's database answers"),
            None => tracing::info!("the fleet's database is back"),
        }
        report(known.as_deref());
    }
}
