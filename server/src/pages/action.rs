//! Why: one action with everything that decided it; and what an undo of it would do.
//!
//! Both read only. The preview is made by the code of the undo itself, so what it says is what the button does, unless
//! somebody writes in between.

use super::card::{self, Card, cards};
use super::edit::{self, Edit};
use super::{Oops, Page, moment, shown, today};
use crate::access::Caller;
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::facts::action::{self, ActionDetail, Change, find};
use crate::facts::{quote, why};
use askama::Template;
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use chrono::Utc;
use serde::Deserialize;
use serde_json::Value;
use steward_vault::preview::{self, FieldFate, FieldPreview, UndoPreview};

type Id = Result<Path<String>, PathRejection>;

#[derive(Deserialize)]
pub(crate) struct Asked {
    /// The answer that was just given.
    #[serde(default)]
    done: String,
}

#[derive(Template)]
#[template(path = "action.html")]
struct Why {
    page: Page,
    done: Option<String>,
    card: Card,
    detail: ActionDetail,
    would_change: Vec<String>,
    /// Sources and how much each was weighed.
    weighed: Vec<(String, String)>,
    /// Fields before.
    prior: Vec<(String, String)>,
    /// The run in the Temporal UI.
    run: Option<String>,
    followed: Vec<Card>,
    edit: Option<Edit>,
}

pub(crate) async fn page(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    id: Id,
    Query(asked): Query<Asked>,
) -> Result<Response, Oops> {
    let detail = action::detail(&app.root, &app.index, &named(id)?).await?;
    let card = named_card(&app, &detail).await?;
    let followers = match detail.action.id.clone().try_into() {
        Ok(id) => app.index.answers_to(&id).await?,
        Err(_) => Vec::new(),
    };
    let run = detail.workflow.as_ref().zip(app.house.temporal_ui.as_ref());
    let why = Why {
        done: today::done(&app, &asked.done).await?,
        would_change: why::would_change(&detail.action),
        weighed: detail
            .source_contributions
            .iter()
            .map(|(name, share)| (name.clone(), format!("{share:.2}")))
            .collect(),
        prior: detail.prior_frontmatter.iter().map(|(field, value)| (field.clone(), text(Some(value)))).collect(),
        run: run.map(|(workflow, ui)| crate::facts::run_address(ui, &workflow.id, &workflow.run_id)),
        followed: cards(&app.root, &app.index, followers).await?,
        edit: edit::offered(&detail.action),
        page: Page::of(&app, &caller, "", &uri).await?,
        card,
        detail,
    };
    Ok(shown(&why))
}

#[derive(Template)]
#[template(path = "undo.html")]
struct Undo {
    page: Page,
    card: Card,
    refused: Option<String>,
    restored: Vec<Change>,
    kept: Vec<Change>,
    tracker: Option<String>,
    newer: Vec<String>,
    followers: Vec<String>,
    until: Option<String>,
}

pub(crate) async fn undo(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    id: Id,
) -> Result<Response, Oops> {
    let id = named(id)?;
    let record = find(&app.index, &id).await?;
    let detail = action::detail(&app.root, &app.index, &id).await?;
    let card = named_card(&app, &detail).await?;
    let root = app.root.clone();
    let looked = tokio::task::spawn_blocking(move || preview::undo(&root, &record, Utc::now())).await;
    let looked = looked.map_err(|e| e.to_string()).and_then(|looked| looked.map_err(|e| e.to_string()));
    let page = Page::of(&app, &caller, "", &uri).await?;
    Ok(shown(&match looked {
        Ok(looked) => told(page, card, &looked),
        Err(reason) => Undo { refused: Some(reason), ..told_nothing(page, card) },
    }))
}

fn told(page: Page, card: Card, looked: &UndoPreview) -> Undo {
    let change = |before: &Option<Value>, after: &Option<Value>, field: &FieldPreview| Change {
        field: field.field.clone(),
        before: before.as_ref().map(|value| text(Some(value))),
        after: after.as_ref().map(|value| text(Some(value))),
    };
    let of = |fate| looked.fields.iter().filter(move |field| field.fate == fate);
    Undo {
        refused: looked.refusal.as_ref().map(|refused| refused.message.clone()),
        restored: of(FieldFate::Restored).map(|field| change(&field.now, &field.then, field)).collect(),
        kept: of(FieldFate::EditedSince).map(|field| change(&field.made, &field.now, field)).collect(),
        tracker: looked.tracker.as_ref().map(ToString::to_string),
        newer: looked.newer.iter().map(ToString::to_string).collect(),
        followers: looked
            .followers
            .iter()
            .map(|after| format!("{} by {}, {} ({})", after.kind.did(), after.by, moment(after.at), after.id))
            .collect(),
        until: looked.until.map(moment),
        ..told_nothing(page, card)
    }
}

fn told_nothing(page: Page, card: Card) -> Undo {
    Undo {
        page,
        card,
        refused: None,
        restored: Vec::new(),
        kept: Vec::new(),
        tracker: None,
        newer: Vec::new(),
        followers: Vec::new(),
        until: None,
    }
}

fn named(id: Id) -> Result<String, Oops> {
    let nothing = |_| Oops::from(Problem::new(StatusCode::NOT_FOUND, "there is nothing here"));
    id.map(|Path(id)| id).map_err(nothing)
}

async fn named_card(app: &Shared, detail: &ActionDetail) -> Result<Card, Oops> {
    let action = quote::whole(&app.root, vec![detail.action.clone()]).await?;
    let cards = card::named(&app.index, action, Utc::now()).await?;
    let gone = || Problem::new(StatusCode::NOT_FOUND, "there is nothing here");
    cards.into_iter().next().ok_or_else(|| gone().into())
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "not there".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
