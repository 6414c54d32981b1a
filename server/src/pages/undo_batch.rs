//! The preview of undoing several changes: those of one source and class, or those of one batch.
//!
//! A change whose undo would be refused is shown with the reason and left out of the form. The form names each change
//! that was shown, and `POST /batch` undoes exactly those.

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

/// How old a change may be to be part of a batch undo: 24 hours, the period that Today covers.
const HOURS: i64 = 24;

#[derive(Template)]
#[template(path = "undo_batch.html")]
struct BatchUndoPage {
    page: PageFrame,
    about: String,
    count: u64,
    possible: usize,
    changes: Vec<(ActionCard, UndoPreviewSummary)>,
}

/// The moment after which a change can be part of a batch undo.
pub(super) fn compute_undo_cutoff() -> DateTime<Utc> {
    Utc::now() - TimeDelta::hours(HOURS)
}

pub(crate) async fn show_batch_undo(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    Query(query): Query<BatchQuery>,
) -> Result<Response, PageError> {
    let (about, count, rows) = match ActionId::try_from(query.batch_id.clone()) {
        Ok(batch) => list_batch_changes(&app, &batch).await?,
        Err(_) => list_source_changes(&app, query).await?,
    };
    let previews = read_previews(&app.views, rows.iter().map(|row| row.path.clone()).collect()).await;
    let mut changes: Vec<_> = read_cards(&app.views, rows).await?.into_iter().zip(previews).collect();
    allow_following_undos(&mut changes);
    Ok(render_page(&BatchUndoPage {
        page: PageFrame::load(&app, &caller, "today", &uri).await?,
        about,
        count,
        possible: changes.iter().filter(|(_, preview)| preview.refused.is_none()).count(),
        changes,
    }))
}

async fn list_source_changes(
    app: &SharedAppState,
    query: BatchQuery,
) -> Result<(String, u64, Vec<ActionRow>), PageError> {
    let clusters = app.views.actions().list_undoable_clusters(compute_undo_cutoff(), 1).await?;
    let found = clusters.into_iter().find(|cluster| query.is_for_cluster(cluster));
    let mut rows: Vec<ActionRow> = Vec::new();
    for id in found.iter().flat_map(|found| &found.ids).take(CARDS) {
        rows.extend(app.views.actions().action_by_id(id).await?);
    }
    let name = found.as_ref().map_or(query.source, |found| found.name.clone());
    let class = format_class(found.as_ref().and_then(|found| found.class));
    Ok((format!("of {name} ({class}) in the last {HOURS} hours"), found.map_or(0, |found| found.count), rows))
}

async fn list_batch_changes(
    app: &SharedAppState,
    batch: &ActionId,
) -> Result<(String, u64, Vec<ActionRow>), PageError> {
    let mut rows = app.views.actions().list_actions_of_batch(batch).await?;
    rows.retain(|row| row.disposition == Disposition::Live && row.resolution != Some(ActionKind::Reversed));
    let count = rows.len() as u64;
    rows.truncate(CARDS);
    Ok(("that were confirmed with one click".to_owned(), count, rows))
}

/// Allows the undo of an older change whose newer changes are undone by the same form. The newest is undone first.
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
