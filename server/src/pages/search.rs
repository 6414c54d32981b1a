//! Search over matters, tasks, signals and actions; what is asked for stands in the address.
//!
//! With words, every record that holds them. Without, a list of actions by what they came to. What is asked for besides
//! holds in both; of kinds of which it says nothing none is shown, and what cannot be understood shows nothing. The page
//! says so each time.

use super::PageError;
use super::PageFrame;
use super::build_url;
use super::card::{ActionCard, read_cards};
use super::format_age;
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::http::app::SharedAppState;
use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::Response;
use chrono::Utc;
use serde::Deserialize;
use std::str::FromStr;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::Disposition;
use steward_domain::record::path::RecordKind;
use steward_domain::signals::signal::source_key;
use steward_vault::index::{ActionFilter, ActionSubset, PageCursor, SearchFilter, SearchHit};

/// What a page lists.
const ROWS: u32 = 30;
const KINDS: [&str; 5] = ["", "matter", "task", "signal", "action"];
const LANDINGS: [&str; 6] = ["", "waits", "live", "pending", "shadow", "recorded"];
const CLASSES: [&str; 5] = ["", "state_change", "context_edit", "parent_matter", "related"];

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct SearchQuery {
    q: String,
    kind: String,
    landing: String,
    class: String,
    source: String,
    since: String,
    /// Where the page before ended.
    before: String,
}

impl SearchQuery {
    /// The day of `since`, as a field for days takes it; empty where there is none.
    fn since_day(&self) -> &str {
        let day = self.since.trim().get(..10).unwrap_or_default();
        if chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok() { day } else { "" }
    }
}

struct SearchResultRow {
    kind: &'static str,
    href: String,
    title: String,
    snippet: String,
    about: Option<String>,
    ago: String,
}

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    page: PageFrame,
    asked: SearchQuery,
    kinds: &'static [&'static str],
    landings: &'static [&'static str],
    classes: &'static [&'static str],
    /// What cannot be understood.
    wrong: Vec<String>,
    /// What is not shown, and why.
    hints: Vec<&'static str>,
    nothing: bool,
    hits: Vec<SearchResultRow>,
    cards: Vec<ActionCard>,
    next: Option<String>,
}

pub(crate) async fn show_search(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    Query(asked): Query<SearchQuery>,
) -> Result<Response, PageError> {
    let mut search = SearchPage {
        page: PageFrame::load(&app, &caller, "search", &uri).await?,
        asked,
        kinds: &KINDS,
        landings: &LANDINGS,
        classes: &CLASSES,
        wrong: Vec::new(),
        hints: Vec::new(),
        nothing: false,
        hits: Vec::new(),
        cards: Vec::new(),
        next: None,
    };
    let asks_for_words = !search.asked.q.trim().is_empty();
    match parse_filter(&search.asked) {
        Ok(filter) if asks_for_words => search_words(&app, &mut search, &filter).await?,
        Ok(filter) => list_actions(&app, &mut search, filter).await?,
        Err(wrong) => search.wrong = wrong,
    }
    let found = search.hits.len() + search.cards.len();
    search.nothing = found == 0 && search.wrong.is_empty() && search.next.is_none();
    if search.next.is_some() && found < ROWS as usize {
        search.hints.push("Many that are not asked for were passed over; older ones may follow: go on.");
    }
    Ok(render_page(&search))
}

/// What is asked for beside the words, or what of it cannot be understood.
fn parse_filter(asked: &SearchQuery) -> Result<SearchFilter, Vec<String>> {
    let mut wrong = Vec::new();
    let mut one_of = |name: &str, word: &str, words: &[&str]| {
        if !words.contains(&word) {
            let known = words.iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>().join(", ");
            wrong.push(format!("`{name}` is none of {known}, so nothing is shown"));
        }
    };
    one_of("kind", &asked.kind, &KINDS);
    one_of("landing", &asked.landing, &LANDINGS);
    one_of("class", &asked.class, &CLASSES);
    let (since, source) = (asked.since.trim(), asked.source.trim());
    let from = steward_domain::time::parse(since);
    if from.is_none() && !since.is_empty() {
        wrong.push("`since` is no day or moment like 2026-11-22, so nothing is shown".into());
    }
    let landings = [Disposition::Live, Disposition::Pending, Disposition::Shadow, Disposition::Recorded];
    let filter = SearchFilter {
        kind: match asked.kind.as_str() {
            "matter" => Some(RecordKind::Matter),
            "task" => Some(RecordKind::Task),
            "signal" => Some(RecordKind::Signal),
            "action" => Some(RecordKind::Event),
            _ => None,
        },
        since: from,
        class: MutationClass::ALL.into_iter().find(|class| class.as_str() == asked.class),
        source: Some(source_key(source)).filter(|_| !source.is_empty()),
        landing: landings.into_iter().find(|landing| landing.as_str() == asked.landing),
        waits: asked.landing == "waits",
    };
    if wrong.is_empty() { Ok(filter) } else { Err(wrong) }
}

/// Which kinds are not shown because what is asked for says nothing of them.
fn explain_hidden_kinds(filter: &SearchFilter) -> Option<&'static str> {
    let all = SearchFilter { kind: filter.kind, ..SearchFilter::default() };
    let of_actions = filter.landing.is_some() || filter.waits;
    (filter.matching_kinds() != all.matching_kinds()).then_some(if of_actions {
        "Only actions came to anything: matters, tasks and signals are not shown."
    } else {
        "Matters and tasks have no class, source or moment: they are not shown."
    })
}

