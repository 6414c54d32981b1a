//! The first page of the day: what failed, what waits, what changed, what would have, and how much was quiet.
//!
//! Nothing is shown twice: what said the same about the same record is one card, and so is what was answered together; the
//! rows of the index tell that, so one large together keeps no other card away. Each part has its newest, and a link
//! to all of them.

use super::PageError;
use super::PageFrame;
use super::build_url;
use super::card::{ActionCard, merge_repeated_cards, read_cards};
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::http::app::SharedAppState;
use crate::pages::batch::format_class;
use crate::pages::undo_batch;
use crate::views::action::find_record_path;
use crate::views::problems::{self, AttentionItem};
use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::Response;
use chrono::{TimeDelta, Utc};
use serde::Deserialize;
use std::collections::BTreeMap;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::Disposition;
use steward_vault::index::{ActionCluster, ActionFilter, ActionRow, ActionSubset};

/// How far back is looked.
const HOURS: i64 = 24;
/// Cards of each part; the rest is a click away.
const CARDS: usize = 20;
/// Rows that are read at once.
const ROWS: u32 = 200;
/// Most times that rows of a part are read, to find those that belong together or any at all.
const PAGES: u32 = 10;
/// Records that are read of a part, each one of its kind.
const READ: usize = 60;
/// Answers that are listed.
const ANSWERS: usize = 10;
/// Questions that are looked for: one more than are shown.
const MOST_ASKED: u32 = 21;
/// So many of one source and class may be handled together.
const CLUSTER: u32 = 3;
/// Most clusters that are offered; the largest.
const CLUSTERS: usize = 5;

#[derive(Deserialize)]
pub(crate) struct TodayQuery {
    /// The answer that was just given.
    #[serde(default)]
    done: String,
}

/// Several of one source and class.
struct BatchOffer {
    href: String,
    count: u64,
    what: String,
}

/// Cards, and how many there are.
#[derive(Default)]
struct TodaySection {
    cards: Vec<ActionCard>,
    count: String,
    more: bool,
}

#[derive(Template)]
#[template(path = "today.html")]
struct TodayPage {
    page: PageFrame,
    done: Option<String>,
    lead: String,
    troubles: Vec<AttentionItem>,
    clusters: Vec<BatchOffer>,
    undoable: Vec<BatchOffer>,
    waits: TodaySection,
    asks: TodaySection,
    changed: TodaySection,
    would: TodaySection,
    answered: Vec<ActionCard>,
    quiet: String,
    hours: i64,
}

pub(crate) async fn show_today(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    Query(asked): Query<TodayQuery>,
) -> Result<Response, PageError> {
    let app = &app;
    // First: what comes while the rest is read is told of as new.
    let page = PageFrame::load(app, &caller, "today", &uri).await?;
    let since = Some(Utc::now() - TimeDelta::hours(HOURS));
    let of = |kinds: &[ActionKind], landing| ActionFilter {
        since,
        landing,
        kinds: kinds.to_vec(),
        ..ActionFilter::default()
    };
    let waits = read_section(app, ActionFilter { only: ActionSubset::Waiting, ..ActionFilter::default() }).await?;
    let asks = read_questions(app).await?;
    let changed = read_section(app, of(&[ActionKind::Action, ActionKind::Confirmed], Some(Disposition::Live))).await?;
    let would = read_section(app, of(&[ActionKind::Action], Some(Disposition::Shadow))).await?;
    let answers = [ActionKind::Reversed, ActionKind::Dismissed];
    let mut answered = read_section(app, of(&answers, None)).await?.cards;
    answered.truncate(ANSWERS);
    Ok(render_page(&TodayPage {
        done: describe_result(app, &asked.done).await?,
        lead: summarize_day(page.waiting, &asks, &changed),
        troubles: problems::list_attention_items(app).await?,
        clusters: build_batch_offers("/together", app.index.list_pending_clusters(CLUSTER).await?),
        undoable: build_batch_offers(
            "/together/undo",
            app.index.list_undoable_clusters(undo_batch::compute_undo_cutoff(), CLUSTER).await?,
        ),
        waits,
        asks,
        changed,
        would,
        answered,
        quiet: describe_quiet_checks(app).await?,
        hours: HOURS,
        page,
    }))
}

