//! Browser sessions: signed cookies that are not stored.
//!
//! A cookie names the person, the scope and the end of the session. Every use reads the signing key, so removing it
//! ends all sessions in every process at once. Logging out ends one session: a file in the state folder says so to
//! every process until the session would have ended by itself. A key for the forms, which no other site can know, is
//! derived from each session. The cookie's name is derived from the signing key, because a browser sends the cookies of
//! one vault to another vault on the same machine.

use super::AccessError;
use super::AccessScope;
use super::AuthenticatedCaller;
use super::CallerProof;
use super::SecretStore;
use super::TokenLimits;
use super::generate_secret;
use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// How long a session lasts: 7 days, like the undo window.
pub const SESSION_LIFETIME: TimeDelta = TimeDelta::days(7);

const KEY: &str = "sessions";
/// The kind of the files for ended sessions; each is named after the hash of the session's nonce.
const ENDED: &str = "ended-sessions";

/// Starts, verifies and ends sessions.
#[derive(Clone)]
pub struct BrowserSessions {
    store: SecretStore,
}

/// The current signing key of the vault's sessions.
struct SessionKey(String);

#[derive(Serialize, Deserialize)]
struct SessionClaims {
    name: String,
    scope: AccessScope,
    ends_at: DateTime<Utc>,
    /// Distinguishes two sessions of one person.
    nonce: String,
}

/// A session that ended by a logout.
#[derive(Serialize, Deserialize)]
struct EndedSession {
    /// When the session would have ended by itself. From then on the cookie itself is expired and this file is not
    /// needed.
    ends_at: DateTime<Utc>,
}

impl BrowserSessions {
    /// Opens the sessions of a vault and creates their key if it is missing.
    ///
    /// # Errors
    /// [`AccessError`] when the key can be neither read nor created.
    pub fn open(store: &SecretStore) -> Result<Self, AccessError> {
        store.ensure_key(KEY)?;
        Ok(Self { store: store.clone() })
    }

    /// Starts a session and returns the name and the value of its cookie.
    pub(crate) fn begin_session(
        &self,
        name: &str,
        scope: AccessScope,
        now: DateTime<Utc>,
    ) -> Result<(String, String), AccessError> {
        let key = SessionKey(self.store.ensure_key(KEY)?);
        Ok((key.derive_cookie_name(), key.sign_session(name, scope, now)?))
    }

    /// The name of the session cookie.
    pub(crate) fn read_cookie_name(&self) -> Result<String, AccessError> {
        Ok(SessionKey(self.store.ensure_key(KEY)?).derive_cookie_name())
    }

