//! A person comes in by a link that is used once, and goes.
//!
//! Opening the link changes nothing: what looks at addresses before people do would use it up. The button does.

use super::{Bare, Oops, assets, refusal, shown};
use crate::access::admission::Met;
use crate::access::session::{SESSION_LASTS, cookies};
use crate::access::{AccessError, link};
use crate::acts;
use crate::api::problem::Problem;
use crate::app::Shared;
use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use chrono::Utc;
use serde::Deserialize;
use steward_vault::operator::{OperatorEventKind, OperatorLogError};

/// Shown where a session goes on although its end was asked for.
const NOT_LEFT: &str = "You are still logged in: the end of this session could not be written into the state folder, and \
    the log says why. Try again; whoever removes access/keys/sessions there ends every session.";

#[derive(Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    link: String,
}

impl From<AccessError> for Oops {
    fn from(e: AccessError) -> Self {
        tracing::error!("failed to log in: {e}");
        Self(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "nobody can be let in; the log says why"))
    }
}

impl From<OperatorLogError> for Oops {
    fn from(_: OperatorLogError) -> Self {
        let detail = "it cannot be written down who comes in, so nobody is let in; the log says why";
        Self(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
    }
}

pub(crate) async fn page(
    State(app): State<Shared>,
    Extension(met): Extension<Met>,
    Query(asked): Query<Asked>,
) -> Result<Response, Oops> {
    met.paced(&app.access)?;
    if !link::holds(&app.access.store, &asked.link, Utc::now())? {
        return Ok(closed(&asked.link));
    }
    let text = "This address lets you in once.";
    Ok(shown(&Bare { assets: assets::all(), title: "Steward", text, link: Some(&asked.link), back: None }))
}

/// One that is used, too old or made up; or none at all.
fn closed(link: &str) -> Response {
    if link.is_empty() {
        return refusal(&Problem::new(StatusCode::UNAUTHORIZED, ""), None);
    }
    let text = "This address has let somebody in already, or is more than an hour old. \
        Let `steward login` print another; who is logged in goes on to the dashboard.";
    let page = Bare { assets: assets::all(), title: "Used up", text, link: None, back: Some("/") };
    let mut response = shown(&page);
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response
}

pub(crate) async fn enter(
    State(app): State<Shared>,
    Extension(met): Extension<Met>,
    asked: Result<Form<Asked>, FormRejection>,
) -> Result<Response, Oops> {
    let Form(asked) = match asked {
        Ok(asked) => asked,
        Err(e) if e.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return Err(Problem::new(e.status(), e.body_text()).into());
        }
        Err(_) => return Ok(closed("")),
    };
    met.paced(&app.access)?;
    met.same_origin()?;
    let now = Utc::now();
    let Some(found) = link::take(&app.access.store, &asked.link, now)? else { return Ok(closed(&asked.link)) };
    acts::write_down(&app, &found.name, &met, OperatorEventKind::Login, found.scope.to_string()).await?;
    let (name, value) = app.access.sessions.begin(&found.name, found.scope, now)?;
    tracing::info!("{} logged in", found.name.escape_debug());
    Ok(with_cookie(&met, (&name, &value), SESSION_LASTS.num_seconds()))
}

pub(crate) async fn leave(
    State(app): State<Shared>,
    Extension(met): Extension<Met>,
    headers: HeaderMap,
) -> Result<Response, Oops> {
    met.paced(&app.access)?;
    met.same_origin()?;
    let ended = app.access.sessions.end(cookies(&headers), Utc::now()).map_err(|e| {
        tracing::error!("failed to end a session: {e}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, NOT_LEFT)
    })?;
    // A token has nothing to leave.
    if let Some(caller) = ended {
        // Nobody is kept in because the disk is full; the log has it.
        let _ = acts::write_down(&app, &caller.name, &met, OperatorEventKind::Logout, caller.scope.to_string()).await;
    }
    Ok(with_cookie(&met, (&app.access.sessions.cookie()?, ""), 0))
}

fn with_cookie(met: &Met, (name, value): (&str, &str), seconds: i64) -> Response {
    let secure = if met.secure { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut response = Redirect::to(if value.is_empty() { "/login" } else { "/" }).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
