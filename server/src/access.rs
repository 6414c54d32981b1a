//! Authentication, authorisation and limits of requests.
//!
//! A request passes these checks in this order: its host name ([`host`], against DNS rebinding), its token or session
//! ([`token`], [`session`]), its rate limit (`rate_limit`), its scope, and for a session that changes something the
//! page it came from (`origin`). Secrets are kept only as hashes in `access/` of the state folder, one file each. So
//! every process of the vault knows them, and removing a file revokes one.

pub(crate) mod admission;
pub(crate) mod connection_limit;
pub mod host;
pub mod limits;
pub mod link;
pub(crate) mod origin;
pub mod proxy;
pub(crate) mod rate_limit;
pub mod session;
mod store;
pub mod token;

use serde::{Deserialize, Serialize};
use std::fmt;

pub use limits::{TokenLimits, Toolset, WikiRight};
pub use store::{AccessError, SecretStore};

/// Longest name of a token or a person, in characters.
const MAX_NAME_CHARS: usize = 60;

/// What a caller may do; each scope includes those before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AccessScope {
    /// Read everything.
    Read,
    /// Undo, confirm, dismiss and stop. A stop makes things safer, so it needs no more.
    Act,
    /// Also resume, and pause a stream.
    Operate,
}

impl AccessScope {
    /// The spelling on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a caller proved who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerProof {
    /// A token in the `Authorization` header, which no browser sends by itself.
    Token,
    /// A cookie. The forms of its pages must carry `form_key`.
    Session { form_key: String },
}

/// A caller whose identity is proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticatedCaller {
    /// As audit records name them.
    pub name: String,
    pub scope: AccessScope,
    pub proof: CallerProof,
    /// What narrows their token.
    pub limits: TokenLimits,
}

/// Parses a name for use in audit records. It must be visible as written and unlike a token's `token:name#id`.
///
/// # Errors
/// [`AccessError::Name`] with the reason.
pub fn parse_caller_name(text: &str) -> Result<String, AccessError> {
    let text = text.trim();
    // Invisible characters can reverse the text around them, or make two names look alike.
    let is_invisible = |c| matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let reason = match text.chars().count() {
        0 => Some("it is empty"),
        count if count > MAX_NAME_CHARS => Some("it is longer than 60 characters"),
        _ if text.chars().any(|c| c.is_control() || is_invisible(c)) => Some("it contains an invisible character"),
        _ if text.contains('#') => Some("`#` is reserved for the ids of tokens"),
        _ => None,
    };
    let shown = || text.escape_debug().take(MAX_NAME_CHARS).collect();
    reason.map_or_else(|| Ok(text.to_owned()), |reason| Err(AccessError::Name { name: shown(), reason }))
}

/// Generates a secret: 32 random bytes as 43 characters that are safe in a URL.
///
/// # Errors
/// [`AccessError::Random`] when the system provides no random bytes.
pub(crate) fn generate_secret() -> Result<String, AccessError> {
    use base64::Engine;
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|e| AccessError::Random(e.to_string()))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_visible_as_written_and_unlike_a_token() {
        assert_eq!(parse_caller_name(" Jörg at the desk ").unwrap(), "Jörg at the desk");
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        for other in ["", " ", "a\nb", "\u{1b}[2J", "ann\u{202e}nna", "token:x#3f9a1c22", long.as_str()] {
            assert!(matches!(parse_caller_name(other), Err(AccessError::Name { .. })), "{other:?}");
        }
    }
}
