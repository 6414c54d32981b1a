//! Tests of the ledger on real files: windows under many callers, back-off, loss, and every broken state.

use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::steward::guard::*;
use tempfile::TempDir;

use super::*;

mod back_off;
mod broken;
mod concurrent;
mod gate;
mod loss;
mod model;
mod processes;
mod shares;
mod source;

fn at(seconds: i64) -> DateTime<Utc> {
    Utc.timestamp_opt(1_790_000_000 + seconds, 0).unwrap()
}

const DAY_S: i64 = 86_400;

fn wide() -> CallCaps {
    CallCaps {
        per_minute: 1000,
        per_hour: 1000,
        per_day: 1000,
        per_task_day: 1000,
        per_matter_day: 1000,
        extraction_percent: 100,
        stream_percent: 100,
        sender_percent: 100,
        wiki_percent: 100,
        wiki_tokens_per_day: 3_000_000,
    }
}

/// A folder with a ledger and its marker, each in a folder of its own.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("state")).unwrap();
        std::fs::create_dir(folder.path().join("journal")).unwrap();
        Self { folder }
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("state/ledger.db")
    }

    fn marker(&self) -> PathBuf {
        self.folder.path().join("journal/ledger.marker")
    }

    fn ledger(&self, caps: CallCaps) -> Ledger {
        Ledger::open(&self.database(), caps, &self.marker()).unwrap()
    }

    /// A second connection to the file, beside the ledger's own.
    async fn peek(&self) -> SqliteConnection {
        peek(&self.database()).await
    }

    /// The number of lost ledgers that were renamed.
    fn put_aside(&self) -> usize {
        let names = std::fs::read_dir(self.folder.path().join("state")).unwrap();
        let names = names.map(|name| name.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("ledger.db.lost-") && name.ends_with('Z')).count()
    }
}

async fn peek(database: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(database)).await.unwrap()
}

fn infra(id: impl Into<String>) -> ReserveRequest {
    ReserveRequest { call_id: CallId(id.into()), ..ReserveRequest::default() }
}

fn about(id: impl Into<String>, task: &str, matter: &str) -> ReserveRequest {
    ReserveRequest { task: Some(task.into()), matter: Some(matter.into()), ..infra(id) }
}

fn settled(id: impl Into<String>, outcome: SettlementOutcome) -> Settlement {
    Settlement { call_id: CallId(id.into()), outcome }
}

fn answered() -> SettlementOutcome {
    SettlementOutcome::Answered { usage: TokenUsage { prompt_tokens: 10, completion_tokens: 3 } }
}

fn limited(seconds: f64) -> SettlementOutcome {
    SettlementOutcome::RateLimited { retry_after_seconds: Some(seconds) }
}

#[track_caller]
fn granted(outcome: ReserveOutcome) -> Reservation {
    match outcome {
        ReserveOutcome::Reserved(reservation) => reservation,
        ReserveOutcome::Refused(refusal) => panic!("refused: {refusal:?}"),
    }
}

#[track_caller]
fn refused(outcome: ReserveOutcome) -> GuardRefusal {
    match outcome {
        ReserveOutcome::Refused(refusal) => refusal,
        ReserveOutcome::Reserved(reservation) => panic!("reserved: {reservation:?}"),
    }
}

/// The refusal's cap and when it clears, in seconds of [`at`].
#[track_caller]
fn cap_of(outcome: ReserveOutcome) -> (GuardCap, Option<i64>) {
    let refusal = refused(outcome);
    (refusal.cap, refusal.clears_at.map(|clears| (clears - at(0)).num_seconds()))
}

