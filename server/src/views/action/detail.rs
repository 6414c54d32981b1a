//! One action with everything in its audit record: the clerk's call, the workflow run, the hashes and the tracker.
//!
//! It is read for one action at a time, because it reads more files than a list needs. All foreign text in it stays text.

use super::{Action, FactsError, VaultViews, read_record};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::ActionRow;
use utoipa::ToSchema;

/// An action with everything in its audit record.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionDetail {
    #[serde(flatten)]
    pub action: Action,
    pub clerk: Option<ActionClerk>,
    pub workflow: Option<ActionWorkflowRun>,
    /// The weight of each source, 0 to 1.
    pub source_contributions: BTreeMap<String, f64>,
    /// SHA-256 of the record before this one in the chain, in hex.
    pub prev_sha256: Option<String>,
    /// SHA-256 of this record's file, in hex.
    pub sha256: Option<String>,
    /// The changed fields before the change, as JSON. Untrusted.
    #[schema(value_type = Object)]
    pub prior_frontmatter: serde_json::Map<String, Value>,
    /// What the tracker has received for it, or is still owed, in Steward's own words.
    pub tracker: Option<String>,
}

/// The clerk call behind a decision.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionClerk {
    pub provider: String,
    pub model: String,
    /// SHA-256 of the prompt, in hex.
    pub prompt_sha256: String,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Whether the clerk gave no usable answer and this decision replaces it.
    pub fallback: bool,
    /// Whether an earlier answer to the same evidence was used, without a call.
    pub cached: bool,
}

/// The workflow run that decided.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionWorkflowRun {
    pub id: String,
    pub run_id: String,
}

impl VaultViews {
    /// Reads one action with everything in its audit record.
    ///
    /// # Errors
    /// As [`Self::find_record_path`]. A record that cannot be read is no error; the action has a `problem`.
    pub async fn read_detail(&self, id: &str) -> Result<ActionDetail, FactsError> {
        let path = self.find_record_path(id).await?;
        let row = self
            .index
            .actions()
            .action_by_path(&path)
            .await?
            .ok_or_else(|| FactsError::Unknown { id: id.to_owned() })?;
        let (root, now, id) = (self.root.clone(), Utc::now(), row.id.clone());
        let read = tokio::task::spawn_blocking(move || build_detail(&root, &row, now));
        let mut detail =
            read.await.map_err(|e| FactsError::Record { path: path.to_string(), reason: e.to_string() })?;
        self.attach_withheld_signals(&mut detail.action, &id).await?;
        self.attach_record_signals(std::slice::from_mut(&mut detail.action)).await?;
        Ok(detail)
    }
}

fn build_detail(root: &VaultRoot, row: &ActionRow, now: DateTime<Utc>) -> ActionDetail {
    let action = Action::from_row(row, now);
    let bare = |action| ActionDetail {
        action,
        clerk: None,
        workflow: None,
        source_contributions: BTreeMap::new(),
        prev_sha256: None,
        sha256: None,
        prior_frontmatter: serde_json::Map::new(),
        tracker: None,
    };
    let (record, sha256) = match read_record(root, &row.path) {
        Ok(read) => read,
        Err(problem) => return bare(Action { problem: Some(problem), ..action }),
    };
    let delivery = steward_vault::tracker::outbox::read_delivery_status(root, &record);
    let draft = &record.draft;
    ActionDetail {
        clerk: draft.clerk.as_ref().map(|mark| ActionClerk {
            provider: mark.provider.clone(),
            model: mark.model.clone(),
            prompt_sha256: mark.prompt_sha256.clone(),
            prompt_tokens: mark.tokens.prompt_tokens,
            completion_tokens: mark.tokens.completion_tokens,
            fallback: mark.fallback,
            cached: mark.cached,
        }),
        workflow: Some(ActionWorkflowRun { id: draft.workflow.id.clone(), run_id: draft.workflow.run_id.clone() }),
        source_contributions: draft.source_contributions.clone(),
        prev_sha256: Some(record.prev_sha256.as_str().to_owned()),
        sha256: Some(sha256),
        prior_frontmatter: record.prior_frontmatter.clone(),
        tracker: match delivery {
            Ok(delivery) => delivery.map(|delivery| match &delivery.came {
                Some((record, outcome)) => format!("{outcome}; see {record}"),
                None => delivery.says.to_string(),
            }),
            Err(e) => Some(e.to_string()),
        },
        ..bare(action.with_record(&record))
    }
}
