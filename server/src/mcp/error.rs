//! Why a tool gave no result, in words that a model can act on.
//!
//! A refusal is an answer of the tool, so that the model can correct its call. What it repeats of the call is outside words.

use super::outside::escape_outside;
use crate::temporal::resolve::ResolutionRequestError;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, MetaObject};
use serde_json::json;
use steward_domain::wiki::writer::refusal::DraftFault;

/// The key of an error in the metadata of a result.
pub(crate) const ERROR_KEY: &str = "io.steward/error";
/// The most characters of a call that an error repeats.
const MAX_REPEATED: usize = 120;

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum ToolErrorCode {
    BadArguments,
    BadCursor,
    BadGlob,
    BadPattern,
    /// The revision is none of the clone.
    BadRev,
    /// The words about a wiki take more tokens than a guide may.
    BudgetExceeded,
    /// The rules refuse a change of a page.
    #[strum(to_string = "{0}")]
    Draft(DraftFault),
    /// The process that holds the vault is not reached.
    EngineAway,
    /// A path that leads out of its folder.
    EscapesWorkspace,
    /// The rate guard has no room for the calls of models.
    GuardRefused,
    /// A symbolic link, or a path through one: nothing is read through links.
    IsALink,
    /// The fault is ours; the log of the process says more.
    Internal,
    /// The entry for the log has another form.
    LogHeaderUnparseable,
    LogUnavailable,
    /// Several clones belong to the wiki, and the call names none.
    ManyClones,
    /// A person alone decides, in the dashboard or by a command.
    NeedsHuman,
    NoClone,
    NoFootnote,
    NoPages,
    NoSection,
    NotFound,
    NotText,
    PathNotWiki,
    RawIsReadOnly,
    /// The rules refuse a resolution. The number is that of the other interfaces.
    Refused,
    RunAmbiguous,
    /// The run takes no changes.
    RunClosed,
    RunIncomplete,
    RunUnknown,
    /// A tool that the caller's rights do not allow.
    ScopeTooSmall,
    SourceDrifted,
    SourceMissing,
    /// A page is not as the caller saw it.
    StaleBase,
    TextPending,
    /// No room for another call now.
    TooFast,
    /// A file that is not sent as a whole.
    TooLarge,
    /// Another call of the same run is under way.
    WorkspaceBusy,
    WorkspaceNotAccessible,
    WorkspaceRequired,
}

/// A refusal: what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error {code}: {what}. {fix}")]
pub(crate) struct ToolError {
    pub(crate) code: ToolErrorCode,
    what: String,
    fix: String,
}

impl ToolError {
    pub(crate) fn new(code: ToolErrorCode, what: impl Into<String>, fix: impl Into<String>) -> Self {
        let mut what = what.into();
        // A sentence of another part may end with its own full stop.
        if what.ends_with('.') && !what.ends_with("..") {
            what.pop();
        }
        Self { code, what, fix: fix.into() }
    }

    /// A fault of this process or of a file.
    pub(crate) fn internal(what: impl ToString) -> Self {
        let fix = "Try again; if it stays, `steward doctor` and the log of the process say more";
        Self::new(ToolErrorCode::Internal, shorten_outside(&what.to_string()), fix)
    }

    /// What cannot be logged is not answered.
    pub(crate) fn without_log(e: &std::io::Error) -> Self {
        tracing::error!("the log of calls cannot be written: {e}");
        let fix = "Free some space, or make `.steward/logs/` of the vault writable";
        Self::new(ToolErrorCode::LogUnavailable, "nothing is answered without its line in the log", fix)
    }

    /// The same as an error of the protocol, for requests that are no calls of tools.
    pub(crate) fn into_protocol_error(self) -> ErrorData {
        let data = json!({ERROR_KEY: {"code": self.code.to_string(), "what": self.what, "fix": self.fix}});
        match self.code {
            ToolErrorCode::BadArguments | ToolErrorCode::BadCursor | ToolErrorCode::TooLarge => {
                ErrorData::invalid_params(self.to_string(), Some(data))
            }
            _ => ErrorData::internal_error(self.to_string(), Some(data)),
        }
    }

    /// What is wrong and what to do, without the code.
    pub(crate) fn describe_problem(&self) -> String {
        format!("{}. {}", self.what, self.fix)
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::error(vec![ContentBlock::text(self.to_string())]);
        let mut meta = MetaObject::new();
        let value = json!({"code": self.code.to_string(), "what": self.what, "fix": self.fix});
        meta.0.insert(ERROR_KEY.to_owned(), value);
        result.meta = Some(meta);
        result
    }
}

/// The longest reason of ours that an error repeats, in characters: names and notes in it are outside words.
const MAX_REASON: usize = 600;

/// A reason in the words of the other interfaces, on one line and with nothing hidden.
pub(crate) fn show_reason(text: &str) -> String {
    show_beginning(text, MAX_REASON)
}

/// Why the process that holds the vault gave no outcome.
pub(crate) fn refuse_request(e: &ResolutionRequestError) -> ToolError {
    let what = show_reason(&e.to_string());
    match e {
        ResolutionRequestError::Away { .. } | ResolutionRequestError::Paused { .. } => {
            ToolError::new(ToolErrorCode::EngineAway, what, "Start it with `steward up`, then try again")
        }
        ResolutionRequestError::Late { .. } => {
            ToolError::new(ToolErrorCode::EngineAway, what, "`steward_actions` shows whether it was done")
        }
        ResolutionRequestError::Failed { .. } => ToolError::internal(what),
    }
}

/// Words of a call as an error repeats them: short, on one line, and with nothing hidden.
pub(crate) fn shorten_outside(text: &str) -> String {
    show_beginning(text, MAX_REPEATED)
}

fn show_beginning(text: &str, most: usize) -> String {
    let short: String = text.chars().take(most).collect();
    escape_outside(&short).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_code_what_is_wrong_and_the_fix() {
        let error = ToolError::new(ToolErrorCode::NotFound, "there is no `x`", "List the pages");
        assert_eq!(error.to_string(), "error not_found: there is no `x`. List the pages");
        let result = error.into_result();
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.meta.unwrap().0[ERROR_KEY]["code"], "not_found");
        assert_eq!(shorten_outside("a\nb\u{202e}⟧"), "a b\\u{202e}\\u{27e7}");
    }
}
