//! Shows others how far the chain has come, without letting them wait for a change that is under way.
//!
//! The vault writer publishes the head after each record. A heartbeat that waited for the writer's turn would wait for itself,
//! because the writer asks the fleet for its leave within that turn.

use std::sync::{Arc, Mutex, PoisonError};
use steward_domain::action::audit::ChainHead;

/// The head of the audit chain as it is now. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ChainWatch(Arc<Mutex<ChainHead>>);

impl ChainWatch {
    /// The present head.
    #[must_use]
    pub fn read(&self) -> ChainHead {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(in crate::action) fn publish(&self, head: &ChainHead) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(head);
    }
}
