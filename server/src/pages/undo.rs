//! The preview of an undo: what would be restored, what a human edited since and would be kept, and what depends on it.
//!
//! It reads only. The undo's own code computes the preview, so the button does what the page shows, unless a record
//! changes in between.

use super::PageError;
use super::PageFrame;
use super::action::{ActionIdPath, format_field_value, read_card, require_action_id};
use super::card::ActionCard;
use super::moment::{FactValue, Moment};
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::http::app::SharedAppState;
use crate::views::VaultViews;
use crate::views::action::ActionChange;
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::Utc;
use serde_json::Value;
use steward_domain::record::path::RecordPath;
use steward_vault::action::preview::{FieldPreview, FieldUndoOutcome, UndoPreview};

/// The preview of one undo, as texts.
#[derive(Default)]
pub(super) struct UndoPreviewSummary {
    /// Why the undo would be refused now.
    pub(super) refused: Option<String>,
    pub(super) restored: Vec<ActionChange>,
    pub(super) kept: Vec<ActionChange>,
    pub(super) tracker: Option<String>,
    /// Newer changes that must be undone first.
    pub(super) newer: Vec<String>,
    pub(super) followers: Vec<FactValue>,
    pub(super) until: Option<Moment>,
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
    let record = app.views.find_record_path(&id).await?;
    let detail = app.views.read_detail(&id).await?;
    let card = read_card(&app, &detail).await?;
    let mut preview = read_previews(&app.views, vec![record]).await.pop().unwrap_or_default();
    let page = PageFrame::load(&app, &caller, "", &uri).await?;
    if card.action.sender.is_some() && !page.may_operate {
        preview.refused = Some("only somebody who may operate can undo how far a sender may go".into());
    }
    Ok(render_page(&UndoPage { page, card, preview }))
}

/// Previews the undo of each of these records, in their order.
pub(super) async fn read_previews(views: &VaultViews, records: Vec<RecordPath>) -> Vec<UndoPreviewSummary> {
    let (views, count, now) = (views.clone(), records.len(), Utc::now());
    let compute = move || views.preview_undos(&records, now);
    match tokio::task::spawn_blocking(compute).await {
        Ok(Err(e)) => (0..count).map(|_| UndoPreviewSummary::from_refusal(&e)).collect(),
        Ok(Ok(previews)) => previews
            .into_iter()
            .map(|preview| {
                preview.map_or_else(UndoPreviewSummary::from_refusal, |ok| UndoPreviewSummary::from_preview(&ok))
            })
            .collect(),
        Err(e) => (0..count).map(|_| UndoPreviewSummary::from_refusal(&e)).collect(),
    }
}

impl UndoPreviewSummary {
    fn from_refusal(reason: impl ToString) -> Self {
        Self { refused: Some(reason.to_string()), ..Self::default() }
    }

    fn from_preview(preview: &UndoPreview) -> Self {
        let change = |before: &Option<Value>, after: &Option<Value>, field: &FieldPreview| ActionChange {
            field: field.field.clone(),
            before: before.as_ref().map(|value| format_field_value(Some(value))),
            after: after.as_ref().map(|value| format_field_value(Some(value))),
        };
        let fields = |outcome| preview.fields.iter().filter(move |field| field.fate == outcome);
        Self {
            refused: preview.refusal.as_ref().map(|refused| refused.message.clone()),
            restored: fields(FieldUndoOutcome::Restored).map(|field| change(&field.now, &field.then, field)).collect(),
            kept: fields(FieldUndoOutcome::EditedSince).map(|field| change(&field.made, &field.now, field)).collect(),
            tracker: preview.tracker.as_ref().map(ToString::to_string),
            newer: preview.newer.iter().map(ToString::to_string).collect(),
            followers: preview
                .followers
                .iter()
                .map(|after| {
                    let text = format!("{} by {} ({}),", after.kind.outcome_label(), after.by, after.id);
                    FactValue { text, at: Some(Moment(after.at)) }
                })
                .collect(),
            until: preview.until.map(Moment),
        }
    }
}
