//! A change that waited since it was allowed: a machine that slept, a slow disk, another change before it.
//!
//! The process is frozen after it has staged the change and asked the fleet, and right before it asks again. Meanwhile the fleet is
//! stopped, or allows less. It must see that when it wakes.

use crate::shared_namespace::{Fleet, Tenant};
use rustix::process::Signal as Sent;
use std::time::Duration;
use steward_domain::action::plan::Disposition;
use steward_tests::steward::Running;
use steward_tests::wait;
use steward_tests::world::is_frozen;

/// A permit that was good for a second is over.
const OVER: Duration = Duration::from_millis(1_200);

/// A tenant that may do everything, frozen in its first change.
async fn freeze_in_change(fleet: &Fleet, id: &str) -> (Tenant, Running) {
    let tenant = fleet.tenant(id).await;
    fleet.run(&["fleet", "tenant", "set", id, "--max-mode", "live"]).await;
    let steward = tenant.steward.with("STEWARD_CRASH_AT", "after-journal:1:stop");
    let steward = steward.with("STEWARD_CADENCE_MATTER_SECONDS", 3).with("STEWARD_CADENCE_MATTER_MAX_SECONDS", 3);
    let up = steward.start(&["up"]);
    wait::until("the process to be frozen", async || is_frozen(up.pid()).then_some(())).await;
    assert_eq!((tenant.world.vault.state("rent").as_str(), tenant.world.vault.records().len()), ("open", 0));
    (tenant, up)
}

#[tokio::test]
async fn a_change_that_slept_through_a_stop_or_a_lower_mode_does_not_land() {
    let fleet = Fleet::new("late").await;
    let ((stopped, stopped_up), (lowered, lowered_up)) =
        tokio::join!(freeze_in_change(&fleet, "late-stop"), freeze_in_change(&fleet, "late-mode"));

    fleet.run(&["stop", "--fleet", "--tenant", "late-stop", "--reason", "odd"]).await;
    fleet.run(&["fleet", "tenant", "set", "late-mode", "--max-mode", "shadow"]).await;
    wait::a_moment(OVER).await;
    stopped_up.send(Sent::CONT);
    lowered_up.send(Sent::CONT);
    let shadow = wait::until("a decision in shadow", async || lowered.world.vault.records().into_iter().next()).await;
    assert_eq!(shadow.draft.disposition, Disposition::Shadow);
    assert_eq!(lowered.world.vault.state("rent"), "open");
    assert_eq!(stopped.world.vault.records().len(), 0, "under a stop nothing is filed");
    assert_eq!(stopped.world.vault.state("rent"), "open");

    fleet.run(&["resume", "--fleet", "--tenant", "late-stop"]).await;
    wait::until("the change after the stop", async || (stopped.world.vault.state("rent") == "done").then_some(()))
        .await;
    stopped.steward.run(&["audit", "verify"]).await.expect(0);
}

#[tokio::test]
async fn a_confirmation_that_slept_through_a_stop_does_not_land() {
    let fleet = Fleet::new("late-confirm").await;
    let tenant = fleet.tenant("late-confirm").await;
    fleet.run(&["fleet", "tenant", "set", "late-confirm", "--max-mode", "live"]).await;
    let first = tenant.up().await;
    wait::until("the first change", async || (tenant.world.vault.state("rent") == "done").then_some(())).await;
    let pending = tenant.propose_wall().await;
    first.stop().await;

    let mut up = tenant.steward.with("STEWARD_CRASH_AT", "after-journal:1:stop").start(&["up"]);
    up.says("up; Ctrl-C ends it").await;
    let before = tenant.world.vault.records().len();
    let mut confirm = tenant.steward.start(&["confirm", &pending]);
    wait::until("the process to be frozen", async || is_frozen(up.pid()).then_some(())).await;
    fleet.run(&["stop", "--fleet", "--reason", "odd"]).await;
    wait::a_moment(OVER).await;
    up.send(Sent::CONT);
    assert_ne!(confirm.ends().await.code(), Some(0), "{}", confirm.out());
    assert_eq!((tenant.world.vault.state("wall").as_str(), tenant.world.vault.records().len()), ("open", before));
    fleet.run(&["resume", "--fleet"]).await;
    tenant.steward.run(&["confirm", &pending]).await.expect(0);
    assert_eq!(tenant.world.vault.state("wall"), "done");
}
