//! What the configuration and the index say about schedules, for the registrar.
//!
//! The registrar never reads the vault: its matters come from here, and what it warns of goes from here
//! to the log.

use crate::config::Config;
use crate::registrar::{Outcome, Registrar, RegistrarError, SchedulePlan, Settings, Standing, WantedMatter};
use crate::temporal::start_retry::repeat_unanswered;
use steward_domain::record::RecordState;
use steward_vault::identity::VaultIdentity;
use steward_vault::index::Index;
use steward_vault::keeper::VaultWriter;
use steward_vault::root::VaultRoot;
use temporalio_client::Client;

/// A registrar with the settings of this vault; `owner` is `None` for one that has no id yet.
pub(crate) fn registrar(
    client: Client,
    config: &Config,
    owner: Option<VaultIdentity>,
    change: impl FnOnce(&mut Settings),
) -> Registrar {
    let mut settings = Settings {
        owner,
        folder: config.vault().map(|vault| vault.display().to_string()).unwrap_or_default(),
        task_queue: config.task_queue.clone(),
        interval_seconds: config.cadence.matter_seconds,
        workflow_task_timeout: config.workflow_task_timeout,
        tracker: config.tracker.is_some(),
        ..Settings::default()
    };
    change(&mut settings);
    Registrar::new(client, settings).telling(|what, done, of| tracing::info!("{done} of {of} {what}"))
}

/// Makes sure that this vault may use the namespace; to be asked before anything of it is served.
///
/// # Errors
/// [`NamespaceConflict`](crate::registrar::NamespaceConflict) when the namespace is another vault's; others when the server
/// gives no answer that a repeat could change.
pub(crate) async fn claim_namespace(
    config: &Config,
    client: &Client,
    address: &str,
    keeper: &VaultWriter,
    private_server: bool,
) -> anyhow::Result<()> {
    let owner = Some(keeper.identity().clone());
    let registrar = registrar(client.clone(), config, owner, |s| s.private_server = private_server);
    repeat_unanswered("look whose schedules it holds", address, async || {
        registrar.claim().await.map_err(|e| match e {
            RegistrarError::Conflict(conflict) => anyhow::Error::from(*conflict),
            e => failed(e),
        })
    })
    .await
}

/// Makes sure that what is asked for here is not done by the process of another vault that serves this namespace.
///
/// # Errors
/// [`NamespaceConflict`](crate::registrar::NamespaceConflict) when the namespace is another vault's; others when the vault
/// cannot be read or the server gives no answer.
pub(crate) async fn check_owner_patiently(config: &Config, client: &Client, address: &str) -> anyhow::Result<()> {
    repeat_unanswered("look whose schedules it holds", address, async || check_owner(config, client).await).await
}

/// The same, asked once.
///
/// # Errors
/// As above.
pub(crate) async fn check_owner(config: &Config, client: &Client) -> anyhow::Result<()> {
    if config.vault.is_none() {
        return Ok(());
    }
    let owner = VaultIdentity::read(&VaultRoot::open(config.vault()?)?)?;
    registrar(client.clone(), config, owner, |_| ()).check_owner().await.map_err(|e| match e {
        RegistrarError::Conflict(conflict) => anyhow::Error::from(*conflict),
        e => failed(e),
    })
}

/// Plans the schedules of all matters and of the vault as a whole.
///
/// # Errors
/// When the index cannot be read or the schedules cannot be listed; nothing has been changed.
pub(crate) async fn plan(registrar: &Registrar, index: &Index, config: &Config) -> anyhow::Result<SchedulePlan> {
    let matters = index.list_matters(&config.cadence).await?;
    let wanted: Vec<WantedMatter> = matters
        .into_iter()
        .map(|m| WantedMatter {
            path: m.path,
            standing: match m.state {
                None => Standing::Unreadable,
                Some(RecordState::Open) => Standing::Open,
                Some(RecordState::Done) => Standing::Done,
                Some(RecordState::Archived) => Standing::Archived,
            },
            interval_seconds: m.interval_seconds,
        })
        .collect();
    let routines = registrar.plan_routines().await.map_err(failed)?;
    let plan = registrar.plan(&wanted).await.map_err(failed)?;
    Ok(SchedulePlan { routines, ..plan })
}

/// The error as a person reads it, with its cause, by which a retry is decided.
fn failed(e: RegistrarError) -> anyhow::Error {
    let told = format!("failed to {e}");
    anyhow::Error::new(e).context(told)
}

/// Carries a plan out and tells the log what did not work. Nothing is done in a namespace that may be another vault's.
pub(crate) async fn apply(registrar: &Registrar, plan: SchedulePlan) -> Outcome {
    if let Some(conflict) = plan.conflict {
        tracing::error!("no schedule was changed: {conflict}");
        return Outcome { conflict: Some(conflict), ..Outcome::default() };
    }
    for warning in &plan.warnings {
        tracing::warn!("{warning}");
    }
    let outcome = registrar.apply(plan).await;
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

impl Outcome {
    /// Some schedule is not as it should be.
    pub(crate) fn is_behind(&self) -> bool {
        !self.errors.is_empty() || !self.routine_errors.is_empty() || self.conflict.is_some()
    }
}
