//! Who asks, and what they may do.
//!
//! A request goes through, in this order: the host it was sent to ([`host`], against rebinding of names), the
//! pace of its address ([`pace`]), its token or session ([`token`], [`session`]), and for a session that changes
//! something the page it came from ([`origin`]). Secrets are kept as hashes only, in `access/` of the state folder,
//! one file each, so that every process of the vault knows them and taking one away is removing a file.

pub(crate) mod admission;
pub(crate) mod connection_limit;
pub mod host;
pub mod link;
pub(crate) mod origin;
pub mod proxy;
pub(crate) mod rate_limit;
pub mod session;
mod store;
pub mod token;

use serde::{Deserialize, Serialize};
use std::fmt;

pub use store::{AccessError, SecretStore};

/// Longest name of a token or of who logs in, in characters.
const MAX_NAME_CHARS: usize = 60;

/// What somebody may do; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessScope {
    /// See everything.
    Read,
    /// Undo, confirm, dismiss, and stop: what makes things safer needs no more.
    Act,
    /// Also resume, and pause a stream.
    Operate,
}

impl AccessScope {
    /// The word on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Act => "act",
            Self::Operate => "operate",
        }
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How somebody showed who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerProof {
    /// A token in the `Authorization` header, which no browser sends by itself.
    Token,
    /// A cookie, with what the forms of its pages must hold.
    Session { form_key: String },
}

/// Somebody who may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticatedCaller {
    /// As audit records name them.
    pub name: String,
    pub scope: AccessScope,
    pub proof: CallerProof,
}

/// A name that may stand in an audit record: what shows as it reads, and cannot be taken for a token's `token:name#id`.
///
/// # Errors
/// [`AccessError::Name`] says what is wrong with it.
pub fn parse_caller_name(text: &str) -> Result<String, AccessError> {
    let text = text.trim();
    // Marks that no one sees: they turn the letters around them, or make two names look like one.
    let unseen = |c| matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let wrong = match text.chars().count() {
        0 => Some("it is empty"),
        count if count > MAX_NAME_CHARS => Some("it is longer than 60 characters"),
        _ if text.chars().any(|c| c.is_control() || unseen(c)) => Some("it holds a character that does not show"),
        _ if text.contains('#') => Some("`#` stands before the id of a token"),
        _ => None,
    };
    let shown = || text.escape_debug().take(MAX_NAME_CHARS).collect();
    wrong.map_or_else(|| Ok(text.to_owned()), |reason| Err(AccessError::Name { name: shown(), reason }))
}

/// 32 random bytes as 43 characters that fit into an address.
///
/// # Errors
/// [`AccessError::Random`] when the system has none to give.
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
    fn a_name_shows_as_it_reads_and_is_no_tokens() {
        assert_eq!(parse_caller_name(" Jörg at the desk ").unwrap(), "Jörg at the desk");
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        for other in ["", " ", "a\nb", "\u{1b}[2J", "ann\u{202e}nna", "token:x#3f9a1c22", long.as_str()] {
            assert!(matches!(parse_caller_name(other), Err(AccessError::Name { .. })), "{other:?}");
        }
    }
}
