//! The settings of the clerk: its kind, its server, and the limits of a call.
//!
//! The wikis may have a clerk of their own, with the same limits.
//!
//! The API key is not among them: it comes from the environment, or from a file that only its owner can read.

use super::ClerkChoice;
use super::ClerkServer;
use super::RawConfig;
use anyhow::{Context, bail};
use std::num::NonZeroU32;
use std::path::PathBuf;
use steward_activities::steward::clerks::remote::{
    ANTHROPIC, CALLS_PER_SECOND, ClerkWire, MAX_RESPONSE_BYTES, OLLAMA, OPENAI,
};

/// At most 80 s, because a tick gives up a call after 85 s, which includes the way to a worker and back.
fn read_clerk_timeout(raw: &RawConfig) -> anyhow::Result<u64> {
    match raw.clerk_timeout_seconds.unwrap_or(60) {
        seconds @ 1..=80 => Ok(seconds),
        other => {
            bail!("STEWARD_CLERK_TIMEOUT_SECONDS is {other}, expected 1 to 80: a tick waits no longer for a clerk")
        }
    }
}

/// The settings of one clerk, whose variables begin with `prefix`.
struct RawClerk<'a> {
    prefix: &'static str,
    kind: &'a str,
    base_url: Option<&'a String>,
    model: Option<&'a String>,
    key_file: Option<&'a PathBuf>,
}

pub(super) fn read_clerk_choice(raw: &RawConfig) -> anyhow::Result<ClerkChoice> {
    let clerk = RawClerk {
        prefix: "STEWARD_CLERK",
        kind: raw.clerk.as_deref().unwrap_or("rules"),
        base_url: raw.clerk_base_url.as_ref(),
        model: raw.clerk_model.as_ref(),
        key_file: raw.clerk_key_file.as_ref(),
    };
    read_choice(raw, &clerk)
}

/// The clerk of the wikis; `None` if it is that of the stewards.
pub(super) fn read_wiki_clerk(raw: &RawConfig) -> anyhow::Result<Option<ClerkChoice>> {
    let Some(kind) = raw.wiki_clerk.as_deref() else { return Ok(None) };
    let clerk = RawClerk {
        prefix: "STEWARD_WIKI_CLERK",
        kind,
        base_url: raw.wiki_clerk_base_url.as_ref(),
        model: raw.wiki_clerk_model.as_ref(),
        key_file: raw.wiki_clerk_key_file.as_ref(),
    };
    read_choice(raw, &clerk).map(Some)
}

/// The clerk that checks the wikis; `None` if it is that of the stewards.
pub(super) fn read_wiki_verifier(raw: &RawConfig) -> anyhow::Result<Option<ClerkChoice>> {
    let Some(kind) = raw.wiki_verifier.as_deref() else { return Ok(None) };
    let clerk = RawClerk {
        prefix: "STEWARD_WIKI_VERIFIER",
        kind,
        base_url: raw.wiki_verifier_base_url.as_ref(),
        model: raw.wiki_verifier_model.as_ref(),
        key_file: raw.wiki_verifier_key_file.as_ref(),
    };
    read_choice(raw, &clerk).map(Some)
}

fn read_choice(raw: &RawConfig, clerk: &RawClerk<'_>) -> anyhow::Result<ClerkChoice> {
    match clerk.kind {
        "rules" => Ok(ClerkChoice::Rules),
        "openai" => Ok(ClerkChoice::Openai(read_clerk_server(raw, clerk, &OPENAI)?)),
        "anthropic" => Ok(ClerkChoice::Anthropic(read_clerk_server(raw, clerk, &ANTHROPIC)?)),
        "ollama" => Ok(ClerkChoice::Ollama(read_clerk_server(raw, clerk, &OLLAMA)?)),
        other => bail!("{} is `{}`, expected rules, openai, anthropic or ollama", clerk.prefix, other.escape_debug()),
    }
}

fn read_clerk_server(raw: &RawConfig, clerk: &RawClerk<'_>, wire: &ClerkWire) -> anyhow::Result<ClerkServer> {
    let (name, prefix) = (wire.name, clerk.prefix);
    let base_url = clerk.base_url.cloned().or_else(|| wire.base_url.map(str::to_owned)).with_context(|| {
        format!("{prefix} is {name} but {prefix}_BASE_URL is not set: set it, for example to http://127.0.0.1:8080/v1")
    })?;
    Ok(ClerkServer {
        base_url,
        model: clerk.model.cloned().with_context(|| {
            format!("{prefix} is {name} but {prefix}_MODEL is not set: set it to the name of a model")
        })?,
        timeout_seconds: read_clerk_timeout(raw)?,
        max_response_bytes: raw.clerk_max_response_bytes.unwrap_or(MAX_RESPONSE_BYTES),
        calls_per_second: read_calls_per_second(raw)?,
        key_file: clerk.key_file.cloned(),
    })
}

/// A rate limit for one process. The rate guard limits the number of calls in total.
fn read_calls_per_second(raw: &RawConfig) -> anyhow::Result<NonZeroU32> {
    let wanted = raw.clerk_calls_per_second.unwrap_or(CALLS_PER_SECOND.get());
    NonZeroU32::new(wanted)
        .filter(|rate| rate.get() <= 1_000)
        .with_context(|| format!("STEWARD_CLERK_CALLS_PER_SECOND is {wanted}, expected 1 to 1000"))
}
