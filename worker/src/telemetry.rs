//! Sets up the logs, traces and metrics of the process.
//!
//! Logs go to standard error at the level of `STEWARD_LOG`: lines for a person on a terminal, JSON anywhere else.
//! Traces and metrics go to an OTLP collector, but only if the standard `OTEL_…` variables name one. The metrics of a
//! process with a server can also be scraped, at `/metrics`. Nothing here may slow or stop a tick. So exporters have
//! their own threads and bounded queues, drop what does not fit, and log once that a collector is unreachable. Workflow
//! code must not open spans: the SDK's plugin does, in a way that survives replay. An activity that works on another
//! thread must open a span first and enter it there; otherwise the work is in no trace.

mod activity;
mod core_meter;
mod export;
mod logs;
mod metrics;
mod scrape;
mod settings;

#[cfg(test)]
mod tests;

use activity::ActivityWatcher;
use anyhow::Context;
use core_meter::OtelMeter;
use metrics::ActivityMetrics;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prometheus::Registry;
use settings::TelemetrySettings;
use std::sync::Arc;
use std::time::Duration;
use steward_activities::steward::clerks::remote::KeyHealth;
use temporalio_common::telemetry::TelemetryOptions;
use temporalio_common::telemetry::metrics::CoreMeter;
use temporalio_sdk::interceptors::ActivityInboundInterceptor;
use temporalio_sdk::opentelemetry::OpenTelemetryPlugin;
use temporalio_sdk::plugins::SimplePlugin;
use temporalio_sdk::runtime::RuntimeOptions;
use tracing::Subscriber;
use tracing::subscriber::SetGlobalDefaultError;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

/// The instrumentation scope of the instruments and spans.
const SCOPE: &str = "steward";
/// How long a stopping process waits for the last traces and metrics: 3 s.
const FLUSH_LIMIT: Duration = Duration::from_secs(3);

/// The running telemetry of a process. Call [`Telemetry::shutdown`] before the process ends.
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
    /// What `/metrics` shows of this process.
    scraped: Registry,
}

/// Starts the telemetry of a process that keeps running, once, inside a tokio runtime. `is_scraped` says that it has a
/// server, whose `/metrics` shows its metrics.
///
/// # Errors
/// `STEWARD_LOG` is not a level, or logging was started before. An invalid `OTEL_…` variable is only a warning: a
/// steward without telemetry is better than none.
pub(crate) fn init_telemetry(is_scraped: bool) -> anyhow::Result<Telemetry> {
    let settings = TelemetrySettings::read(|name| std::env::var(name).ok())?;
    let settings = TelemetrySettings { is_scraped: is_scraped && !settings.is_disabled, ..settings };
    let (telemetry, installed) = install_telemetry(&settings);
    installed.context("failed to start logging")?;
    Ok(telemetry)
}

/// As [`init_telemetry`], for a short command, which may need it more than once: without `STEWARD_LOG` it logs only warnings.
///
/// # Errors
/// `STEWARD_LOG` is not a level.
pub(crate) fn init_quiet_telemetry() -> anyhow::Result<Telemetry> {
    // A refused call of an assistant is in the log of calls.
    let quiet = |name: &str| (name == "STEWARD_LOG").then(|| "warn,rmcp=error".to_owned());
    let settings = TelemetrySettings::read(|name| std::env::var(name).ok().or_else(|| quiet(name)))?;
    // What logs already goes on.
    let (telemetry, _) = install_telemetry(&settings);
    Ok(telemetry)
}

fn install_telemetry(settings: &TelemetrySettings) -> (Telemetry, Result<(), SetGlobalDefaultError>) {
    let (telemetry, complaints) = Telemetry::start(settings);
    let logs = logs::create_stderr_layer().with_filter(settings.levels.clone());
    let subscriber = tracing_subscriber::registry().with(telemetry.build_span_layer()).with(logs);
    let installed = tracing::subscriber::set_global_default(subscriber);
    for complaint in settings.complaints.iter().chain(&complaints) {
        tracing::warn!("{complaint}");
    }
    (telemetry, installed)
}