    /// Finds the caller of a session cookie; `None` if no cookie belongs to an open session of this vault.
    pub(crate) fn identify_caller<'c>(
        &self,
        cookies: impl Iterator<Item = (&'c str, &'c str)>,
        now: DateTime<Utc>,
    ) -> Result<Option<AuthenticatedCaller>, AccessError> {
        Ok(self.find_open_sessions(cookies, now)?.into_iter().next().map(|(_, caller)| caller))
    }

    /// Ends the sessions of these cookies in every process. Returns the caller if a session was open.
    ///
    /// # Errors
    /// [`AccessError`] when the end could not be stored. Then the sessions go on.
    pub(crate) fn end_sessions<'c>(
        &self,
        cookies: impl Iterator<Item = (&'c str, &'c str)>,
        now: DateTime<Utc>,
    ) -> Result<Option<AuthenticatedCaller>, AccessError> {
        let mut ended = None;
        for (session, caller) in self.find_open_sessions(cookies, now)? {
            let written = self.store.put(ENDED, &session.nonce, &EndedSession { ends_at: session.ends_at });
            // Another process may have ended it first.
            if written.is_err() && !self.store.has_secret(ENDED, &session.nonce)? {
                written?;
            }
            ended = Some(caller);
        }
        if let Err(e) = self.remove_expired_ends(now) {
            tracing::warn!("failed to remove files of expired sessions: {e}");
        }
        Ok(ended)
    }

    /// Finds the open sessions of this vault among these cookies.
    fn find_open_sessions<'c>(
        &self,
        cookies: impl Iterator<Item = (&'c str, &'c str)>,
        now: DateTime<Utc>,
    ) -> Result<Vec<(SessionClaims, AuthenticatedCaller)>, AccessError> {
        let Some(key) = self.store.read_key(KEY)?.map(SessionKey) else { return Ok(Vec::new()) };
        let name = key.derive_cookie_name();
        let mut open = Vec::new();
        for (_, value) in cookies.filter(|(cookie, _)| *cookie == name) {
            if let Some(found) = key.read_session(value, now)
                && !self.store.has_secret(ENDED, &found.0.nonce)?
            {
                open.push(found);
            }
        }
        Ok(open)
    }

    /// Removes the files of sessions that would have ended by now.
    fn remove_expired_ends(&self, now: DateTime<Utc>) -> Result<(), AccessError> {
        for (path, _) in
            self.store.read_all::<EndedSession>(ENDED)?.into_iter().filter(|(_, ended)| ended.ends_at <= now)
        {
            // Another process may have removed it first.
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
            SessionClaims { name: name.to_owned(), scope, ends_at: now + SESSION_LIFETIME, nonce: generate_secret()? };
        let text = BASE64.encode(serde_json::to_vec(&session).unwrap_or_default());
        let signature = self.sign_text("session", &text);
        Ok(format!("{text}.{signature}"))
    }

    /// Reads a cookie's value; `None` if its signature is invalid or the session is over.
    fn read_session(&self, cookie: &str, now: DateTime<Utc>) -> Option<(SessionClaims, AuthenticatedCaller)> {
        let (text, signature) = cookie.split_once('.')?;
        if !is_equal_constant_time(signature, &self.sign_text("session", text)) {
            return None;
        }
        let session: SessionClaims = serde_json::from_slice(&BASE64.decode(text).ok()?).ok()?;
        let form_key = self.sign_text("form", text);
        let caller = AuthenticatedCaller {
            name: session.name.clone(),
            scope: session.scope,
            proof: CallerProof::Session { form_key },
            limits: TokenLimits::default(),
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

/// Compares two texts in a time that does not depend on where they differ.
#[must_use]
pub fn is_equal_constant_time(a: &str, b: &str) -> bool {
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
    fn a_logged_out_session_is_invalid_in_every_process_and_the_others_stay() {
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
        assert_eq!(end(&other, now + SESSION_LIFETIME).unwrap(), None, "this one is over by itself");
        assert_eq!(files(), 0, "what is over by itself needs no file");
    }

    #[test]
    fn a_session_whose_end_cannot_be_stored_goes_on_and_the_caller_gets_the_error() {
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
        assert!(sessions.identify_caller(cookie(), Utc::now()).is_err(), "an unreadable state authenticates nobody");
    }

    #[test]
    fn a_session_is_valid_until_it_ends_and_cannot_be_forged() {
        let sessions = SessionKey("key".into());
        let now = Utc::now();
        let cookie = sessions.sign_session("ann", AccessScope::Act, now).unwrap();
        let ann = sessions.caller(&cookie, now).unwrap();
        assert_eq!((ann.name.as_str(), ann.scope), ("ann", AccessScope::Act));
        assert_eq!(sessions.caller(&cookie, now + SESSION_LIFETIME), None);
        assert_eq!(SessionKey("other".into()).caller(&cookie, now), None);
        let (text, mark) = cookie.split_once('.').unwrap();
        let bolder = String::from_utf8(BASE64.decode(text).unwrap()).unwrap().replace("\"act\"", "\"operate\"");
        assert_eq!(sessions.caller(&format!("{}.{mark}", BASE64.encode(bolder)), now), None);
        assert_eq!(sessions.caller("", now), None);
        assert_eq!(sessions.caller(".", now), None);
    }

    #[test]
    fn two_sessions_have_two_form_keys_and_neither_is_in_the_cookie() {
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
    fn without_its_key_no_session_is_valid_and_an_empty_key_signs_nothing() {
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