async fn read_section(app: &SharedAppState, filter: ActionFilter) -> Result<TodaySection, PageError> {
    let (mut heaps, mut read, mut before) = (ActionGroups::default(), 0, None);
    let mut more = loop {
        let page = app.index.actions_page(&filter, before.as_ref(), ROWS).await?;
        read += 1;
        page.rows.into_iter().for_each(|row| heaps.add_row(row));
        before = page.next;
        if before.is_none() || heaps.rows.len() > READ || read >= PAGES {
            break before.is_some();
        }
    };
    more |= heaps.rows.len() > READ;
    heaps.rows.truncate(READ);
    let (rows, times): (Vec<ActionRow>, Vec<usize>) = heaps.rows.into_iter().unzip();
    let drawn = read_cards(&app.root, &app.index, rows).await?;
    let mut cards =
        merge_repeated_cards(drawn.into_iter().zip(times).map(|(card, times)| ActionCard { times, ..card }).collect());
    let of_records: usize = cards.iter().map(ActionCard::count_records).sum();
    let count = if more { format!("{of_records}+") } else { of_records.to_string() };
    more |= cards.len() > CARDS;
    cards.truncate(CARDS);
    Ok(TodaySection { cards, count, more })
}

/// What the stewards ask, and nobody answered.
async fn read_questions(app: &SharedAppState) -> Result<TodaySection, PageError> {
    let rows = app.index.list_open_questions(MOST_ASKED).await?;
    let mut cards = read_cards(&app.root, &app.index, rows).await?;
    let more = cards.len() > CARDS;
    cards.truncate(CARDS);
    let count = if more { format!("{CARDS}+") } else { cards.len().to_string() };
    Ok(TodaySection { cards, count, more })
}

/// Rows of which each stands for all that were answered together with it, or say the very same.
#[derive(Default)]
struct ActionGroups {
    /// The newest of each, and how many there are.
    rows: Vec<(ActionRow, usize)>,
    places: BTreeMap<(&'static str, &'static str, String), usize>,
}

impl ActionGroups {
    fn add_row(&mut self, row: ActionRow) {
        let together = row.together.as_ref().map(ToString::to_string);
        if let Some(one) = together.or_else(|| row.proposal.clone()) {
            // What was taken back alone since stands for itself.
            let answered = row.answered.map_or("", |kind| kind.as_str());
            let place = *self.places.entry((row.kind.as_str(), answered, one)).or_insert(self.rows.len());
            if let Some((_, times)) = self.rows.get_mut(place) {
                *times += 1;
                return;
            }
        }
        self.rows.push((row, 1));
    }
}

fn summarize_day(waiting: u64, asks: &TodaySection, changed: &TodaySection) -> String {
    let waits = match waiting {
        0 => "No proposal waits for you".to_owned(),
        1 => "One proposal waits for you".to_owned(),
        n => format!("{n} proposals wait for you"),
    };
    let waits = match asks.count.as_str() {
        "0" => waits,
        "1" => format!("{waits}; one question is for you"),
        n => format!("{waits}; {n} questions are for you"),
    };
    let did = match changed.count.as_str() {
        "0" => "nothing was changed".to_owned(),
        "1" => "one thing was changed".to_owned(),
        n => format!("{n} things were changed"),
    };
    format!("{waits}; {did} in the last {HOURS} hours.")
}

fn build_batch_offers(at: &str, mut found: Vec<ActionCluster>) -> Vec<BatchOffer> {
    found.truncate(CLUSTERS);
    let offer = |cluster: ActionCluster| {
        let class = cluster.class.map_or("", MutationClass::as_str);
        BatchOffer {
            href: build_url(at, &[("source", &cluster.source), ("class", class)]),
            count: cluster.count,
            what: format!("of {} ({})", cluster.name, format_class(cluster.class)),
        }
    };
    found.into_iter().map(offer).collect()
}

/// What came of the click before.
pub(crate) async fn describe_result(app: &SharedAppState, id: &str) -> Result<Option<String>, PageError> {
    if id.is_empty() {
        return Ok(None);
    }
    let Ok(record) = find_record_path(&app.index, id).await else { return Ok(None) };
    let Some(row) = app.index.action_by_path(&record).await? else { return Ok(None) };
    let card = read_cards(&app.root, &app.index, vec![row]).await?.pop();
    Ok(card.map(|card| {
        let mut status = card.status;
        if let Some(first) = status.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        format!("{status}: {}", card.title)
    }))
}

async fn describe_quiet_checks(app: &SharedAppState) -> Result<String, PageError> {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for look in app.index.list_check_counts(Utc::now().date_naive()).await? {
        *reasons.entry(look.reason).or_default() += look.count;
    }
    let nothing_new = reasons.remove("no_signals").unwrap_or_default();
    let others: String = reasons.iter().map(|(why, n)| format!("; {n} {}", why.replace('_', " "))).collect();
    Ok(format!("Looks today that found nothing new: {nothing_new}{others}."))
}
