//! `GET /metrics`: the metrics of this process and the state of the vault, for Prometheus.
//!
//! The process counts its own metrics; the state is read at each scrape, so it is right after a restart too. The table
//! in `docs/operations.md` lists every name. No label may hold the name of a matter or any foreign text but the name of
//! a configured stream: whoever reads the metrics learns how many, not what.

use super::problem::ProblemDetails;
use crate::http::app::{AppState, SharedAppState};
use crate::http::holder::VaultHolder;
use crate::temporal::service_pause::{PauseKind, find_service_pause};
use crate::views::backup::BackupStatus;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use prometheus::{Gauge, Opts, Registry, TextEncoder};
use std::path::PathBuf;
use std::time::Duration;
use steward_domain::gates::mode::Mode;
use steward_domain::steward::guard::{GuardCap, GuardStatus};
use steward_domain::time;
use steward_vault::files::disk::{self, DiskSpace};
use steward_vault::gates::stop;
use strum::IntoEnumIterator;

/// The format of the response.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// How long a disk may take to answer: 3 s. Then its metrics are left out.
const PATIENCE: Duration = Duration::from_secs(3);

/// Lists the metrics of this process and of the vault, in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "health",
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain"),
        (status = 401, description = "No valid token", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 403, description = "The scope does not suffice", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 421, description = "A host name that this server does not have", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 429, description = "Too many requests", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 500, description = "The index cannot be read", body = ProblemDetails, content_type = "application/problem+json")))]
pub(crate) async fn metrics(State(app): State<SharedAppState>) -> Result<impl IntoResponse, ProblemDetails> {
    let text = render_metrics(&app).await.map_err(|e| {
        tracing::warn!("the metrics cannot be read: {e:#}");
        ProblemDetails::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the state of the vault cannot be read; the log says why",
        )
    })?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text))
}

type GaugeError = Box<dyn std::error::Error + Send + Sync>;

async fn render_metrics(app: &AppState) -> Result<String, GaugeError> {
    let now = Utc::now();
    let gauges = StateGauges::default();
    gauges.set("steward_build_info", "The version of this process", &[("version", env!("CARGO_PKG_VERSION"))], true)?;
    gauges.add_service(app)?;
    gauges.add_temporal(app)?;
    let help = "When the certificate of this server ends; 0 without one";
    gauges.set("steward_certificate_end_timestamp_seconds", help, &[], *app.certificate_end.borrow())?;
    gauges.add_records(app, now).await?;
    gauges.add_guard(app.read_guard_status().await.as_ref())?;
    gauges.add_deliveries(app).await?;
    gauges.add_backups(app, now)?;
    gauges.add_streams(app).await?;
    gauges.add_disks(app).await?;
    let mut families = app.process_metrics.gather();
    families.extend(gauges.registry.gather());
    Ok(TextEncoder::new().encode_to_string(&families)?)
}

/// The gauges of one scrape.
#[derive(Default)]
struct StateGauges {
    registry: Registry,
}

/// A value of a gauge. Counts and times are exact up to 2^53.
trait GaugeValue {
    fn as_gauge(&self) -> f64;
}

impl GaugeValue for u64 {
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
    fn as_gauge(&self) -> f64 {
        *self as f64
    }
}

impl GaugeValue for usize {
    fn as_gauge(&self) -> f64 {
        u64::try_from(*self).unwrap_or(u64::MAX).as_gauge()
    }
}

impl GaugeValue for u32 {
    fn as_gauge(&self) -> f64 {
        f64::from(*self)
    }
}

impl GaugeValue for bool {
    fn as_gauge(&self) -> f64 {
        f64::from(u8::from(*self))
    }
}

/// Seconds since 1970; 0 for `None`.
impl GaugeValue for Option<DateTime<Utc>> {
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
    fn as_gauge(&self) -> f64 {
        self.map_or(0.0, |at| at.timestamp() as f64)
    }
}

