//! `WikiRunWorkflow`: one change of a wiki that a person asked for.
//!
//! The process that holds the vault carries it out in one activity. A refusal is a result with an HTTP status and not a
//! failure. It must not read or write a wiki itself.

use super::wiki_activity_options;
use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::permanent_failure;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::RecordPath;
use steward_domain::record::plain_text;
use steward_domain::wiki::run::{RunId, RunSource};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// A person's request to change a wiki; the argument of `WikiRunWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WikiRunInput {
    /// The name of the wiki.
    pub wiki: String,
    /// The person's name, as they gave it.
    pub by: String,
    /// When the person asked for it. The run is named after this moment, so that a repeat finds it.
    pub at: DateTime<Utc>,
    pub request: WikiRequest,
}

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WikiRequest {
    /// Accept the files that say how the wiki is written, as they have these hashes.
    Accept { files: BTreeMap<String, ContentHash> },
    /// Add a source at this path of the wiki. Its bytes were uploaded under a name, or lie there already.
    AddSource { path: String, upload: Option<RunId> },
    /// Note that the source with the id `new` replaces the one with the id `old`.
    Supersede { old: String, new: String },
    /// Commit a run that waits, if this is what is staged. With a reason also one that a verifier refused.
    Approve {
        run: RunId,
        staged: ContentHash,
        /// Why the person commits it against the verifier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        override_reason: Option<String>,
        /// The person answered in a terminal. Otherwise they were logged in.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_terminal: bool,
    },
    /// End a run that waits.
    Reject {
        run: RunId,
        /// Why, in the words of who does it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Take a committed run back.
    Revert {
        run: RunId,
        /// Pages that were edited where the run changed them stay as they are.
        keep_edited: bool,
        /// Why, in the words of who does it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Keep one side of a dispute, and remove the others.
    Settle {
        /// The slug of the page.
        page: String,
        /// A claim of the dispute.
        claim: String,
        /// The claim of it that stays.
        keep: String,
    },
    /// Note that a person found a page still right.
    Confirm {
        /// The slug of the page.
        page: String,
    },
    /// Render the files anew that code writes.
    Fix {
        /// Correct pages, too, as far as fixed rules can.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pages: bool,
    },
    /// Note in the log that the wiki was checked, if it is another one than at the last check.
    Lint,
}

impl WikiRequest {
    /// The request in a word, for the id and the details of a workflow.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Accept { .. } => "accept",
            Self::AddSource { .. } => "add-source",
            Self::Supersede { .. } => "supersede",
            Self::Approve { .. } => "approve",
            Self::Reject { .. } => "reject",
            Self::Revert { .. } => "revert",
            Self::Settle { .. } => "settle",
            Self::Confirm { .. } => "confirm",
            Self::Fix { .. } => "fix",
            Self::Lint => "lint",
        }
    }
}

/// How it ended; the result of `WikiRunWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WikiRunOutput {
    Done {
        /// The audit record; absent if nothing had to be changed.
        record: Option<RecordPath>,
        /// The source that was added, or was there already.
        source: Option<RunSource>,
        /// What people should know, one line each.
        notes: Vec<String>,
    },
    /// `status` is the HTTP status of the refusal.
    Refused { status: u16, message: String },
}

/// Changes a wiki. Argument: [`WikiRunInput`]; result: [`WikiRunOutput`].
#[workflow]
#[derive(Default)]
pub struct WikiRunWorkflow;

#[workflow_methods]
impl WikiRunWorkflow {
    /// Runs the change.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "WikiRunWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<WikiRunInput>,
    ) -> WorkflowResult<WikiRunOutput> {
        let input =
            argument.into_value("an object with the keys wiki, by, at and request").map_err(permanent_failure)?;
        // The details are shown as Markdown, and names and messages hold untrusted text.
        let request = format!("{} in {}", input.request.word(), plain_text::escape_one_line(&input.wiki));
        let options = wiki_activity_options(input.request.word());
        let output = ctx.execute_activity(VaultActivities::change_wiki, input, options).await?;
        ctx.set_current_details(match &output {
            WikiRunOutput::Done { record: Some(record), .. } => format!("{request}: done, see {record}"),
            WikiRunOutput::Done { record: None, .. } => format!("{request}: nothing to do"),
            WikiRunOutput::Refused { status, message } => {
                format!("{request}: refused ({status}): {}", plain_text::escape_one_line(message))
            }
        });
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nightly_fix_is_written_as_before_and_asks_for_no_page() {
        let nightly = WikiRequest::Fix { pages: false };
        assert_eq!(serde_json::to_value(&nightly).unwrap(), serde_json::json!({"kind": "fix"}));
        assert_eq!(serde_json::from_value::<WikiRequest>(serde_json::json!({"kind": "fix"})).unwrap(), nightly);
        let asked = serde_json::to_value(WikiRequest::Fix { pages: true }).unwrap();
        assert_eq!(asked, serde_json::json!({"kind": "fix", "pages": true}));
    }
}
