//! What an undo would do, before it does: what is restored, what a human edited since and is kept, what depends on it.
//!
//! Reads only. The preview is made by the code of the undo itself, so what it says is what the button does, unless somebody
//! writes in between.

use super::PageError;
use super::PageFrame;
use super::action::{ActionIdPath, format_field_value, read_card, require_action_id};
use super::card::ActionCard;
use super::format_moment;
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::http::app::SharedAppState;
use crate::views::action::{self, ActionChange, find_record_path};
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::Utc;
use serde_json::Value;
use steward_domain::record::path::RecordPath;
use steward_vault::action::preview::{self, FieldPreview, FieldUndoOutcome, UndoPreview};
use steward_vault::files::root::VaultRoot;

/// What an undo would do, in words.
#[derive(Default)]
pub(super) struct UndoPreviewSummary {
    /// Why it would be refused now.
    pub(super) refused: Option<String>,
    pub(super) restored: Vec<ActionChange>,
    pub(super) kept: Vec<ActionChange>,
    pub(super) tracker: Option<String>,
    /// Newer changes that must be undone first.
    pub(super) newer: Vec<String>,
    pub(super) followers: Vec<String>,
    pub(super) until: Option<String>,
}

#[derive(Template)]
#[template(path = "undo.html")]
struct UndoPage {
    page: PageFrame,
    card: ActionCard,
    preview: UndoPreviewSummary,
}

pub(crate) async fn show_undo(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    id: ActionIdPath,
) -> Result<Response, PageError> {
    let id = require_action_id(id)?;
    let record = find_record_path(&app.index, &id).await?;
    let detail = action::read_detail(&app.root, &app.index, &id).await?;
    let card = read_card(&app, &detail).await?;
    let preview = read_previews(&app.root, vec![record]).await.pop().unwrap_or_default();
    let page = PageFrame::load(&app, &caller, "", &uri).await?;
    Ok(render_page(&UndoPage { page, card, preview }))
}

/// What an undo of each of these records would do, in their order.
pub(super) async fn read_previews(root: &VaultRoot, records: Vec<RecordPath>) -> Vec<UndoPreviewSummary> {
    let (root, count, now) = (root.clone(), records.len(), Utc::now());
    let look = move || preview::preview_undos(&root, &records, now);
    match tokio::task::spawn_blocking(look).await {
        Ok(Err(e)) => (0..count).map(|_| UndoPreviewSummary::from_refusal(&e)).collect(),
        Ok(Ok(looked)) => looked
            .into_iter()
            .map(|one| one.map_or_else(UndoPreviewSummary::from_refusal, |one| UndoPreviewSummary::from_preview(&one)))
            .collect(),
        Err(e) => (0..count).map(|_| UndoPreviewSummary::from_refusal(&e)).collect(),
    }
}

impl UndoPreviewSummary {
    fn from_refusal(reason: impl ToString) -> Self {
        Self { refused: Some(reason.to_string()), ..Self::default() }
    }

    fn from_preview(looked: &UndoPreview) -> Self {
        let change = |before: &Option<Value>, after: &Option<Value>, field: &FieldPreview| ActionChange {
            field: field.field.clone(),
            before: before.as_ref().map(|value| format_field_value(Some(value))),
            after: after.as_ref().map(|value| format_field_value(Some(value))),
        };
        let of = |fate| looked.fields.iter().filter(move |field| field.fate == fate);
        Self {
            refused: looked.refusal.as_ref().map(|refused| refused.message.clone()),
            restored: of(FieldUndoOutcome::Restored).map(|field| change(&field.now, &field.then, field)).collect(),
            kept: of(FieldUndoOutcome::EditedSince).map(|field| change(&field.made, &field.now, field)).collect(),
            tracker: looked.tracker.as_ref().map(ToString::to_string),
            newer: looked.newer.iter().map(ToString::to_string).collect(),
            followers: looked
                .followers
                .iter()
                .map(|after| {
                    format!(
                        "{} by {}, {} ({})",
                        after.kind.outcome_label(),
                        after.by,
                        format_moment(after.at),
                        after.id
                    )
                })
                .collect(),
            until: looked.until.map(format_moment),
        }
    }
}
