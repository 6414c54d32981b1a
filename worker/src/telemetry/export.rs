//! The exporters: from the OpenTelemetry SDK's queues to an OTLP collector.
//!
//! Each signal has one thread with a bounded queue; a collector that is slow or away costs dropped
//! data, never a tick. The SDK would log every failed export: [`QuietExporter`] says once that a collector
//! is away, and once that it is back.

use super::settings::{CollectorEndpoint, OtlpProtocol};
use anyhow::Context;
use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use temporalio_sdk::opentelemetry::WorkflowIdGenerator;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};

/// How long one export over TLS and gRPC may take: 10 s, as the other ways have it by default.
const EXPORT_LIMIT: Duration = Duration::from_secs(10);

/// Starts exporting traces.
///
/// # Errors
/// When the URL cannot be used.
pub(super) fn start_trace_export(to: &CollectorEndpoint) -> anyhow::Result<SdkTracerProvider> {
    install_tls();
    let exporter = SpanExporter::builder();
    let exporter = match to.protocol {
        OtlpProtocol::Http => exporter.with_http().with_endpoint(&to.url).build(),
        OtlpProtocol::Grpc => match open_tls_channel(&to.url)? {
            Some(channel) => exporter.with_tonic().with_channel(channel).build(),
            None => exporter.with_tonic().with_endpoint(&to.url).build(),
        },
    };
    // Workflow spans have the same ids when a workflow is replayed.
    Ok(SdkTracerProvider::builder()
        .with_id_generator(WorkflowIdGenerator::default())
        .with_resource(build_resource())
        .with_batch_exporter(QuietExporter::new(exporter?, "traces", to))
        .build())
}

/// Starts exporting metrics.
///
/// # Errors
/// When the URL cannot be used.
pub(super) fn start_metric_export(to: &CollectorEndpoint) -> anyhow::Result<SdkMeterProvider> {
    install_tls();
    let exporter = MetricExporter::builder();
    let exporter = match to.protocol {
        OtlpProtocol::Http => exporter.with_http().with_endpoint(&to.url).build(),
        OtlpProtocol::Grpc => match open_tls_channel(&to.url)? {
            Some(channel) => exporter.with_tonic().with_channel(channel).build(),
            None => exporter.with_tonic().with_endpoint(&to.url).build(),
        },
    };
    let exporter = QuietExporter::new(exporter?, "metrics", to);
    Ok(SdkMeterProvider::builder().with_resource(build_resource()).with_periodic_exporter(exporter).build())
}

/// A channel for gRPC over TLS, which the exporters of this build cannot open themselves.
fn open_tls_channel(url: &str) -> anyhow::Result<Option<Channel>> {
    if !url.starts_with("https://") {
        return Ok(None);
    }
    let endpoint = Endpoint::from_shared(url.to_owned()).with_context(|| format!("failed to read `{url}`"))?;
    let endpoint = endpoint.tls_config(ClientTlsConfig::new().with_native_roots())?.timeout(EXPORT_LIMIT);
    Ok(Some(endpoint.connect_lazy()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_collector_behind_tls_can_be_named_in_both_protocols() {
        for protocol in [OtlpProtocol::Http, OtlpProtocol::Grpc] {
            let to = CollectorEndpoint { protocol, url: "https://127.0.0.1:1/v1/traces".into() };
            let tracer = start_trace_export(&to).unwrap();
            let meter = start_metric_export(&to).unwrap();
            let _ = (tracer.shutdown_with_timeout(Duration::ZERO), meter.shutdown_with_timeout(Duration::ZERO));
        }
    }

    #[test]
    fn what_is_no_url_is_refused_with_its_name() {
        let to = CollectorEndpoint { protocol: OtlpProtocol::Http, url: "http://not a url".into() };
        assert!(format!("{:#}", start_trace_export(&to).unwrap_err()).contains("http://not a url"));
    }
}
