//! The list of all matters, page by page, filtered by name and state.
//!
//! A matter that cannot be read is listed with its problem. The whole query is in the URL, so that a link to the page
//! can be kept or shared.

use super::PageError;
use super::PageFrame;
use super::build_url;
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::http::app::SharedAppState;
use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::Response;
use chrono::Utc;
use serde::Deserialize;
use steward_domain::record::entity::RecordState;
use steward_domain::time::format_age;
use steward_vault::index::{MatterCard, MatterFilter};

/// Matters of one page.
const ROWS: u32 = 50;
const STATES: [&str; 3] = ["open", "done", "archived"];

#[derive(Deserialize)]
pub(crate) struct MatterTableQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    state: String,
    /// The cursor at which the previous page ended.
    after: Option<String>,
}

struct MatterTableRow {
    path: String,
    name: String,
    state: Option<RecordState>,
    problem: Option<String>,
    open_tasks: u64,
    pending: u64,
    ago: String,
}

#[derive(Template)]
#[template(path = "matters.html")]
struct MattersPage {
    page: PageFrame,
    q: String,
    state: String,
    states: &'static [&'static str],
    rows: Vec<MatterTableRow>,
    next: Option<String>,
}

pub(crate) async fn show_matters(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    Query(query): Query<MatterTableQuery>,
) -> Result<Response, PageError> {
    let MatterTableQuery { q, state, after } = query;
    let text = Some(q.trim().to_owned()).filter(|text| !text.is_empty());
    let filter = MatterFilter { text, state: RecordState::parse(&state) };
    let found = app.views.read().matters_page(&filter, after.as_deref(), ROWS, Utc::now()).await?;
    let next = found.next.map(|after| build_url("/matters", &[("q", &q), ("state", &state), ("after", &after)]));
    let rows = found.rows.into_iter().map(build_matter_row).collect();
    let page = PageFrame::load(&app, &caller, "matters", &uri).await?;
    Ok(render_page(&MattersPage { page, q, state, states: &STATES, rows, next }))
}

fn build_matter_row(card: MatterCard) -> MatterTableRow {
    let now = Utc::now();
    MatterTableRow {
        path: card.path.to_string(),
        name: card.name,
        state: card.state,
        problem: card.problem,
        open_tasks: card.open_tasks,
        pending: card.pending,
        ago: card.last_tick_at.map_or_else(|| "never".into(), |at| format_age(at, now)),
    }
}
