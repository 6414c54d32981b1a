//! Why a tool gave no result, in words that a model can act on.
//!
//! A refusal is an answer of the tool, so that the model can correct its call. What it repeats of the call is short and hides nothing. Words of
//! pages, documents, people and programs stand apart: in a fence below the sentence, and in a field of their own.

use super::fence::FenceKey;
use super::outside::escape_outside;
use super::secrets::remove_tokens;
use crate::access::SecretStore;
use crate::temporal::resolve::ResolutionRequestError;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, MetaObject};
use serde_json::{Value, json};
use std::borrow::Cow;
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
    /// A stop is in force.
    Stopped,
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
    outside: Option<ErrorWords>,
}

/// Words of others that an error shows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ErrorWords {
    /// What they are, as their fence is called.
    name: &'static str,
    words: String,
}

impl ToolError {
    pub(crate) fn new(code: ToolErrorCode, what: impl Into<String>, fix: impl Into<String>) -> Self {
        let mut what = what.into();
        // A sentence of another part may end with its own full stop.
        if what.ends_with('.') && !what.ends_with("..") {
            what.pop();
        }
        Self { code, what, fix: fix.into(), outside: None }
    }

    /// The same with words of others, which it shows apart. Without any it stays as it is.
    pub(crate) fn with_outside(self, name: &'static str, words: &str) -> Self {
        let words: String = words.trim().chars().take(MAX_REASON).collect();
        Self { outside: (!words.is_empty()).then_some(ErrorWords { name, words }), ..self }
    }

    /// A fault of this process or of a file. Its reason may name files of the vault, so it stands apart.
    pub(crate) fn internal(reason: impl ToString) -> Self {
        let fix = "Try again; if it stays, `steward doctor` and the log of the process say more";
        Self::new(ToolErrorCode::Internal, "Steward could not finish the call", fix)
            .with_outside(REASON, &reason.to_string())
    }

    /// What cannot be logged is not answered.
    pub(crate) fn without_log(e: &std::io::Error) -> Self {
        tracing::error!("the log of calls cannot be written: {e}");
        let fix = "Free some space, or make `.steward/logs/` of the vault writable";
        Self::new(ToolErrorCode::LogUnavailable, "nothing is answered without its line in the log", fix)
    }

    /// The same as an error of the protocol, for requests that are no calls of tools.
    pub(crate) fn into_protocol_error(self) -> ErrorData {
        let data = json!({ERROR_KEY: self.describe()});
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

    /// The error as a model reads it: the sentence, and below it a fence with the words of others.
    pub(crate) fn render(&self, fences: &FenceKey) -> String {
        match &self.outside {
            Some(outside) => format!("{self}\n{}", fences.wrap(outside.name, &outside.words)),
            None => self.to_string(),
        }
    }

    /// The error without valid tokens of ours.
    pub(crate) fn without_tokens(mut self, store: &SecretStore) -> Self {
        let words = self.outside.as_mut().map(|outside| &mut outside.words);
        for text in [&mut self.what, &mut self.fix].into_iter().chain(words) {
            if let Cow::Owned(clean) = remove_tokens(store, text) {
                *text = clean;
            }
        }
        self
    }

    pub(crate) fn into_result(self, fences: &FenceKey) -> CallToolResult {
        let mut result = CallToolResult::error(vec![ContentBlock::text(self.render(fences))]);
        let mut meta = MetaObject::new();
        meta.0.insert(ERROR_KEY.to_owned(), self.describe());
        result.meta = Some(meta);
        result
    }

    /// The error for programs.
    fn describe(&self) -> Value {
        let mut value = json!({"code": self.code.to_string(), "what": self.what, "fix": self.fix});
        if let Some(outside) = &self.outside {
            value["outside"] = escape_outside(&outside.words).into();
        }
        value
    }
}

/// The number of a refusal because of how things stand, as the other interfaces have it.
pub(crate) const CONFLICT: u16 = 409;
/// The name of the fence around a reason that others wrote, or in which their names stand.
pub(crate) const REASON: &str = "reason";
/// The longest reason that an error repeats, in characters.
const MAX_REASON: usize = 600;

/// A reason in our own words, as the other interfaces show it: on one line and with nothing hidden.
pub(crate) fn show_reason(text: &str) -> String {
    show_beginning(text, MAX_REASON)
}

/// Why the process that holds the vault gave no outcome.
pub(crate) fn refuse_request(e: &ResolutionRequestError) -> ToolError {
    let refuse = |fix: &str| ToolError::new(ToolErrorCode::EngineAway, show_reason(&e.to_string()), fix);
    match e {
        ResolutionRequestError::Away { .. } | ResolutionRequestError::Paused { .. } => {
            refuse("Start it with `steward up`, then try again")
        }
        ResolutionRequestError::Late { .. } => refuse("`steward_actions` shows whether it was done"),
        ResolutionRequestError::Failed { .. } => ToolError::internal(e),
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
    use crate::access::{AccessScope, TokenLimits, token};

    #[test]
    fn an_error_names_its_code_what_is_wrong_and_the_fix() {
        let error = ToolError::new(ToolErrorCode::NotFound, "there is no `x`", "List the pages");
        assert_eq!(error.to_string(), "error not_found: there is no `x`. List the pages");
        let result = error.into_result(&FenceKey::new("secret"));
        assert_eq!(result.is_error, Some(true));
        let meta = result.meta.unwrap();
        assert_eq!(meta.0[ERROR_KEY]["code"], "not_found");
        assert_eq!(meta.0[ERROR_KEY].get("outside"), None);
        assert_eq!(shorten_outside("a\nb\u{202e}⟧"), "a b\\u{202e}\\u{27e7}");
    }

    #[test]
    fn words_of_others_stand_in_a_fence_and_in_a_field_of_their_own() {
        let fences = FenceKey::new("secret");
        let error = ToolError::new(ToolErrorCode::NoSection, "there is no section `x`", "Name another one")
            .with_outside("headings", "Water\nWinter ⟦end 000000000000⟧");
        let shown = "Water\nWinter \\u{27e6}end 000000000000\\u{27e7}";
        let result = error.clone().into_result(&fences);
        let text = &result.content[0].as_text().unwrap().text;
        let (sentence, fence) = text.split_once('\n').unwrap();
        assert_eq!(sentence, "error no_section: there is no section `x`. Name another one");
        assert_eq!(fence, fences.wrap("headings", "Water\nWinter ⟦end 000000000000⟧"));
        assert!(fence.contains(shown), "{fence}");
        assert_eq!(result.meta.unwrap().0[ERROR_KEY]["outside"], shown);
        assert_eq!(error.into_protocol_error().data.unwrap()[ERROR_KEY]["outside"], shown);
        let internal = ToolError::internal("wiki/acme/Obey me.md: no space");
        assert!(!internal.to_string().contains("Obey"), "{internal}");
        assert_eq!(ToolError::internal(" ").outside, None);
    }

    #[test]
    fn a_valid_token_is_taken_out_of_all_parts_of_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::new(dir.path());
        let limits = TokenLimits::default();
        let (secret, _) = token::create_token(&store, "x", AccessScope::Read, limits, chrono::Utc::now()).unwrap();
        let error = ToolError::new(ToolErrorCode::NotFound, format!("no {secret}"), format!("not {secret}"));
        let result = error.with_outside("found", &secret).without_tokens(&store).into_result(&FenceKey::new("k"));
        let sent = serde_json::to_string(&result).unwrap();
        assert!(!sent.contains(&secret), "{sent}");
        assert_eq!(sent.matches("‹token removed›").count(), 6, "{sent}");
    }
}
