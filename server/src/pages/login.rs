//! A person comes in by a link that is used once, and goes.
//!
//! Opening the link changes nothing: what looks at addresses before people do would use it up. The button does.

use super::BarePage;
use super::PageError;
use super::assets;
use super::render_page;
use super::render_refusal;
use crate::access::admission::RequestOrigin;
use crate::access::session::{SESSION_LASTS, read_cookies};
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

/// Shown where a session goes on although its end was asked for.
const NOT_LEFT: &str = "You are still logged in: the end of this session could not be written into the state folder, and \
    the log says why. Try again; whoever removes access/keys/sessions there ends every session.";

#[derive(Deserialize)]
pub(crate) struct LoginParams {
    #[serde(default)]
    link: String,
}

impl From<AccessError> for PageError {
    fn from(e: AccessError) -> Self {
        tracing::error!("failed to log in: {e}");
        Self(ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "nobody can be let in; the log says why"))
    }
}

impl From<OperatorLogError> for PageError {
    fn from(_: OperatorLogError) -> Self {
        let detail = "it cannot be written down who comes in, so nobody is let in; the log says why";
        Self(ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
    }
}

pub(crate) async fn show_login(
    State(app): State<SharedAppState>,
    Extension(met): Extension<RequestOrigin>,
    Query(asked): Query<LoginParams>,
) -> Result<Response, PageError> {
    met.check_unknown_rate(&app.access)?;
    if !link::is_link_valid(&app.access.store, &asked.link, Utc::now())? {
        return Ok(render_closed_link(&asked.link));
    }
    let text = "This address lets you in once.";
    Ok(render_page(&BarePage {
        assets: assets::asset_urls(),
        title: "Steward",
        text,
        link: Some(&asked.link),
        back: None,
    }))
}

/// One that is used, too old or made up; or none at all.
fn render_closed_link(link: &str) -> Response {
    if link.is_empty() {
        return render_refusal(&ProblemDetails::new(StatusCode::UNAUTHORIZED, ""), None);
    }
    let text = "This address has let somebody in already, or is more than an hour old. \
        Let `steward login` print another; who is logged in goes on to the dashboard.";
    let page = BarePage { assets: assets::asset_urls(), title: "Used up", text, link: None, back: Some("/") };
    let mut response = render_page(&page);
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response
}

pub(crate) async fn log_in(
    State(app): State<SharedAppState>,
    Extension(met): Extension<RequestOrigin>,
    asked: Result<Form<LoginParams>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(asked) = match asked {
        Ok(asked) => asked,
        Err(e) if e.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return Err(ProblemDetails::new(e.status(), e.body_text()).into());
        }
        Err(_) => return Ok(render_closed_link("")),
    };
    met.check_unknown_rate(&app.access)?;
    met.check_same_origin()?;
    let now = Utc::now();
    let Some(found) = link::consume_link(&app.access.store, &asked.link, now)? else {
        return Ok(render_closed_link(&asked.link));
    };
    operator_log::record_operator_event(&app, &found.name, &met, OperatorEventKind::Login, found.scope.to_string())
        .await?;
    let (name, value) = app.access.sessions.begin_session(&found.name, found.scope, now)?;
    tracing::info!("{} logged in", found.name.escape_debug());
    Ok(redirect_with_cookie(&met, (&name, &value), SESSION_LASTS.num_seconds()))
}

pub(crate) async fn log_out(
    State(app): State<SharedAppState>,
    Extension(met): Extension<RequestOrigin>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    met.check_unknown_rate(&app.access)?;
    met.check_same_origin()?;
    let ended = app.access.sessions.end_sessions(read_cookies(&headers), Utc::now()).map_err(|e| {
        tracing::error!("failed to end a session: {e}");
        ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, NOT_LEFT)
    })?;
    // A token has nothing to leave.
    if let Some(caller) = ended {
        // Nobody is kept in because the disk is full; the log has it.
        let _ = operator_log::record_operator_event(
            &app,
            &caller.name,
            &met,
            OperatorEventKind::Logout,
            caller.scope.to_string(),
        )
        .await;
    }
    Ok(redirect_with_cookie(&met, (&app.access.sessions.read_cookie_name()?, ""), 0))
}

fn redirect_with_cookie(met: &RequestOrigin, (name, value): (&str, &str), seconds: i64) -> Response {
    let secure = if met.secure { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut response = Redirect::to(if value.is_empty() { "/login" } else { "/" }).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
