//! Why: one action with everything that decided it.
//!
//! Reads only; all of it stands in the audit record as it was decided, and nothing is weighed again.

use super::card::{self, Card, cards};
use super::edit::{self, Edit};
use super::{Oops, Page, shown, today};
use crate::access::Caller;
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::facts::action::{self, ActionDetail};
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

pub(super) type Id = Result<Path<String>, PathRejection>;

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
        Ok(id) => app.index.list_resolutions(&id).await?,
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

pub(super) fn named(id: Id) -> Result<String, Oops> {
    let nothing = |_| Oops::from(Problem::new(StatusCode::NOT_FOUND, "there is nothing here"));
    id.map(|Path(id)| id).map_err(nothing)
}

pub(super) async fn named_card(app: &Shared, detail: &ActionDetail) -> Result<Card, Oops> {
    let action = quote::whole(&app.root, vec![detail.action.clone()]).await?;
    let cards = card::named(&app.index, action, Utc::now()).await?;
    let gone = || Problem::new(StatusCode::NOT_FOUND, "there is nothing here");
    cards.into_iter().next().ok_or_else(|| gone().into())
}

pub(super) fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "not there".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