impl StateGauges {
    fn set(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        value: impl GaugeValue,
    ) -> Result<(), prometheus::Error> {
        let options =
            labels.iter().fold(Opts::new(name, help), |options, (label, value)| options.const_label(*label, *value));
        let gauge = Gauge::with_opts(options)?;
        gauge.set(value.as_gauge());
        self.registry.register(Box::new(gauge))
    }

    /// Whether the vault is served, in which mode, and what holds it back.
    fn add_service(&self, app: &AppState) -> Result<(), prometheus::Error> {
        let (root, holder) = (app.views.root(), app.views.holder());
        let is_held = matches!(holder, VaultHolder::Runs(_) | VaultHolder::Silent(_));
        self.set("steward_vault_served", "Whether a process holds the vault", &[], is_held)?;
        let mode = app.read_settings().policy.mode;
        for known in Mode::iter() {
            let help = "The mode of the process that holds the vault";
            self.set("steward_mode", help, &[("mode", known.as_str())], known == mode)?;
        }
        let pause = find_service_pause(root, &holder).map(|pause| pause.kind);
        for kind in PauseKind::iter() {
            let help = "Whether nothing is checked or resolved, by the reason";
            self.set("steward_paused", help, &[("reason", kind.into())], pause == Some(kind))?;
        }
        let stopped_at = stop::read_stop(root).map(|stop| time::parse(&stop.at).unwrap_or_default());
        self.set("steward_stop_timestamp_seconds", "When the stop of this vault began; 0 without one", &[], stopped_at)
    }

    /// What the last requests to the Temporal server found.
    fn add_temporal(&self, app: &AppState) -> Result<(), prometheus::Error> {
        let (health, registration) = (app.temporal_health.borrow().clone(), app.registration.borrow().clone());
        if !health.is_known {
            return Ok(());
        }
        self.set("steward_temporal_up", "Whether the Temporal server answered", &[], health.error.is_none())?;
        // What is not known must not look as if it were good.
        if health.error.is_some() || registration.error.is_some() {
            return Ok(());
        }
        let missing = registration.registered.missing.len();
        for (state, count) in [("failed", health.failed.len()), ("paused", health.paused.len()), ("missing", missing)] {
            self.set("steward_schedules", "Schedules that do not check, by the reason", &[("state", state)], count)?;
        }
        Ok(())
    }

    /// How many records there are, and how late their checks are.
    async fn add_records(&self, app: &AppState, now: DateTime<Utc>) -> Result<(), GaugeError> {
        let counts = app.views.read().count_records(now).await?;
        for (kind, states) in [("matter", &counts.matters), ("task", &counts.tasks)] {
            for (state, count) in [("open", states.open), ("done", states.done), ("archived", states.archived)] {
                self.set("steward_records", "Records, by kind and state", &[("kind", kind), ("state", state)], count)?;
            }
        }
        self.set("steward_signals_fresh", "Signals that no check has seen", &[], counts.fresh_signals)?;
        self.set("steward_actions_pending", "Proposals and questions that wait for a person", &[], counts.pending)?;
        self.set("steward_records_unusable", "Files that cannot be read as records", &[], counts.problems)?;
        let help = "When the last scan of all files ended; 0 before the first";
        self.set("steward_index_sync_timestamp_seconds", help, &[], counts.last_sync_at)?;
        let lag = app.views.measure_tick_lag(&app.read_settings().cadence, now).await?;
        self.set("steward_matters_late", "Open matters unchecked for one and a half intervals", &[], lag.late)?;
        self.set("steward_matters_unchecked", "Open matters that were never checked", &[], lag.never)?;
        let worst = lag.worst.map_or(0_u64, |(_, seconds)| u64::try_from(seconds).unwrap_or_default());
        let help = "By how much the most overdue matter exceeds its interval; 0 until it exceeds it by half";
        self.set("steward_matter_lag_seconds", help, &[], worst)?;
        Ok(())
    }

