//! The values of a made-up fleet, and what no label may hold.

use super::*;
use chrono::TimeDelta;
use steward_domain::action::audit::ChainHead;
use steward_domain::fleet::ownership::{OwnerInfo, OwnerProgress, OwnerRow};
use steward_domain::fleet::provider_gate::{BucketWindow, LossKind};
use steward_domain::steward::guard::{BackOff, CallId, Probe};
use steward_fleet::overview::DatabaseServer;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn tenant(id: &str, state: TenantState) -> TenantRow {
    TenantRow {
        id: id.parse().unwrap(),
        vault_id: Some("a vault".into()),
        mode_ceiling: Mode::Live,
        expected_mode: Mode::Live,
        state,
        bucket: None,
        owner: None,
        stop: None,
        silent_seconds: None,
    }
}

fn owned(id: &str, state: TenantState, mode: Mode, build: &str) -> TenantRow {
    let text = |name: &str| format!("{name} of {id}");
    let info = OwnerInfo {
        instance: text("instance"),
        address: text("address"),
        build: build.into(),
        mode,
        policy_hash: text("hash"),
    };
    let owner = OwnerRow {
        tenant: id.parse().unwrap(),
        copy: text("copy"),
        epoch: 7,
        info,
        seen: at(5),
        since: at(1),
        chain: ChainHead::genesis(),
        progress: OwnerProgress::default(),
        shut_out: Vec::new(),
    };
    TenantRow { owner: Some(owner), silent_seconds: Some(61), ..tenant(id, state) }
}

fn bucket(name: &str, windows: Vec<WindowStatus>) -> BucketStatus {
    BucketStatus {
        name: name.into(),
        windows,
        tenants: Vec::new(),
        back_off: None,
        probe: None,
        lost_at: None,
        lost_why: None,
        doubted_since: None,
    }
}

fn window(seconds: u32, calls: Option<u32>, tokens: Option<u64>) -> WindowStatus {
    WindowStatus { window: BucketWindow { seconds, calls, tokens }, used_calls: 3, used_tokens: 900 }
}

fn stop(scope: &str, seconds: i64) -> StopRow {
    StopRow { scope: scope.into(), stopped_by: "ann".into(), reason: "a reason".into(), stopped_at: at(seconds) }
}

fn render(tenants: Vec<TenantRow>, stops: Vec<StopRow>, buckets: Vec<BucketStatus>) -> String {
    let server = DatabaseServer { connections: 12, max_connections: 100, standbys: 2, archive_fails: true };
    let fleet = FleetOverview { version: 4, tenants, stops, buckets, server };
    render_metrics(Some(&fleet), Vec::new()).unwrap()
}

