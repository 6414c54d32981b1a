//! Several that wait, of one source and one class: seen together, then answered together.

use super::card::{Card, cards};
use super::{Oops, Page, shown};
use crate::access::Caller;
use crate::app::Shared;
use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use steward_vault::index::ActionRow;

/// How many are answered at once: what a person can look over.
const CARDS: usize = 100;

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct Asked {
    /// The name by which trust goes.
    source: String,
    class: String,
}

#[derive(Template)]
#[template(path = "together.html")]
struct Together {
    page: Page,
    what: String,
    count: u64,
    confirmable: usize,
    cards: Vec<Card>,
}

pub(crate) async fn page(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    Query(asked): Query<Asked>,
) -> Result<Response, Oops> {
    let clusters = app.index.waiting_clusters(1).await?.into_iter();
    let class = |class: Option<steward_domain::mutation::MutationClass>| class.map_or("", |class| class.word());
    let found = clusters
        .filter(|one| one.source == asked.source && class(one.class) == asked.class)
        .max_by_key(|one| one.count);
    let page = Page::of(&app, &caller, "today", &uri).await?;
    let Some(found) = found else {
        let what = format!("{} ({})", asked.source, asked.class.replace('_', " "));
        return Ok(shown(&Together { page, what, count: 0, confirmable: 0, cards: Vec::new() }));
    };
    let mut rows: Vec<ActionRow> = Vec::new();
    for id in found.ids.iter().take(CARDS) {
        rows.extend(app.index.action_by_id(id).await?);
    }
    let cards = cards(&app.root, &app.index, rows).await?;
    Ok(shown(&Together {
        page,
        what: format!("{} ({})", found.name, class(found.class).replace('_', " ")),
        count: found.count,
        confirmable: cards.iter().filter(|card| card.action.confirmable).count(),
        cards,
    }))
}
