//! Seats the clerk that is configured.
//!
//! The key comes from the environment variable `STEWARD_CLERK_API_KEY` and nowhere else: not from
//! a file that is committed by accident, not from the command line that everybody can list.

use crate::config::ClerkChoice;
use std::time::Duration;
use steward_activities::clerk::openai::{Config, OpenAi, secret::Secret};
use steward_activities::clerk::{Clerk, rules::Rules};

const KEY_VARIABLE: &str = "STEWARD_CLERK_API_KEY";

/// Makes the clerk ready; asks nothing yet.
///
/// # Errors
/// A base URL, key or model that cannot be used.
pub(crate) fn seat(choice: &ClerkChoice) -> anyhow::Result<Clerk> {
    match choice {
        ClerkChoice::Rules => Ok(Clerk::Rules(Rules)),
        ClerkChoice::Openai { base_url, model, timeout_seconds, max_response_bytes } => {
            let config = Config {
                api_key: std::env::var(KEY_VARIABLE).ok().as_deref().and_then(Secret::new),
                api_key_variable: KEY_VARIABLE.to_owned(),
                timeout: Duration::from_secs(*timeout_seconds),
                max_response_bytes: *max_response_bytes,
                ..Config::new(base_url, model)
            };
            Ok(Clerk::OpenAi(OpenAi::new(config).map_err(|e| anyhow::anyhow!("failed to {e}"))?))
        }
    }
}