/// The samples, without the lines that describe them.
fn samples(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

fn holds(text: &str, expected: &[&str]) {
    for line in expected {
        assert!(samples(text).contains(line), "no line {line} in:\n{text}");
    }
}

#[test]
fn without_a_reading_only_that_is_said() {
    let text = render_metrics(None, Vec::new()).unwrap();
    assert_eq!(samples(&text), ["steward_fleet_up 0"]);
}

#[test]
fn a_tenant_shows_its_process_and_what_is_expected_of_it() {
    let active = TenantState::Active;
    let rows = vec![
        owned("acme", active, Mode::Shadow, "0.1.0"),
        owned("bee", active, Mode::Live, "0.2.0-rc.1+x"),
        tenant("new", active),
    ];
    let text = render(rows, vec![stop("*", 50), stop("bee", 60)], Vec::new());
    holds(
        &text,
        &[
            "steward_fleet_up 1",
            "steward_fleet_schema_version 4",
            "steward_fleet_stop_timestamp_seconds 50",
            "steward_fleet_database_connections 12",
            "steward_fleet_database_standbys 2",
            "steward_fleet_database_archive_fails 1",
            "steward_fleet_database_max_connections 100",
            "steward_fleet_tenant_owned{tenant=\"acme\"} 1",
            "steward_fleet_tenant_owned{tenant=\"new\"} 0",
            "steward_fleet_tenant_heartbeat_age_seconds{tenant=\"acme\"} 61",
            "steward_fleet_tenant_epoch{tenant=\"acme\"} 7",
            "steward_fleet_tenant_mode{mode=\"shadow\",tenant=\"acme\"} 1",
            "steward_fleet_tenant_mode{mode=\"live\",tenant=\"acme\"} 0",
            "steward_fleet_tenant_max_mode{mode=\"live\",tenant=\"acme\"} 1",
            "steward_fleet_tenant_mode_mismatch{tenant=\"acme\"} 1",
            "steward_fleet_tenant_mode_mismatch{tenant=\"bee\"} 0",
            "steward_fleet_tenant_mode_mismatch{tenant=\"new\"} 0",
            "steward_fleet_tenant_state{state=\"active\",tenant=\"acme\"} 1",
            "steward_fleet_tenant_stop_timestamp_seconds{tenant=\"acme\"} 0",
            "steward_fleet_tenant_stop_timestamp_seconds{tenant=\"bee\"} 60",
            "steward_fleet_tenant_build_info{tenant=\"bee\",version=\"0.2.0-rc.1+x\"} 1",
        ],
    );
    let of_new = samples(&text).into_iter().filter(|line| line.contains("tenant=\"new\"")).count();
    assert_eq!(of_new, 4 + Mode::iter().count(), "nothing of a process that never was:\n{text}");
}

#[test]
fn a_bucket_shows_its_windows_and_what_holds_it_back() {
    let back_off = Some(BackOff { set_at: at(10), until: at(70) });
    let probe = Some(Probe { call_id: CallId("acme/secret call".into()), since: at(71) });
    let waiting = BucketStatus { back_off, probe, ..bucket("waits", vec![window(60, Some(5), None)]) };
    let lost = BucketStatus { lost_at: Some(at(1)), lost_why: Some(LossKind::Moved), ..bucket("lost", Vec::new()) };
    let doubted = BucketStatus {
        doubted_since: Some(at(1)),
        ..bucket(
            "doubted",
            vec![window(86_400, None, Some(1_000)), window(20, Some(9), Some(8)), window(20, Some(2), None)],
        )
    };
    let text = render(Vec::new(), Vec::new(), vec![waiting, lost, doubted]);
    holds(
        &text,
        &[
            "steward_fleet_bucket_calls{bucket=\"waits\",window=\"minute\"} 3",
            "steward_fleet_bucket_calls_cap{bucket=\"waits\",window=\"minute\"} 5",
            "steward_fleet_bucket_tokens{bucket=\"doubted\",window=\"day\"} 900",
            "steward_fleet_bucket_tokens_cap{bucket=\"doubted\",window=\"day\"} 1000",
            "steward_fleet_bucket_calls_cap{bucket=\"doubted\",window=\"20s\"} 2",
            "steward_fleet_bucket_back_off_since_timestamp_seconds{bucket=\"waits\"} 10",
            "steward_fleet_bucket_back_off_until_timestamp_seconds{bucket=\"waits\"} 70",
            "steward_fleet_bucket_back_off_until_timestamp_seconds{bucket=\"lost\"} 0",
            "steward_fleet_bucket_probe_pending{bucket=\"waits\"} 1",
            "steward_fleet_bucket_probe_pending{bucket=\"lost\"} 0",
            "steward_fleet_bucket_lost{bucket=\"lost\"} 1",
            "steward_fleet_bucket_lost{bucket=\"doubted\"} 0",
            "steward_fleet_bucket_doubted{bucket=\"doubted\"} 1",
        ],
    );
    for absent in ["calls_cap{bucket=\"doubted\",window=\"day\"}", "tokens{bucket=\"waits\"", "secret"] {
        assert!(!text.contains(absent), "{absent} in:\n{text}");
    }
}

#[test]
fn a_dropped_tenant_and_texts_that_a_process_wrote_are_not_shown() {
    let gone = owned("gone", TenantState::Dropped, Mode::Live, "0.1.0");
    let liars = ["postgres://x:secret@db/y", "a note", &"9".repeat(41)];
    let lying = liars.iter().map(|build| owned("liar", TenantState::Active, Mode::Live, build));
    for row in lying {
        let text = render(vec![gone.clone(), row], vec![stop("gone", 9), stop("liar", 9)], Vec::new());
        assert!(text.contains("version=\"unknown\""), "{text}");
        for hidden in
            ["gone", "secret", "note", "999", "instance of", "address", "hash", "copy", "a vault", "ann", "reason"]
        {
            assert!(!text.contains(hidden), "{hidden} in:\n{text}");
        }
    }
}
