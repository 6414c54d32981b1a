//! `GET recent-actions` and `GET actions/{id}`.
//!
//! They read the index and the records and change nothing. An invalid parameter is refused by name, never ignored. The
//! values are those that every interface shows.

use super::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::views::action::{Action, ActionDetail};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use steward_domain::record::path::RecordPath;
use utoipa::{IntoParams, ToSchema};

/// How far back actions are listed by default: 24 h.
const DEFAULT_AGE: TimeDelta = TimeDelta::hours(24);
/// How many actions are listed by default.
const DEFAULT_LIMIT: u32 = 100;
/// Most actions of one response.
const MAX_LIMIT: u32 = 500;

/// The parameters of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RecentActionsQuery {
    /// From this moment on (RFC 3339, or a date); the default is 24 hours ago.
    #[param(example = "2026-11-22T08:00:00Z", max_length = 64)]
    since: Option<String>,
    /// How many at most; the default is 100.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// Only actions about this record.
    #[param(example = "task/pay-rent.md", max_length = 300)]
    target: Option<String>,
}

/// The newest actions first.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecentActions {
    pub(crate) actions: Vec<Action>,
    /// Whether there are more actions since then than `limit`.
    pub(crate) truncated: bool,
    pub(crate) since: DateTime<Utc>,
    pub(crate) limit: u32,
}

/// Lists recent actions, the newest first.
#[utoipa::path(
    get, path = "/api/v1/steward/recent-actions", params(RecentActionsQuery), tag = "actions",
    responses(
        (status = 200, description = "The actions", body = RecentActions),
        (status = 400, description = "Invalid parameter", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 401, description = "No token, or an unknown one", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 421, description = "Unknown host name", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 429, description = "Too many requests", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 500, description = "The index cannot be read", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn recent_actions(
    State(app): State<SharedAppState>,
    query: Result<Query<RecentActionsQuery>, QueryRejection>,
) -> Result<Json<RecentActions>, ProblemDetails> {
    let Query(query) = query.map_err(|e| bad_request(e.body_text()))?;
    let since = match query.since.as_deref() {
        None => Utc::now() - DEFAULT_AGE,
        Some(text) => steward_domain::time::parse(text).ok_or_else(|| {
            bad_request(format!("`since` is `{}`, expected a moment like 2026-11-22T08:00:00Z", text.escape_debug()))
        })?,
    };
    let limit = match query.limit.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => limit,
        other => return Err(bad_request(format!("`limit` is {other}, expected 1 to {MAX_LIMIT}"))),
    };
    let target = query.target.as_deref().map(RecordPath::parse).transpose();
    let target = target.map_err(|e| bad_request(format!("`target`: {e}")))?;
    let rows = app
        .views
        .actions()
        .list_actions(Some(since), target.as_ref(), limit + 1)
        .await
        .map_err(crate::views::FactsError::from)?;
    let truncated = rows.len() > limit as usize;
    let rows = rows.into_iter().take(limit as usize).collect();
    let actions = app.views.read_actions(rows, Utc::now()).await?;
    Ok(Json(RecentActions { actions, truncated, since, limit }))
}

/// Returns one action with everything in its audit record.
#[utoipa::path(
    get, path = "/api/v1/steward/actions/{id}", tag = "actions",
    params(("id" = String, Path, description = "The action's id, or its first digits (at least 4)", pattern = "^[0-9a-f]{4,16}$")),
    responses(
        (status = 200, description = "The action", body = ActionDetail),
        (status = 400, description = "Not the beginning of an id, or the beginning of several ids", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 401, description = "No token, or an unknown one", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "No such action", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 421, description = "Unknown host name", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 429, description = "Too many requests", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 500, description = "The index cannot be read", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn action(
    State(app): State<SharedAppState>,
    id: Result<Path<String>, axum::extract::rejection::PathRejection>,
) -> Result<Json<ActionDetail>, ProblemDetails> {
    let Path(id) = id.map_err(|e| bad_request(e.body_text()))?;
    Ok(Json(app.views.read_detail(&id).await?))
}

pub(crate) fn bad_request(detail: impl Into<String>) -> ProblemDetails {
    ProblemDetails::new(StatusCode::BAD_REQUEST, detail)
}
