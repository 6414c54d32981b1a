//! Who asks, and what they may do.
//!
//! A request goes through, in this order: the host it was sent to ([`host`], against rebinding of names), the
//! pace of its address ([`pace`]), its token or session ([`token`], [`session`]), and for a session that changes
//! something the page it came from ([`origin`]). The command of this machine has a key of its own ([`local`]). Secrets are kept as hashes only, in `access/` of the state folder,
//! one file each, so that every process of the vault knows them and taking one away is removing a file.

pub mod host;
pub mod link;
pub mod local;
pub(crate) mod origin;
pub(crate) mod pace;
pub mod proxy;
pub mod session;
mod store;
pub mod token;

use serde::{Deserialize, Serialize};
use std::fmt;

pub use store::{AccessError, Store};

/// What somebody may do; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// See everything.
    Read,
    /// Undo, confirm, dismiss.
    Act,
    /// Also stop, resume, pause a stream.
    Operate,
}

impl Scope {
    /// The word on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Act => "act",
            Self::Operate => "operate",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How somebody showed who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A token in the `Authorization` header, which no browser sends by itself.
    Token,
    /// A cookie, with what the forms of its pages must hold.
    Session { form_key: String },
}

/// Somebody who may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// As audit records name them.
    pub name: String,
    pub scope: Scope,
    pub proof: Proof,
}

/// 32 random bytes as 43 characters that fit into an address.
///
/// # Errors
/// [`AccessError::Random`] when the system has none to give.
pub(crate) fn secret() -> Result<String, AccessError> {
    use base64::Engine;
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|e| AccessError::Random(e.to_string()))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}
