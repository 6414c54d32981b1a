//! Search over matters, tasks, signals and actions; what is asked for stands in the address.
//!
//! With words, every record that holds them. Without, a list of actions by what they came to.

use super::card::{Card, cards};
use super::{Oops, Page, ago, link, shown};
use crate::access::Caller;
use crate::app::Shared;
use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::Response;
use chrono::Utc;
use serde::Deserialize;
use steward_domain::mutation::MutationClass;
use steward_domain::path::RecordKind;
use steward_domain::plan::Landing;
use steward_domain::signal::source_key;
use steward_vault::index::{ActionFilter, Cursor, Hit, Only};

/// What a page lists.
const ROWS: u32 = 30;
const KINDS: [&str; 5] = ["", "matter", "task", "signal", "action"];
const LANDINGS: [&str; 6] = ["", "waits", "live", "pending", "shadow", "recorded"];
const CLASSES: [&str; 5] = ["", "state_change", "context_edit", "parent_matter", "related"];

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    q: String,
    kind: String,
    landing: String,
    class: String,
    source: String,
    since: String,
    /// Where the page before ended.
    before: String,
}

struct Found {
    kind: &'static str,
    href: String,
    title: String,
    snippet: String,
    about: Option<String>,
    ago: String,
}

#[derive(Template)]
#[template(path = "search.html")]
struct Search {
    page: Page,
    asked: Asked,
    kinds: &'static [&'static str],
    landings: &'static [&'static str],
    classes: &'static [&'static str],
    wrong: Option<String>,
    nothing: bool,
    hits: Vec<Found>,
    cards: Vec<Card>,
    next: Option<String>,
}

pub(crate) async fn page(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    Query(asked): Query<Asked>,
) -> Result<Response, Oops> {
    let mut search = Search {
        page: Page::of(&app, &caller, "search", &uri).await?,
        asked,
        kinds: &KINDS,
        landings: &LANDINGS,
        classes: &CLASSES,
        wrong: None,
        nothing: false,
        hits: Vec::new(),
        cards: Vec::new(),
        next: None,
    };
    let asks_for_words = !search.asked.q.trim().is_empty();
    if asks_for_words {
        words(&app, &mut search).await?;
    } else {
        actions(&app, &mut search).await?;
    }
    search.nothing = search.hits.is_empty() && search.cards.is_empty() && search.wrong.is_none();
    Ok(shown(&search))
}

async fn words(app: &Shared, search: &mut Search) -> Result<(), Oops> {
    let asked = &search.asked;
    let kinds: &[RecordKind] = match asked.kind.as_str() {
        "matter" => &[RecordKind::Matter],
        "task" => &[RecordKind::Task],
        "signal" => &[RecordKind::Signal],
        "action" => &[RecordKind::Event],
        _ => &[],
    };
    let skip = asked.before.parse().unwrap_or(0);
    let found = app.index.search(&asked.q, kinds, skip, ROWS).await?;
    search.next = found
        .next
        .map(|skip| link("/search", &[("q", &asked.q), ("kind", &asked.kind), ("before", &skip.to_string())]));
    search.hits = found.rows.into_iter().map(hit).collect();
    Ok(())
}

fn hit(hit: Hit) -> Found {
    let about = hit.about.map(|about| about.to_string());
    let (kind, href) = match (hit.kind, &hit.id) {
        (_, Some(id)) => ("action", format!("/actions/{id}")),
        (RecordKind::Signal, None) => {
            let about = about.clone().map(|about| format!("/records/{about}"));
            ("signal", about.unwrap_or_else(|| "/search?kind=signal".into()))
        }
        (RecordKind::Matter, None) => ("matter", format!("/records/{}", hit.path)),
        (_, None) => ("task", format!("/records/{}", hit.path)),
    };
    let ago = hit.at.map(|at| ago(at, Utc::now())).unwrap_or_default();
    Found { kind, href, title: hit.title, snippet: hit.snippet, about, ago }
}

async fn actions(app: &Shared, search: &mut Search) -> Result<(), Oops> {
    let asked = &search.asked;
    if !matches!(asked.kind.as_str(), "" | "action") {
        search.wrong = Some("say a word or more to find matters, tasks and signals".into());
        return Ok(());
    }
    let class = MutationClass::ALL.into_iter().find(|class| class.word() == asked.class);
    let (landing, only) = match asked.landing.as_str() {
        "waits" => (None, Only::Waiting),
        "live" => (Some(Landing::Live), Only::All),
        "pending" => (Some(Landing::Pending), Only::All),
        "shadow" => (Some(Landing::Shadow), Only::All),
        "recorded" => (Some(Landing::Recorded), Only::All),
        _ => (None, Only::All),
    };
    let source = Some(source_key(asked.source.trim())).filter(|_| !asked.source.trim().is_empty());
    let since = steward_domain::time::parse(asked.since.trim());
    let filter = ActionFilter { since, landing, class, source, only, ..ActionFilter::default() };
    let before: Option<Cursor> = asked.before.parse().ok();
    let found = app.index.actions_page(&filter, before.as_ref(), ROWS).await?;
    search.next = found.next.map(|before| {
        let before = before.to_string();
        let kept = [
            ("kind", asked.kind.as_str()),
            ("landing", &asked.landing),
            ("class", &asked.class),
            ("source", &asked.source),
            ("since", &asked.since),
            ("before", &before),
        ];
        link("/search", &kept)
    });
    search.cards = cards(&app.root, &app.index, found.rows).await?;
    Ok(())
}
