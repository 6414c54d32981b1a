//! Search over matters, tasks, signals and actions. The whole query is in the URL.
//!
//! With words, the page lists every record that contains them. Without words, it lists actions. The filters apply to
//! both. Record kinds that do not have a filtered property are left out, and an invalid filter shows no results at all.
//! The page says which of the two happened.

use super::PageError;
use super::PageFrame;
use super::build_record_url;
use super::build_url;
use super::card::{ActionCard, read_cards};
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
use steward_domain::action::plan::Disposition;
use steward_domain::record::path::RecordKind;
use steward_domain::signals::signal::source_key;
use steward_domain::time::format_age;
use steward_vault::index::{ActionFilter, ActionSubset, PageCursor, SearchFilter, SearchHit};

/// Rows of one page.
const ROWS: u32 = 30;
const KINDS: [&str; 5] = ["", "matter", "task", "signal", "action"];
const DISPOSITIONS: [&str; 8] = ["", "waits", "expired", "snoozed", "live", "pending", "shadow", "recorded"];
const CLASSES: [&str; 5] = ["", "state_change", "context_edit", "parent_matter", "related"];

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct SearchQuery {
    q: String,
    kind: String,
    disposition: String,
    class: String,
    source: String,
    since: String,
    /// The cursor at which the previous page ended; empty for the first page.
    before: String,
}

impl SearchQuery {
    /// The day of `since` as a date field takes it; empty if there is none.
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
    query: SearchQuery,
    kinds: &'static [&'static str],
    dispositions: &'static [&'static str],
    classes: &'static [&'static str],
    /// What is invalid in the query.
    errors: Vec<String>,
    /// What is left out, and why.
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
    Query(query): Query<SearchQuery>,
) -> Result<Response, PageError> {
    let mut search = SearchPage {
        page: PageFrame::load(&app, &caller, "search", &uri).await?,
        query,
        kinds: &KINDS,
        dispositions: &DISPOSITIONS,
        classes: &CLASSES,
        errors: Vec::new(),
        hints: Vec::new(),
        nothing: false,
        hits: Vec::new(),
        cards: Vec::new(),
        next: None,
    };
    let has_words = !search.query.q.trim().is_empty();
    match parse_filter(&search.query) {
        Ok(filter) if has_words => search_words(&app, &mut search, &filter).await?,
        Ok(filter) => list_actions(&app, &mut search, filter).await?,
        Err(errors) => search.errors = errors,
    }
    let found = search.hits.len() + search.cards.len();
    search.nothing = found == 0 && search.errors.is_empty() && search.next.is_none();
    if search.next.is_some() && found < ROWS as usize {
        search.hints.push("Many records that do not match were skipped. The next page may hold older matches.");
    }
    Ok(render_page(&search))
}

/// Parses the filters beside the words.
///
/// # Errors
/// One message for each invalid filter.
fn parse_filter(query: &SearchQuery) -> Result<SearchFilter, Vec<String>> {
    let mut errors = Vec::new();
    let mut check_choice = |name: &str, word: &str, choices: &[&str]| {
        if !choices.contains(&word) {
            let known = choices.iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>().join(", ");
            errors.push(format!("`{name}` is invalid: choose one of {known}"));
        }
    };
    check_choice("kind", &query.kind, &KINDS);
    check_choice("disposition", &query.disposition, &DISPOSITIONS);
    check_choice("class", &query.class, &CLASSES);
    if ["expired", "snoozed"].contains(&query.disposition.as_str()) && !query.q.trim().is_empty() {
        errors.push(format!("`{}` is a list of its own: leave the words out", query.disposition));
    }
    let (since, source) = (query.since.trim(), query.source.trim());
    let from = steward_domain::time::parse(since);
    if from.is_none() && !since.is_empty() {
        errors.push("`since` is invalid: write a day or a moment, as in 2026-11-22".into());
    }
    let dispositions = [Disposition::Live, Disposition::Pending, Disposition::Shadow, Disposition::Recorded];
    let filter = SearchFilter {
        kind: match query.kind.as_str() {
            "matter" => Some(RecordKind::Matter),
            "task" => Some(RecordKind::Task),
            "signal" => Some(RecordKind::Signal),
            "action" => Some(RecordKind::Event),
            _ => None,
        },
        since: from,
        class: query.class.parse().ok(),
        source: Some(source_key(source)).filter(|_| !source.is_empty()),
        disposition: dispositions.into_iter().find(|disposition| disposition.as_str() == query.disposition),
        waits: (query.disposition == "waits").then(Utc::now),
    };
    if errors.is_empty() { Ok(filter) } else { Err(errors) }
}

