//! Shows a person the address where they decide, if their client can open addresses.
//!
//! The client's answer proves nothing: whatever it says, the tool reads the record afterwards. A client of the newest protocol is asked in
//! the result of its call and calls again with a seal; an older one is asked in its session, and the call goes on.

use super::call_log::hash_arguments;
use super::fence::FenceKey;
use super::requests::run_work;
use super::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolVisibility};
use chrono::{DateTime, TimeDelta, Utc};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ElicitRequest, ElicitRequestParams, InputRequest, InputRequiredResult, ProtocolVersion,
};
use rmcp::service::RequestContext;
use serde_json::Value;
use std::time::Duration;
use url::Url;

/// What the person reads beside the address. It is constant, because names are outside words.
const MESSAGE: &str = "An assistant asks you to decide about an action of Steward. Read its card at this address. Only your click there decides.";
/// How long a session is asked before the call ends without an answer of its client.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a seal says that a client was asked already.
const SEAL_LIFETIME: TimeDelta = TimeDelta::minutes(10);
/// The name of the request in a result.
const CARD: &str = "card";

/// How the client of a call is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PersonChannel {
    /// By the result of the call.
    Result,
    /// In its session, while the call waits.
    Session,
}

impl PersonChannel {
    /// How a client that opens addresses is asked; `None` for one that does not, or for a tool that needs no person.
    pub(super) fn find(tool: &ToolDefinition, context: &RequestContext<RoleServer>) -> Option<Self> {
        let can_open = context.client_capabilities()?.elicitation?.url.is_some() && tool.kind.needs_person;
        let version = context.protocol_version()?;
        match version.as_str() {
            _ if !can_open => None,
            version if version >= ProtocolVersion::V_2026_07_28.as_str() => Some(Self::Result),
            version if version >= ProtocolVersion::V_2025_11_25.as_str() => Some(Self::Session),
            _ => None,
        }
    }
}

/// Asks the person in the session of an older client, and waits until the client says that they have seen it. What it says changes nothing.
pub(super) async fn ask_in_session(tool: &ToolDefinition, call: &ToolCall, context: &RequestContext<RoleServer>) {
    if tool.check_visibility(&call.caller) != ToolVisibility::Listed {
        return;
    }
    let (same, run) = (call.clone(), tool.run);
    let looked = run_work(&call.vault, &call.caller, tool.kind.cost, move || run(&same)).await;
    let Ok(Ok(ToolAnswer::Value(answer))) = looked else { return };
    let Some(address) = find_address(&answer) else { return };
    let id = hash_arguments(&call.vault.fences, &call.arguments);
    let asked = context.peer.elicit_url_with_timeout(MESSAGE, address, id, Some(PATIENCE));
    tokio::select! {
        answered = asked => if let Err(e) = answered { tracing::debug!("a client did not show an address: {e}") },
        () = context.ct.cancelled() => {}
    }
}

/// What a client of the newest protocol gets in place of a result that waits for a person; `None` if it was asked already.
pub(super) fn ask_by_result(
    call: &CallSeal<'_>,
    result: &CallToolResult,
    state: Option<&str>,
    now: DateTime<Utc>,
) -> Option<InputRequiredResult> {
    let address = find_address(result.structured_content.as_ref()?)?;
    if state.is_some_and(|state| call.is_valid(state, now)) {
        return None;
    }
    let params = ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: MESSAGE.to_owned(),
        url: address.to_string(),
        elicitation_id: call.arguments_hash.clone(),
    };
    let requests = [(CARD.to_owned(), InputRequest::Elicitation(ElicitRequest::new(params)))];
    Some(InputRequiredResult::new(Some(requests.into()), Some(call.seal(now))))
}

/// The address where a person decides, if the result waits for one.
fn find_address(answer: &Value) -> Option<Url> {
    let waits = answer.get("outcome").and_then(Value::as_str) == Some("needs_human");
    Url::parse(answer.get("address").filter(|_| waits)?.as_str()?).ok()
}

/// By what a call is known when it is made again: who calls, the tool, and its arguments.
pub(super) struct CallSeal<'k> {
    key: &'k FenceKey,
    caller: String,
    tool: &'static str,
    arguments_hash: String,
}

impl<'k> CallSeal<'k> {
    pub(super) fn new(key: &'k FenceKey, tool: &ToolDefinition, call: &ToolCall) -> Self {
        Self {
            key,
            caller: call.caller.name.clone(),
            tool: tool.name,
            arguments_hash: hash_arguments(key, &call.arguments),
        }
    }

    fn sign(&self, until: i64) -> String {
        let signed = serde_json::to_vec(&("input", until, &self.caller, self.tool, &self.arguments_hash));
        self.key.sign(&signed.unwrap_or_default())
    }

    fn seal(&self, now: DateTime<Utc>) -> String {
        let until = (now + SEAL_LIFETIME).timestamp();
        format!("{until}.{}", self.sign(until))
    }

    fn is_valid(&self, state: &str, now: DateTime<Utc>) -> bool {
        let Some((until, mark)) = state.split_once('.') else { return false };
        until.parse().is_ok_and(|until: i64| until >= now.timestamp() && self.sign(until) == mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seal<'k>(key: &'k FenceKey, caller: &str, arguments_hash: &str) -> CallSeal<'k> {
        CallSeal { key, caller: caller.to_owned(), tool: "steward_confirm", arguments_hash: arguments_hash.to_owned() }
    }

    fn waiting(outcome: &str) -> CallToolResult {
        let mut result = CallToolResult::success(Vec::new());
        result.structured_content = Some(json!({"outcome": outcome, "address": "http://127.0.0.1:8420/actions/1"}));
        result
    }

    #[test]
    fn a_client_is_asked_once_for_the_same_call_and_again_after_ten_minutes() {
        let key = FenceKey::new("secret");
        let (call, now) = (seal(&key, "ann", "a1"), Utc::now());
        let asked = ask_by_result(&call, &waiting("needs_human"), None, now).unwrap();
        let shown = serde_json::to_value(&asked).unwrap();
        assert_eq!(shown["inputRequests"]["card"]["params"]["url"], "http://127.0.0.1:8420/actions/1", "{shown:#}");
        assert_eq!(shown["inputRequests"]["card"]["params"]["mode"], "url", "{shown:#}");
        let state = asked.request_state.unwrap();
        let again =
            |call: &CallSeal<'_>, state: &str, now| ask_by_result(call, &waiting("needs_human"), Some(state), now);
        assert!(again(&call, &state, now).is_none());
        assert!(again(&call, &state, now + TimeDelta::minutes(11)).is_some());
        for (other, state) in [
            (seal(&key, "eve", "a1"), state.as_str()),
            (seal(&key, "ann", "b2"), state.as_str()),
            (seal(&key, "ann", "a1"), "99999999999.0123456789ab"),
            (seal(&key, "ann", "a1"), "x"),
        ] {
            assert!(again(&other, state, now).is_some(), "{state}");
        }
        assert!(ask_by_result(&call, &waiting("confirmed"), None, now).is_none());
    }
}
