//! What a form of ours says: whose page it stood on, and where to go from there.
//!
//! A form counts only with the key of the session that it was shown to. The way back is a page of ours or the first one,
//! never an address that somebody sent along.

use super::PageError;
use crate::access::session::is_equal_constant_time;
use crate::access::{AuthenticatedCaller, CallerProof};
use crate::api::problem::ProblemDetails;
use axum::extract::Form;
use axum::extract::rejection::FormRejection;
use axum::http::StatusCode;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct DashboardForm {
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

impl DashboardForm {
    /// A form of a page that this very session was shown; a token needs none.
    pub(crate) fn verify_form(
        form: Result<Form<Self>, FormRejection>,
        caller: &AuthenticatedCaller,
    ) -> Result<Self, PageError> {
        let Form(said) = form.map_err(|e| PageError::from(ProblemDetails::new(e.status(), e.body_text())))?;
        match &caller.proof {
            CallerProof::Session { form_key } if !is_equal_constant_time(form_key, &said.form_key) => {
                let detail = "this form is of another session: open the page again";
                Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail).into())
            }
            CallerProof::Session { .. } | CallerProof::Token => Ok(said),
        }
    }

    pub(crate) fn trimmed_reason(&self) -> Option<String> {
        Some(self.reason.trim().to_owned()).filter(|reason| !reason.is_empty())
    }

    /// A page of ours: never an address that leads elsewhere.
    pub(crate) fn return_url(&self) -> &str {
        keep_local_url(&self.back)
    }

    /// The same, to say there what was done.
    pub(crate) fn return_url_with_result(&self, done: &str) -> String {
        let whole = self.return_url().split('#').next().unwrap_or("/");
        let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
        let kept = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("done="));
        let query: String = kept.map(|pair| format!("{pair}&")).collect();
        format!("{path}?{query}done={done}")
    }
}

/// An address of a page of ours, or the first one's.
pub(crate) fn keep_local_url(address: &str) -> &str {
    let is_ours = address.starts_with('/')
        && !address.starts_with("//")
        && address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_ours { address } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessScope;

    fn back_to(text: &str) -> DashboardForm {
        DashboardForm { back: text.into(), ..DashboardForm::default() }
    }

    #[test]
    fn the_way_back_leads_to_a_page_of_ours() {
        for ours in ["/", "/actions/3f9a?x=1"] {
            assert_eq!(back_to(ours).return_url(), ours);
        }
        for theirs in ["", "//evil.example", "https://evil.example", "/\\evil.example", "/a\nb", "javascript:x"] {
            assert_eq!(back_to(theirs).return_url(), "/", "{theirs}");
        }
        assert_eq!(back_to("/search?q=x&done=1#a").return_url_with_result("2"), "/search?q=x&done=2");
        assert_eq!(back_to("/").return_url_with_result("2"), "/?done=2");
    }

    #[test]
    fn a_form_without_the_key_of_its_session_is_refused() {
        let of = |proof| AuthenticatedCaller { name: "ann".into(), scope: AccessScope::Act, proof };
        let session = of(CallerProof::Session { form_key: "k".into() });
        let form = |key: &str| Ok(Form(DashboardForm { form_key: key.into(), ..DashboardForm::default() }));
        assert!(DashboardForm::verify_form(form("k"), &session).is_ok());
        assert!(
            DashboardForm::verify_form(form("x"), &session).is_err()
                && DashboardForm::verify_form(form(""), &session).is_err()
        );
        assert!(DashboardForm::verify_form(form(""), &of(CallerProof::Token)).is_ok());
    }
}
