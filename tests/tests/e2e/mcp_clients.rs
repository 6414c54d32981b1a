//! A client over either transport, so that the same calls are made over standard input and output and over HTTP.

use crate::mcp::{Client, modern};
use serde_json::{Value, json};
use steward_tests::api::Api;

/// The code of an invalid request, as for a tool that is not there.
const INVALID_PARAMS: i64 = -32_602;
/// How a call of a tool ends that the caller does not have.
pub(crate) const NO_SUCH_TOOL: &str = "no such tool";

/// A client over HTTP without a session: each request stands for itself.
pub(crate) struct HttpClient {
    api: Api,
    path: String,
}

impl HttpClient {
    /// `api` sends the token.
    pub(crate) fn new(api: &Api, path: &str) -> Self {
        Self { api: api.with("accept", "application/json, text/event-stream"), path: path.to_owned() }
    }

    /// Sends a request, and returns its answer, whatever it is.
    pub(crate) async fn exchange(&self, method: &str, mut params: Value) -> Value {
        let name = ["name", "uri"].into_iter().find_map(|key| params[key].as_str()).unwrap_or_default().to_owned();
        let (api, meta) = modern(&self.api, method, &name);
        params["_meta"] = meta;
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = api.post(&self.path, &request).await;
        let mut events = answer.body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let event = events.rfind(|data| !data.is_empty());
        serde_json::from_str(event.unwrap_or(&answer.body)).unwrap_or_else(|e| panic!("{e}: {answer:?}"))
    }

    /// Calls a tool, and returns the answer, whatever it is.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.exchange("tools/call", json!({"name": tool, "arguments": arguments})).await
    }
}

/// A client over one of the transports.
pub(crate) enum AnyClient {
    Stdio(Box<Client>),
    Http(HttpClient),
}

impl AnyClient {
    /// How a test names it.
    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
        }
    }

    /// Calls a tool, and returns the answer, whatever it is.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        match self {
            Self::Stdio(client) => client.exchange("tools/call", json!({"name": tool, "arguments": arguments})).await,
            Self::Http(client) => client.call(tool, arguments).await,
        }
    }

    pub(crate) async fn end(self) {
        if let Self::Stdio(client) = self {
            client.end().await;
        }
    }
}

/// How a call of a tool was refused: by a code, or because there is no such tool. `None` if it was answered.
pub(crate) fn find_refusal(answer: &Value) -> Option<String> {
    if answer.get("error").is_some() {
        assert_eq!(answer["error"]["code"], json!(INVALID_PARAMS), "{answer:#}");
        return Some(NO_SUCH_TOOL.to_owned());
    }
    let result = &answer["result"];
    assert!(result.is_object(), "{answer:#}");
    if result["isError"] != json!(true) {
        return None;
    }
    let code = result["_meta"]["io.steward/error"]["code"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("error {code}: ")), "{answer:#}");
    Some(code.to_owned())
}
