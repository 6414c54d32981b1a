//! Logging in with a link that works once, and logging out.
//!
//! Opening the link changes nothing, because link scanners open addresses before people do and would use it up. The
//! button on the page logs in.

use super::BarePage;
use super::PageError;
use super::assets;
use super::render_page;
use super::render_refusal;
use crate::access::admission::RequestOrigin;
use crate::access::session::{SESSION_LIFETIME, read_cookies};
use crate::access::{AccessError, link};
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::http::operator_log;
use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use chrono::Utc;
use serde::Deserialize;
use steward_vault::files::operator_log::{OperatorEventKind, OperatorLogError};

/// Shown when a logout could not be stored and the session goes on.
const LOGOUT_FAILED: &str = "You are still logged in: the end of this session could not be written into the state \
    folder. The log says why. Try again. To end every session, remove access/keys/sessions from the state folder.";

#[derive(Deserialize)]
pub(crate) struct LoginParams {
    #[serde(default)]
    link: String,
}

impl From<AccessError> for PageError {
    fn from(e: AccessError) -> Self {
        tracing::error!("failed to log in: {e}");
        Self(ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "the login failed; the log says why"))
    }
}

impl From<OperatorLogError> for PageError {
    fn from(_: OperatorLogError) -> Self {
        let detail = "the login could not be recorded, so it was refused; the log says why";
        Self(ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
    }
}

pub(crate) async fn show_login(
    State(app): State<SharedAppState>,
    Extension(origin): Extension<RequestOrigin>,
    Query(params): Query<LoginParams>,
) -> Result<Response, PageError> {
    origin.check_unknown_rate(&app.access)?;
    if !link::is_link_valid(&app.access.store, &params.link, Utc::now())? {
        return Ok(render_invalid_link(&params.link));
    }
    let text = "This link logs you in once.";
    Ok(render_page(&BarePage {
        assets: assets::asset_urls(),
        title: "Steward",
        text,
        link: Some(&params.link),
        back: None,
    }))
}

/// The page for a link that is used, expired, made up or missing.
fn render_invalid_link(link: &str) -> Response {
    if link.is_empty() {
        return render_refusal(&ProblemDetails::new(StatusCode::UNAUTHORIZED, ""), None);
    }
    let text = "This link was used already, or is more than an hour old. Run `steward login` for a new one. \
        If you are logged in, go back to the dashboard.";
    let page = BarePage { assets: assets::asset_urls(), title: "Link expired", text, link: None, back: Some("/") };
    let mut response = render_page(&page);
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response
}

pub(crate) async fn log_in(
    State(app): State<SharedAppState>,
    Extension(origin): Extension<RequestOrigin>,
    form: Result<Form<LoginParams>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(params) = match form {
        Ok(form) => form,
        Err(e) if e.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return Err(ProblemDetails::new(e.status(), e.body_text()).into());
        }
        Err(_) => return Ok(render_invalid_link("")),
    };
    origin.check_unknown_rate(&app.access)?;
    origin.check_same_origin()?;
    let now = Utc::now();
    let Some(found) = link::consume_link(&app.access.store, &params.link, now)? else {
        return Ok(render_invalid_link(&params.link));
    };
    operator_log::record_operator_event(&app, &found.name, &origin, OperatorEventKind::Login, found.scope.to_string())
        .await?;
    let (name, value) = app.access.sessions.begin_session(&found.name, found.scope, now)?;
    tracing::info!("{} logged in", found.name.escape_debug());
    Ok(redirect_with_cookie(&origin, &name, &value, SESSION_LIFETIME.num_seconds()))
}

pub(crate) async fn log_out(
    State(app): State<SharedAppState>,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    origin.check_unknown_rate(&app.access)?;
    origin.check_same_origin()?;
    let ended = app.access.sessions.end_sessions(read_cookies(&headers), Utc::now()).map_err(|e| {
        tracing::error!("failed to end a session: {e}");
        ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, LOGOUT_FAILED)
    })?;
    // A caller with a token has no session to end.
    if let Some(caller) = ended {
        // A full disk must not keep anybody logged in. The failure is in the log.
        let _ = operator_log::record_operator_event(
            &app,
            &caller.name,
            &origin,
            OperatorEventKind::Logout,
            caller.scope.to_string(),
        )
        .await;
    }
    Ok(redirect_with_cookie(&origin, &app.access.sessions.read_cookie_name()?, "", 0))
}

/// Redirects with the session cookie. An empty value removes the cookie and leads to the login page.
fn redirect_with_cookie(origin: &RequestOrigin, name: &str, value: &str, seconds: i64) -> Response {
    let secure = if origin.secure { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut response = Redirect::to(if value.is_empty() { "/login" } else { "/" }).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
