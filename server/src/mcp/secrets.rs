//! Takes our own tokens out of results: a page or a document may hold one by accident.
//!
//! Only a token that is valid now is taken out, so no other word changes. The rest of the result is delivered.

use crate::access::SecretStore;
use crate::access::token::{PREFIX, is_token};
use serde_json::Value;
use std::borrow::Cow;

/// What stands in place of a token.
const REMOVED: &str = "‹token removed›";
/// The characters of a token after its prefix: 32 bytes in base64.
const SECRET_CHARACTERS: usize = 43;

/// The text without valid tokens.
pub(crate) fn remove_tokens<'t>(store: &SecretStore, text: &'t str) -> Cow<'t, str> {
    let is_secret = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices(PREFIX) {
        let end = at + PREFIX.len() + SECRET_CHARACTERS;
        let Some(candidate) = text.get(at..end) else { continue };
        if candidate.chars().all(is_secret) && is_token(store, candidate) {
            found.push(candidate);
        }
    }
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    tracing::warn!("took {} valid tokens out of a result for an assistant: revoke and replace them", found.len());
    Cow::Owned(found.iter().fold(text.to_owned(), |text, token| text.replace(token, REMOVED)))
}

/// Takes valid tokens out of all texts of a value.
pub(crate) fn remove_tokens_from_value(store: &SecretStore, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = remove_tokens(store, text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove_tokens_from_value(store, item)),
        Value::Object(object) => object.values_mut().for_each(|value| remove_tokens_from_value(store, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessScope, TokenLimits, token};
    use serde_json::json;

    #[test]
    fn a_valid_token_is_taken_out_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::new(dir.path());
        let (text, made) =
            token::create_token(&store, "x", AccessScope::Read, TokenLimits::default(), chrono::Utc::now()).unwrap();
        let invented = format!("{PREFIX}{}", "x".repeat(SECRET_CHARACTERS));
        let page = format!("Use {text}, not {invented} or steward_short or steward_é{}.", "é".repeat(30));
        assert_eq!(remove_tokens(&store, &page), page.replace(&text, REMOVED));
        let mut value = json!({"lines": [{"text": text}], "number": 1});
        remove_tokens_from_value(&store, &mut value);
        assert_eq!(value, json!({"lines": [{"text": REMOVED}], "number": 1}));
        token::revoke_token(&store, &made.id).unwrap();
        assert_eq!(remove_tokens(&store, &page), page);
    }
}
