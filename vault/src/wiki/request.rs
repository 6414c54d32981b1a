//! A person's request to change a wiki, and why it was not carried out.
//!
//! The moment of the request names the run, so a repeat finds what an earlier try did.

use crate::action::writer::ApplyError;
use crate::wiki::staged::StagedRunError;
use crate::wiki::state::ReadWikiError;
use chrono::{DateTime, Utc};
use steward_domain::action::audit::{ActionKind, WorkflowRef};
use steward_domain::time::format_millis;
use steward_domain::wiki::assemble::AssembleError;
use steward_domain::wiki::path::PagePathError;
use steward_domain::wiki::plan::{WikiPlanError, WikiRun};
use steward_domain::wiki::run::{RunId, WikiMark, WikiRunType};
use steward_domain::wiki::verify::RulesVerdict;

/// Who asks for a change of a wiki, and when.
#[derive(Clone, Debug)]
pub struct WikiRunRequest<'a> {
    /// The name of the wiki.
    pub wiki: &'a str,
    /// The person's name, as they gave it.
    pub by: &'a str,
    /// The same moment names the same run, so that it is done once.
    pub at: DateTime<Utc>,
    pub workflow: WorkflowRef,
}

/// Why a run changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum WikiRunError {
    /// A rule forbids it. A repeat would be refused too.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Read(#[from] ReadWikiError),
    #[error(transparent)]
    Path(#[from] PagePathError),
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    #[error(transparent)]
    Plan(#[from] WikiPlanError),
    /// A page is not as it was staged.
    #[error("a page changed since the run was staged")]
    Stale,
    /// The rules found a fault.
    #[error("the rules found a fault")]
    Verdict(Box<RulesVerdict>),
    #[error(transparent)]
    Staged(StagedRunError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl WikiRunError {
    pub(crate) fn refuse(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }
}

impl WikiRunRequest<'_> {
    /// The run that carries the request out. `parts` say what it is about.
    #[must_use]
    pub fn describe(&self, kind: ActionKind, folder: &str, run_type: WikiRunType, parts: &[&str]) -> WikiRun {
        let at = format_millis(self.at);
        let parts: Vec<&str> = parts.iter().copied().chain([kind.as_str(), self.wiki, &at]).collect();
        WikiRun {
            kind,
            mark: WikiMark {
                wiki: self.wiki.to_owned(),
                folder: folder.to_owned(),
                run: RunId::derive(self.at, &parts),
                run_type,
                reverts: None,
                source: None,
                verifier: None,
                rejection: None,
            },
            at: self.at,
            reasoning: String::new(),
            workflow: self.workflow.clone(),
            clerk: None,
            claims: Vec::new(),
            accepted: Vec::new(),
        }
    }
}
