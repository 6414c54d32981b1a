//! Whether this process may still change the vault.
//!
//! The lock on the disk excludes other processes of this machine. It says nothing about a copy of the vault on another
//! one. So a vault of a fleet asks right before each exchange of files, because the change may have waited since it was
//! allowed: for another change, a slow disk, or a machine that slept. A refusal leaves everything as it was.

use super::writer::VaultWriter;
use std::fmt::Debug;
use std::sync::Arc;
use steward_domain::gates::mode::Mode;

/// What a change needs besides the ownership of the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeNeeds {
    /// Nothing: what a person takes back, and what only keeps books.
    Ownership,
    /// That no stop holds: what a person confirms.
    NoStop,
    /// That no stop holds and that at least this mode is allowed: what a steward decided in it.
    Mode(Mode),
}

/// Asks whoever decides which copy of a vault may act.
pub trait OwnershipCheck: Send + Sync + Debug {
    /// Asks. It may block for some seconds.
    ///
    /// # Errors
    /// Why this process may not change the vault, for a person.
    fn check_change(&self, needs: ChangeNeeds) -> Result<(), String>;

    /// Whether whoever decides has stopped the vault. It may block as well.
    fn is_stopped(&self) -> bool;
}

impl VaultWriter {
    /// Sets who decides whether this process may change the vault. Without one, the lock alone decides.
    #[must_use]
    pub fn with_ownership(mut self, ownership: Arc<dyn OwnershipCheck>) -> Self {
        self.ownership = Some(ownership);
        self
    }

    /// Whether a stop holds that is no file of the vault.
    pub(super) fn is_stopped_elsewhere(&self) -> bool {
        self.ownership.as_ref().is_some_and(|ownership| ownership.is_stopped())
    }

    pub(super) fn check_change(&self, needs: ChangeNeeds) -> Result<(), String> {
        self.ownership.as_ref().map_or(Ok(()), |ownership| ownership.check_change(needs))
    }
}
