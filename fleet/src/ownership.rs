//! What the process that serves a vault knows of its ownership, and asks again before it acts.
//!
//! A heartbeat asks every few seconds; each act that others could see asks too, unless the last leave is still good. The
//! last answer also says whether anything may begin: not while the fleet is stopped, nor while nobody answers.

use crate::owner::{OwnerPermit, Permit, PermitRefusal};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;

/// The ownership of the vault that this process serves. Cheap to clone; all clones share the last answer.
#[derive(Clone, Debug)]
pub struct VaultOwnership {
    permit: OwnerPermit,
    last: Arc<Mutex<Option<Result<Permit, PermitRefusal>>>>,
    runtime: Handle,
}

impl VaultOwnership {
    /// Must be called inside a tokio runtime, which then carries the calls of other threads.
    #[must_use]
    pub fn new(permit: OwnerPermit) -> Self {
        Self { permit, last: Arc::default(), runtime: Handle::current() }
    }

    /// The epoch of this process.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.permit.epoch()
    }

    /// Asks for the leave to act.
    ///
    /// # Errors
    /// [`PermitRefusal`].
    pub async fn obtain(&self) -> Result<Permit, PermitRefusal> {
        let answer = self.permit.obtain().await;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer.clone());
        answer
    }

    /// The leave to act, asked for again if the last one is no longer good. Call it on a thread that may block, right
    /// before the act.
    ///
    /// # Errors
    /// [`PermitRefusal`].
    pub fn check_blocking(&self) -> Result<(), PermitRefusal> {
        match self.read_last() {
            Some(Ok(permit)) if permit.is_fresh() => Ok(()),
            _ => self.runtime.block_on(self.obtain()).map(drop),
        }
    }

    /// Why nothing may begin now, by the last answer; `None` if it may.
    #[must_use]
    pub fn find_pause(&self) -> Option<String> {
        match self.read_last()? {
            Ok(Permit { stop: Some(stop), .. }) => {
                let reason = if stop.reason.is_empty() { String::new() } else { format!(": {}", stop.reason) };
                Some(format!("the fleet was stopped by {}{reason}", stop.by))
            }
            Ok(Permit { stop: None, .. }) => None,
            Err(refusal) => Some(refusal.to_string()),
        }
    }

    fn read_last(&self) -> Option<Result<Permit, PermitRefusal>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
