//! Explains why a call got no answer, and what a person can do about it.
//!
//! The provider's message is quoted where it helps, through [`sanitize_text`]. It must not be quoted when the key was
//! refused, because providers tend to repeat a part of the key there.

use super::RemoteClerkConfig;
use super::answer::error_message;
use super::text::sanitize_text;
use reqwest::StatusCode;
use serde_json::Value;

/// Explains a request that could not be sent, or a response that broke off.
pub(super) fn explain_transport_error(error: &reqwest::Error, config: &RemoteClerkConfig) -> String {
    let RemoteClerkConfig { base_url, .. } = config;
    if error.is_timeout() {
        let seconds = config.timeout.as_secs_f64();
        format!(
            "no complete answer from {base_url} within {seconds} s: raise the clerk's timeout or use a faster model"
        )
    } else if error.is_connect() {
        let why = innermost_cause(error);
        format!("cannot connect to {base_url} ({why}): check that the server runs and that the base URL is right")
    } else {
        let why = innermost_cause(error);
        format!("the connection to {base_url} broke before the answer was complete ({why}): check the server's log")
    }
}

/// Explains a response with any status but 200, 429 and 529.
pub(super) fn explain_status(status: StatusCode, body: &[u8], config: &RemoteClerkConfig) -> String {
    let RemoteClerkConfig { wire, base_url, model, api_key_variable: variable, .. } = config;
    let words = &wire.words;
    let code = status.as_u16();
    let quote = quote_server(body, config);
    match code {
        401 | 403 if config.api_key.is_none() => format!("{base_url} requires a key ({code}): set {variable}"),
        401 | 403 => format!("{base_url} refused the key ({code}): check the value of {variable} and the key's rights"),
        404 => {
            let (offers, hint) = (words.offers, words.unknown_model);
            format!("{base_url} offers no {offers} or no model `{model}` (404){quote}: {hint}")
        }
        400 | 422 => format!(
            "{base_url} refused the request ({code}){quote}: check that it offers the model `{model}` and that it \
             accepts {}",
            words.form
        ),
        300..=399 => format!("{base_url} redirects ({code}): set the base URL to the server's final address"),
        500..=599 => format!("{base_url} failed ({code}){quote}: Steward will ask again later"),
        _ => format!("{base_url} answered with status {code}{quote}: check that it offers {}", words.offers),
    }
}

/// Whether a server refused a request because of its tools.
pub(super) fn names_tools(status: StatusCode, body: &[u8]) -> bool {
    let is_refusal = matches!(status.as_u16(), 400 | 404 | 405 | 422 | 500 | 501);
    let text = String::from_utf8_lossy(body).to_lowercase();
    let says_why = ["support", "jinja", "unknown", "unrecognized", "not permitted", "extra"];
    is_refusal && text.contains("tool") && says_why.iter().any(|word| text.contains(word))
}

/// Explains a response with status 200 that does not have the wire's form.
pub(super) fn explain_missing_completion(found: &str, config: &RemoteClerkConfig) -> String {
    let RemoteClerkConfig { wire, base_url, .. } = config;
    let (response, form) = (wire.words.response, wire.words.base_url);
    format!("{base_url} sent {found} instead of {response}: check that the base URL {form}")
}

/// Explains a response that is larger than the limit.
pub(super) fn explain_oversize(config: &RemoteClerkConfig) -> String {
    let RemoteClerkConfig { wire, base_url, max_response_bytes: limit, .. } = config;
    let offers = wire.words.offers;
    format!("the response of {base_url} is larger than {limit} bytes: check that it offers {offers}")
}

fn quote_server(body: &[u8], config: &RemoteClerkConfig) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let text = String::from_utf8_lossy(body);
    let message = json.as_ref().and_then(error_message).unwrap_or(&text);
    if message.trim().is_empty() {
        String::new()
    } else {
        format!(", saying \"{}\"", sanitize_text(message, config.api_key.as_ref()))
    }
}

/// The innermost cause. The outer ones only repeat that the request failed, and where.
fn innermost_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    sanitize_text(&cause.to_string(), None)
}
