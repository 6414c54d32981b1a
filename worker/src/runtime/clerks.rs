//! Creates the configured clerk.
//!
//! The API key comes from the environment variable `STEWARD_CLERK_API_KEY` or from a file that only its owner can read. It
//! must not stand in a configuration file, which could be committed by accident, nor in a command line, which every user
//! of the machine can list.

use crate::config::{ClerkChoice, ClerkServer, StewardConfig};
use std::time::Duration;
use steward_activities::signals::streams::read_secret;
use steward_activities::steward::clerks::remote::{
    ANTHROPIC, ClerkWire, KeyHealth, OLLAMA, OPENAI, RemoteClerk, RemoteClerkConfig, Secret,
};
use steward_activities::steward::clerks::{Clerk, rules::RulesClerk};
use steward_domain::wiki::writer::prompt::MAX_TURN_TOKENS;

impl ClerkChoice {
    /// The value of the setting.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Openai(_) => "openai",
            Self::Anthropic(_) => "anthropic",
            Self::Ollama(_) => "ollama",
        }
    }

    /// Whether its calls go to a provider, whose limits tenants may share.
    pub(crate) fn is_remote(&self) -> bool {
        match self {
            Self::Rules => false,
            Self::Openai(_) | Self::Anthropic(_) | Self::Ollama(_) => true,
        }
    }

    /// A copy whose URLs hold no secrets, such as a password or a key.
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

/// A URL without user, password, query and fragment.
pub(crate) fn strip_url_secrets(url: &str) -> String {
    let base = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = base.split_once("://") else { return base.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// The variables of a clerk's key.
#[derive(Clone, Copy)]
struct KeyVariables {
    key: &'static str,
    file: &'static str,
}

const STEWARD_KEY: KeyVariables = KeyVariables { key: "STEWARD_CLERK_API_KEY", file: "STEWARD_CLERK_KEY_FILE" };
const WIKI_KEY: KeyVariables = KeyVariables { key: "STEWARD_WIKI_CLERK_API_KEY", file: "STEWARD_WIKI_CLERK_KEY_FILE" };
const VERIFIER_KEY: KeyVariables =
    KeyVariables { key: "STEWARD_WIKI_VERIFIER_API_KEY", file: "STEWARD_WIKI_VERIFIER_KEY_FILE" };
/// Longest time of one call of the writer of a wiki: 4 min. A whole page takes longer than a verdict.
const WRITER_TIMEOUT: Duration = Duration::from_secs(240);
/// The longest answer of the writer: 2 MiB.
const WRITER_RESPONSE_BYTES: usize = 2 * 1024 * 1024;

/// Creates the clerk without asking it anything. It reports to `key_health` whether its key is accepted.
///
/// # Errors
/// The base URL, key or model is unusable.
pub(crate) fn create_clerk(config: &StewardConfig, key_health: KeyHealth) -> anyhow::Result<Clerk> {
    build_clerk(&config.clerk, STEWARD_KEY, |remote| RemoteClerkConfig {
        is_gated: config.fleet.is_some(),
        key_health,
        ..remote
    })
}

/// Creates the clerk that writes the pages of wikis, without asking it anything.
///
/// # Errors
/// As [`create_clerk`].
pub(crate) fn create_wiki_clerk(config: &StewardConfig) -> anyhow::Result<Clerk> {
    create_own_clerk(config, config.wiki_clerk.as_ref(), WIKI_KEY)
}

/// Creates the clerk that checks what a model wrote for a wiki, without asking it anything.
///
/// # Errors
/// As [`create_clerk`].
pub(crate) fn create_wiki_verifier(config: &StewardConfig) -> anyhow::Result<Clerk> {
    create_own_clerk(config, config.wiki_verifier.as_ref(), VERIFIER_KEY)
}

/// Creates a clerk of the wikis: its own one, or else that of the stewards.
fn create_own_clerk(config: &StewardConfig, own: Option<&ClerkChoice>, key: KeyVariables) -> anyhow::Result<Clerk> {
    let (choice, variables) = own.map_or((&config.clerk, STEWARD_KEY), |choice| (choice, key));
    build_clerk(choice, variables, |remote| RemoteClerkConfig {
        timeout: WRITER_TIMEOUT,
        max_response_bytes: WRITER_RESPONSE_BYTES.max(remote.max_response_bytes),
        max_tokens: MAX_TURN_TOKENS,
        is_gated: config.fleet.is_some(),
        ..remote
    })
}

fn build_clerk(
    choice: &ClerkChoice,
    variables: KeyVariables,
    adapt: impl FnOnce(RemoteClerkConfig) -> RemoteClerkConfig,
) -> anyhow::Result<Clerk> {
    let Some((wire, server)) = find_clerk_server(choice) else { return Ok(Clerk::Rules(RulesClerk)) };
    let remote = RemoteClerkConfig {
        api_key: read_api_key(server, variables)?,
        api_key_variable: variables.key.to_owned(),
        timeout: Duration::from_secs(server.timeout_seconds),
        max_response_bytes: server.max_response_bytes,
        calls_per_second: server.calls_per_second,
        ..RemoteClerkConfig::new(wire, &server.base_url, &server.model)
    };
    Ok(Clerk::Remote(RemoteClerk::new(adapt(remote)).map_err(|e| anyhow::anyhow!("failed to {e}"))?))
}

/// Describes the configured clerk for an operator.
///
/// # Errors
/// As [`create_clerk`]; or the vendor's own server needs a key and there is none.
pub(crate) fn describe_configured_clerk(config: &StewardConfig) -> anyhow::Result<String> {
    create_clerk(config, KeyHealth::default())?;
    let Some((wire, server)) = find_clerk_server(&config.clerk) else { return Ok("rules, offline".to_owned()) };
    let (name, ClerkServer { base_url, model, .. }) = (wire.name, server);
    let has_key = read_api_key(server, STEWARD_KEY)?.is_some();
    if !has_key && name == ANTHROPIC.name && wire.base_url == Some(base_url) {
        anyhow::bail!("{base_url} needs an API key: set {} or {}", STEWARD_KEY.key, STEWARD_KEY.file);
    }
    Ok(format!("{name}, model {model} at {base_url}, {} a key", if has_key { "with" } else { "without" }))
}

fn find_clerk_server(choice: &ClerkChoice) -> Option<(&'static ClerkWire, &ClerkServer)> {
    match choice {
        ClerkChoice::Rules => None,
        ClerkChoice::Openai(server) => Some((&OPENAI, server)),
        ClerkChoice::Anthropic(server) => Some((&ANTHROPIC, server)),
        ClerkChoice::Ollama(server) => Some((&OLLAMA, server)),
    }
}

/// The API key; `None` if neither a file nor the variable is set.
fn read_api_key(server: &ClerkServer, variables: KeyVariables) -> anyhow::Result<Option<Secret>> {
    let in_environment = std::env::var(variables.key).ok();
    match &server.key_file {
        Some(_) if in_environment.is_some() => {
            anyhow::bail!("set {} or {}, not both", variables.key, variables.file)
        }
        Some(file) => read_secret("clerk_key", None, Some(file)).map(Some).map_err(anyhow::Error::from),
        None => Ok(in_environment.as_deref().and_then(Secret::new)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_stripped_from_a_url() {
        for (url, stripped) in [
            ("https://ann:secret@h.example:1/v1?key=secret#secret", "https://h.example:1/v1"),
            ("http://secret@h", "http://h"),
            ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
            ("http://h/a@b", "http://h/a@b"),
        ] {
            assert_eq!(strip_url_secrets(url), stripped);
        }
    }
}