#[tokio::test]
async fn each_cap_refuses_the_call_after_its_last_and_names_when_it_clears() {
    let home = Home::new();
    let ledger = home.ledger(CallCaps::default());
    for n in 0..6 {
        granted(ledger.reserve(&about(format!("t{n}"), "task/a.md", "matter/m.md"), at(n)).await);
    }
    let outcome = ledger.reserve(&about("t6", "task/a.md", "matter/m.md"), at(6)).await;
    assert_eq!(cap_of(outcome), (GuardCap::Task, Some(DAY_S)));
    for n in 6..50 {
        granted(ledger.reserve(&about(format!("m{n}"), &format!("task/{n}.md"), "matter/m.md"), at(n)).await);
    }
    let outcome = ledger.reserve(&about("m50", "task/z.md", "matter/m.md"), at(50)).await;
    assert_eq!(cap_of(outcome), (GuardCap::Matter, Some(DAY_S)));
    for n in 50..60 {
        granted(ledger.reserve(&infra(format!("i{n}")), at(50)).await);
    }
    assert_eq!(cap_of(ledger.reserve(&infra("i60"), at(59)).await), (GuardCap::Minute, Some(60)));
    granted(ledger.reserve(&infra("i60"), at(60)).await);
    assert_eq!(cap_of(ledger.reserve(&infra("i61"), at(60)).await), (GuardCap::Minute, Some(61)));

    let status = ledger.status(at(60)).await;
    let stands = status.ledger.unwrap();
    assert_eq!(status.refusal.unwrap().cap, GuardCap::Minute);
    assert_eq!(stands.minute, WindowFill { used: 60, cap: 60, next_free: Some(at(61)) });
    assert_eq!(stands.hour, WindowFill { used: 61, cap: 600, next_free: None });
    assert_eq!(stands.full_tasks.len(), 1);
    assert_eq!(stands.full_tasks[0].path, "task/a.md");
    let fill = WindowFill { used: 50, cap: 50, next_free: Some(at(DAY_S)) };
    assert_eq!(stands.full_matters, [ExhaustedPath { path: "matter/m.md".into(), fill }]);
}

#[tokio::test]
async fn hour_and_day_are_capped_too() {
    let home = Home::new();
    let ledger = home.ledger(CallCaps { per_minute: 2, per_hour: 3, per_day: 4, ..CallCaps::default() });
    for (n, second) in [0, 30, 100].into_iter().enumerate() {
        granted(ledger.reserve(&infra(format!("{n}")), at(second)).await);
    }
    assert_eq!(cap_of(ledger.reserve(&infra("3"), at(200)).await), (GuardCap::Hour, Some(3600)));
    granted(ledger.reserve(&infra("3"), at(3600)).await);
    assert_eq!(cap_of(ledger.reserve(&infra("4"), at(7300)).await), (GuardCap::Day, Some(DAY_S)));
    granted(ledger.reserve(&infra("4"), at(DAY_S)).await);
}

#[tokio::test]
async fn the_same_call_reserved_twice_counts_once() {
    let home = Home::new();
    let ledger = home.ledger(CallCaps { per_minute: 1, ..CallCaps::default() });
    let first = granted(ledger.reserve(&about("a", "task/a.md", "matter/m.md"), at(0)).await);
    let again = granted(home.ledger(CallCaps::default()).reserve(&about("a", "task/a.md", "matter/m.md"), at(9)).await);
    assert_eq!(first, again);
    assert_eq!(ledger.status(at(9)).await.ledger.unwrap().day.used, 1);
    ledger.settle(&settled("a", limited(600.0)), at(10)).await.unwrap();
    assert_eq!(granted(ledger.reserve(&about("a", "task/a.md", "matter/m.md"), at(11)).await), first);
}

#[tokio::test]
async fn a_call_that_was_refused_may_ask_again() {
    let home = Home::new();
    let ledger = home.ledger(CallCaps { per_minute: 1, ..CallCaps::default() });
    granted(ledger.reserve(&infra("a"), at(0)).await);
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(1)).await), (GuardCap::Minute, Some(60)));
    granted(ledger.reserve(&infra("b"), at(60)).await);
}

#[tokio::test]
async fn rows_older_than_a_day_are_forgotten_with_the_next_reservation() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    for n in 0..10 {
        granted(ledger.reserve(&infra(format!("{n}")), at(n)).await);
    }
    granted(ledger.reserve(&infra("later"), at(DAY_S + 4)).await);
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM call").fetch_one(&mut home.peek().await).await.unwrap();
    assert_eq!(kept, 6);
}