/// The same question, from where this page ended.
fn next_page_url(asked: &SearchQuery, before: &str) -> String {
    let kept = [
        ("q", asked.q.as_str()),
        ("kind", &asked.kind),
        ("landing", &asked.landing),
        ("class", &asked.class),
        ("source", &asked.source),
        ("since", &asked.since),
        ("before", before),
    ];
    build_url("/search", &kept)
}

/// Where the page before ended; a place that no page gave is told.
fn parse_page_start<T: FromStr>(search: &mut SearchPage) -> Option<Option<T>> {
    if search.asked.before.is_empty() {
        return Some(None);
    }
    let place = search.asked.before.parse().ok();
    if place.is_none() {
        search.wrong.push("`before` is no place that a page gave, so nothing is shown".into());
    }
    place.map(Some)
}

async fn search_words(app: &SharedAppState, search: &mut SearchPage, filter: &SearchFilter) -> Result<(), PageError> {
    let Some(before) = parse_page_start::<i64>(search) else { return Ok(()) };
    search.hints.extend(explain_hidden_kinds(filter));
    let found = app.index.search(&search.asked.q, filter, before, ROWS).await?;
    search.next = found.next.map(|next| next_page_url(&search.asked, &next.to_string()));
    search.hits = found.rows.into_iter().map(build_result_row).collect();
    Ok(())
}

fn build_result_row(hit: SearchHit) -> SearchResultRow {
    let about = hit.about.map(|about| about.to_string());
    let (kind, href) = match (hit.kind, &hit.id) {
        (_, Some(id)) => ("action", format!("/actions/{id}")),
        (RecordKind::Signal, None) => {
            // One that is about nothing yet stands on no page; its file does, for `steward signals why`.
            ("signal", about.as_ref().map(|about| format!("/records/{about}")).unwrap_or_default())
        }
        (RecordKind::Matter, None) => ("matter", format!("/records/{}", hit.path)),
        (_, None) => ("task", format!("/records/{}", hit.path)),
    };
    let ago = hit.at.map(|at| format_age(at, Utc::now())).unwrap_or_default();
    SearchResultRow { kind, href, title: hit.title, snippet: hit.snippet, about, ago }
}

async fn list_actions(app: &SharedAppState, search: &mut SearchPage, asked: SearchFilter) -> Result<(), PageError> {
    let SearchFilter { kind, since, class, source, landing, waits } = asked;
    if kind.is_some_and(|kind| kind != RecordKind::Event) {
        search.wrong.push("say a word or more to find matters, tasks and signals".into());
        return Ok(());
    }
    let Some(before) = parse_page_start::<PageCursor>(search) else { return Ok(()) };
    let only = if waits { ActionSubset::Waiting } else { ActionSubset::All };
    let filter = ActionFilter { since, landing, class, source, only, ..ActionFilter::default() };
    let found = app.index.actions_page(&filter, before.as_ref(), ROWS).await?;
    search.next = found.next.map(|next| next_page_url(&search.asked, &next.to_string()));
    search.cards = read_cards(&app.root, &app.index, found.rows).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_understood_is_told_and_not_passed_over() {
        let good = SearchQuery { landing: "waits".into(), since: " 2026-11-22".into(), ..SearchQuery::default() };
        let filter = parse_filter(&good).unwrap();
        assert!(filter.waits && filter.landing.is_none() && filter.since.is_some());
        let bad = SearchQuery {
            kind: "x".into(),
            landing: "lve".into(),
            class: "<script>".into(),
            since: "yesterday".into(),
            ..SearchQuery::default()
        };
        let wrong = parse_filter(&bad).unwrap_err();
        let names: Vec<&str> = wrong.iter().filter_map(|line| line.split('`').nth(1)).collect();
        assert_eq!(names, ["kind", "landing", "class", "since"]);
        assert!(wrong[1].contains("none of waits, live, pending, shadow, recorded"), "{}", wrong[1]);
    }

    #[test]
    fn every_word_that_is_offered_means_something() {
        let asked = |kind: &str, landing: &str, class: &str| {
            parse_filter(&SearchQuery {
                kind: kind.into(),
                landing: landing.into(),
                class: class.into(),
                ..SearchQuery::default()
            })
        };
        for kind in &KINDS[1..] {
            assert!(asked(kind, "", "").unwrap().kind.is_some(), "{kind}");
        }
        for landing in &LANDINGS[1..] {
            let filter = asked("", landing, "").unwrap();
            assert!(filter.waits || filter.landing.is_some(), "{landing}");
        }
        for class in &CLASSES[1..] {
            assert!(asked("", "", class).unwrap().class.is_some(), "{class}");
        }
    }

    #[test]
    fn a_kind_of_which_nothing_is_said_is_named() {
        let none = SearchFilter::default();
        assert_eq!(explain_hidden_kinds(&none), None);
        assert_eq!(explain_hidden_kinds(&SearchFilter { kind: Some(RecordKind::Task), ..none.clone() }), None);
        let live = SearchFilter { landing: Some(Disposition::Live), ..none.clone() };
        assert!(explain_hidden_kinds(&live).unwrap().contains("signals"));
        assert_eq!(explain_hidden_kinds(&SearchFilter { kind: Some(RecordKind::Event), ..live }), None);
        let of_a_source = SearchFilter { source: Some("mail".into()), ..none };
        assert!(!explain_hidden_kinds(&of_a_source).unwrap().contains("signals"));
        assert!(explain_hidden_kinds(&SearchFilter { kind: Some(RecordKind::Matter), ..of_a_source }).is_some());
    }

    #[test]
    fn the_next_page_asks_the_same() {
        let asked = SearchQuery {
            q: "a b".into(),
            landing: "live".into(),
            since: "2026-11-22".into(),
            ..SearchQuery::default()
        };
        assert_eq!(next_page_url(&asked, "7"), "/search?q=a+b&landing=live&since=2026-11-22&before=7");
    }
}
