//! Several changes of one source and one class, or of one click: what taking them back would do, before one click does.
//!
//! What would be refused is told and left out of the form. What is taken back is what was seen: the form names each of
//! them, and `POST /together` answers it.

use super::PageError;
use super::PageFrame;
use super::card::{ActionCard, read_cards};
use super::render_page;
use super::undo::{UndoPreviewSummary, read_previews};
use crate::access::AuthenticatedCaller;
use crate::http::app::SharedAppState;
use crate::pages::batch::{BatchQuery, CARDS, format_class};
use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeSet;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_vault::index::ActionRow;

/// How far back changes are taken together: a day, as far as the first page shows them.
const HOURS: i64 = 24;

#[derive(Template)]
#[template(path = "undo_together.html")]
struct BatchUndoPage {
    page: PageFrame,
    what: String,
    count: u64,
    possible: usize,
    changes: Vec<(ActionCard, UndoPreviewSummary)>,
}

/// Since when changes are taken together.
pub(super) fn compute_undo_cutoff() -> DateTime<Utc> {
    Utc::now() - TimeDelta::hours(HOURS)
}

pub(crate) async fn show_batch_undo(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    Query(asked): Query<BatchQuery>,
) -> Result<Response, PageError> {
    let (what, count, rows) = match ActionId::try_from(asked.together.clone()) {
        Ok(click) => list_batch_changes(&app, &click).await?,
        Err(_) => list_source_changes(&app, asked).await?,
    };
    let previews = read_previews(&app.root, rows.iter().map(|row| row.path.clone()).collect()).await;
    let mut changes: Vec<_> = read_cards(&app.root, &app.index, rows).await?.into_iter().zip(previews).collect();
    allow_following_undos(&mut changes);
    Ok(render_page(&BatchUndoPage {
        page: PageFrame::load(&app, &caller, "today", &uri).await?,
        what,
        count,
        possible: changes.iter().filter(|(_, preview)| preview.refused.is_none()).count(),
        changes,
    }))
}

async fn list_source_changes(
    app: &SharedAppState,
    asked: BatchQuery,
) -> Result<(String, u64, Vec<ActionRow>), PageError> {
    let clusters = app.index.list_undoable_clusters(compute_undo_cutoff(), 1).await?;
    let found = clusters.into_iter().find(|one| asked.is_for_cluster(one));
    let mut rows: Vec<ActionRow> = Vec::new();
    for id in found.iter().flat_map(|found| &found.ids).take(CARDS) {
        rows.extend(app.index.action_by_id(id).await?);
    }
    let name = found.as_ref().map_or(asked.source, |found| found.name.clone());
    let class = format_class(found.as_ref().and_then(|found| found.class));
    Ok((format!("of {name} ({class}) in the last {HOURS} hours"), found.map_or(0, |found| found.count), rows))
}

async fn list_batch_changes(
    app: &SharedAppState,
    click: &ActionId,
) -> Result<(String, u64, Vec<ActionRow>), PageError> {
    let mut rows = app.index.list_actions_of_batch(click).await?;
    rows.retain(|row| row.landing == Disposition::Live && row.answered != Some(ActionKind::Reversed));
    let count = rows.len() as u64;
    rows.truncate(CARDS);
    Ok(("that were confirmed with one click".to_owned(), count, rows))
}

/// The newer of two changes of one field is taken back first, so the older one follows it.
fn allow_following_undos(changes: &mut [(ActionCard, UndoPreviewSummary)]) {
    let mut possible: BTreeSet<String> = BTreeSet::new();
    for (card, preview) in changes {
        let follows = !preview.newer.is_empty() && preview.newer.iter().all(|id| possible.contains(id));
        if follows {
            preview.refused = None;
        }
        if preview.refused.is_none() {
            possible.insert(card.action.id.clone());
        }
    }
}
