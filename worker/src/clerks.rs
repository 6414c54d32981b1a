//! Seats the clerk that is configured.
//!
//! The key comes from the environment variable `STEWARD_CLERK_API_KEY` and nowhere else: not from
//! a file that is committed by accident, not from the command line that everybody can list.

use crate::config::{ClerkChoice, ClerkServer};
use std::time::Duration;
use steward_activities::clerk::remote::{ANTHROPIC, Config, OLLAMA, OPENAI, Remote, Secret, Wire};
use steward_activities::clerk::{Clerk, rules::Rules};

impl ClerkChoice {
    /// The word by which it is set.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Openai(_) => "openai",
            Self::Anthropic(_) => "anthropic",
            Self::Ollama(_) => "ollama",
        }
    }
}

const KEY_VARIABLE: &str = "STEWARD_CLERK_API_KEY";

/// Makes the clerk ready; asks nothing yet.
///
/// # Errors
/// A base URL, key or model that cannot be used.
pub(crate) fn seat(choice: &ClerkChoice) -> anyhow::Result<Clerk> {
    let Some((wire, server)) = server(choice) else { return Ok(Clerk::Rules(Rules)) };
    let config = Config {
        api_key: key(),
        api_key_variable: KEY_VARIABLE.to_owned(),
        timeout: Duration::from_secs(server.timeout_seconds),
        max_response_bytes: server.max_response_bytes,
        calls_per_second: server.calls_per_second,
        ..Config::new(wire, &server.base_url, &server.model)
    };
    Ok(Clerk::Remote(Remote::new(config).map_err(|e| anyhow::anyhow!("failed to {e}"))?))
}

/// Who is asked, as an operator sees it.
///
/// # Errors
/// What [`seat`] says, and a key that the vendor's own server will want and that is not there.
pub(crate) fn described(choice: &ClerkChoice) -> anyhow::Result<String> {
    seat(choice)?;
    let Some((wire, server)) = server(choice) else { return Ok("rules, offline".to_owned()) };
    let (name, ClerkServer { base_url, model, .. }) = (wire.name, server);
    let keyed = key().is_some();
    if !keyed && name == ANTHROPIC.name && wire.base_url == Some(base_url) {
        anyhow::bail!("{base_url} wants a key: put one into {KEY_VARIABLE}");
    }
    Ok(format!("{name}, model {model} at {base_url}, {} a key", if keyed { "with" } else { "without" }))
}

fn server(choice: &ClerkChoice) -> Option<(&'static Wire, &ClerkServer)> {
    match choice {
        ClerkChoice::Rules => None,
        ClerkChoice::Openai(server) => Some((&OPENAI, server)),
        ClerkChoice::Anthropic(server) => Some((&ANTHROPIC, server)),
        ClerkChoice::Ollama(server) => Some((&OLLAMA, server)),
    }
}

fn key() -> Option<Secret> {
    std::env::var(KEY_VARIABLE).ok().as_deref().and_then(Secret::new)
}
