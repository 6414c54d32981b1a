//! The rehearsal of a fleet: what must hold when processes die, machines come back and databases are away.
//!
//! Each scene is one test. It prints its figures with their targets, and fails if one is missed. `make fleet-test` plays all in
//! full, `make test` in short; see `steward_tests::rehearsal`. Real are the Temporal server, Postgres and each tenant's
//! process; the provider and the network are the harness'.
#![allow(clippy::unwrap_used, reason = "tests")]

mod apart;
mod cuts;
mod kills;
mod modes;
mod provider_storms;
mod restore;
mod rotation;
mod standby;
mod stops;
mod strings;
mod two_copies;
mod upgrades;
mod wrong_clocks;
mod wrong_places;

use std::collections::BTreeSet;
use steward_domain::action::plan::Disposition;
use steward_tests::fleet::{Fleet, Tenant};
use steward_tests::{history, runs};
use temporalio_common::protos::temporal::api::enums::v1::EventType;

/// The vaults whose audit chain has a fault.
async fn count_broken_chains(tenants: &[Tenant]) -> usize {
    let mut broken = 0;
    for tenant in tenants {
        let said = tenant.steward.run(&["audit", "verify"]).await;
        if said.code != Some(0) {
            eprintln!("{}: {said}", tenant.id);
            broken += 1;
        }
    }
    broken
}

/// The workflow tasks that failed, of all runs of the namespace.
async fn count_failed_tasks(fleet: &Fleet) -> usize {
    let mut failed = 0;
    for run in runs::list_runs(&fleet.client, "").await {
        let events = runs::fetch_events(&fleet.client, &run.id).await;
        let here = history::count(&events, EventType::WorkflowTaskFailed);
        if here > 0 {
            eprintln!("{here} workflow tasks of {} failed", run.id);
        }
        failed += here;
    }
    failed
}

/// Records of a change beyond one for each of these tasks, and records without a change.
fn count_surplus_records<T: AsRef<str>>(tenant: &Tenant, tasks: &[T]) -> usize {
    let records = tenant.vault.records();
    let targets: BTreeSet<&str> = records.iter().map(|record| record.draft.target.slug()).collect();
    let strange = records.iter().filter(|record| record.draft.disposition != Disposition::Live).count();
    let is_recorded = |task: &T| targets.contains(task.as_ref()) || !tenant.is_done(task.as_ref());
    assert!(tasks.iter().all(is_recorded), "{}: a change has no record", tenant.id);
    records.len() - targets.len() + strange
}
