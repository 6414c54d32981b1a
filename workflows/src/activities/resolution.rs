//! A resolution of an action, and how it ended.
//!
//! Both are payloads of `ResolveWorkflow`. Their field names stand in recorded histories, so they must not change.

use serde::{Deserialize, Serialize};
use steward_domain::action::audit::ResolverKind;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::ActionId;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::record::path::RecordPath;

/// A resolution of an action; the argument of `ResolveWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolveInput {
    pub kind: ResolutionKind,
    /// The action's id, or at least four of its first digits that no other action begins with.
    pub action: String,
    pub by: String,
    #[serde(default)]
    pub reason: Option<String>,
    /// For a confirmation: the change to make instead of the proposed one, of the same kind with another value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Mutation>,
    /// The id of the batch, if several actions are resolved with one click.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<ActionId>,
    /// Histories without it are those of people.
    #[serde(default, skip_serializing_if = "ResolverKind::is_human")]
    pub resolved_by: ResolverKind,
}

/// How a resolution ended; the result of `ResolveWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ResolveOutput {
    Done {
        action_id: ActionId,
        record: RecordPath,
        target: RecordPath,
        /// The record with a new debt to the tracker, which is delivered at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owes: Option<ActionId>,
        /// What was done in the tracker, in our own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tracker: Option<String>,
        /// The demotions that an undo caused by being one too many, in our own words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lowered: Vec<String>,
    },
    /// `status` is the HTTP status of the refusal.
    Refused { status: u16, refusal: ResolutionRefusal, message: String },
}

impl ResolveOutput {
    /// Builds a refusal with its status and its message.
    #[must_use]
    pub fn from_refusal(refusal: ResolutionRefusal) -> Self {
        Self::Refused { status: refusal.http_status(), message: refusal.to_string(), refusal }
    }
}
