//! Makes the metrics of this process available for scraping, at `/metrics`.
//!
//! The registry holds the instruments of the OpenTelemetry SDK (Steward's own and `temporal_…`), and what Linux knows
//! about the process (`process_…`). Nothing is collected between two scrapes. The server adds the state of the vault.

use opentelemetry_prometheus::PrometheusExporter;
use prometheus::Registry;
use prometheus::process_collector::ProcessCollector;

/// Registers the reader of the SDK's instruments, and the values of the process.
///
/// # Errors
/// The registry has one already. The text is a complaint for the log.
pub(super) fn register_reader(registry: &Registry) -> Result<PrometheusExporter, String> {
    let complain = |e: String| format!("/metrics shows nothing of this process: {e}");
    registry.register(Box::new(ProcessCollector::for_self())).map_err(|e| complain(e.to_string()))?;
    // The resource and the scope would be the same labels on every metric.
    let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone());
    exporter.without_scope_info().without_target_info().build().map_err(|e| complain(e.to_string()))
}
