//! The exporters: from the OpenTelemetry SDK's queues to an OTLP collector.
//!
//! Each signal has one thread with a bounded queue; a collector that is slow or away costs dropped
//! data, never a tick. The SDK would log every failed export: [`QuietExporter`] says once that a collector
//! is away, and once that it is back.

use super::settings::CollectorEndpoint;
use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData};
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
    let exporter = if to.is_grpc_over_tls {
        exporter.with_tonic().with_tls_config(ClientTlsConfig::new().with_native_roots()).build()?
    } else {
        exporter.build()?
    };
    // Workflow spans have the same ids when a workflow is replayed.
    Ok(SdkTracerProvider::builder()
        .with_id_generator(WorkflowIdGenerator::default())
        .with_resource(build_resource())
        .with_batch_exporter(QuietExporter::new(exporter, "traces", to))
        .build())
}

/// Starts exporting metrics.
///
/// # Errors
/// When the exporter cannot be built from the `OTEL_EXPORTER_OTLP_…` variables.
pub(super) fn start_metric_export(to: &CollectorEndpoint) -> Result<SdkMeterProvider, ExporterBuildError> {
    install_tls();
    let exporter = MetricExporter::builder();
    let exporter = if to.is_grpc_over_tls {
        exporter.with_tonic().with_tls_config(ClientTlsConfig::new().with_native_roots()).build()?
    } else {
        exporter.build()?
    };
    let exporter = QuietExporter::new(exporter, "metrics", to);
    Ok(SdkMeterProvider::builder().with_resource(build_resource()).with_periodic_exporter(exporter).build())
}

/// The exporters' HTTP client panics without a process-wide provider; a second one changes nothing.
fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// What the environment says of this process (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`),
/// with a name of our own where it says none.
fn build_resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let said = Resource::builder().build();
    let name = said.get(&Key::from("service.name")).map(|name| name.to_string());
    let named = name.is_some_and(|name| !name.starts_with("unknown_service"));
    let ours = [version].into_iter().chain((!named).then(|| KeyValue::new("service.name", "steward")));
    let said = said.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let said: Vec<KeyValue> = said.filter(|kv| named || kv.key.as_str() != "service.name").collect();
    Resource::builder_empty().with_attributes(ours).with_attributes(said).build()
}

/// An exporter that says once that it cannot deliver, and once that it can again.
#[derive(Debug)]
struct QuietExporter<E> {
    inner: E,
    signal: &'static str,
    url: String,
    away: AtomicBool,
}

impl<E> QuietExporter<E> {
    fn new(inner: E, signal: &'static str, to: &CollectorEndpoint) -> Self {
        Self { inner, signal, url: to.url.clone(), away: AtomicBool::new(false) }
    }

    fn report_once(&self, result: OTelSdkResult) -> OTelSdkResult {
        let was_away = self.away.swap(result.is_err(), Ordering::Relaxed);
        match &result {
            Err(e) if !was_away => tracing::warn!(
                signal = self.signal, url = self.url, error = %e,
                "the collector takes nothing; going on without it, this is said once"
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
