//! Says why no answer came, and what a person can do about it.
//!
//! The provider's own words are repeated where they help, through [`shown`]; never with a
//! refused key, because providers like to repeat a part of it there.

use super::RemoteClerkConfig;
use super::answer::error_message;
use super::text::sanitize_text;
use reqwest::StatusCode;
use serde_json::Value;

/// For a request that could not be sent or a response that broke off.
pub(super) fn explain_transport_error(error: &reqwest::Error, config: &RemoteClerkConfig) -> String {
    let RemoteClerkConfig { base_url, .. } = config;
    if error.is_timeout() {
        let seconds = config.timeout.as_secs_f64();
        format!("no whole answer from {base_url} within {seconds} s: raise the clerk's timeout or take a faster model")
    } else if error.is_connect() {
        let why = innermost_cause(error);
        format!("cannot connect to {base_url} ({why}): check that the server runs and that the base URL is right")
    } else {
        let why = innermost_cause(error);
        format!("the connection to {base_url} broke before the answer was whole ({why}): look into the server's log")
    }
}

/// For a response with any status but 200, 429 and 529.
pub(super) fn explain_status(status: StatusCode, body: &[u8], config: &RemoteClerkConfig) -> String {
    let RemoteClerkConfig { wire, base_url, model, api_key_variable: variable, .. } = config;
    let words = &wire.words;
    let code = status.as_u16();
    let said = quote_server(body, config);
    match code {
        401 | 403 if config.api_key.is_none() => format!("{base_url} wants a key ({code}): put one into {variable}"),
        401 | 403 => format!("{base_url} refused the key ({code}): check the value of {variable} and what it may use"),
        404 => {
            let (offers, mend) = (words.offers, words.unknown_model);
            format!("{base_url} has no {offers} or no model `{model}` (404){said}: {mend}")
        }
        400 | 422 => format!(
            "{base_url} refused the request ({code}){said}: check that `{model}` is a model of it and that it takes {}",
            words.form
        ),
        300..=399 => format!("{base_url} redirects elsewhere ({code}): set the base URL to where the server really is"),
        500..=599 => format!("{base_url} is in trouble ({code}){said}: it is asked again later"),
        _ => format!("{base_url} answered with status {code}{said}: check that it is a server of {}", words.offers),
    }
}

/// For a response with status 200 that is none of the wire.
pub(super) fn explain_missing_completion(what: &str, config: &RemoteClerkConfig) -> String {
    let RemoteClerkConfig { wire, base_url, .. } = config;
    let (response, form) = (wire.words.response, wire.words.base_url);
    format!("{base_url} sent {what} instead of {response}: check that the base URL {form}")
}

/// For a response that goes on beyond the limit.
pub(super) fn explain_oversize(config: &RemoteClerkConfig) -> String {
    let RemoteClerkConfig { wire, base_url, max_response_bytes: limit, .. } = config;
    let offers = wire.words.offers;
    format!("the response of {base_url} is larger than {limit} bytes: check that it is a server of {offers}")
}

fn quote_server(body: &[u8], config: &RemoteClerkConfig) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let text = String::from_utf8_lossy(body);
    let said = json.as_ref().and_then(error_message).unwrap_or(&text);
    if said.trim().is_empty() {
        String::new()
    } else {
        format!(", saying \"{}\"", sanitize_text(said, config.api_key.as_ref()))
    }
}

/// The last cause; those around it only repeat that the request failed, and where.
fn innermost_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    sanitize_text(&cause.to_string(), None)
}
