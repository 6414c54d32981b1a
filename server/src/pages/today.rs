//! The page "Today": failures, pending proposals, questions, changes, shadow decisions, and a count of quiet checks.
//!
//! Nothing is shown twice. Repeated proposals for one record are one card, and so is a resolved batch. The rows of the
//! index decide that, so a large batch does not push other cards off the page. Each section shows its newest cards,
//! proposals in the order of their urgency, and a link to the rest.

use super::PageError;
use super::PageFrame;
use super::build_url;
use super::card::{ActionCard, merge_repeated_cards, read_cards};
use super::done::DoneNotice;
use super::moment::Moment;
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::http::app::SharedAppState;
use crate::pages::batch::format_class;
use crate::pages::undo_batch;
use crate::pages::wiki::{self, WikiNews};
use crate::views::day::DayFilters;
use crate::views::problems::{self, AttentionItem};
use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use std::collections::BTreeMap;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::Disposition;
use steward_domain::gates::mode::ModeName;
use steward_domain::record::path::RecordPath;
use steward_vault::index::{ActionCluster, ActionFilter, ActionRow, ActionSubset, MatterFilter, SnoozedNote};

/// The period that the page covers, in hours.
const HOURS: i64 = 24;
/// Most cards of one section; a link leads to the rest.
const CARDS: usize = 20;
/// Cards of a section that are shown at once; the others are folded. So the page has about 3 screens on a phone.
const FIRST: usize = 3;
/// The same for questions, which take more space.
const FIRST_QUESTIONS: usize = 2;
/// Rows of the index per query.
const ROWS: u32 = 200;
/// Most queries per section. Several may be needed, because many rows can fall into one card.
const PAGES: u32 = 10;
/// Most audit records that are read per section, one per card.
const READ: usize = 60;
/// Most resolutions that are listed.
const RESOLUTIONS: usize = 10;
/// Questions that are read: one more than is shown, to know whether there are more.
const MOST_QUESTIONS: u32 = 21;
/// Fewest proposals or changes of one source and class that are offered as a batch.
const CLUSTER: u32 = 3;
/// Most batches that are offered; the largest ones.
const CLUSTERS: usize = 5;

#[derive(Deserialize)]
pub(crate) struct TodayQuery {
    /// The id of the record that the last form wrote; empty if none was sent.
    #[serde(default)]
    done: String,
}

/// An offer to handle several actions of one source and class with one click.
struct BatchOffer {
    href: String,
    count: u64,
    about: String,
}

/// The cards of one section, and their number.
struct TodaySection {
    cards: Vec<ActionCard>,
    count: String,
    more: bool,
    /// How many cards are shown at once.
    first: usize,
}

#[derive(Template)]
#[template(path = "today.html")]
struct TodayPage {
    page: PageFrame,
    done: Option<DoneNotice>,
    lead: String,
    /// Whether the vault has no matter yet.
    is_empty: bool,
    attention: Vec<AttentionItem>,
    clusters: Vec<BatchOffer>,
    undoable: Vec<BatchOffer>,
    waits: TodaySection,
    asks: TodaySection,
    changed: TodaySection,
    would: TodaySection,
    resolved: Vec<ActionCard>,
    snoozed: Vec<SnoozedRow>,
    /// What happened in the wikis, and what waits there.
    wikis: WikiNews,
    expired: usize,
    /// Whether the cards that a person calls right or wrong come first.
    is_watching: bool,
    quiet: String,
    hours: i64,
}

