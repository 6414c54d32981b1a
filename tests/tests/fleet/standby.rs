//! F3 with a standby: Postgres answers a commit once a second server has it. One of two standbys is lost, then both, then the
//! primary, whose place the standby takes.
//!
//! A primary without a standby still answers reads, but no commit. A process must take that for silence. The tenant's process must
//! live through all of it, and a take-over must not count as a loss of calls.

use chrono::{DateTime, Utc};
use std::time::Duration;
use steward_tests::fleet::{Fleet, Tenant};
use steward_tests::postgres::Postgres;
use steward_tests::provider::{Provider, Reply};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::supervisor::Supervised;
use steward_tests::wait;

/// Longer than three questions to a database that does not answer.
const SILENCE: Duration = Duration::from_secs(12);
const BACK: Duration = Duration::from_secs(15);

async fn wait_until_done(tenant: &Tenant, task: &str) {
    wait::until(&format!("{task} to be done"), async || tenant.is_done(task).then_some(())).await;
}

fn measure_since(begun: DateTime<Utc>) -> Duration {
    (Utc::now() - begun).to_std().unwrap()
}

/// Waits until the primary sends to so many standbys.
async fn wait_for_standbys(primary: &Postgres, count: usize) {
    wait::until("the standbys to follow", async || {
        let following = primary.sql("postgres", "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'");
        (following == count.to_string()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f3_a_lost_standby_is_silence_and_a_promoted_one_goes_on() {
    let mut report = Report::new("F3-standby");
    if !Form::read().has_long_scene("F3-standby") {
        return;
    }
    let primary: &'static Postgres = Box::leak(Box::new(Postgres::start().await));
    let (mut one, mut two) = (primary.start_standby("one").await, primary.start_standby("two").await);
    primary.set_synchronous("ANY 1 (one, two)");
    let fleet = Fleet::new("standby", primary).await;
    let provider = Provider::start(|_, _, _| Reply::Done(Duration::from_millis(50))).await;
    let mut tenant = fleet.add_asking_tenant("standby", &["house"], &provider, 2).await;
    let cuts = tenant.add_cuts().await;
    let process = Supervised::start(&tenant.steward);
    process.serves().await;
    fleet.hold_router(&tenant).await;
    tenant.feed("first", "house");
    wait_until_done(&tenant, "first").await;

    two.kill();
    wait_for_standbys(primary, 1).await;
    let lost_one = Utc::now();
    tenant.feed("with-one", "house");
    wait_until_done(&tenant, "with-one").await;
    let with_one = measure_since(lost_one);

    one.kill();
    wait_for_standbys(primary, 0).await;
    tenant.feed("with-none", "house");
    wait::a_moment(SILENCE).await;
    let (landed, calls) = (usize::from(tenant.is_done("with-none")), provider.arrivals().len());
    let doctor = tenant.steward.run(&["doctor"]).await.all();
    let named = doctor.lines().any(|line| line.starts_with("WRONG") && line.contains("lost its standby"));
    let returned = Utc::now();
    one.start_again().await;
    wait_until_done(&tenant, "with-none").await;
    let with_it_again = measure_since(returned);

    wait_for_standbys(primary, 1).await;
    primary.crash();
    let failed = Utc::now();
    one.promote();
    cuts.postgres.lead_to(&one.address());
    tenant.feed("promoted", "house");
    wait_until_done(&tenant, "promoted").await;
    let promoted = measure_since(failed);
    let lost = one.sql(
        &fleet.database.replace(&primary.address(), &one.address()),
        "SELECT count(*) FROM bucket_state WHERE lost_at IS NOT NULL",
    );

    report
        .add("calls", provider.arrivals().len())
        .soon("done_with_one_of_two", with_one, BACK)
        .must_be("landed_without_a_standby", landed, 0)
        .must_be("calls_without_a_standby", calls, 2)
        .must_be("named_by_doctor", usize::from(named), 1)
        .soon("done_once_it_was_back", with_it_again, BACK)
        .soon("done_after_a_promotion", promoted, BACK)
        .must_be("losses_of_calls", lost.parse().unwrap(), 0)
        .must_be("starts_of_the_process", process.starts().len(), 1)
        .must_be("broken_chains", crate::count_broken_chains(&[tenant]).await, 0);
    report.finish();
}
