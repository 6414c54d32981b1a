//! Writes the state of a fleet in the text format of Prometheus.
//!
//! The table in `docs/operations.md` lists every name. A label holds the id of a tenant, the name of a bucket, a window, a
//! mode, a state or a version, and nothing else. A tenant that was dropped has no series.

use crate::commands::fleet::has_wrong_mode;
use chrono::{DateTime, Utc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, Opts, Registry, TextEncoder};
use std::fmt::Debug;
use steward_domain::gates::mode::Mode;
use steward_fleet::buckets::{BucketStatus, WindowStatus};
use steward_fleet::overview::FleetOverview;
use steward_fleet::stops::{ALL_TENANTS, StopRow};
use steward_fleet::tenants::{TenantRow, TenantState};
use strum::IntoEnumIterator;

/// The longest version that is shown. A process writes its own into the database.
const MAX_VERSION: usize = 40;

/// Renders a reading of the fleet, and what is known of this process. Without a reading only that is said.
pub(super) fn render_metrics(fleet: Option<&FleetOverview>, process: Vec<MetricFamily>) -> prometheus::Result<String> {
    let gauges = FleetGauges::default();
    gauges.set("steward_fleet_up", "Whether the fleet's database answered this scrape", from_bool(fleet.is_some()))?;
    if let Some(fleet) = fleet {
        let tenants: Vec<&TenantRow> = fleet.tenants.iter().filter(|row| row.state != TenantState::Dropped).collect();
        gauges.add_database(fleet)?;
        gauges.add_tenants(&tenants, &fleet.stops)?;
        gauges.add_owners(&tenants)?;
        gauges.add_windows(&fleet.buckets)?;
        gauges.add_buckets(&fleet.buckets)?;
    }
    let mut families = gauges.registry.gather();
    families.extend(process);
    TextEncoder::new().encode_to_string(&families)
}

/// The gauges of one scrape.
#[derive(Default)]
struct FleetGauges {
    registry: Registry,
}

impl FleetGauges {
    fn set(&self, name: &str, help: &str, value: f64) -> prometheus::Result<()> {
        self.add(name, help, [], [([""; 0], value)])
    }

