//! Tokens for scripts: `Authorization: Bearer steward_…`. A token is shown once and kept as a hash.
//!
//! This module only identifies a token's caller and scope; `admission` checks the scope. A revoked token is
//! refused from the next request on, in every process of the vault.

use super::AccessError;
use super::AccessScope;
use super::AuthenticatedCaller;
use super::CallerProof;
use super::SecretStore;
use super::TokenLimits;
use super::generate_secret;
use super::parse_caller_name;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fs;

const KIND: &str = "tokens";
/// How every token begins, so that people and secret scanners recognise one.
pub(crate) const PREFIX: &str = "steward_";

/// What is stored about a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    /// The id by which it is revoked: 8 hex digits, not secret.
    pub id: String,
    /// What it is for. Several tokens may have the same name.
    pub name: String,
    pub scope: AccessScope,
    #[serde(default, skip_serializing_if = "is_unlimited")]
    pub limits: TokenLimits,
    pub created_at: DateTime<Utc>,
}

fn is_unlimited(limits: &TokenLimits) -> bool {
    !limits.is_limited()
}

impl AccessToken {
    /// The name in audit records; unique, because it contains the id.
    #[must_use]
    pub fn caller_name(&self) -> String {
        format!("token:{}#{}", self.name, self.id)
    }
}

/// Creates a token. Its text is not stored, so it cannot be shown again.
///
/// # Errors
/// [`AccessError`] when it cannot be stored, [`parse_caller_name`] refuses the name, or the limits do not fit.
pub fn create_token(
    store: &SecretStore,
    name: &str,
    scope: AccessScope,
    limits: TokenLimits,
    now: DateTime<Utc>,
) -> Result<(String, AccessToken), AccessError> {
    let name = parse_caller_name(name)?;
    limits.check(scope)?;
    let text = format!("{PREFIX}{}", generate_secret()?);
    let id = {
        let mut bytes = [0_u8; 4];
        getrandom::fill(&mut bytes).map_err(|e| AccessError::Random(e.to_string()))?;
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let token = AccessToken { id, name, scope, limits, created_at: now };
    store.put(KIND, &text, &token)?;
    Ok((text, token))
}

/// Lists all tokens, the oldest first.
///
/// # Errors
/// [`AccessError`] when they cannot be read.
pub fn list_tokens(store: &SecretStore) -> Result<Vec<AccessToken>, AccessError> {
    let mut tokens: Vec<AccessToken> = store.read_all(KIND)?.into_iter().map(|(_, token)| token).collect();
    tokens.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok(tokens)
}

/// Revokes a token in every process at once; `false` when no token has this id.
///
/// # Errors
/// [`AccessError`] when it cannot be removed.
pub fn revoke_token(store: &SecretStore, id: &str) -> Result<bool, AccessError> {
    let found = store.read_all::<AccessToken>(KIND)?.into_iter().find(|(_, token)| token.id == id);
    let Some((path, _)) = found else { return Ok(false) };
    fs::remove_file(&path).map_err(|source| AccessError::Io { path, source })?;
    Ok(true)
}

/// Whether a text is a token that is valid now. What cannot be read is none.
pub(crate) fn is_token(store: &SecretStore, text: &str) -> bool {
    matches!(store.get::<AccessToken>(KIND, text), Ok(Some(_)))
}

/// Identifies the caller of a token; `None` for an unknown one.
pub(crate) fn identify_token(store: &SecretStore, text: &str) -> Result<Option<AuthenticatedCaller>, AccessError> {
    if !text.starts_with(PREFIX) {
        return Ok(None);
    }
    let token: Option<AccessToken> = store.get(KIND, text)?;
    Ok(token.map(|token| AuthenticatedCaller {
        name: token.caller_name(),
        scope: token.scope,
        proof: CallerProof::Token,
        limits: token.limits,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_scope_until_it_is_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::new(dir.path());
        let (text, token) =
            create_token(&store, "button", AccessScope::Act, TokenLimits::default(), Utc::now()).unwrap();
        let found = identify_token(&store, &text).unwrap().unwrap();
        assert_eq!((found.name, found.scope), (format!("token:button#{}", token.id), AccessScope::Act));
        assert_eq!(identify_token(&store, &format!("{text}x")).unwrap(), None);
        assert_eq!(identify_token(&store, "").unwrap(), None);
        assert_eq!(list_tokens(&store).unwrap(), std::slice::from_ref(&token));
        assert!(revoke_token(&store, &token.id).unwrap());
        assert!(!revoke_token(&store, &token.id).unwrap());
        assert_eq!(identify_token(&store, &text).unwrap(), None);
    }

    #[test]
    fn two_tokens_of_one_name_have_two_names_in_the_records() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::new(dir.path());
        let caller_name = || {
            let (text, _) =
                create_token(&store, "button", AccessScope::Act, TokenLimits::default(), Utc::now()).unwrap();
            identify_token(&store, &text).unwrap().unwrap().name
        };
        assert_ne!(caller_name(), caller_name());
        assert!(matches!(
            create_token(&store, "a\u{7}b", AccessScope::Read, TokenLimits::default(), Utc::now()),
            Err(AccessError::Name { .. })
        ));
    }
}
