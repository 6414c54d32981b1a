//! Sessions of browsers: a cookie that is signed, not stored.
//!
//! It names who logged in, what they may do and when that ends; whoever removes the key ends all of them, in every
//! process at once, because it is read at each use. Logging out ends one of them: until the session would have ended by
//! itself, a file in the state folder says so to every process. From it follow a key for the forms of its pages, which no other site
//! can know, and the name of the cookie, since browsers send those of one vault to another on the same machine.

use super::AccessError;
use super::AccessScope;
use super::AuthenticatedCaller;
use super::CallerProof;
use super::SecretStore;
use super::generate_secret;
use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// How long a session lasts: 7 days, as long as an undo does.
pub const SESSION_LASTS: TimeDelta = TimeDelta::days(7);

const KEY: &str = "sessions";
/// The files of sessions that were logged out, each named after the hash of the session's nonce.
const ENDED: &str = "ended-sessions";

/// Signs and reads sessions.
#[derive(Clone)]
pub struct BrowserSessions {
    store: SecretStore,
}

/// The key of the vault's sessions, as it is now.
struct SessionKey(String);

#[derive(Serialize, Deserialize)]
struct SessionClaims {
    name: String,
    scope: AccessScope,
    ends_at: DateTime<Utc>,
    /// Tells two sessions of one person apart.
    nonce: String,
}

/// A session that was logged out.
#[derive(Serialize, Deserialize)]
struct EndedSession {
    /// From then on the cookie alone says that it has ended.
    ends_at: DateTime<Utc>,
}

impl BrowserSessions {
    /// With the key of the vault, which is made the first time.
    ///
    /// # Errors
    /// [`AccessError`] when it can be neither read nor made.
    pub fn open(store: &SecretStore) -> Result<Self, AccessError> {
        store.ensure_key(KEY)?;
        Ok(Self { store: store.clone() })
    }

    /// A cookie for somebody: its name and value.
    pub(crate) fn begin_session(
        &self,
        name: &str,
        scope: AccessScope,
        now: DateTime<Utc>,
    ) -> Result<(String, String), AccessError> {
        let key = SessionKey(self.store.ensure_key(KEY)?);
        Ok((key.derive_cookie_name(), key.sign_session(name, scope, now)?))
    }

    /// The name of the cookie that ends a session.
    pub(crate) fn read_cookie_name(&self) -> Result<String, AccessError> {
        Ok(SessionKey(self.store.ensure_key(KEY)?).derive_cookie_name())
    }

    /// Who has one of these cookies; nobody where it is not ours, has ended, or the key was taken away.
    pub(crate) fn identify_caller<'c>(
        &self,
        cookies: impl Iterator<Item = (&'c str, &'c str)>,
        now: DateTime<Utc>,
    ) -> Result<Option<AuthenticatedCaller>, AccessError> {
        Ok(self.find_open_sessions(cookies, now)?.into_iter().next().map(|(_, caller)| caller))
    }

    /// Ends the sessions of these cookies, in every process; whose they were, where one was open.
    ///
    /// # Errors
    /// [`AccessError`] when the end could not be written down: then they go on.
    pub(crate) fn end_sessions<'c>(
        &self,
        cookies: impl Iterator<Item = (&'c str, &'c str)>,
        now: DateTime<Utc>,
    ) -> Result<Option<AuthenticatedCaller>, AccessError> {
        let mut left = None;
        for (session, caller) in self.find_open_sessions(cookies, now)? {
            let written = self.store.put(ENDED, &session.nonce, &EndedSession { ends_at: session.ends_at });
            // Another process may have been faster.
            if written.is_err() && !self.store.has_secret(ENDED, &session.nonce)? {
                written?;
            }
            left = Some(caller);
        }
        if let Err(e) = self.remove_expired_ends(now) {
            tracing::warn!("files of sessions that are over were left: {e}");
        }
        Ok(left)
    }

    /// The sessions among these cookies that are ours and go on.
    fn find_open_sessions<'c>(
        &self,
        cookies: impl Iterator<Item = (&'c str, &'c str)>,
        now: DateTime<Utc>,
    ) -> Result<Vec<(SessionClaims, AuthenticatedCaller)>, AccessError> {
        let Some(key) = self.store.read_key(KEY)?.map(SessionKey) else { return Ok(Vec::new()) };
        let name = key.derive_cookie_name();
        let mut open = Vec::new();
        for (_, value) in cookies.filter(|(said, _)| *said == name) {
            if let Some(found) = key.read_session(value, now)
                && !self.store.has_secret(ENDED, &found.0.nonce)?
            {
                open.push(found);
            }
        }
        Ok(open)
    }

    /// Removes what is kept of sessions that are over by themselves.
    fn remove_expired_ends(&self, now: DateTime<Utc>) -> Result<(), AccessError> {
        for (path, _) in
            self.store.read_all::<EndedSession>(ENDED)?.into_iter().filter(|(_, ended)| ended.ends_at <= now)
        {
            // Another process may have been faster.
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }
}

