//! How many calls a second the gate of one bucket reserves, with 1, 8 and 64 tenants that call at once.
//!
//! `cargo run --release -p steward-fleet --example reservations_per_second -- <url>`, where the URL is that of a role which
//! may create databases' tables and roles, in an empty database of its own. It leaves its tenants behind.

use chrono::Utc;
use std::error::Error;
use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steward_domain::action::audit::ChainHead;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::ownership::{OwnerInfo, VaultCopy};
use steward_domain::fleet::provider_gate::{BucketWindow, GateRequest};
use steward_domain::gates::mode::Mode;
use steward_fleet::admin::build_tenant_url;
use steward_fleet::{BucketGate, FleetStore, Operator, VaultOwnership};

/// Large, so that nobody is refused; the size of a cap does not matter to the time.
const CAP: u32 = 1_000_000;
const MEASURED: Duration = Duration::from_secs(10);
const PASSWORD: &str = "measured0";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: reservations_per_second <url>")?;
    let admin = FleetStore::initialise(&url).await?;
    let windows = [60, 3_600, 86_400].map(|seconds| BucketWindow { seconds, calls: Some(CAP), tokens: Some(1 << 40) });
    admin.set_bucket("measured", &windows, &Operator::default()).await?;
    let mut gates = Vec::new();
    for n in 0..64 {
        gates.push(open_gate(&admin, &url, n).await?);
    }
    for callers in [1, 8, 64] {
        let (begin, mut tasks) = (Instant::now(), Vec::new());
        for gate in &gates[..callers] {
            tasks.push(tokio::spawn(reserve_until(gate.clone(), begin + MEASURED)));
        }
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await?);
        }
        times.sort();
        let rate = times.len() as f64 / begin.elapsed().as_secs_f64();
        let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default().as_secs_f64() * 1e3;
        let (median, last) = (at(50), at(99));
        writeln!(
            stdout(),
            "{callers:>3} callers: {rate:>6.0} reservations/s, median {median:.1} ms, p99 {last:.1} ms"
        )?;
    }
    Ok(())
}

async fn open_gate(admin: &FleetStore, url: &str, n: usize) -> Result<BucketGate, Box<dyn Error>> {
    let tenant: TenantId = format!("measured-{n}").parse()?;
    admin.add_tenant(&tenant, Some("measured"), PASSWORD, &Operator::default()).await?;
    let store = FleetStore::connect(&build_tenant_url(url, &tenant, PASSWORD)).await?;
    let info = OwnerInfo {
        instance: "measured".to_owned(),
        address: String::new(),
        build: env!("CARGO_PKG_VERSION").to_owned(),
        mode: Mode::Shadow,
        policy_hash: String::new(),
    };
    let here = VaultCopy { vault: format!("vault-{n}"), copy: "copy".to_owned(), chain: ChainHead::genesis() };
    let permit = store.claim_vault(&tenant, &here, &info).await?;
    Ok(BucketGate::new(VaultOwnership::start(permit, Arc::new(ChainHead::genesis)).await))
}

/// Reserves one call after the other, and returns how long each took.
async fn reserve_until(gate: BucketGate, end: Instant) -> Vec<Duration> {
    let mut times = Vec::new();
    while Instant::now() < end {
        let call = format!("{}-{}", Utc::now().timestamp_micros(), times.len());
        let begin = Instant::now();
        // A refusal took time and counts as none.
        if gate.reserve(&GateRequest { call, tokens: 3_000, seen: None }).await.is_ok() {
            times.push(begin.elapsed());
        }
    }
    times
}
