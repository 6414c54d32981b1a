//! The place of this process in a fleet: claiming the vault at the start, and saying that it lives.
//!
//! A vault without a tenant does nothing here. The rules are in `steward_domain::fleet`, the database in
//! `steward_fleet`. A claim comes after the vault's lock, which proves that no other process of this machine has it.

use crate::cli::output::format_causes;
use crate::config::{FleetMembership, StewardConfig};
use crate::runtime::engine::wait_for_stop;
use anyhow::Context;
use chrono::Utc;
use std::time::Duration;
use steward_domain::action::plan::ContentHash;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::ownership::OwnerInfo;
use steward_domain::time::format_seconds;
use steward_fleet::owner::ClaimError;
use steward_fleet::{FleetError, FleetStore, PermitRefusal, VaultOwnership};
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::copy_id::read_or_create_copy_id;
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::VaultRoot;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

/// How often a process says that it lives: 5 s.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The pause before a claim is tried again: 2 s.
const PAUSE: Duration = Duration::from_secs(2);
/// The file in which Linux shows the name of this machine.
const HOST: &str = "/proc/sys/kernel/hostname";

/// Why a vault must not be used by this process, until a person changes something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FleetRefusal {
    #[error(
        "this vault belongs to the tenant {tenant}, and STEWARD_TENANT {}: set STEWARD_TENANT={tenant} and STEWARD_FLEET_DB, or \
         make it a vault alone with `steward fleet release`", describe_tenant(set.as_ref())
    )]
    OtherTenant { tenant: TenantId, set: Option<TenantId> },
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

/// Claims the vault for the process that has just taken its lock; `None` for a vault alone. Waits while the database
/// gives no answer.
///
/// # Errors
/// [`FleetRefusal`], or the vault's files cannot be written.
pub(crate) async fn claim_vault(
    config: &StewardConfig,
    writer: &VaultWriter,
) -> anyhow::Result<Option<VaultOwnership>> {
    let Some(FleetMembership { tenant, database }) = &config.fleet else { return Ok(None) };
    let copy = read_or_create_copy_id(writer.root()).context("failed to write .steward/copy")?;
    let (vault_id, info) = (writer.identity().id.to_string(), describe_process(config));
    let since = Utc::now();
    loop {
        let claimed = async {
            let store = FleetStore::connect(database).await?;
            store.claim_vault(tenant, &vault_id, &copy, &info).await
        };
        match claimed.await {
            Ok(permit) => {
                writer.identity().write_tenant(writer.root(), Some(tenant))?;
                tracing::info!(%tenant, epoch = permit.epoch(), "this process owns the vault");
                let ownership = VaultOwnership::new(permit);
                // The first answer, so that nothing begins under a stop.
                drop(ownership.obtain().await);
                return Ok(Some(ownership));
            }
            Err(ClaimError::Fleet(e @ (FleetError::Late | FleetError::Sql(_)))) => {
                let (since, e) = (format_seconds(since), anyhow::Error::from(e));
                tracing::warn!("waiting for the fleet's database since {since}: {}", format_causes(&e));
                tokio::time::sleep(PAUSE).await;
            }
            Err(e) => return Err(FleetRefusal::Claim(e).into()),
        }
    }
}

fn describe_process(config: &StewardConfig) -> OwnerInfo {
    let host = std::fs::read_to_string(HOST).unwrap_or_default();
    let policy = serde_json::to_vec(&config.policy).unwrap_or_default();
    OwnerInfo {
        instance: format!("{}@{}", std::process::id(), host.trim()),
        address: config.listen.map(|listen| listen.to_string()).unwrap_or_default(),
        build: env!("CARGO_PKG_VERSION").to_owned(),
        mode: config.policy.mode,
        policy_hash: ContentHash::hash_bytes(&policy).as_str()[..16].to_owned(),
    }
}

/// Says every few seconds that this process lives, until it ends. If another copy owns the vault, the process ends.
/// `report` gets the reason while nothing lands, and then `None`.
pub(crate) async fn keep_heartbeat(
    ownership: VaultOwnership,
    report: impl Fn(Option<&str>),
    failed: mpsc::UnboundedSender<anyhow::Error>,
    mut stop: watch::Receiver<bool>,
) {
    let mut clock = tokio::time::interval(HEARTBEAT);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut was_away = false;
    loop {
        tokio::select! {
            () = wait_for_stop(&mut stop) => return,
            _ = clock.tick() => {}
        }
        match ownership.obtain().await {
            Ok(_) if was_away => {
                was_away = false;
                report(None);
                tracing::info!("the fleet's database is back");
            }
            Ok(_) => {}
            Err(PermitRefusal::Away(reason)) => {
                if !was_away {
                    report(Some(&reason));
                    tracing::warn!(reason, "the fleet's database does not answer: nothing lands until it does");
                }
                was_away = true;
            }
            Err(refusal @ (PermitRefusal::Lost | PermitRefusal::Dropped)) => {
                // The receiver is gone only while the process ends.
                let _ = failed.send(FleetRefusal::Lost(refusal).into());
                return;
            }
        }
    }
}
