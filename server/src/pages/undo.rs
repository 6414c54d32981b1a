//! What an undo would do, before it does: what is restored, what a human edited since and is kept, what depends on it.
//!
//! Reads only. The preview is made by the code of the undo itself, so what it says is what the button does, unless somebody
//! writes in between.

use super::action::{Id, named, named_card, text};
use super::card::Card;
use super::{Oops, Page, moment, shown};
use crate::access::Caller;
use crate::app::Shared;
use crate::facts::action::{self, Change, find};
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::Utc;
use serde_json::Value;
use steward_domain::path::RecordPath;
use steward_vault::preview::{self, FieldPreview, FieldUndoOutcome, UndoPreview};
use steward_vault::root::VaultRoot;

/// What an undo would do, in words.
#[derive(Default)]
pub(super) struct Preview {
    /// Why it would be refused now.
    pub(super) refused: Option<String>,
    pub(super) restored: Vec<Change>,
    pub(super) kept: Vec<Change>,
    pub(super) tracker: Option<String>,
    /// Newer changes that must be undone first.
    pub(super) newer: Vec<String>,
    pub(super) followers: Vec<String>,
    pub(super) until: Option<String>,
}

#[derive(Template)]
#[template(path = "undo.html")]
struct Undo {
    page: Page,
    card: Card,
    preview: Preview,
}

pub(crate) async fn page(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    id: Id,
) -> Result<Response, Oops> {
    let id = named(id)?;
    let record = find(&app.index, &id).await?;
    let detail = action::detail(&app.root, &app.index, &id).await?;
    let card = named_card(&app, &detail).await?;
    let preview = previews(&app.root, vec![record]).await.pop().unwrap_or_default();
    let page = Page::of(&app, &caller, "", &uri).await?;
    Ok(shown(&Undo { page, card, preview }))
}

/// What an undo of each of these records would do, in their order.
pub(super) async fn previews(root: &VaultRoot, records: Vec<RecordPath>) -> Vec<Preview> {
    let (root, count, now) = (root.clone(), records.len(), Utc::now());
    let look = move || preview::preview_undos(&root, &records, now);
    match tokio::task::spawn_blocking(look).await {
        Ok(Err(e)) => (0..count).map(|_| Preview::refused(&e)).collect(),
        Ok(Ok(looked)) => {
            looked.into_iter().map(|one| one.map_or_else(Preview::refused, |one| Preview::of(&one))).collect()
        }
        Err(e) => (0..count).map(|_| Preview::refused(&e)).collect(),
    }
}

impl Preview {
    fn refused(reason: impl ToString) -> Self {
        Self { refused: Some(reason.to_string()), ..Self::default() }
    }

    fn of(looked: &UndoPreview) -> Self {
        let change = |before: &Option<Value>, after: &Option<Value>, field: &FieldPreview| Change {
            field: field.field.clone(),
            before: before.as_ref().map(|value| text(Some(value))),
            after: after.as_ref().map(|value| text(Some(value))),
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
                    format!("{} by {}, {} ({})", after.kind.outcome_label(), after.by, moment(after.at), after.id)
                })
                .collect(),
            until: looked.until.map(moment),
        }
    }
}
