//! Links that log a person in once: `/login?link=…`, printed at start and by `steward login`.
//!
//! A link is stored as a hash, with the name and the scope of the person. Checking a link changes nothing. If several
//! requests use a link at once, one of them wins and gets a session ([`super::session`]).

use super::AccessError;
use super::AccessScope;
use super::SecretStore;
use super::generate_secret;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

const KIND: &str = "links";
/// How long a link is valid: 1 h, the time it may stay unused in a terminal.
pub const LINK_LIFETIME: TimeDelta = TimeDelta::hours(1);

/// Who logs in with a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoginLink {
    pub(crate) name: String,
    pub(crate) scope: AccessScope,
    ends_at: DateTime<Utc>,
}

/// Creates a link and returns the text that follows `?link=`. The name must come from [`super::parse_caller_name`] or
/// be that of this machine's user.
///
/// # Errors
/// [`AccessError`] when the link cannot be stored.
pub fn create_link(
    store: &SecretStore,
    name: &str,
    scope: AccessScope,
    now: DateTime<Utc>,
) -> Result<String, AccessError> {
    for (path, old) in store.read_all::<LoginLink>(KIND)? {
        if old.ends_at <= now {
            // Another process may have removed it first.
            let _ = std::fs::remove_file(path);
        }
    }
    let text = generate_secret()?;
    store.put(KIND, &text, &LoginLink { name: name.to_owned(), scope, ends_at: now + LINK_LIFETIME })?;
    Ok(text)
}

/// Uses a link up; `None` when it is unknown, used or expired.
pub(crate) fn consume_link(
    store: &SecretStore,
    text: &str,
    now: DateTime<Utc>,
) -> Result<Option<LoginLink>, AccessError> {
    Ok(store.take::<LoginLink>(KIND, text)?.filter(|link| now < link.ends_at))
}

/// Whether a link can still be used. The link is not changed.
pub(crate) fn is_link_valid(store: &SecretStore, text: &str, now: DateTime<Utc>) -> Result<bool, AccessError> {
    Ok(store.get::<LoginLink>(KIND, text)?.is_some_and(|link| now < link.ends_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_logs_one_person_in_within_its_hour() {
        let dir = tempfile::tempdir().unwrap();
        let (store, now) = (SecretStore::new(dir.path()), Utc::now());
        let text = create_link(&store, "ann", AccessScope::Operate, now).unwrap();
        assert!(is_link_valid(&store, &text, now).unwrap());
        assert_eq!(consume_link(&store, &text, now).unwrap().map(|link| link.name).as_deref(), Some("ann"));
        assert_eq!(consume_link(&store, &text, now).unwrap(), None);
        let late = create_link(&store, "ann", AccessScope::Operate, now).unwrap();
        assert!(!is_link_valid(&store, &late, now + LINK_LIFETIME).unwrap());
        assert_eq!(consume_link(&store, &late, now + LINK_LIFETIME).unwrap(), None);
    }
}
