//! What a form of ours says: whose page it stood on, and where to go from there.
//!
//! A form counts only with the key of the session that it was shown to. The way back is a page of ours or the first one,
//! never an address that somebody sent along.

use super::Oops;
use crate::access::session::is_same;
use crate::access::{Caller, Proof};
use crate::api::problem::Problem;
use axum::extract::Form;
use axum::extract::rejection::FormRejection;
use axum::http::StatusCode;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Said {
    #[serde(default)]
    form_key: String,
    /// The page to come back to.
    #[serde(default)]
    back: String,
    #[serde(default)]
    pub(crate) kind: String,
    /// Of an edit what is to be written instead.
    #[serde(default)]
    pub(crate) value: String,
    #[serde(default)]
    reason: String,
}

impl Said {
    /// A form of a page that this very session was shown; a token needs none.
    pub(crate) fn checked(form: Result<Form<Self>, FormRejection>, caller: &Caller) -> Result<Self, Oops> {
        let Form(said) = form.map_err(|e| Oops::from(Problem::new(e.status(), e.body_text())))?;
        match &caller.proof {
            Proof::Session { form_key } if !is_same(form_key, &said.form_key) => {
                let detail = "this form is of another session: open the page again";
                Err(Problem::new(StatusCode::FORBIDDEN, detail).into())
            }
            Proof::Session { .. } | Proof::Token => Ok(said),
        }
    }

    pub(crate) fn reason(&self) -> Option<String> {
        Some(self.reason.trim().to_owned()).filter(|reason| !reason.is_empty())
    }

    /// A page of ours: never an address that leads elsewhere.
    pub(crate) fn back(&self) -> &str {
        ours(&self.back)
    }

    /// The same, to say there what was done.
    pub(crate) fn back_with(&self, done: &str) -> String {
        let whole = self.back().split('#').next().unwrap_or("/");
        let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
        let kept = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("done="));
        let query: String = kept.map(|pair| format!("{pair}&")).collect();
        format!("{path}?{query}done={done}")
    }
}

/// An address of a page of ours, or the first one's.
pub(crate) fn ours(address: &str) -> &str {
    let is_ours = address.starts_with('/')
        && !address.starts_with("//")
        && address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_ours { address } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Scope;

    fn back_to(text: &str) -> Said {
        Said { back: text.into(), ..Said::default() }
    }

    #[test]
    fn the_way_back_leads_to_a_page_of_ours() {
        for ours in ["/", "/actions/3f9a?x=1"] {
            assert_eq!(back_to(ours).back(), ours);
        }
        for theirs in ["", "//evil.example", "https://evil.example", "/\\evil.example", "/a\nb", "javascript:x"] {
            assert_eq!(back_to(theirs).back(), "/", "{theirs}");
        }
        assert_eq!(back_to("/search?q=x&done=1#a").back_with("2"), "/search?q=x&done=2");
        assert_eq!(back_to("/").back_with("2"), "/?done=2");
    }

    #[test]
    fn a_form_without_the_key_of_its_session_is_refused() {
        let of = |proof| Caller { name: "ann".into(), scope: Scope::Act, proof };
        let session = of(Proof::Session { form_key: "k".into() });
        let form = |key: &str| Ok(Form(Said { form_key: key.into(), ..Said::default() }));
        assert!(Said::checked(form("k"), &session).is_ok());
        assert!(Said::checked(form("x"), &session).is_err() && Said::checked(form(""), &session).is_err());
        assert!(Said::checked(form(""), &of(Proof::Token)).is_ok());
    }
}
