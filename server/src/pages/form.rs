//! The fields of the dashboard's forms, and the checks on them.
//!
//! A form is accepted only with the key of the session to which it was shown. The URL to return to must be a page of
//! this dashboard. Any other address becomes the first page.

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
    /// The page to return to.
    #[serde(default)]
    back: String,
    #[serde(default)]
    pub(crate) kind: String,
    /// The value that an edit writes instead of the proposed one.
    #[serde(default)]
    pub(crate) value: String,
    #[serde(default)]
    reason: String,
    /// The note that the form is about.
    #[serde(default)]
    pub(crate) note: String,
}

impl DashboardForm {
    /// Accepts a form only with the key of this session. A caller with a token needs no key, because no browser sends a
    /// token by itself.
    ///
    /// # Errors
    /// A form that cannot be read, or 403 for a wrong key.
    pub(crate) fn verify_form(
        form: Result<Form<Self>, FormRejection>,
        caller: &AuthenticatedCaller,
    ) -> Result<Self, PageError> {
        let Form(form) = form.map_err(|e| PageError::from(ProblemDetails::new(e.status(), e.body_text())))?;
        match &caller.proof {
            CallerProof::Session { form_key } if !is_equal_constant_time(form_key, &form.form_key) => {
                let detail = "this form belongs to another session: reload the page";
                Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail).into())
            }
            CallerProof::Session { .. } | CallerProof::Token => Ok(form),
        }
    }

    pub(crate) fn trimmed_reason(&self) -> Option<String> {
        Some(self.reason.trim().to_owned()).filter(|reason| !reason.is_empty())
    }

    /// The page to return to; always a page of this dashboard.
    pub(crate) fn return_url(&self) -> &str {
        keep_local_url(&self.back)
    }

    /// The page to return to, with the id of the record that was written, so that the page shows the result.
    pub(crate) fn return_url_with_result(&self, done: &str) -> String {
        let url = self.return_url().split('#').next().unwrap_or("/");
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let kept = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("done="));
        let query: String = kept.map(|pair| format!("{pair}&")).collect();
        format!("{path}?{query}done={done}")
    }
}

/// Returns the address if it is a page of this dashboard, and `/` otherwise.
pub(crate) fn keep_local_url(address: &str) -> &str {
    let is_local = address.starts_with('/')
        && !address.starts_with("//")
        && address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_local { address } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessScope, TokenLimits};

    fn back_to(text: &str) -> DashboardForm {
        DashboardForm { back: text.into(), ..DashboardForm::default() }
    }

    #[test]
    fn the_return_url_is_always_a_page_of_this_dashboard() {
        for local in ["/", "/actions/3f9a?x=1"] {
            assert_eq!(back_to(local).return_url(), local);
        }
        for foreign in ["", "//evil.example", "https://evil.example", "/\\evil.example", "/a\nb", "javascript:x"] {
            assert_eq!(back_to(foreign).return_url(), "/", "{foreign}");
        }
        assert_eq!(back_to("/search?q=x&done=1#a").return_url_with_result("2"), "/search?q=x&done=2");
        assert_eq!(back_to("/").return_url_with_result("2"), "/?done=2");
    }

    #[test]
    fn a_form_without_the_key_of_its_session_is_refused() {
        let limits = TokenLimits::default();
        let caller =
            |proof| AuthenticatedCaller { name: "ann".into(), scope: AccessScope::Act, proof, limits: limits.clone() };
        let session = caller(CallerProof::Session { form_key: "k".into() });
        let form = |key: &str| Ok(Form(DashboardForm { form_key: key.into(), ..DashboardForm::default() }));
        assert!(DashboardForm::verify_form(form("k"), &session).is_ok());
        assert!(
            DashboardForm::verify_form(form("x"), &session).is_err()
                && DashboardForm::verify_form(form(""), &session).is_err()
        );
        assert!(DashboardForm::verify_form(form(""), &caller(CallerProof::Token)).is_ok());
    }
}
