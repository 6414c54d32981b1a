//! Sessions of browsers: a cookie that is signed, not stored.
//!
//! It names who logged in, what they may do and when that ends; whoever removes the key ends all of them, in every
//! process at once, because it is read at each use. From it follow a key for the forms of its pages, which no other site
//! can know, and the name of the cookie, since browsers send those of one vault to another on the same machine.

use super::{AccessError, Caller, Proof, Scope, Store, secret};
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

/// Signs and reads sessions.
#[derive(Clone)]
pub struct Sessions {
    store: Store,
}

/// The key of the vault's sessions, as it is now.
struct Key(String);

#[derive(Serialize, Deserialize)]
struct Session {
    name: String,
    scope: Scope,
    ends_at: DateTime<Utc>,
    /// Tells two sessions of one person apart.
    nonce: String,
}

impl Sessions {
    /// With the key of the vault, which is made the first time.
    ///
    /// # Errors
    /// [`AccessError`] when it can be neither read nor made.
    pub fn open(store: &Store) -> Result<Self, AccessError> {
        store.key(KEY)?;
        Ok(Self { store: store.clone() })
    }

    /// A cookie for somebody: its name and value.
    pub(crate) fn begin(&self, name: &str, scope: Scope, now: DateTime<Utc>) -> Result<(String, String), AccessError> {
        let key = Key(self.store.key(KEY)?);
        Ok((key.cookie(), key.begin(name, scope, now)?))
    }

    /// The name of the cookie that ends a session.
    pub(crate) fn cookie(&self) -> Result<String, AccessError> {
        Ok(Key(self.store.key(KEY)?).cookie())
    }

    /// Who has one of these cookies; nobody where it is not ours, has ended, or the key was taken away.
    pub(crate) fn caller<'c>(
        &self,
        mut cookies: impl Iterator<Item = (&'c str, &'c str)>,
        now: DateTime<Utc>,
    ) -> Result<Option<Caller>, AccessError> {
        let Some(key) = self.store.made_key(KEY)?.map(Key) else { return Ok(None) };
        let name = key.cookie();
        Ok(cookies.find_map(|(said, value)| if said == name { key.caller(value, now) } else { None }))
    }
}

impl Key {
    fn cookie(&self) -> String {
        format!("steward_{}", &self.mark("cookie", "")[..10])
    }

    fn begin(&self, name: &str, scope: Scope, now: DateTime<Utc>) -> Result<String, AccessError> {
        let session = Session { name: name.to_owned(), scope, ends_at: now + SESSION_LASTS, nonce: secret()? };
        let text = BASE64.encode(serde_json::to_vec(&session).unwrap_or_default());
        let mark = self.mark("session", &text);
        Ok(format!("{text}.{mark}"))
    }

    /// Whose session a cookie's value is; `None` of one that is not ours or has ended.
    fn caller(&self, cookie: &str, now: DateTime<Utc>) -> Option<Caller> {
        let (text, mark) = cookie.split_once('.')?;
        if !is_same(mark, &self.mark("session", text)) {
            return None;
        }
        let session: Session = serde_json::from_slice(&BASE64.decode(text).ok()?).ok()?;
        let form_key = self.mark("form", text);
        let caller = Caller { name: session.name, scope: session.scope, proof: Proof::Session { form_key } };
        (now < session.ends_at).then_some(caller)
    }

    fn mark(&self, purpose: &str, text: &str) -> String {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(self.0.as_bytes())
            .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        mac.update(purpose.as_bytes());
        mac.update(b"\0");
        mac.update(text.as_bytes());
        BASE64.encode(mac.finalize().into_bytes())
    }
}

/// Compares in the same time wherever they differ.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_holds_until_it_ends_and_cannot_be_made_up() {
        let sessions = Key("key".into());
        let now = Utc::now();
        let cookie = sessions.begin("ann", Scope::Act, now).unwrap();
        let ann = sessions.caller(&cookie, now).unwrap();
        assert_eq!((ann.name.as_str(), ann.scope), ("ann", Scope::Act));
        assert_eq!(sessions.caller(&cookie, now + SESSION_LASTS), None);
        assert_eq!(Key("other".into()).caller(&cookie, now), None);
        let (text, mark) = cookie.split_once('.').unwrap();
        let bolder = String::from_utf8(BASE64.decode(text).unwrap()).unwrap().replace("\"act\"", "\"operate\"");
        assert_eq!(sessions.caller(&format!("{}.{mark}", BASE64.encode(bolder)), now), None);
        assert_eq!(sessions.caller("", now), None);
        assert_eq!(sessions.caller(".", now), None);
    }

    #[test]
    fn two_sessions_have_two_keys_for_their_forms_and_neither_is_its_mark() {
        let sessions = Key("key".into());
        let key = |cookie: &str| match sessions.caller(cookie, Utc::now()).unwrap().proof {
            Proof::Session { form_key } => form_key,
            Proof::Token => unreachable!(),
        };
        let (one, two) = (sessions.begin("ann", Scope::Act, Utc::now()), sessions.begin("ann", Scope::Act, Utc::now()));
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_ne!(key(&one), key(&two));
        assert!(!one.contains(&key(&one)));
    }

    #[test]
    fn without_its_key_no_session_holds_and_an_emptied_one_signs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(&Store::of(dir.path())).unwrap();
        let (name, value) = sessions.begin("ann", Scope::Act, Utc::now()).unwrap();
        let who = |name: &str, value: &str| sessions.caller([(name, value)].into_iter(), Utc::now()).unwrap();
        assert_eq!(who(&name, &value).map(|ann| ann.name).as_deref(), Some("ann"));
        assert_eq!(who("steward_other", &value), None, "that of another vault");
        let file = dir.path().join("access/keys/sessions");
        std::fs::write(&file, "").unwrap();
        let forged = Key(String::new());
        assert_eq!(who(&forged.cookie(), &forged.begin("eve", Scope::Operate, Utc::now()).unwrap()), None);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(who(&name, &value), None);
    }
}
