//! What a run is: who asked for it, in which wiki, of what, and who writes it.
//!
//! It is written once, when the run begins, and never changed.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use steward_domain::wiki::run::{RunId, RunSource, WikiRunType};
use steward_domain::wiki::writer::budget::RunLimits;

/// What a run is, before it has done anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMeta {
    pub run: RunId,
    /// The name of the wiki, and its folder relative to the root of the vault.
    pub wiki: String,
    pub folder: String,
    pub run_type: WikiRunType,
    /// The person who asked, as they gave their name.
    pub by: String,
    pub began: DateTime<Utc>,
    pub source: Option<RunSource>,
    /// The answer that the run files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The review that the run files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<FiledReview>,
    /// Who writes the pages.
    pub writer: String,
    /// What the person who asked allowed it to take.
    #[serde(default, skip_serializing_if = "RunLimits::is_default")]
    pub limits: RunLimits,
    /// Nobody asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

/// A review of which a page is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiledReview {
    pub id: String,
    /// The model whose words the page holds, as in `openai/gpt-4.1`.
    pub model: String,
}

/// Who writes by fixed rules.
pub const RULES_WRITER: &str = "rules";
/// The writer of a run that an assistant writes, call by call.
pub const ASSISTANT_WRITER: &str = "assistant";

impl RunMeta {
    /// Whether fixed rules write the pages, and no model.
    #[must_use]
    pub fn is_by_rules(&self) -> bool {
        self.writer == RULES_WRITER
    }

    /// Whether an assistant writes the pages.
    #[must_use]
    pub fn is_by_assistant(&self) -> bool {
        self.writer == ASSISTANT_WRITER
    }
}
