//! The settings of the clerk: its kind, its server, and the limits of a call.
//!
//! The API key is not among them: it comes from the environment, or from a file that only its owner can read.

use super::ClerkChoice;
use super::ClerkServer;
use super::RawConfig;
use anyhow::{Context, bail};
use std::num::NonZeroU32;
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

pub(super) fn read_clerk_choice(raw: &RawConfig) -> anyhow::Result<ClerkChoice> {
    match raw.clerk.as_deref().unwrap_or("rules") {
        "rules" => Ok(ClerkChoice::Rules),
        "openai" => Ok(ClerkChoice::Openai(read_clerk_server(raw, &OPENAI)?)),
        "anthropic" => Ok(ClerkChoice::Anthropic(read_clerk_server(raw, &ANTHROPIC)?)),
        "ollama" => Ok(ClerkChoice::Ollama(read_clerk_server(raw, &OLLAMA)?)),
        other => bail!("STEWARD_CLERK is `{}`, expected rules, openai, anthropic or ollama", other.escape_debug()),
    }
}

fn read_clerk_server(raw: &RawConfig, wire: &ClerkWire) -> anyhow::Result<ClerkServer> {
    let name = wire.name;
    let base_url = raw.clerk_base_url.clone().or_else(|| wire.base_url.map(str::to_owned)).with_context(|| {
        format!(
            "STEWARD_CLERK is {name} but STEWARD_CLERK_BASE_URL is not set: set it, for example to \
             http://127.0.0.1:8080/v1"
        )
    })?;
    let model = raw.clerk_model.clone();
    Ok(ClerkServer {
        base_url,
        model: model.with_context(|| {
            format!("STEWARD_CLERK is {name} but STEWARD_CLERK_MODEL is not set: set it to the name of a model")
        })?,
        timeout_seconds: read_clerk_timeout(raw)?,
        max_response_bytes: raw.clerk_max_response_bytes.unwrap_or(MAX_RESPONSE_BYTES),
        calls_per_second: read_calls_per_second(raw)?,
        key_file: raw.clerk_key_file.clone(),
    })
}

/// A rate limit for one process. The rate guard limits the number of calls in total.
fn read_calls_per_second(raw: &RawConfig) -> anyhow::Result<NonZeroU32> {
    let wanted = raw.clerk_calls_per_second.unwrap_or(CALLS_PER_SECOND.get());
    NonZeroU32::new(wanted)
        .filter(|rate| rate.get() <= 1_000)
        .with_context(|| format!("STEWARD_CLERK_CALLS_PER_SECOND is {wanted}, expected 1 to 1000"))
}