    /// Adds a gauge with a value for each set of labels. Of two values for the same labels the last one counts.
    fn add<const N: usize, L: AsRef<str> + Debug>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        values: impl IntoIterator<Item = ([L; N], f64)>,
    ) -> prometheus::Result<()> {
        let gauge = GaugeVec::new(Opts::new(name, help), &labels)?;
        for (labels, value) in values {
            gauge.get_metric_with_label_values(&labels)?.set(value);
        }
        self.registry.register(Box::new(gauge))
    }

    fn add_database(&self, fleet: &FleetOverview) -> prometheus::Result<()> {
        let FleetOverview { version, stops, server, .. } = fleet;
        self.set("steward_fleet_schema_version", "The version of the fleet's tables", f64::from(*version))?;
        let help = "When the stop of all tenants began; 0 without one";
        self.set("steward_fleet_stop_timestamp_seconds", help, find_stop(stops, ALL_TENANTS))?;
        let help = "Connections of the database server";
        self.set("steward_fleet_database_connections", help, server.connections as f64)?;
        let help = "The most connections of the database server";
        self.set("steward_fleet_database_max_connections", help, server.max_connections as f64)?;
        let help = "Servers and archives that receive the database's changes as they happen";
        self.set("steward_fleet_database_standbys", help, server.standbys as f64)?;
        let help = "Whether the database's newest attempt to archive a file failed";
        self.set("steward_fleet_database_archive_fails", help, from_bool(server.archive_fails))
    }

    /// What operators set of each tenant.
    fn add_tenants(&self, tenants: &[&TenantRow], stops: &[StopRow]) -> prometheus::Result<()> {
        let each = |value: fn(&TenantRow) -> f64| tenants.iter().map(move |row| ([row.id.as_str()], value(row)));
        let help = "Whether a process ever owned the tenant's vault";
        let has_owner = each(|row| from_bool(row.owner.is_some()));
        self.add("steward_fleet_tenant_owned", help, ["tenant"], has_owner)?;
        let help = "Whether the process has another mode than the expected one";
        let mismatch = each(|row| from_bool(has_wrong_mode(row)));
        self.add("steward_fleet_tenant_mode_mismatch", help, ["tenant"], mismatch)?;
        let modes = |of: fn(&TenantRow) -> Mode| tenants.iter().flat_map(move |row| expand_mode(row, of(row)));
        let help = "The most that the tenant may do";
        self.add("steward_fleet_tenant_max_mode", help, ["tenant", "mode"], modes(|row| row.mode_ceiling))?;
        let states = tenants.iter().map(|row| ([row.id.as_str(), row.state.into()], 1.0));
        self.add("steward_fleet_tenant_state", "The state of the tenant", ["tenant", "state"], states)?;
        let help = "When the stop of this tenant alone began; 0 without one";
        let stopped = tenants.iter().map(|row| ([row.id.as_str()], find_stop(stops, row.id.as_str())));
        self.add("steward_fleet_tenant_stop_timestamp_seconds", help, ["tenant"], stopped)
    }

    /// What the process of each tenant reported. A tenant without one has no such series.
    fn add_owners(&self, tenants: &[&TenantRow]) -> prometheus::Result<()> {
        let owned = || tenants.iter().filter_map(|row| Some((*row, row.owner.as_ref()?)));
        let help = "Seconds since the tenant's process was heard, by the database's clock";
        let ages = tenants.iter().filter_map(|row| Some(([row.id.as_str()], row.silent_seconds? as f64)));
        self.add("steward_fleet_tenant_heartbeat_age_seconds", help, ["tenant"], ages)?;
        let epochs = owned().map(|(row, owner)| ([row.id.as_str()], owner.epoch as f64));
        self.add("steward_fleet_tenant_epoch", "Rises with each start and each take-over", ["tenant"], epochs)?;
        let modes = owned().flat_map(|(row, owner)| expand_mode(row, owner.info.mode));
        self.add("steward_fleet_tenant_mode", "The mode of the tenant's process", ["tenant", "mode"], modes)?;
        let builds = owned().map(|(row, owner)| ([row.id.as_str(), label_version(&owner.info.build)], 1.0));
        self.add("steward_fleet_tenant_build_info", "The version of the process", ["tenant", "version"], builds)
    }

    /// How full each window of a bucket is.
    fn add_windows(&self, buckets: &[BucketStatus]) -> prometheus::Result<()> {
        let each = |value: fn(&WindowStatus) -> Option<f64>| {
            let windows = buckets.iter().flat_map(|bucket| bucket.windows.iter().map(move |window| (bucket, window)));
            windows.filter_map(move |(bucket, status)| {
                Some(([bucket.name.clone(), label_window(status.window.seconds)], value(status)?))
            })
        };
        let labels = ["bucket", "window"];
        let calls = each(|status| Some(status.used_calls as f64));
        self.add("steward_fleet_bucket_calls", "Calls of all tenants in the sliding window", labels, calls)?;
        let caps = each(|status| status.window.calls.map(f64::from));
        self.add("steward_fleet_bucket_calls_cap", "The most calls of the window", labels, caps)?;
        let tokens = each(|status| status.window.tokens.map(|_| status.used_tokens as f64));
        self.add("steward_fleet_bucket_tokens", "Tokens of all tenants in the sliding window", labels, tokens)?;
        let caps = each(|status| status.window.tokens.map(|cap| cap as f64));
        self.add("steward_fleet_bucket_tokens_cap", "The most tokens of the window", labels, caps)
    }

    /// What holds the calls of each bucket back.
    fn add_buckets(&self, buckets: &[BucketStatus]) -> prometheus::Result<()> {
        let each = |value: fn(&BucketStatus) -> f64| buckets.iter().map(move |it| ([it.name.as_str()], value(it)));
        let help = "When the provider asked to wait; 0 once a call was answered since";
        let since = each(|it| to_seconds(it.back_off.map(|back_off| back_off.set_at)));
        self.add("steward_fleet_bucket_back_off_since_timestamp_seconds", help, ["bucket"], since)?;
        let help = "Until when the provider asked to wait; 0 once a call was answered since";
        let until = each(|it| to_seconds(it.back_off.map(|back_off| back_off.until)));
        self.add("steward_fleet_bucket_back_off_until_timestamp_seconds", help, ["bucket"], until)?;
        let help = "Whether one call is testing the provider";
        let probes = each(|it| from_bool(it.probe.is_some()));
        self.add("steward_fleet_bucket_probe_pending", help, ["bucket"], probes)?;
        let help = "Whether nothing is sent because calls may be missing";
        let lost = each(|it| from_bool(it.lost_at.is_some()));
        self.add("steward_fleet_bucket_lost", help, ["bucket"], lost)?;
        let help = "Whether nothing is sent because the database's clock went back";
        let doubted = each(|it| from_bool(it.doubted_since.is_some()));
        self.add("steward_fleet_bucket_doubted", help, ["bucket"], doubted)
    }
}

/// A value for each mode: 1 for this one, 0 for the others.
fn expand_mode(row: &TenantRow, mode: Mode) -> impl Iterator<Item = ([&str; 2], f64)> {
    Mode::iter().map(move |known| ([row.id.as_str(), known.as_str()], from_bool(known == mode)))
}

fn find_stop(stops: &[StopRow], scope: &str) -> f64 {
    to_seconds(stops.iter().find(|stop| stop.scope == scope).map(|stop| stop.stopped_at))
}

/// Seconds since 1970; 0 for `None`.
fn to_seconds(at: Option<DateTime<Utc>>) -> f64 {
    at.map_or(0.0, |at| at.timestamp() as f64)
}

fn from_bool(value: bool) -> f64 {
    f64::from(u8::from(value))
}

/// The words of `steward_guard_calls`, and `20s` for any other window.
fn label_window(seconds: u32) -> String {
    match seconds {
        60 => "minute".to_owned(),
        3_600 => "hour".to_owned(),
        86_400 => "day".to_owned(),
        seconds => format!("{seconds}s"),
    }
}

/// The version, if it looks like one: whoever has a tenant's role can write any text in its place.
fn label_version(build: &str) -> &str {
    let is_version = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    if build.len() <= MAX_VERSION && build.chars().all(is_version) { build } else { "unknown" }
}

#[cfg(test)]
mod tests;