/// The cookies of a request, each with its name and value.
pub(crate) fn read_cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

impl SessionKey {
    fn derive_cookie_name(&self) -> String {
        format!("steward_{}", &self.sign_text("cookie", "")[..10])
    }

    fn sign_session(&self, name: &str, scope: AccessScope, now: DateTime<Utc>) -> Result<String, AccessError> {
        let session =
            SessionClaims { name: name.to_owned(), scope, ends_at: now + SESSION_LASTS, nonce: generate_secret()? };
        let text = BASE64.encode(serde_json::to_vec(&session).unwrap_or_default());
        let mark = self.sign_text("session", &text);
        Ok(format!("{text}.{mark}"))
    }

    /// The session of a cookie's value, and whose it is; `None` of one that is not ours or is over.
    fn read_session(&self, cookie: &str, now: DateTime<Utc>) -> Option<(SessionClaims, AuthenticatedCaller)> {
        let (text, mark) = cookie.split_once('.')?;
        if !is_equal_constant_time(mark, &self.sign_text("session", text)) {
            return None;
        }
        let session: SessionClaims = serde_json::from_slice(&BASE64.decode(text).ok()?).ok()?;
        let form_key = self.sign_text("form", text);
        let caller = AuthenticatedCaller {
            name: session.name.clone(),
            scope: session.scope,
            proof: CallerProof::Session { form_key },
        };
        (now < session.ends_at).then_some((session, caller))
    }

    fn sign_text(&self, purpose: &str, text: &str) -> String {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(self.0.as_bytes())
            .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        mac.update(purpose.as_bytes());
        mac.update(b"\0");
        mac.update(text.as_bytes());
        BASE64.encode(mac.finalize().into_bytes())
    }
}