pub(crate) async fn show_today(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    Query(query): Query<TodayQuery>,
) -> Result<Response, PageError> {
    let app = &app;
    // The frame is loaded first, so that records that arrive meanwhile are announced as new.
    let page = PageFrame::load(app, &caller, "today", &uri).await?;
    let now = Utc::now();
    let day = DayFilters::new(now - TimeDelta::hours(HOURS), now);
    let mut waits = read_newest_cards(app, day.waiting).await?;
    waits.cards.sort_by_key(ActionCard::urgency);
    let asks = read_questions(app).await?;
    let changed = TodaySection::from_cards(read_newest_cards(app, day.changed).await?, FIRST);
    let mut would = read_newest_cards(app, day.shadow).await?;
    would.cards.retain(|card| card.action.resolution.is_none());
    let mut resolved = read_newest_cards(app, day.resolved).await?.cards;
    resolved.truncate(RESOLUTIONS);
    Ok(render_page(&TodayPage {
        done: DoneNotice::read(app, &query.done, now).await?,
        lead: if page.mode_name == ModeName::Watch {
            summarize_watch(&would, &asks)
        } else {
            summarize_day(page.waiting, &asks, &changed)
        },
        is_empty: is_without_matters(app, now).await?,
        attention: problems::list_attention_items(app).await?,
        clusters: build_batch_offers("/batch", app.views.actions().list_pending_clusters(CLUSTER, now).await?),
        undoable: build_batch_offers(
            "/batch/undo",
            app.views.actions().list_undoable_clusters(undo_batch::compute_undo_cutoff(), CLUSTER).await?,
        ),
        waits: TodaySection::from_cards(waits, FIRST),
        asks,
        changed,
        would: TodaySection::from_cards(would, FIRST),
        resolved,
        snoozed: list_snoozed(app, now).await?,
        wikis: wiki::read_news(app, now - TimeDelta::hours(HOURS)).await?,
        expired: count_expired(app, now).await?,
        is_watching: page.mode_name == ModeName::Watch,
        quiet: describe_quiet_checks(app).await?,
        hours: HOURS,
        page,
    }))
}

/// The newest cards that match a filter.
struct NewestCards {
    cards: Vec<ActionCard>,
    /// Whether there are more.
    more: bool,
}

async fn read_newest_cards(app: &SharedAppState, filter: ActionFilter) -> Result<NewestCards, PageError> {
    let (mut groups, mut read, mut before) = (ActionGroups::default(), 0, None);
    let mut more = loop {
        let page = app.views.actions().actions_page(&filter, before.as_ref(), ROWS).await?;
        read += 1;
        page.rows.into_iter().for_each(|row| groups.add_row(row));
        before = page.next;
        if before.is_none() || groups.rows.len() > READ || read >= PAGES {
            break before.is_some();
        }
    };
    more |= groups.rows.len() > READ;
    groups.rows.truncate(READ);
    let (rows, times): (Vec<ActionRow>, Vec<usize>) = groups.rows.into_iter().unzip();
    let single = read_cards(&app.views, rows).await?;
    let cards =
        merge_repeated_cards(single.into_iter().zip(times).map(|(card, times)| ActionCard { times, ..card }).collect());
    Ok(NewestCards { cards, more })
}

impl TodaySection {
    /// Counts the records of these cards, and keeps as many cards as a section has. `first` are shown at once.
    fn from_cards(newest: NewestCards, first: usize) -> Self {
        let NewestCards { mut cards, more } = newest;
        let records: usize = cards.iter().map(ActionCard::count_records).sum();
        let count = if more { format!("{records}+") } else { records.to_string() };
        let more = more || cards.len() > CARDS;
        cards.truncate(CARDS);
        Self { cards, count, more, first }
    }

    /// The cards that are shown at once.
    fn first_cards(&self) -> &[ActionCard] {
        &self.cards[..self.cards.len().min(self.first)]
    }

    /// The cards that are folded.
    fn other_cards(&self) -> &[ActionCard] {
        &self.cards[self.cards.len().min(self.first)..]
    }
}

/// Reads the open questions of the stewards.
async fn read_questions(app: &SharedAppState) -> Result<TodaySection, PageError> {
    let rows = app.views.read().list_open_questions(MOST_QUESTIONS, Utc::now()).await?;
    let mut cards = read_cards(&app.views, rows).await?;
    let more = cards.len() > CARDS;
    cards.truncate(CARDS);
    Ok(TodaySection::from_cards(NewestCards { cards, more }, FIRST_QUESTIONS))
}

/// Groups of rows: those of one batch, and those that propose the same for the same record.
#[derive(Default)]
struct ActionGroups {
    /// The newest row of each group, and the size of the group.
    rows: Vec<(ActionRow, usize)>,
    places: BTreeMap<(&'static str, &'static str, String), usize>,
}

impl ActionGroups {
    fn add_row(&mut self, row: ActionRow) {
        let batch = row.batch_id.as_ref().map(ToString::to_string);
        if let Some(key) = batch.or_else(|| row.proposal.clone()) {
            // A row of the group that was undone alone since gets a card of its own. Of equal proposals made in Watch only
            // one is answered. Right ends none of them, so it holds for newer ones too.
            let is_watched = row.disposition == Disposition::Shadow;
            let answered = row.resolution.filter(|_| !is_watched).map_or("", |kind| kind.as_str());
            let place = *self.places.entry((row.kind.as_str(), answered, key)).or_insert(self.rows.len());
            if let Some((newest, times)) = self.rows.get_mut(place) {
                *times += 1;
                let is_right = row.resolution == Some(ActionKind::Right);
                let holds = is_right || row.resolved_at.is_some_and(|at| at > newest.at);
                if is_watched && holds && newest.resolution.is_none() {
                    newest.resolution = row.resolution;
                    (newest.resolved_by, newest.resolved_at) = (row.resolved_by, row.resolved_at);
                }
                return;
            }
        }
        self.rows.push((row, 1));
    }
}

