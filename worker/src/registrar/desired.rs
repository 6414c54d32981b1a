//! Connects the registrar with the configuration, the index and the log.
//!
//! The registrar must not read the vault. This module reads the matters from the index and passes them in, and it logs
//! the warnings and errors of a round.

use crate::config::StewardConfig;
use crate::registrar::{
    MatterScheduleStatus, RegistrarError, RegistrationOutcome, SchedulePlan, ScheduleRegistrar, ScheduleSettings,
    WantedMatter,
};
use crate::runtime::engine::OpenedVault;
use crate::temporal::start_retry::retry_unanswered;
use std::path::Path;
use steward_domain::record::entity::RecordState;
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::drain;
use steward_vault::index::Index;
use temporalio_client::Client;

/// Builds a registrar with the settings of this vault; `owner` is `None` if the vault has no id yet.
pub(crate) fn build_registrar(
    client: Client,
    config: &StewardConfig,
    owner: Option<VaultIdentity>,
    change: impl FnOnce(&mut ScheduleSettings),
) -> ScheduleRegistrar {
    let mut settings = ScheduleSettings {
        owner,
        folder: config.vault_folder().map(|vault| vault.display().to_string()).unwrap_or_default(),
        names: config.vault_names(),
        task_queue: config.task_queue.clone(),
        interval_seconds: config.cadence.matter_seconds,
        workflow_task_timeout: config.workflow_task_timeout,
        tracker: config.tracker.is_some(),
        draining: config.vault_folder().is_ok_and(is_vault_draining),
        ..ScheduleSettings::default()
    };
    change(&mut settings);
    ScheduleRegistrar::new(client, settings)
        .with_progress(|operation, done, total| tracing::info!("{done} of {total} {operation}"))
}

fn is_vault_draining(folder: &Path) -> bool {
    VaultRoot::open(folder).is_ok_and(|root| drain::is_draining(&root))
}

/// Claims the namespace for this vault. It must be called before the vault is served. Returns whether this call created
/// the first routine.
///
/// # Errors
/// [`NamespaceConflict`](crate::registrar::NamespaceConflict) if the namespace belongs to another vault; other errors
/// if the server refuses. A server that does not answer is asked again.
pub(crate) async fn claim_namespace(
    config: &StewardConfig,
    client: &Client,
    address: &str,
    vault: &OpenedVault,
    private_server: bool,
) -> anyhow::Result<bool> {
    let owner = Some(vault.writer.identity().clone());
    let registrar = build_registrar(client.clone(), config, owner, |s| s.private_server = private_server)
        .with_ownership(vault.ownership.clone());
    retry_unanswered("check whose schedules it holds", address, async || {
        registrar.claim_namespace().await.map_err(|e| match e {
            RegistrarError::Conflict(conflict) => anyhow::Error::from(*conflict),
            e => wrap_registrar_error(e),
        })
    })
    .await
}

/// Checks that no process of another vault serves this namespace, because it would carry out the requests of this one.
/// A server that does not answer is asked again.
///
/// # Errors
/// [`NamespaceConflict`](crate::registrar::NamespaceConflict) if the namespace belongs to another vault; other errors
/// if the vault cannot be read or the server refuses.
pub(crate) async fn check_owner_patiently(
    config: &StewardConfig,
    client: &Client,
    address: &str,
) -> anyhow::Result<()> {
    retry_unanswered("check whose schedules it holds", address, async || check_owner(config, client).await).await
}

/// As [`check_owner_patiently`], with one attempt.
///
/// # Errors
/// As [`check_owner_patiently`], and if the server does not answer.
pub(crate) async fn check_owner(config: &StewardConfig, client: &Client) -> anyhow::Result<()> {
    if config.vault.is_none() {
        return Ok(());
    }
    let owner = VaultIdentity::read(&VaultRoot::open(config.vault_folder()?)?)?;
    build_registrar(client.clone(), config, owner, |_| ()).check_owner().await.map_err(|e| match e {
        RegistrarError::Conflict(conflict) => anyhow::Error::from(*conflict),
        e => wrap_registrar_error(e),
    })
}

/// Plans the schedules of all matters and the routines. Nothing is changed.
///
/// # Errors
/// When the index cannot be read or the schedules cannot be listed.
pub(crate) async fn plan_schedules(
    registrar: &ScheduleRegistrar,
    index: &Index,
    config: &StewardConfig,
) -> anyhow::Result<SchedulePlan> {
    let matters = index.read().list_matters(&config.cadence).await?;
    let moves = index.note_moves();
    let mut wanted: Vec<WantedMatter> = matters
        .into_iter()
        .map(|m| WantedMatter {
            former_paths: moves.list_former_paths(&m.path),
            path: m.path,
            status: match m.state {
                None => MatterScheduleStatus::Unreadable,
                Some(RecordState::Open) => MatterScheduleStatus::Open,
                Some(RecordState::Done) => MatterScheduleStatus::Done,
                Some(RecordState::Archived) => MatterScheduleStatus::Archived,
            },
            interval_seconds: m.interval_seconds,
        })
        .collect();
    let lost = index.list_gone_matters().await?;
    wanted.extend(lost.into_iter().map(|path| WantedMatter {
        path,
        status: MatterScheduleStatus::Lost,
        interval_seconds: 0,
        former_paths: Vec::new(),
    }));
    let routines = registrar.plan_routines().await.map_err(wrap_registrar_error)?;
    let plan = registrar.plan_matters(&wanted).await.map_err(wrap_registrar_error)?;
    Ok(SchedulePlan { routines, ..plan })
}

/// Adds the message for a person. The cause stays in the chain, because a retry depends on it.
fn wrap_registrar_error(e: RegistrarError) -> anyhow::Error {
    let message = format!("failed to {e}");
    anyhow::Error::new(e).context(message)
}

/// Applies a plan and logs what failed. Nothing is done in a namespace that may belong to another vault.
pub(crate) async fn apply_schedules(registrar: &ScheduleRegistrar, plan: SchedulePlan) -> RegistrationOutcome {
    if let Some(conflict) = plan.conflict {
        tracing::error!("no schedule was changed: {conflict}");
        return RegistrationOutcome { conflict: Some(conflict), ..RegistrationOutcome::default() };
    }
    for warning in &plan.warnings {
        tracing::warn!("{warning}");
    }
    let outcome = registrar.apply_steps(plan).await;
    for error in &outcome.errors {
        tracing::error!(matter = %error.matter, "failed to {}", error.message);
    }
    for error in &outcome.routine_errors {
        tracing::error!("failed to {error}");
    }
    if let Some(refused) = &outcome.refused {
        tracing::warn!(schedules = refused.ids.len(), budget = refused.budget, "deletions refused: {}", refused.hint);
    }
    outcome
}

impl RegistrationOutcome {
    /// Whether some schedule is not as it should be.
    pub(crate) fn is_behind(&self) -> bool {
        !self.errors.is_empty() || !self.routine_errors.is_empty() || self.conflict.is_some()
    }
}