impl Telemetry {
    /// Starts the configured exporters; returns a complaint for each one that cannot start.
    fn start(settings: &TelemetrySettings) -> (Self, Vec<String>) {
        let mut complaints = Vec::new();
        let mut complain =
            |signal: &str, e: ExporterBuildError| complaints.push(format!("no {signal} are exported: {e}"));
        let traces = settings
            .traces
            .as_ref()
            .and_then(|to| export::start_trace_export(to).map_err(|e| complain("traces", e)).ok());
        let scraped = Registry::new();
        let exported = settings
            .metrics
            .as_ref()
            .and_then(|to| export::build_metric_exporter(to).map_err(|e| complain("metrics", e)).ok());
        let reader = settings.is_scraped.then(|| scrape::register_reader(&scraped));
        let reader = reader.and_then(|reader| reader.map_err(|e| complaints.push(e)).ok());
        let metrics = (exported.is_some() || reader.is_some()).then(|| export::start_metrics(exported, reader));
        (Self { traces, metrics, scraped }, complaints)
    }

    /// The plugins of a client and its workers: the SDK's tracing if traces are on, then the activity watcher.
    pub(crate) fn create_client_plugins(&self) -> Vec<SimplePlugin> {
        let tracing = self.traces.as_ref().map(|to| OpenTelemetryPlugin::builder().tracer(to.tracer(SCOPE)).build());
        let metrics = self.metrics.as_ref().map(|to| ActivityMetrics::new(&to.meter(SCOPE)));
        let watcher: Arc<dyn ActivityInboundInterceptor> = Arc::new(ActivityWatcher::new(metrics));
        let watcher = SimplePlugin::builder("steward").activity_inbound_interceptors(vec![watcher]).build();
        tracing.into_iter().chain([watcher]).collect()
    }

    /// What the clerks of this process report to, which is shown as a metric. Call this once.
    pub(crate) fn observe_key_health(&self) -> KeyHealth {
        let health = KeyHealth::default();
        if let Some(metrics) = &self.metrics {
            metrics::observe_key_health(&metrics.meter(SCOPE), health.clone());
        }
        health
    }

    /// The metrics of this process that `/metrics` shows; empty if telemetry is disabled.
    pub(crate) fn scraped_metrics(&self) -> Registry {
        self.scraped.clone()
    }

    /// The SDK's own telemetry: its metrics use the same exporter, and its logs the same subscriber.
    ///
    /// # Errors
    /// The SDK refuses its options.
    pub(crate) fn build_runtime_options(&self) -> anyhow::Result<RuntimeOptions> {
        let meter = |to: &SdkMeterProvider| Arc::new(OtelMeter::new(to.meter("temporal-sdk"))) as Arc<dyn CoreMeter>;
        let meter = self.metrics.as_ref().map(meter);
        let telemetry = TelemetryOptions::builder().maybe_metrics(meter).attach_service_name(false).build();
        RuntimeOptions::builder().telemetry_options(telemetry).build().map_err(anyhow::Error::msg)
    }

    /// Sends the remaining data and ends, within 3 s even without a collector.
    pub(crate) async fn shutdown(self) {
        let (flushing, mut flushed) = tokio::sync::mpsc::channel::<()>(1);
        // Threads, not blocking tasks: the runtime would wait for those without a limit. The exporters log failures.
        let flush = |work: Box<dyn FnOnce() + Send>| {
            let flushing = flushing.clone();
            std::thread::spawn(move || (work(), drop(flushing)));
        };
        if let Some(traces) = self.traces {
            flush(Box::new(move || drop(traces.shutdown_with_timeout(FLUSH_LIMIT))));
        }
        if let Some(metrics) = self.metrics {
            flush(Box::new(move || drop(metrics.shutdown_with_timeout(FLUSH_LIMIT))));
        }
        drop(flushing);
        // Returns when the last thread has dropped its sender.
        let _ = tokio::time::timeout(FLUSH_LIMIT, flushed.recv()).await;
    }

    /// Turns spans of these crates into OpenTelemetry spans, as children of the SDK's spans.
    fn build_span_layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer = self.traces.as_ref()?.tracer(SCOPE);
        // The watcher's span is for the logs; in a trace the SDK's RunActivity takes its place.
        let ours = Targets::new().with_target(SCOPE, LevelFilter::INFO).with_target(activity::TARGET, LevelFilter::OFF);
        let layer = tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
        Some(layer.with_target(false).with_tracked_inactivity(false).with_filter(ours))
    }
}
