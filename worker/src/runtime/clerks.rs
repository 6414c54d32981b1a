//! Seats the clerk that is configured.
//!
//! The key comes from the environment variable `STEWARD_CLERK_API_KEY` and nowhere else: not from
//! a file that is committed by accident, not from the command line that everybody can list.

use crate::config::{ClerkChoice, ClerkServer};
use std::time::Duration;
use steward_activities::steward::clerks::remote::{
    ANTHROPIC, ClerkWire, OLLAMA, OPENAI, RemoteClerk, RemoteClerkConfig, Secret,
};
use steward_activities::steward::clerks::{Clerk, rules::RulesClerk};

impl ClerkChoice {
    /// The word by which it is set.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Openai(_) => "openai",
            Self::Anthropic(_) => "anthropic",
            Self::Ollama(_) => "ollama",
        }
    }

    /// The same, without what an address may hold beside the place: a name with a password, or a key.
    pub(crate) fn strip_secrets(&self) -> Self {
        let cleaned =
            |server: &ClerkServer| ClerkServer { base_url: strip_url_secrets(&server.base_url), ..server.clone() };
        match self {
            Self::Rules => Self::Rules,
            Self::Openai(server) => Self::Openai(cleaned(server)),
            Self::Anthropic(server) => Self::Anthropic(cleaned(server)),
            Self::Ollama(server) => Self::Ollama(cleaned(server)),
        }
    }
}

/// An address without user, password, query and fragment.
pub(crate) fn strip_url_secrets(address: &str) -> String {
    let place = address.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = place.split_once("://") else { return place.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

const KEY_VARIABLE: &str = "STEWARD_CLERK_API_KEY";

/// Makes the clerk ready; asks nothing yet.
///
/// # Errors
/// A base URL, key or model that cannot be used.
pub(crate) fn create_clerk(choice: &ClerkChoice) -> anyhow::Result<Clerk> {
    let Some((wire, server)) = find_clerk_server(choice) else { return Ok(Clerk::Rules(RulesClerk)) };
    let config = RemoteClerkConfig {
        api_key: read_api_key(),
        api_key_variable: KEY_VARIABLE.to_owned(),
        timeout: Duration::from_secs(server.timeout_seconds),
        max_response_bytes: server.max_response_bytes,
        calls_per_second: server.calls_per_second,
        ..RemoteClerkConfig::new(wire, &server.base_url, &server.model)
    };
    Ok(Clerk::Remote(RemoteClerk::new(config).map_err(|e| anyhow::anyhow!("failed to {e}"))?))
}

/// Who is asked, as an operator sees it.
///
/// # Errors
/// What [`create_clerk`] says, and a key that the vendor's own server will want and that is not there.
pub(crate) fn describe_configured_clerk(choice: &ClerkChoice) -> anyhow::Result<String> {
    create_clerk(choice)?;
    let Some((wire, server)) = find_clerk_server(choice) else { return Ok("rules, offline".to_owned()) };
    let (name, ClerkServer { base_url, model, .. }) = (wire.name, server);
    let keyed = read_api_key().is_some();
    if !keyed && name == ANTHROPIC.name && wire.base_url == Some(base_url) {
        anyhow::bail!("{base_url} wants a key: put one into {KEY_VARIABLE}");
    }
    Ok(format!("{name}, model {model} at {base_url}, {} a key", if keyed { "with" } else { "without" }))
}

fn find_clerk_server(choice: &ClerkChoice) -> Option<(&'static ClerkWire, &ClerkServer)> {
    match choice {
        ClerkChoice::Rules => None,
        ClerkChoice::Openai(server) => Some((&OPENAI, server)),
        ClerkChoice::Anthropic(server) => Some((&ANTHROPIC, server)),
        ClerkChoice::Ollama(server) => Some((&OLLAMA, server)),
    }
}

fn read_api_key() -> Option<Secret> {
    std::env::var(KEY_VARIABLE).ok().as_deref().and_then(Secret::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_the_place_alone_is_shown() {
        for (address, place) in [
            ("https://ann:secret@h.example:1/v1?key=secret#secret", "https://h.example:1/v1"),
            ("http://secret@h", "http://h"),
            ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
            ("http://h/a@b", "http://h/a@b"),
        ] {
            assert_eq!(strip_url_secrets(address), place);
        }
    }
}
