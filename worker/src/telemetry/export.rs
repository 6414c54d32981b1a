//! Exports traces and metrics from the OpenTelemetry SDK's queues to an OTLP collector.
//!
//! Each signal has one thread with a bounded queue. A slow or unreachable collector may cost data, but must never delay
//! a tick. A reader for `/metrics` collects only when it is scraped. The SDK would log every failed export.
//! `QuietExporter` logs once that a collector is unreachable, and once that it is back.

use super::settings::{CollectorEndpoint, CollectorTransport};
use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithHttpConfig, WithTonicConfig};
use opentelemetry_prometheus::PrometheusExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData};
use reqwest::blocking::Client;
use reqwest::redirect::Policy;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use temporalio_sdk::opentelemetry::WorkflowIdGenerator;
use tonic::transport::ClientTlsConfig;

/// Starts exporting traces.
///
/// # Errors
/// When the exporter cannot be built from the `OTEL_EXPORTER_OTLP_…` variables.
pub(super) fn start_trace_export(to: &CollectorEndpoint) -> Result<SdkTracerProvider, ExporterBuildError> {
    install_tls();
    let exporter = SpanExporter::builder();
    let exporter = match to.transport {
        CollectorTransport::Http => exporter.with_http().with_http_client(build_http_client(to)?).build()?,
        CollectorTransport::Grpc => exporter.with_tonic().build()?,
        CollectorTransport::GrpcOverTls => {
            exporter.with_tonic().with_tls_config(ClientTlsConfig::new().with_native_roots()).build()?
        }
    };
    // Workflow spans have the same ids when a workflow is replayed.
    Ok(SdkTracerProvider::builder()
        .with_id_generator(WorkflowIdGenerator::default())
        .with_resource(build_resource())
        .with_batch_exporter(QuietExporter::new(exporter, "traces", to))
        .build())
}

/// Builds the exporter of metrics.
///
/// # Errors
/// When it cannot be built from the `OTEL_EXPORTER_OTLP_…` variables.
pub(super) fn build_metric_exporter(to: &CollectorEndpoint) -> Result<impl PushMetricExporter, ExporterBuildError> {
    install_tls();
    let exporter = MetricExporter::builder();
    let exporter = match to.transport {
        CollectorTransport::Http => exporter.with_http().with_http_client(build_http_client(to)?).build()?,
        CollectorTransport::Grpc => exporter.with_tonic().build()?,
        CollectorTransport::GrpcOverTls => {
            exporter.with_tonic().with_tls_config(ClientTlsConfig::new().with_native_roots()).build()?
        }
    };
    Ok(QuietExporter::new(exporter, "metrics", to))
}

/// Starts collecting metrics, for a collector and for `/metrics`, as far as each is given.
pub(super) fn start_metrics(
    exporter: Option<impl PushMetricExporter>,
    reader: Option<PrometheusExporter>,
) -> SdkMeterProvider {
    let provider = SdkMeterProvider::builder().with_resource(build_resource());
    let provider = match exporter {
        Some(exporter) => provider.with_periodic_exporter(exporter),
        None => provider,
    };
    match reader {
        Some(reader) => provider.with_reader(reader).build(),
        None => provider.build(),
    }
}

/// A client that follows no redirect, because a collector could lead it into the network, and that uses no proxy which the
/// environment names. It must be built outside the runtime, as it has one of its own.
fn build_http_client(to: &CollectorEndpoint) -> Result<Client, ExporterBuildError> {
    let timeout = to.timeout;
    let build = move || Client::builder().timeout(timeout).redirect(Policy::none()).no_proxy().build();
    let built = std::thread::spawn(build).join();
    built.map_err(|_| "the thread ended".to_owned()).and_then(|built| built.map_err(|e| e.to_string())).map_err(
        |reason| ExporterBuildError::InternalFailure(format!("failed to build the client of the collector: {reason}")),
    )
}

/// Installs the process-wide TLS provider, without which the exporters' HTTP client panics. A second call has no
/// effect.
fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The resource from `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, named `steward` if they give no name.
fn build_resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let detected = Resource::builder().build();
    let name = detected.get(&Key::from("service.name")).map(|name| name.to_string());
    let is_named = name.is_some_and(|name| !name.starts_with("unknown_service"));
    let own = [version].into_iter().chain((!is_named).then(|| KeyValue::new("service.name", "steward")));
    let detected = detected.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let detected: Vec<KeyValue> = detected.filter(|kv| is_named || kv.key.as_str() != "service.name").collect();
    Resource::builder_empty().with_attributes(own).with_attributes(detected).build()
}

/// An exporter that logs once that it cannot deliver, and once that it can again.
#[derive(Debug)]
struct QuietExporter<E> {
    inner: E,
    signal: &'static str,
    url: String,
    is_away: AtomicBool,
}

impl<E> QuietExporter<E> {
    fn new(inner: E, signal: &'static str, to: &CollectorEndpoint) -> Self {
        Self { inner, signal, url: to.url.clone(), is_away: AtomicBool::new(false) }
    }

    fn report_once(&self, result: OTelSdkResult) -> OTelSdkResult {
        let was_away = self.is_away.swap(result.is_err(), Ordering::Relaxed);
        match &result {
            Err(e) if !was_away => tracing::warn!(
                signal = self.signal, url = self.url, error = %e,
                "failed to export to the collector; continuing without it, and logging this only once"
            ),
            Ok(()) if was_away => tracing::info!(signal = self.signal, url = self.url, "the collector is back"),
            Ok(()) | Err(_) => {}
        }
        result
    }
}

impl<E: opentelemetry_sdk::trace::SpanExporter> opentelemetry_sdk::trace::SpanExporter for QuietExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.report_once(self.inner.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

impl<E: PushMetricExporter> PushMetricExporter for QuietExporter<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.report_once(self.inner.export(metrics).await)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.inner.temporality()
    }
}
