//! Tokens for scripts: `Authorization: Bearer steward_…`, shown once and kept as a hash.
//!
//! Who may do what is told here and not decided: [`crate::app`] holds it against what is asked. A token that is revoked
//! is nobody's with the very next request, in every process of the vault.

use super::{AccessError, Caller, Proof, Scope, Store, name, secret};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fs;

const KIND: &str = "tokens";
/// How every token begins, so that people and scanners for leaked secrets know one.
const PREFIX: &str = "steward_";

/// What is known of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// What it is called by to revoke it, 8 hex digits; no secret.
    pub id: String,
    /// What it is for; not its own alone.
    pub name: String,
    pub scope: Scope,
    pub created_at: DateTime<Utc>,
}

impl Token {
    /// As audit records name it, whatever others are called.
    #[must_use]
    pub fn by(&self) -> String {
        format!("token:{}#{}", self.name, self.id)
    }
}

/// Makes a token; the text is not kept and cannot be shown again.
///
/// # Errors
/// [`AccessError`] when nothing can be written, or [`name`] refuses what it is called.
pub fn create(store: &Store, called: &str, scope: Scope, now: DateTime<Utc>) -> Result<(String, Token), AccessError> {
    let name = name(called)?;
    let text = format!("{PREFIX}{}", secret()?);
    let id = {
        let mut bytes = [0_u8; 4];
        getrandom::fill(&mut bytes).map_err(|e| AccessError::Random(e.to_string()))?;
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let token = Token { id, name, scope, created_at: now };
    store.put(KIND, &text, &token)?;
    Ok((text, token))
}

/// Every token, the oldest first.
///
/// # Errors
/// [`AccessError`] when they cannot be read.
pub fn all(store: &Store) -> Result<Vec<Token>, AccessError> {
    let mut tokens: Vec<Token> = store.all(KIND)?.into_iter().map(|(_, token)| token).collect();
    tokens.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok(tokens)
}

/// Takes a token away, for every process at once; `false` when there is none of that id.
///
/// # Errors
/// [`AccessError`] when it cannot be removed.
pub fn revoke(store: &Store, id: &str) -> Result<bool, AccessError> {
    let found = store.all::<Token>(KIND)?.into_iter().find(|(_, token)| token.id == id);
    let Some((path, _)) = found else { return Ok(false) };
    fs::remove_file(&path).map_err(|source| AccessError::Io { path, source })?;
    Ok(true)
}

/// Who sends this token.
pub(crate) fn caller(store: &Store, text: &str) -> Result<Option<Caller>, AccessError> {
    if !text.starts_with(PREFIX) {
        return Ok(None);
    }
    let token: Option<Token> = store.get(KIND, text)?;
    Ok(token.map(|token| Caller { name: token.by(), scope: token.scope, proof: Proof::Token }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_what_its_scope_says_until_it_is_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::of(dir.path());
        let (text, token) = create(&store, "button", Scope::Act, Utc::now()).unwrap();
        let found = caller(&store, &text).unwrap().unwrap();
        assert_eq!((found.name, found.scope), (format!("token:button#{}", token.id), Scope::Act));
        assert_eq!(caller(&store, &format!("{text}x")).unwrap(), None);
        assert_eq!(caller(&store, "").unwrap(), None);
        assert_eq!(all(&store).unwrap(), std::slice::from_ref(&token));
        assert!(revoke(&store, &token.id).unwrap());
        assert!(!revoke(&store, &token.id).unwrap());
        assert_eq!(caller(&store, &text).unwrap(), None);
    }

    #[test]
    fn two_tokens_of_one_name_are_two_in_the_records() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::of(dir.path());
        let by = || {
            let (text, _) = create(&store, "button", Scope::Act, Utc::now()).unwrap();
            caller(&store, &text).unwrap().unwrap().name
        };
        assert_ne!(by(), by());
        assert!(matches!(create(&store, "a\u{7}b", Scope::Read, Utc::now()), Err(AccessError::Name { .. })));
    }
}