    /// The windows of the rate guard, and whether it refuses.
    fn add_guard(&self, status: Option<&GuardStatus>) -> Result<(), prometheus::Error> {
        // Without a status the ledger could not be opened.
        let refusing = status
            .map_or(Some(GuardCap::LedgerUnreadable), |status| status.refusal.as_ref().map(|refusal| refusal.cap));
        let cap = refusing.and_then(|cap| serde_json::to_value(cap).ok());
        if let Some(cap) = cap.as_ref().and_then(|cap| cap.as_str()) {
            let help = "1 for the cap that would refuse a clerk call now";
            self.set("steward_guard_refuses", help, &[("cap", cap)], true)?;
        }
        let Some(ledger) = status.and_then(|status| status.ledger.as_ref()) else { return Ok(()) };
        for (window, fill) in [("minute", &ledger.minute), ("hour", &ledger.hour), ("day", &ledger.day)] {
            self.set("steward_guard_calls", "Clerk calls in the sliding window", &[("window", window)], fill.used)?;
            self.set("steward_guard_cap", "The most clerk calls of the window", &[("window", window)], fill.cap)?;
        }
        let help = "Until when the provider asked to wait; 0 without a back-off";
        let until = ledger.back_off.as_ref().map(|back_off| back_off.until);
        self.set("steward_guard_back_off_timestamp_seconds", help, &[], until)
    }

    /// What is owed to the tracker.
    async fn add_deliveries(&self, app: &AppState) -> Result<(), GaugeError> {
        let debt = app.views.read_tracker_debt(None).await?;
        for (state, count) in [("owed", debt.owed), ("failed", debt.failed)] {
            let help = "Deliveries that the tracker is owed; failed ones are among them";
            self.set("steward_tracker_deliveries", help, &[("state", state)], count)?;
        }
        let help = "When the oldest delivery that is owed was recorded; 0 without one";
        self.set("steward_tracker_oldest_timestamp_seconds", help, &[], debt.oldest_at)?;
        Ok(())
    }

    /// When the newest backup was made, if the process makes any.
    fn add_backups(&self, app: &AppState, now: DateTime<Utc>) -> Result<(), prometheus::Error> {
        let Some(status) = BackupStatus::read(&app.views.holder(), now) else { return Ok(()) };
        let help = "The moment whose state the newest backup holds; 0 without one";
        self.set("steward_backup_timestamp_seconds", help, &[], status.newest)?;
        let help = "When the backups were last copied elsewhere; 0 if that is not known";
        self.set("steward_backup_copied_timestamp_seconds", help, &[], status.copied)?;
        self.set("steward_backup_interval_seconds", "Seconds between two backups", &[], status.every_seconds)
    }

    async fn add_streams(&self, app: &AppState) -> Result<(), GaugeError> {
        for stream in app.views.list_stream_counts().await? {
            let label = [("stream", stream.source.as_str())];
            for (state, count) in [("new", stream.new), ("unreadable", stream.parked)] {
                let labels = [label[0], ("state", state)];
                self.set("steward_stream_events", "Events that were not read, by stream and state", &labels, count)?;
            }
            self.set("steward_stream_failures", "Runs of the stream that failed in a row", &label, stream.failures)?;
        }
        Ok(())
    }

    /// The disks of the vault and of the state folder.
    async fn add_disks(&self, app: &AppState) -> Result<(), GaugeError> {
        let folders = [("vault", app.views.root().path().to_owned()), ("state", app.views.state_dir().to_owned())];
        let measure = |(folder, path): (&'static str, PathBuf)| Some((folder, disk::measure_space(&path)?));
        let spaces = tokio::task::spawn_blocking(move || folders.map(measure));
        let Ok(Ok(spaces)) = tokio::time::timeout(PATIENCE, spaces).await else { return Ok(()) };
        for (folder, DiskSpace { total_bytes, free_bytes, total_inodes, free_inodes }) in spaces.into_iter().flatten() {
            let label = [("folder", folder)];
            self.set("steward_disk_bytes", "The size of the folder's disk", &label, total_bytes)?;
            self.set("steward_disk_free_bytes", "Its free bytes", &label, free_bytes)?;
            self.set("steward_disk_inodes", "Files that the disk can hold; 0 without a limit", &label, total_inodes)?;
            self.set("steward_disk_free_inodes", "Files that it can still hold", &label, free_inodes)?;
        }
        Ok(())
    }
}
