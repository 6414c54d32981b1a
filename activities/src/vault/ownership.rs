//! Whether the process may act now, as far as a stop and the fleet say.
//!
//! A vault of a fleet asks the fleet's database before it reserves a call and before it changes anything, and the vault
//! writer asks again right before the exchange of files. No answer means no: the evidence is not used up, and the task
//! stays due.

use super::VaultContext;
use std::sync::Arc;
use steward_domain::gates::mode::Mode;
use steward_fleet::VaultOwnership;
use steward_vault::action::ownership::{ChangeNeeds, OwnershipCheck};
use steward_vault::action::writer::ApplyError;
use steward_vault::gates::stop;

/// Lets the vault writer ask the fleet.
#[derive(Debug)]
struct FleetOwnershipCheck(VaultOwnership);

impl OwnershipCheck for FleetOwnershipCheck {
    fn check_change(&self, needs: ChangeNeeds) -> Result<(), String> {
        let permit = self.0.ensure_blocking().map_err(|refusal| refusal.to_string())?;
        let wanted = match needs {
            ChangeNeeds::Ownership => return Ok(()),
            ChangeNeeds::NoStop => Mode::Shadow,
            ChangeNeeds::Mode(mode) => mode,
        };
        match permit.describe_stop() {
            Some(stop) => Err(stop),
            None if permit.ceiling < wanted => Err(format!(
                "the fleet allows {} by now, and the change was decided in {}",
                permit.ceiling.as_str(),
                wanted.as_str()
            )),
            None => Ok(()),
        }
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped_blocking()
    }
}

/// The check that the writer of a fleet's vault must have.
#[must_use]
pub fn create_ownership_check(ownership: VaultOwnership) -> Arc<dyn OwnershipCheck> {
    Arc::new(FleetOwnershipCheck(ownership))
}

impl VaultContext {
    /// Sets what the fleet says about this vault.
    #[must_use]
    pub fn with_ownership(self, ownership: Option<VaultOwnership>) -> Self {
        Self { ownership, ..self }
    }

    /// Whether a stop holds, by the file of the vault and the last answer of the fleet.
    pub(crate) fn is_stopped(&self) -> bool {
        stop::is_stopped(self.writer.root())
            || self.ownership.as_ref().is_some_and(|ownership| ownership.find_pause().is_some())
    }

    /// Why nothing may be sent to the tracker now but what an undo owes; `None` if all may. By the fleet's last answer.
    pub(crate) fn find_delivery_hold(&self) -> Option<&'static str> {
        let ceiling = self.ownership.as_ref().map_or(Some(Mode::Live), VaultOwnership::find_last_ceiling);
        if self.is_stopped() {
            Some("the vault is stopped")
        } else if ceiling.is_none_or(|ceiling| self.settings.policy.mode.min(ceiling) == Mode::Shadow) {
            Some("in shadow mode only an undo reaches the tracker")
        } else {
            None
        }
    }

    /// Why no clerk may be asked now; `None` if one may. Asks the fleet.
    pub(crate) async fn find_hold(&self) -> Option<String> {
        if stop::is_stopped(self.writer.root()) {
            return Some(ApplyError::Stopped.to_string());
        }
        self.obtain_ceiling().await.err()
    }

    /// Why this process may not act for the vault at all, not even to finish what a person undid. Asks the fleet.
    pub(crate) async fn find_ownership_fault(&self) -> Option<String> {
        let ownership = self.ownership.as_ref()?;
        ownership.obtain().await.err().map(|refusal| refusal.to_string())
    }

    /// The most that the fleet allows now; without a fleet, everything.
    ///
    /// # Errors
    /// Why nothing may be changed, for a person.
    pub(super) async fn obtain_ceiling(&self) -> Result<Mode, String> {
        let Some(ownership) = &self.ownership else { return Ok(Mode::Live) };
        let permit = ownership.obtain().await.map_err(|refusal| refusal.to_string())?;
        permit.describe_stop().map_or(Ok(permit.ceiling), Err)
    }
}
