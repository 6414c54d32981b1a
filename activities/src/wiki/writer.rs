//! The model that writes the pages of wikis, and the guard that its calls go through.
//!
//! It may be another one than that of the stewards. It decides nothing: what it says is judged turn by turn.

use crate::steward::clerks::Clerk;
use std::sync::Arc;
use steward_vault::steward::guard::Ledger;

/// Who writes the pages of wikis.
#[derive(Clone)]
pub struct WikiWriter {
    /// A clerk that is no model writes by fixed rules.
    pub clerk: Arc<Clerk>,
    pub ledger: Arc<Ledger>,
    /// Whether pages that no second model checked may be committed without a person.
    pub allows_unverified: bool,
}

impl WikiWriter {
    /// The model with its provider, as in `openai/gpt-4.1`; `None` for fixed rules.
    #[must_use]
    pub fn describe_model(&self) -> Option<String> {
        self.clerk.describe_model()
    }
}