#[tokio::test]
async fn tokens_of_a_day_are_added_up_once() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    for id in ["a", "b"] {
        granted(ledger.reserve(&infra(id), at(0)).await);
        ledger.settle(&settled(id, answered()), at(1)).await.unwrap();
        ledger.settle(&settled(id, answered()), at(2)).await.unwrap();
    }
    let usage = ledger.status(at(3)).await.ledger.unwrap().day_usage;
    assert_eq!(usage, TokenUsage { prompt_tokens: 20, completion_tokens: 6 });
}

#[tokio::test]
async fn a_clock_that_jumped_back_is_refused_until_it_has_caught_up() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("a"), at(1000)).await);
    assert_eq!(granted(ledger.reserve(&infra("b"), at(995)).await).reserved_at(), at(1000));
    let refusal = refused(ledger.reserve(&infra("c"), at(900)).await);
    assert_eq!((refusal.cap, refusal.clears_at), (GuardCap::Clock, Some(at(990))));
    assert!(refusal.reason.contains("set the clock right"), "{}", refusal.reason);
    assert_eq!(ledger.status(at(900)).await.refusal.unwrap().cap, GuardCap::Clock);
    granted(ledger.reserve(&infra("c"), at(990)).await);
}

#[tokio::test]
async fn a_clock_that_once_stood_years_ahead_costs_one_day_and_leaves_no_back_off() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    let ahead = 3000 * DAY_S;
    granted(ledger.reserve(&infra("a"), at(ahead)).await);
    ledger.settle(&settled("a", limited(600.0)), at(ahead)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(0)).await), (GuardCap::Clock, Some(DAY_S)));
    // A restart of the process does not start the day anew.
    let ledger = home.ledger(wide());
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(DAY_S - 1)).await), (GuardCap::Clock, Some(DAY_S)));
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(DAY_S)).await), (GuardCap::BackOff, Some(DAY_S + 600)));
    assert!(granted(ledger.reserve(&infra("b"), at(DAY_S + 600)).await).is_probe());
}

#[tokio::test]
async fn a_doubt_that_passed_does_not_shorten_the_next_one() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("a"), at(5 * DAY_S)).await);
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(0)).await).0, GuardCap::Clock);
    // The clock is trusted again, even if the call is then refused for another reason.
    ledger.settle(&settled("a", limited(60.0)), at(5 * DAY_S)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(5 * DAY_S)).await).0, GuardCap::BackOff);
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(2 * DAY_S)).await), (GuardCap::Clock, Some(3 * DAY_S)));
}

#[tokio::test]
async fn an_operator_ends_the_doubt_about_the_clock() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    assert_eq!(ledger.accept_loss(at(0)).await.unwrap(), LossAcceptance::Nothing);
    granted(ledger.reserve(&infra("a"), at(9000)).await);
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(0)).await).0, GuardCap::Clock);
    assert_eq!(ledger.accept_loss(at(0)).await.unwrap(), LossAcceptance::Clock);
    granted(ledger.reserve(&infra("b"), at(0)).await);
}

#[test]
fn a_cap_of_zero_and_a_path_without_a_name_are_refused_at_once() {
    let caps = CallCaps { per_hour: 0, ..CallCaps::default() };
    let error = Ledger::open(Path::new("l.db"), caps, Path::new("m")).unwrap_err();
    assert!(error.to_string().contains("per_hour"), "{error}");
    assert!(Ledger::open(Path::new("/"), CallCaps::default(), Path::new("m")).is_err());
}

#[tokio::test]
async fn absurd_instants_are_survived() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("min"), DateTime::<Utc>::MIN_UTC).await);
    granted(ledger.reserve(&infra("max"), DateTime::<Utc>::MAX_UTC).await);
    ledger.settle(&settled("max", limited(60.0)), DateTime::<Utc>::MAX_UTC).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("now"), at(0)).await), (GuardCap::Clock, Some(DAY_S)));
    assert!(ledger.status(at(0)).await.ledger.is_some());
}

#[test]
fn what_the_ledger_shares_between_tasks_may_be_shared() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Home::new().ledger(wide()));
}