/// Explains which record kinds are left out because they do not have a filtered property.
fn explain_hidden_kinds(filter: &SearchFilter) -> Option<&'static str> {
    let all = SearchFilter { kind: filter.kind, ..SearchFilter::default() };
    let is_for_actions = filter.disposition.is_some() || filter.waits.is_some();
    (filter.matching_kinds() != all.matching_kinds()).then_some(if is_for_actions {
        "Only actions have an outcome. Matters, tasks and signals are not shown."
    } else {
        "Matters and tasks have no class, source or date. They are not shown."
    })
}

/// The URL of the next page: the same query, from where this page ended.
fn next_page_url(query: &SearchQuery, before: &str) -> String {
    let kept = [
        ("q", query.q.as_str()),
        ("kind", &query.kind),
        ("disposition", &query.disposition),
        ("class", &query.class),
        ("source", &query.source),
        ("since", &query.since),
        ("before", before),
    ];
    build_url("/search", &kept)
}

/// Parses the cursor at which the previous page ended; the inner `None` is the first page. An invalid cursor is added
/// to the page's errors, and the outer `None` is returned.
fn parse_page_start<T: FromStr>(search: &mut SearchPage) -> Option<Option<T>> {
    if search.query.before.is_empty() {
        return Some(None);
    }
    let cursor = search.query.before.parse().ok();
    if cursor.is_none() {
        search.errors.push("`before` is invalid: follow the link to the next page".into());
    }
    cursor.map(Some)
}

async fn search_words(app: &SharedAppState, search: &mut SearchPage, filter: &SearchFilter) -> Result<(), PageError> {
    let Some(before) = parse_page_start::<i64>(search) else { return Ok(()) };
    search.hints.extend(explain_hidden_kinds(filter));
    let found = app.views.read().search(&search.query.q, filter, before, ROWS).await?;
    search.next = found.next.map(|next| next_page_url(&search.query, &next.to_string()));
    search.hits = found.rows.into_iter().map(build_result_row).collect();
    Ok(())
}

fn build_result_row(hit: SearchHit) -> SearchResultRow {
    let about = hit.about.map(|about| about.to_string());
    let (kind, href) = match (hit.kind, &hit.id) {
        (_, Some(id)) => ("action", format!("/actions/{id}")),
        (RecordKind::Signal, None) => {
            // A signal without a target has no page yet. `steward signals why` explains its file.
            ("signal", about.as_ref().map(build_record_url).unwrap_or_default())
        }
        (RecordKind::Matter, None) => ("matter", build_record_url(&hit.path)),
        (_, None) => ("task", build_record_url(&hit.path)),
    };
    let ago = hit.at.map(|at| format_age(at, Utc::now())).unwrap_or_default();
    SearchResultRow { kind, href, title: hit.title, snippet: hit.snippet, about, ago }
}