/// Compares in the same time wherever they differ.
pub(crate) fn is_equal_constant_time(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SessionKey {
        fn caller(&self, cookie: &str, now: DateTime<Utc>) -> Option<AuthenticatedCaller> {
            self.read_session(cookie, now).map(|(_, caller)| caller)
        }
    }

    #[test]
    fn a_session_that_was_logged_out_is_nobodys_in_every_process_and_the_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let [here, there] = [(), ()].map(|()| BrowserSessions::open(&SecretStore::new(dir.path())).unwrap());
        let now = Utc::now();
        let [left, other] = [(), ()].map(|()| here.begin_session("ann", AccessScope::Act, now).unwrap());
        let who = |sessions: &BrowserSessions, (name, value): &(String, String)| {
            sessions
                .identify_caller([(name.as_str(), value.as_str())].into_iter(), now)
                .unwrap()
                .map(|caller| caller.name)
        };
        let end = |(name, value): &(String, String), now| {
            here.end_sessions([(name.as_str(), value.as_str())].into_iter(), now)
                .map(|caller| caller.map(|caller| caller.name))
        };
        assert_eq!(end(&left, now).unwrap().as_deref(), Some("ann"));
        assert_eq!((who(&here, &left), who(&there, &left)), (None, None));
        assert_eq!(who(&there, &other).as_deref(), Some("ann"));
        assert_eq!(end(&left, now).unwrap(), None, "it is over already");
        let folder = dir.path().join("access").join(ENDED);
        let files = || std::fs::read_dir(&folder).unwrap().count();
        let text =
            std::fs::read_to_string(std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path()).unwrap();
        assert!(files() == 1 && !text.contains("ann"), "{text}");
        assert_eq!(end(&other, now + SESSION_LASTS).unwrap(), None, "this one is over by itself");
        assert_eq!(files(), 0, "what is over by itself needs no file");
    }

    #[test]
    fn a_session_whose_end_cannot_be_written_goes_on_and_the_caller_hears_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = BrowserSessions::open(&SecretStore::new(dir.path())).unwrap();
        let (name, value) = sessions.begin_session("ann", AccessScope::Act, Utc::now()).unwrap();
        let cookie = || [(name.as_str(), value.as_str())].into_iter();
        let folder = dir.path().join("access").join(ENDED);
        std::os::unix::fs::symlink(dir.path().join("nowhere"), &folder).unwrap();
        assert!(matches!(sessions.end_sessions(cookie(), Utc::now()), Err(AccessError::Io { .. })));
        assert!(sessions.identify_caller(cookie(), Utc::now()).unwrap().is_some());
        std::fs::remove_file(&folder).unwrap();
        std::fs::write(&folder, "no folder").unwrap();
        assert!(sessions.identify_caller(cookie(), Utc::now()).is_err(), "nobody is let in by what cannot be read");
    }

    #[test]
    fn a_session_holds_until_it_ends_and_cannot_be_made_up() {
        let sessions = SessionKey("key".into());
        let now = Utc::now();
        let cookie = sessions.sign_session("ann", AccessScope::Act, now).unwrap();
        let ann = sessions.caller(&cookie, now).unwrap();
        assert_eq!((ann.name.as_str(), ann.scope), ("ann", AccessScope::Act));
        assert_eq!(sessions.caller(&cookie, now + SESSION_LASTS), None);
        assert_eq!(SessionKey("other".into()).caller(&cookie, now), None);
        let (text, mark) = cookie.split_once('.').unwrap();
        let bolder = String::from_utf8(BASE64.decode(text).unwrap()).unwrap().replace("\"act\"", "\"operate\"");
        assert_eq!(sessions.caller(&format!("{}.{mark}", BASE64.encode(bolder)), now), None);
        assert_eq!(sessions.caller("", now), None);
        assert_eq!(sessions.caller(".", now), None);
    }

    #[test]
    fn two_sessions_have_two_keys_for_their_forms_and_neither_is_its_mark() {
        let sessions = SessionKey("key".into());
        let key = |cookie: &str| match sessions.caller(cookie, Utc::now()).unwrap().proof {
            CallerProof::Session { form_key } => form_key,
            CallerProof::Token => unreachable!(),
        };
        let (one, two) = (
            sessions.sign_session("ann", AccessScope::Act, Utc::now()),
            sessions.sign_session("ann", AccessScope::Act, Utc::now()),
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_ne!(key(&one), key(&two));
        assert!(!one.contains(&key(&one)));
    }

    #[test]
    fn without_its_key_no_session_holds_and_an_emptied_one_signs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = BrowserSessions::open(&SecretStore::new(dir.path())).unwrap();
        let (name, value) = sessions.begin_session("ann", AccessScope::Act, Utc::now()).unwrap();
        let who = |name: &str, value: &str| sessions.identify_caller([(name, value)].into_iter(), Utc::now()).unwrap();
        assert_eq!(who(&name, &value).map(|ann| ann.name).as_deref(), Some("ann"));
        assert_eq!(who("steward_other", &value), None, "that of another vault");
        let file = dir.path().join("access/keys/sessions");
        std::fs::write(&file, "").unwrap();
        let forged = SessionKey(String::new());
        assert_eq!(
            who(&forged.derive_cookie_name(), &forged.sign_session("eve", AccessScope::Operate, Utc::now()).unwrap()),
            None
        );
        std::fs::remove_file(&file).unwrap();
        assert_eq!(who(&name, &value), None);
    }
}
