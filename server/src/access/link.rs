//! Links that log a person in once: `/login?link=…`, printed at start and by `steward login`.
//!
//! A link is kept as a hash with the name and scope of whom it lets in. Looking whether it holds changes nothing; using it
//! up has one winner. What becomes of it is a session ([`super::session`]).

use super::AccessError;
use super::AccessScope;
use super::SecretStore;
use super::generate_secret;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

const KIND: &str = "links";
/// How long a link may lie in a terminal before it is used: 1 h.
pub const LINK_HOLDS: TimeDelta = TimeDelta::hours(1);

/// Whom a link lets in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoginLink {
    pub(crate) name: String,
    pub(crate) scope: AccessScope,
    ends_at: DateTime<Utc>,
}

/// Makes a link for somebody, as [`super::name`] lets them be called or this machine calls them; returns what follows `?link=`.
///
/// # Errors
/// [`AccessError`] when nothing can be written.
pub fn create_link(
    store: &SecretStore,
    name: &str,
    scope: AccessScope,
    now: DateTime<Utc>,
) -> Result<String, AccessError> {
    for (path, old) in store.read_all::<LoginLink>(KIND)? {
        if old.ends_at <= now {
            // Another process may have been faster.
            let _ = std::fs::remove_file(path);
        }
    }
    let text = generate_secret()?;
    store.put(KIND, &text, &LoginLink { name: name.to_owned(), scope, ends_at: now + LINK_HOLDS })?;
    Ok(text)
}

/// Uses a link up; `None` when it is unknown, used or too old.
pub(crate) fn consume_link(
    store: &SecretStore,
    text: &str,
    now: DateTime<Utc>,
) -> Result<Option<LoginLink>, AccessError> {
    Ok(store.take::<LoginLink>(KIND, text)?.filter(|link| now < link.ends_at))
}

/// Whether a link would let somebody in; it stays as it is.
pub(crate) fn is_link_valid(store: &SecretStore, text: &str, now: DateTime<Utc>) -> Result<bool, AccessError> {
    Ok(store.get::<LoginLink>(KIND, text)?.is_some_and(|link| now < link.ends_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_lets_one_in_within_its_hour() {
        let dir = tempfile::tempdir().unwrap();
        let (store, now) = (SecretStore::new(dir.path()), Utc::now());
        let text = create_link(&store, "ann", AccessScope::Operate, now).unwrap();
        assert!(is_link_valid(&store, &text, now).unwrap());
        assert_eq!(consume_link(&store, &text, now).unwrap().map(|link| link.name).as_deref(), Some("ann"));
        assert_eq!(consume_link(&store, &text, now).unwrap(), None);
        let late = create_link(&store, "ann", AccessScope::Operate, now).unwrap();
        assert!(!is_link_valid(&store, &late, now + LINK_HOLDS).unwrap());
        assert_eq!(consume_link(&store, &late, now + LINK_HOLDS).unwrap(), None);
    }
}