async fn list_actions(app: &SharedAppState, search: &mut SearchPage, filter: SearchFilter) -> Result<(), PageError> {
    let SearchFilter { kind, since, class, source, disposition, waits } = filter;
    if kind.is_some_and(|kind| kind != RecordKind::Event) {
        search.errors.push("enter at least one word to find matters, tasks and signals".into());
        return Ok(());
    }
    let Some(before) = parse_page_start::<PageCursor>(search) else { return Ok(()) };
    let only = match (waits, search.query.disposition.as_str()) {
        (Some(now), _) => ActionSubset::Waiting(now),
        (None, "expired") => ActionSubset::Expired(Utc::now()),
        (None, "snoozed") => ActionSubset::Snoozed(Utc::now()),
        (None, _) => ActionSubset::All,
    };
    let filter = ActionFilter { since, disposition, class, source, only, ..ActionFilter::default() };
    let found = app.views.actions().actions_page(&filter, before.as_ref(), ROWS).await?;
    search.next = found.next.map(|next| next_page_url(&search.query, &next.to_string()));
    search.cards = read_cards(&app.views, found.rows).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_filter_is_reported_and_not_ignored() {
        let good = SearchQuery { disposition: "waits".into(), since: " 2026-11-22".into(), ..SearchQuery::default() };
        let filter = parse_filter(&good).unwrap();
        assert!(filter.waits.is_some() && filter.disposition.is_none() && filter.since.is_some());
        let bad = SearchQuery {
            kind: "x".into(),
            disposition: "lve".into(),
            class: "<script>".into(),
            since: "yesterday".into(),
            ..SearchQuery::default()
        };
        let errors = parse_filter(&bad).unwrap_err();
        let names: Vec<&str> = errors.iter().filter_map(|line| line.split('`').nth(1)).collect();
        assert_eq!(names, ["kind", "disposition", "class", "since"]);
        assert!(errors[1].contains("one of waits, expired, snoozed, live, pending, shadow, recorded"), "{}", errors[1]);
    }

    #[test]
    fn every_choice_that_is_offered_filters_something() {
        let parse = |kind: &str, disposition: &str, class: &str| {
            parse_filter(&SearchQuery {
                kind: kind.into(),
                disposition: disposition.into(),
                class: class.into(),
                ..SearchQuery::default()
            })
        };
        for kind in &KINDS[1..] {
            assert!(parse(kind, "", "").unwrap().kind.is_some(), "{kind}");
        }
        for disposition in &DISPOSITIONS[1..] {
            let filter = parse("", disposition, "").unwrap();
            let is_own_list = ["expired", "snoozed"].contains(disposition);
            assert!(is_own_list || filter.waits.is_some() || filter.disposition.is_some(), "{disposition}");
        }
        for class in &CLASSES[1..] {
            assert!(parse("", "", class).unwrap().class.is_some(), "{class}");
        }
    }

    #[test]
    fn kinds_without_a_filtered_property_are_named() {
        let none = SearchFilter::default();
        assert_eq!(explain_hidden_kinds(&none), None);
        assert_eq!(explain_hidden_kinds(&SearchFilter { kind: Some(RecordKind::Task), ..none.clone() }), None);
        let live = SearchFilter { disposition: Some(Disposition::Live), ..none.clone() };
        assert!(explain_hidden_kinds(&live).unwrap().contains("signals"));
        assert_eq!(explain_hidden_kinds(&SearchFilter { kind: Some(RecordKind::Event), ..live }), None);
        let of_a_source = SearchFilter { source: Some("mail".into()), ..none };
        assert!(!explain_hidden_kinds(&of_a_source).unwrap().contains("signals"));
        assert!(explain_hidden_kinds(&SearchFilter { kind: Some(RecordKind::Matter), ..of_a_source }).is_some());
    }

    #[test]
    fn the_next_page_has_the_same_query() {
        let query = SearchQuery {
            q: "a b".into(),
            disposition: "live".into(),
            since: "2026-11-22".into(),
            ..SearchQuery::default()
        };
        assert_eq!(next_page_url(&query, "7"), "/search?q=a+b&disposition=live&since=2026-11-22&before=7");
    }
}
