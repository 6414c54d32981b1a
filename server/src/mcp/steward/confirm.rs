//! `steward_confirm`: leads a person to the card of a proposal, and says how it ended.
//!
//! Only a click of a person who is logged in confirms. Neither this call nor an answer of its client is proof of that, so it changes nothing and
//! reads the record each time.

use super::CONFIRM;
use super::facts::{open_views, read_whole_id, wait_for};
use super::resolve::{describe_earlier, refuse_resolution};
use super::wiki_runs::{find_address, find_wiki_run};
use crate::http::serving::ServerEndpoint;
use crate::mcp::error::{REASON, ToolError, ToolErrorCode, show_reason};
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use crate::views::VaultViews;
use crate::views::action::{Action, STATES};
use crate::views::wiki::WikiRunRow;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::action::audit::ActionKind;
use steward_domain::action::undo::ResolutionRefusal;
use steward_domain::time::format_seconds;
use steward_vault::gates::stop::{VaultStop, read_stop};
use url::Url;

/// What the card of a question offers beside a dismissal.
const CARD_STATES: [&str; 2] = ["done", "archived"];

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "steward_confirm",
    title: "Have a person confirm",
    description: "Only a person confirms a proposal: this gives the address of its card, for you to show them. Called again after their click, it says how it ended. \
        Example: steward_confirm(action=\"3f9a1c22b07d4e51\")",
    kind: CONFIRM,
    arguments: describe_vault_arguments::<ConfirmArguments>,
    result: Some(describe_result::<ConfirmResult>),
    run: lead_to_card,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfirmArguments {
    /// The whole id.
    #[schemars(length(min = 16, max = 16))]
    action: String,
    /// A value that the card suggests instead.
    #[schemars(length(max = 500))]
    set: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ConfirmResult {
    action: String,
    /// `needs_human`, `confirmed` or `committed`.
    outcome: String,
    /// The address of the card; absent if no dashboard runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmation: Option<String>,
    /// Outside words: who confirmed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<OutsideWords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undo_until: Option<String>,
}

fn lead_to_card(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let ConfirmArguments { action, set } = call.read_arguments()?;
    let id = read_whole_id(&action)?;
    if let Some(run) = find_wiki_run(call, &id)? {
        if set.is_some() {
            return Err(refuse_value("a run of a wiki has no field"));
        }
        return answer_value(&show_run(call, &run)?);
    }
    let views = open_views(call)?;
    let detail = wait_for(views.read_detail(&id))?;
    let result = match detail.action.resolution.as_deref() {
        Some(how) if how == ActionKind::Confirmed.as_str() => show_confirmation(&views, &id)?,
        Some(how) => return Err(refuse_resolution(&describe_earlier(id, how))),
        None => {
            check_stop(call)?;
            show_card(&views, &detail.action, set.as_deref())?
        }
    };
    answer_value(&result)
}

/// Refuses while a stop is in force: the click of a person would be refused, too. How a proposal ended is still said.
fn check_stop(call: &ToolCall) -> Result<(), ToolError> {
    let Some(VaultStop { at, by, reason }) = read_stop(call.vault.root()) else { return Ok(()) };
    let what = show_reason(&format!("a stop is in force, set by {by} at {at}"));
    let fix = "A person resumes in the dashboard or by `steward resume`; then call again";
    let error = ToolError::new(ToolErrorCode::Stopped, what, fix);
    Err(error.with_outside(REASON, reason.as_deref().unwrap_or_default()))
}

/// The confirmation that a person gave.
fn show_confirmation(views: &VaultViews, id: &str) -> Result<ConfirmResult, ToolError> {
    let row = wait_for(views.find_action_row(id))?;
    let confirmation = match row.resolved_by {
        Some(confirmation) => Some(wait_for(views.read_detail(confirmation.as_str()))?.action),
        None => None,
    };
    Ok(ConfirmResult {
        action: id.to_owned(),
        outcome: "confirmed".to_owned(),
        address: None,
        fix: None,
        undo_until: confirmation.as_ref().and_then(|it| it.undo_until).map(format_seconds),
        by: confirmation.as_ref().and_then(|it| it.by.clone()).map(Into::into),
        confirmation: confirmation.map(|it| it.id),
    })
}

/// The card of an action that waits.
fn show_card(views: &VaultViews, action: &Action, set: Option<&str>) -> Result<ConfirmResult, ToolError> {
    if !action.waits && !action.is_open_question() {
        let (id, disposition) = (action.id.clone(), action.disposition.clone());
        return Err(refuse_resolution(&ResolutionRefusal::NotPending { id, disposition }));
    }
    if action.waits && !action.confirmable {
        return Err(refuse_resolution(&ResolutionRefusal::HumanOnly { id: action.id.clone() }));
    }
    let endpoint = ServerEndpoint::find_for_vault(views.root(), views.state_dir());
    let address = endpoint.map(|endpoint| format!("{}/actions/{}", endpoint.build_address(false), action.id));
    let address = match set.map(str::trim) {
        // Its card has a button for each.
        Some(value) if action.is_open_question() && CARD_STATES.contains(&value) => address,
        Some(value) if action.can_take_value(value) => address.map(|address| suggest_value(&address, value)),
        Some(_) if action.is_open_question() => {
            return Err(refuse_value("a question has no such answer: `set` is done or archived"));
        }
        Some(_) => {
            let field = action.change.as_ref().map_or("", |change| &change.field);
            let states = if field == "state" { format!(": one of {}", STATES.join(", ")) } else { String::new() };
            return Err(refuse_value(&format!("its field `{field}` cannot have this value{states}")));
        }
        None => address,
    };
    Ok(need_person(action.id.clone(), address, "steward confirm"))
}

fn refuse_value(what: &str) -> ToolError {
    ToolError::new(
        ToolErrorCode::BadArguments,
        what,
        "Give another value, or leave `set` out; `steward_actions` shows the proposal",
    )
}

/// The address of a card that suggests a value.
fn suggest_value(address: &str, value: &str) -> String {
    let url = Url::parse_with_params(address, [("set", value)]).map(|mut url| {
        url.set_fragment(Some("edit"));
        url.to_string()
    });
    url.unwrap_or_else(|_| address.to_owned())
}

/// What a caller does until a person has decided. `command` is what they can run instead.
fn need_person(action: String, address: Option<String>, command: &str) -> ConfirmResult {
    let fix = match &address {
        Some(_) => "Show the person this address. They read the card and click; then call again".to_owned(),
        None => format!(
            "No dashboard runs: the person starts one with `steward up` or `steward serve`, or confirms with `{command}`"
        ),
    };
    ConfirmResult {
        action,
        outcome: "needs_human".to_owned(),
        address,
        fix: Some(fix),
        confirmation: None,
        by: None,
        undo_until: None,
    }
}

/// The page of a run of a wiki that waits, or that a person approved it.
fn show_run(call: &ToolCall, run: &WikiRunRow) -> Result<ConfirmResult, ToolError> {
    let action = run.derive_action();
    if run.reverted_by.is_some() {
        return Err(refuse_resolution(&describe_earlier(action, &run.state)));
    }
    if run.is_committed() {
        return Ok(ConfirmResult {
            action,
            outcome: "committed".to_owned(),
            address: None,
            fix: None,
            confirmation: None,
            by: None,
            undo_until: None,
        });
    }
    if !run.waits {
        return Err(refuse_resolution(&ResolutionRefusal::NotPending { id: action, disposition: run.state.clone() }));
    }
    check_stop(call)?;
    Ok(need_person(action, find_address(call, run), &format!("steward wiki runs approve {}", run.short())))
}
