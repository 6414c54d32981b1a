//! How the command on this machine shows that it is started by who runs the server: a key in the state folder.
//!
//! Whoever can read the folder can make tokens there, so the key opens nothing that they had not. It is made by the
//! first process that listens and kept, as the key of sessions is; removing the file ends it until the next start. The
//! command says in whose name it asks, since it goes by the name that is set where it is typed.

use super::AccessError;
use super::AccessScope;
use super::AuthenticatedCaller;
use super::CallerProof;
use super::SecretStore;
use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use subtle::ConstantTimeEq;

/// The metadata in which the command says in whose name it asks; in base64, as names of people are no ASCII.
pub const BY: &str = "steward-by-bin";
const KEY: &str = "command";
const PREFIX: &str = "steward-command_";

/// What the command sends as its token; `None` where no process of this vault has listened yet.
///
/// # Errors
/// [`AccessError`] when it cannot be read.
pub fn read_command_token(store: &SecretStore) -> Result<Option<String>, AccessError> {
    Ok(store.read_key(KEY)?.map(|key| format!("{PREFIX}{key}")))
}

/// Makes the key where it is missing.
pub(crate) fn ensure_command_key(store: &SecretStore) -> Result<(), AccessError> {
    store.ensure_key(KEY).map(drop)
}

/// The command, if this is its token.
pub(crate) fn identify_command(
    store: &SecretStore,
    text: &str,
    headers: &HeaderMap,
) -> Result<Option<AuthenticatedCaller>, AccessError> {
    let Some(said) = text.strip_prefix(PREFIX).filter(|said| !said.is_empty()) else { return Ok(None) };
    let Some(key) = store.read_key(KEY)? else { return Ok(None) };
    if !bool::from(said.as_bytes().ct_eq(key.as_bytes())) {
        return Ok(None);
    }
    let name = headers
        .get(BY)
        .and_then(|name| decode_caller_name(name.as_bytes()))
        .unwrap_or_else(|| "the command".to_owned());
    Ok(Some(AuthenticatedCaller { name, scope: AccessScope::Operate, proof: CallerProof::Token }))
}

fn decode_caller_name(said: &[u8]) -> Option<String> {
    let bytes = STANDARD.decode(said).or_else(|_| STANDARD_NO_PAD.decode(said)).ok()?;
    super::parse_caller_name(&String::from_utf8(bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_state_folder_alone_is_the_commands() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::new(dir.path());
        assert_eq!(read_command_token(&store).unwrap(), None, "nobody has listened");
        ensure_command_key(&store).unwrap();
        let text = read_command_token(&store).unwrap().unwrap();
        let mut headers = HeaderMap::new();
        assert_eq!(identify_command(&store, &text, &headers).unwrap().unwrap().name, "the command");
        headers.insert(BY, STANDARD_NO_PAD.encode("Jörg").parse().unwrap());
        let known = identify_command(&store, &text, &headers).unwrap().unwrap();
        assert_eq!((known.name.as_str(), known.scope), ("Jörg", AccessScope::Operate));
        headers.insert(BY, STANDARD_NO_PAD.encode("token:button#3f9a1c22").parse().unwrap());
        assert_eq!(
            identify_command(&store, &text, &headers).unwrap().unwrap().name,
            "the command",
            "nobody passes for a token"
        );
        for other in [PREFIX, "steward-command_AAAA", &text[..text.len() - 1], &text[PREFIX.len()..], ""] {
            assert_eq!(identify_command(&store, other, &headers).unwrap(), None, "{other}");
        }
        std::fs::remove_file(dir.path().join("access/keys/command")).unwrap();
        assert_eq!(identify_command(&store, &text, &headers).unwrap(), None, "a key that is taken away opens nothing");
    }
}
