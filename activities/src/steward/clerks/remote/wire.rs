//! The wires: how the request and the response of each vendor's published API are written.
//!
//! A wire is one file with one table. It says where a question goes, how the
//! question stands in a request, and where the answer stands in a response. It sends nothing and judges no
//! answer; what it reads is untrusted and goes on to `answer`.

mod anthropic;
mod ollama;
mod openai;

pub use anthropic::ANTHROPIC;
pub use ollama::OLLAMA;
pub use openai::OPENAI;

use super::prompt::ClerkPrompt;
use reqwest::header::{HeaderName, HeaderValue, InvalidHeaderValue};
use serde_json::Value;
use std::borrow::Cow;
use steward_domain::steward::clerk::TokenUsage;

/// More tokens than this in one call is no count; keeps sums and databases in range.
const MAX_COUNTED_TOKENS: u64 = 1_000_000_000;
/// What is wrong with an answer that reached its limit of tokens.
const CUT_OFF: &str = "the answer was cut off at its limit of tokens: keep `reasoning` short";
/// What is wrong with an answer that is not there.
const NO_CONTENT: &str = "the answer has no content";

/// How one vendor's API is spoken.
#[derive(Debug)]
pub struct ClerkWire {
    /// Its name among the providers.
    pub name: &'static str,
    /// Where the vendor's own server is, if people need not say.
    pub base_url: Option<&'static str>,
    /// Most tokens a verdict may have; an answer about an event may have twice as many.
    pub(super) max_tokens: u32,
    /// Where questions go, below the base URL.
    pub(super) path: &'static str,
    /// Headers that every request has.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// The header that carries a key, and what stands before the key there.
    pub(super) key: (&'static str, &'static str),
    pub(super) body: fn(&ClerkPrompt, &ModelTarget<'_>) -> Value,
    /// Finds the answer in a response; else the field without which it is no response of this vendor.
    pub(super) read: fn(&Value) -> Result<ModelCompletion, &'static str>,
    /// Writes an answer in the form that the question asks for, where the wire needs another.
    pub(super) as_asked: fn(&str) -> Cow<'_, str>,
    pub(super) words: WireWording,
}

/// Who is asked, and for how much.
pub(super) struct ModelTarget<'a> {
    pub(super) model: &'a str,
    pub(super) host: &'a str,
    pub(super) max_tokens: u32,
}

/// What reasons say of a vendor's servers.
#[derive(Debug)]
pub(super) struct WireWording {
    /// What such a server offers.
    pub(super) offers: &'static str,
    /// What one response of it is.
    pub(super) response: &'static str,
    /// How the base URL should look.
    pub(super) base_url: &'static str,
    /// What a model must take.
    pub(super) form: &'static str,
    /// What to do where a model is not known, before the model's name.
    pub(super) unknown_model: &'static str,
}

/// What a response holds.
pub(super) struct ModelCompletion {
    /// The answer, or the complaint about it.
    pub(super) content: Result<String, String>,
    pub(super) usage: TokenUsage,
}

impl ClerkWire {
    pub(super) fn key_header(&self, key: &str) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue> {
        let (name, before) = self.key;
        let mut value = HeaderValue::from_str(&format!("{before}{key}"))?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(name), value))
    }
}

/// An answer as it stands.
fn keep_unchanged(answer: &str) -> Cow<'_, str> {
    Cow::Borrowed(answer)
}

/// A text that is there.
fn require_text(said: Option<&str>) -> Result<String, String> {
    said.filter(|text| !text.trim().is_empty()).map(str::to_owned).ok_or_else(|| NO_CONTENT.to_owned())
}

/// The sum of some counts of tokens; what is no count is none.
fn sum_tokens(of: &Value, names: &[&str]) -> u64 {
    let count = |name: &&str| of[*name].as_u64().unwrap_or(0).min(MAX_COUNTED_TOKENS);
    names.iter().map(count).sum::<u64>().min(MAX_COUNTED_TOKENS)
}