/// The first sentence in Watch, where nothing is changed.
fn summarize_watch(would: &NewestCards, asks: &TodaySection) -> String {
    let guesses = match would.cards.len() {
        0 => "Nothing would have been changed".to_owned(),
        1 => "One thing would have been changed: say whether that is right".to_owned(),
        n => format!("{n} things would have been changed: say which are right"),
    };
    let asks = match asks.count.as_str() {
        "0" => String::new(),
        "1" => "; you have one question".to_owned(),
        n => format!("; you have {n} questions"),
    };
    format!("{guesses}{asks}.")
}

async fn is_without_matters(app: &SharedAppState, now: DateTime<Utc>) -> Result<bool, PageError> {
    Ok(app.views.read().matters_page(&MatterFilter::default(), None, 1, now).await?.rows.is_empty())
}

fn summarize_day(waiting: u64, asks: &TodaySection, changed: &TodaySection) -> String {
    let waits = match waiting {
        0 => "No proposal waits for you".to_owned(),
        1 => "One proposal waits for you".to_owned(),
        n => format!("{n} proposals wait for you"),
    };
    let waits = match asks.count.as_str() {
        "0" => waits,
        "1" => format!("{waits}; you have one question"),
        n => format!("{waits}; you have {n} questions"),
    };
    let changes = match changed.count.as_str() {
        "0" => "nothing was changed".to_owned(),
        "1" => "one thing was changed".to_owned(),
        n => format!("{n} things were changed"),
    };
    format!("{waits}; {changes} in the last {HOURS} hours.")
}

fn build_batch_offers(path: &str, mut clusters: Vec<ActionCluster>) -> Vec<BatchOffer> {
    clusters.truncate(CLUSTERS);
    let offer = |cluster: ActionCluster| {
        let class = cluster.class.map_or("", MutationClass::as_str);
        BatchOffer {
            href: build_url(path, &[("source", &cluster.source), ("class", class)]),
            count: cluster.count,
            about: format!("of {} ({})", cluster.name, format_class(cluster.class)),
        }
    };
    clusters.into_iter().map(offer).collect()
}

/// A note that is put off, with the end of that.
struct SnoozedRow {
    note: String,
    title: String,
    until: Moment,
}

async fn list_snoozed(app: &SharedAppState, now: DateTime<Utc>) -> Result<Vec<SnoozedRow>, PageError> {
    let snoozed = app.views.list_snoozes(now).await?;
    let notes: Vec<RecordPath> = snoozed.iter().map(|snoozed| snoozed.note.clone()).collect();
    let names = app.views.read().list_record_labels(&notes).await?;
    let row = |snoozed: SnoozedNote| SnoozedRow {
        title: names.get(&snoozed.note).map_or_else(|| snoozed.note.to_string(), |label| label.name.clone()),
        note: snoozed.note.to_string(),
        until: Moment(snoozed.until),
    };
    Ok(snoozed.into_iter().map(row).collect())
}

/// Counts the proposals that nobody answered in time, up to [`ROWS`].
async fn count_expired(app: &SharedAppState, now: DateTime<Utc>) -> Result<usize, PageError> {
    let filter = ActionFilter { only: ActionSubset::Expired(now), ..ActionFilter::default() };
    Ok(app.views.actions().actions_page(&filter, None, ROWS).await?.rows.len())
}

async fn describe_quiet_checks(app: &SharedAppState) -> Result<String, PageError> {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for check in app.views.list_check_counts(Utc::now().date_naive()).await? {
        *reasons.entry(check.reason).or_default() += check.count;
    }
    let nothing_new = reasons.remove("no_signals").unwrap_or_default();
    let others: String = reasons.iter().map(|(reason, n)| format!("; {n} {}", reason.replace('_', " "))).collect();
    let nothing = match nothing_new {
        1 => "1 check found nothing new today".to_owned(),
        n => format!("{n} checks found nothing new today"),
    };
    Ok(format!("{nothing}{others}."))
}
