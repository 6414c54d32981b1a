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
mod standby;
mod stops;
mod strings;
mod two_copies;
mod upgrades;
mod wrong_places;

use steward_tests::fleet::Tenant;

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
