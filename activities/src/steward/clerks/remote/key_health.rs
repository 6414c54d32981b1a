//! Whether the provider accepts the key, as far as its answers show it.
//!
//! The last answer that says anything about the key counts; a failed server says nothing. The key itself is not held
//! here. Whoever watches the process asks.

use super::OVERLOADED;
use reqwest::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is known of the key. Cheap to clone; all clones share it, and so all clerks of a process can.
#[derive(Clone, Debug, Default)]
pub struct KeyHealth(Arc<AtomicBool>);

impl KeyHealth {
    /// Whether the provider refused the key last, or asked for one. `false` before the first call.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn record_status(&self, status: StatusCode) {
        match status.as_u16() {
            401 | 403 => self.0.store(true, Ordering::Relaxed),
            // A limit of the account is checked after the key.
            200..=299 | 429 | OVERLOADED => self.0.store(false, Ordering::Relaxed),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_lasts_until_an_answer_that_needs_a_good_key() {
        let health = KeyHealth::default();
        assert!(!health.is_refused());
        let shared = health.clone();
        for (status, is_refused) in
            [(401, true), (500, true), (404, true), (200, false), (403, true), (503, true), (429, false), (500, false)]
        {
            health.record_status(StatusCode::from_u16(status).unwrap());
            assert_eq!(shared.is_refused(), is_refused, "after {status}");
        }
        health.record_status(StatusCode::FORBIDDEN);
        health.record_status(StatusCode::from_u16(OVERLOADED).unwrap());
        assert!(!shared.is_refused());
    }
}
