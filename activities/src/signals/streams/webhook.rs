//! Webhooks: checks who may call, and reads the bodies. The process itself listens.
//!
//! A body counts only with a signature over its raw bytes, made with the stream's own secret. Unsigned headers must
//! not be believed. A replayed call has the same text, which is the same event, and Slack's calls also expire. The
//! response to a refused call says only that it was refused.

mod github;
mod slack;

use super::FoundMessage;
use super::StreamKeys;
use super::StreamOpener;
use super::StreamSource;
use super::hash_id;
use super::source_pattern;
use crate::steward::clerks::remote::Secret;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use serde_json::Value;
use sha2::Sha256;
use std::path::PathBuf;
use steward_domain::time;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookSettings {
    #[serde(default)]
    vendor: WebhookVendor,
    secret_env: Option<String>,
    secret_file: Option<PathBuf>,
}

/// The vendor that defines the form of the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WebhookVendor {
    /// `X-Signature-256: sha256=<hex>`, the body a JSON object with a `text`.
    #[default]
    Generic,
    Slack,
    Github,
}

/// One configured webhook, ready to check calls.
#[derive(Clone, Debug)]
pub struct Webhook {
    vendor: WebhookVendor,
    secret: Secret,
    /// Largest body that is read, in bytes.
    pub max_bytes: u64,
}

/// What a call contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookCall {
    /// A message.
    Event(Box<FoundMessage>),
    /// The vendor checks the address; holds the body of the response.
    Challenge(String),
    /// Nothing that becomes an event.
    Nothing,
}

/// Why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookRefusal {
    /// No signature, a wrong one, or an expired one. The caller must not learn which.
    #[error("the signature is missing, wrong or too old")]
    Unsigned,
    #[error("the body is invalid: {0}")]
    Unreadable(String),
}

pub(super) fn read(keys: StreamKeys) -> Result<StreamOpener, String> {
    let max_bytes = keys.max_message_bytes;
    let settings: WebhookSettings = keys.read()?;
    if settings.secret_env.is_some() == settings.secret_file.is_some() {
        return Err("set either `secret_env` or `secret_file`".into());
    }
    Ok(Box::new(move |_| {
        let secret =
            super::settings::read_secret("secret", settings.secret_env.as_deref(), settings.secret_file.as_ref())?;
        Ok(StreamSource::Pushed(Webhook { vendor: settings.vendor, secret, max_bytes }))
    }))
}

impl Webhook {
    /// Checks a call by its headers and its raw body.
    ///
    /// # Errors
    /// [`WebhookRefusal`].
    pub fn check_call<'h>(
        &self,
        header: impl Fn(&str) -> Option<&'h str>,
        body: &[u8],
        now: DateTime<Utc>,
    ) -> Result<WebhookCall, WebhookRefusal> {
        if !self.is_signed(header, body, now) {
            return Err(WebhookRefusal::Unsigned);
        }
        // Serde's message holds a position and a type, and nothing of the secret.
        let json: Value = serde_json::from_slice(body).map_err(|e| WebhookRefusal::Unreadable(e.to_string()))?;
        match self.vendor {
            WebhookVendor::Generic => read_generic_call(&json, body),
            WebhookVendor::Slack => slack::read_call(&json),
            WebhookVendor::Github => Ok(github::read_call(&json, body)),
        }
    }

    fn is_signed<'h>(&self, header: impl Fn(&str) -> Option<&'h str>, body: &[u8], now: DateTime<Utc>) -> bool {
        match self.vendor {
            WebhookVendor::Generic => self.has_valid_mac(header("x-signature-256"), "sha256=", &[body]),
            WebhookVendor::Github => self.has_valid_mac(header("x-hub-signature-256"), "sha256=", &[body]),
            WebhookVendor::Slack => {
                let Some(timestamp) = header("x-slack-request-timestamp").filter(|at| slack::is_fresh(at, now)) else {
                    return false;
                };
                self.has_valid_mac(header("x-slack-signature"), "v0=", &[b"v0:", timestamp.as_bytes(), b":", body])
            }
        }
    }

    /// Verifies a signature in constant time.
    fn has_valid_mac(&self, given: Option<&str>, prefix: &str, parts: &[&[u8]]) -> bool {
        let Some(given) = given.and_then(|g| g.trim().strip_prefix(prefix)).and_then(decode_hex) else { return false };
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.secret.expose().as_bytes()) else { return false };
        parts.iter().for_each(|part| mac.update(part));
        mac.verify_slice(&given).is_ok()
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || text.len() != 64 {
        return None;
    }
    (0..32).map(|at| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()).collect()
}

/// Reads a generic call, which has the same keys as a line in the drop folder.
fn read_generic_call(json: &Value, body: &[u8]) -> Result<WebhookCall, WebhookRefusal> {
    let field = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    let text = field("text").ok_or_else(|| WebhookRefusal::Unreadable("expected an object with a `text`".into()))?;
    let invalid_time = || WebhookRefusal::Unreadable("`at` is not a valid time".into());
    let at = field("at").map(|at| time::parse(&at).ok_or_else(invalid_time));
    Ok(WebhookCall::Event(Box::new(FoundMessage {
        source_id: field("id").unwrap_or_else(|| hash_id(body)),
        pattern: source_pattern("webhook", field("from").as_deref()),
        origin_at: at.transpose()?,
        author: field("from"),
        subject: field("subject"),
        text,
    })))
}

/// Finds a text inside nested objects by the names of the fields.
fn find_text<'v>(json: &'v Value, path: &[&str]) -> Option<&'v str> {
    path.iter().try_fold(json, |inner, name| inner.get(name)).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
