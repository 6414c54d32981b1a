//! Several changes of one source and one class: what taking them back would do, before one click does.
//!
//! What would be refused is told and left out of the form. What is taken back is what was seen: the form names each of
//! them, and `POST /together` answers it.

use super::card::{Card, cards};
use super::together::{Asked, CARDS, class_word};
use super::undo::{Preview, previews};
use super::{Oops, Page, shown};
use crate::access::Caller;
use crate::app::Shared;
use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use steward_vault::index::ActionRow;

/// How far back changes are taken together: a day, as far as the first page shows them.
const HOURS: i64 = 24;

#[derive(Template)]
#[template(path = "undo_together.html")]
struct UndoTogether {
    page: Page,
    what: String,
    count: u64,
    possible: usize,
    changes: Vec<(Card, Preview)>,
    hours: i64,
}

/// Since when changes are taken together.
pub(super) fn since() -> DateTime<Utc> {
    Utc::now() - TimeDelta::hours(HOURS)
}

pub(crate) async fn page(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    Query(asked): Query<Asked>,
) -> Result<Response, Oops> {
    let clusters = app.index.undoable_clusters(since(), 1).await?;
    let found = clusters.into_iter().find(|one| asked.means(one));
    let mut rows: Vec<ActionRow> = Vec::new();
    for id in found.iter().flat_map(|found| &found.ids).take(CARDS) {
        rows.extend(app.index.action_by_id(id).await?);
    }
    let previews = previews(&app.root, rows.iter().map(|row| row.path.clone()).collect()).await;
    let changes: Vec<_> = cards(&app.root, &app.index, rows).await?.into_iter().zip(previews).collect();
    let name = found.as_ref().map_or(asked.source, |found| found.name.clone());
    Ok(shown(&UndoTogether {
        page: Page::of(&app, &caller, "today", &uri).await?,
        what: format!("{name} ({})", class_word(found.as_ref().and_then(|found| found.class))),
        count: found.map_or(0, |found| found.count),
        possible: changes.iter().filter(|(_, preview)| preview.refused.is_none()).count(),
        changes,
        hours: HOURS,
    }))
}
