//! What the configuration and the index say about schedules, for the registrar.
//!
//! The registrar never reads the vault: its matters come from here, and what it warns of goes from here
//! to the log.

use crate::config::StewardConfig;
use crate::registrar::{
    MatterScheduleStatus, RegistrarError, RegistrationOutcome, SchedulePlan, ScheduleRegistrar, ScheduleSettings,
    WantedMatter,
};
use crate::temporal::start_retry::retry_unanswered;
use steward_domain::record::entity::RecordState;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;
use temporalio_client::Client;

/// A registrar with the settings of this vault; `owner` is `None` for one that has no id yet.
pub(crate) fn build_registrar(
    client: Client,
    config: &StewardConfig,
    owner: Option<VaultIdentity>,
    change: impl FnOnce(&mut ScheduleSettings),
) -> ScheduleRegistrar {
    let mut settings = ScheduleSettings {
        owner,
        folder: config.vault_folder().map(|vault| vault.display().to_string()).unwrap_or_default(),
        task_queue: config.task_queue.clone(),
        interval_seconds: config.cadence.matter_seconds,
        workflow_task_timeout: config.workflow_task_timeout,
        tracker: config.tracker.is_some(),
        ..ScheduleSettings::default()
    };
    change(&mut settings);
    ScheduleRegistrar::new(client, settings).with_progress(|what, done, of| tracing::info!("{done} of {of} {what}"))
}

/// Makes sure that this vault may use the namespace; to be asked before anything of it is served.
///
/// # Errors
/// [`NamespaceConflict`](crate::registrar::NamespaceConflict) when the namespace is another vault's; others when the server
/// gives no answer that a repeat could change.
pub(crate) async fn claim_namespace(
    config: &StewardConfig,
    client: &Client,
    address: &str,
    keeper: &VaultWriter,
    private_server: bool,
) -> anyhow::Result<()> {
    let owner = Some(keeper.identity().clone());
    let registrar = build_registrar(client.clone(), config, owner, |s| s.private_server = private_server);
    retry_unanswered("look whose schedules it holds", address, async || {
        registrar.claim_namespace().await.map_err(|e| match e {
            RegistrarError::Conflict(conflict) => anyhow::Error::from(*conflict),
            e => wrap_registrar_error(e),
        })
    })
    .await
}

/// Makes sure that what is asked for here is not done by the process of another vault that serves this namespace.
///
/// # Errors
/// [`NamespaceConflict`](crate::registrar::NamespaceConflict) when the namespace is another vault's; others when the vault
/// cannot be read or the server gives no answer.
pub(crate) async fn check_owner_patiently(
    config: &StewardConfig,
    client: &Client,
    address: &str,
) -> anyhow::Result<()> {
    retry_unanswered("look whose schedules it holds", address, async || check_owner(config, client).await).await
}

/// The same, asked once.
///
/// # Errors
/// As above.
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

/// Plans the schedules of all matters and of the vault as a whole.
///
/// # Errors
/// When the index cannot be read or the schedules cannot be listed; nothing has been changed.
pub(crate) async fn plan_schedules(
    registrar: &ScheduleRegistrar,
    index: &Index,
    config: &StewardConfig,
) -> anyhow::Result<SchedulePlan> {
    let matters = index.list_matters(&config.cadence).await?;
    let wanted: Vec<WantedMatter> = matters
        .into_iter()
        .map(|m| WantedMatter {
            path: m.path,
            standing: match m.state {
                None => MatterScheduleStatus::Unreadable,
                Some(RecordState::Open) => MatterScheduleStatus::Open,
                Some(RecordState::Done) => MatterScheduleStatus::Done,
                Some(RecordState::Archived) => MatterScheduleStatus::Archived,
            },
            interval_seconds: m.interval_seconds,
        })
        .collect();
    let routines = registrar.plan_routines().await.map_err(wrap_registrar_error)?;
    let plan = registrar.plan_matters(&wanted).await.map_err(wrap_registrar_error)?;
    Ok(SchedulePlan { routines, ..plan })
}

/// The error as a person reads it, with its cause, by which a retry is decided.
fn wrap_registrar_error(e: RegistrarError) -> anyhow::Error {
    let told = format!("failed to {e}");
    anyhow::Error::new(e).context(told)
}

/// Carries a plan out and tells the log what did not work. Nothing is done in a namespace that may be another vault's.
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
        tracing::warn!(schedules = refused.ids.len(), budget = refused.budget, "deletions refused: {}", refused.mend);
    }
    outcome
}

impl RegistrationOutcome {
    /// Some schedule is not as it should be.
    pub(crate) fn is_behind(&self) -> bool {
        !self.errors.is_empty() || !self.routine_errors.is_empty() || self.conflict.is_some()
    }
}
