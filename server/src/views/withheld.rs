//! The signals that a question withholds: they are not proposed while a human is asked.
//!
//! They are read from the index alone. Their quotes are untrusted text.

use super::action::Action;
use super::{FactsError, VaultViews};
use serde::Serialize;
use steward_domain::action::plan::ActionId;
use utoipa::ToSchema;

/// Most signals that are listed on a question; the newest.
const MOST_WITHHELD: u32 = 20;

/// A signal that was not proposed because a human is asked.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WithheldSignal {
    /// The signal's record.
    pub signal: String,
    /// Untrusted.
    pub source: String,
    /// At most 50 characters, verbatim. Untrusted.
    pub quote: String,
    /// What it proposes: `state_change`, `context_edit`, `parent_matter` or `related`.
    pub class: Option<String>,
}

impl VaultViews {
    pub(super) async fn attach_withheld_signals(&self, action: &mut Action, id: &ActionId) -> Result<(), FactsError> {
        if action.is_question() {
            let withheld =
                self.index.read().list_signals_withheld_by(id, MOST_WITHHELD).await?.into_iter().map(|signal| {
                    WithheldSignal {
                        signal: signal.path.to_string(),
                        source: signal.source,
                        quote: signal.note,
                        class: signal.class.map(|class| class.as_str().to_owned()),
                    }
                });
            action.withheld = withheld.collect();
        }
        Ok(())
    }
}
