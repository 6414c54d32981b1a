//! Records the SDK's metrics with this process's meter.
//!
//! The SDK has an OTLP exporter of its own. It cannot be flushed, logs every failure and reports another service name.
//! So the SDK's instruments (`temporal_…`) are created on the meter of this process, and use its exporter. Durations
//! are in milliseconds, with the SDK's buckets.

use opentelemetry::metrics::{Histogram as OtelHistogram, Meter};
use std::sync::Arc;
use std::time::Duration;
use temporalio_common::telemetry::metrics::{
    CoreMeter, Counter, Gauge, GaugeF64, Histogram, HistogramBase, HistogramDuration, HistogramDurationBase,
    HistogramF64, MetricAttributable, MetricAttributes, MetricParameters, NewAttributes, UpDownCounter,
    default_buckets_for,
};

/// Adapts an OpenTelemetry meter to the interface of the SDK's core.
#[derive(Debug)]
pub(super) struct OtelMeter(Meter);

impl OtelMeter {
    pub(super) fn new(meter: Meter) -> Self {
        Self(meter)
    }

    fn build_histogram(&self, params: MetricParameters) -> OtelHistogram<u64> {
        let buckets = find_buckets(&params.name);
        let histogram = self.0.u64_histogram(params.name).with_description(params.description).with_unit(params.unit);
        histogram.with_boundaries(buckets).build()
    }
}

/// Two more bounds for the wait of a task, in milliseconds. The SDK's own jump from 10 s to 100 s, so a wait of 11 s
/// could not be distinguished from one of 99 s.
const LONG_WAITS: [f64; 2] = [30_000.0, 60_000.0];

/// The SDK's own buckets, which it finds by the metric's name without the prefix, in ascending order.
fn find_buckets(name: &str) -> Vec<f64> {
    let mut buckets = default_buckets_for(name.strip_prefix("temporal_").unwrap_or(name), false).to_vec();
    if name.ends_with("_schedule_to_start_latency") {
        buckets.extend(LONG_WAITS);
        buckets.sort_by(f64::total_cmp);
    }
    buckets
}

impl CoreMeter for OtelMeter {
    fn new_attributes(&self, attributes: NewAttributes) -> MetricAttributes {
        MetricAttributes::OTel { kvs: Arc::new(attributes.attributes.into_iter().map(Into::into).collect()) }
    }

    fn extend_attributes(&self, existing: MetricAttributes, attributes: NewAttributes) -> MetricAttributes {
        let MetricAttributes::OTel { mut kvs } = existing else { return self.new_attributes(attributes) };
        Arc::make_mut(&mut kvs).extend(attributes.attributes.into_iter().map(Into::into));
        MetricAttributes::OTel { kvs }
    }

    fn counter(&self, p: MetricParameters) -> Counter {
        let counter = self.0.u64_counter(p.name).with_description(p.description).with_unit(p.unit);
        Counter::new(Arc::new(counter.build()))
    }

    fn histogram(&self, params: MetricParameters) -> Histogram {
        Histogram::new(Arc::new(self.build_histogram(params)))
    }

    fn histogram_f64(&self, p: MetricParameters) -> HistogramF64 {
        let buckets = find_buckets(&p.name);
        let histogram = self.0.f64_histogram(p.name).with_description(p.description).with_unit(p.unit);
        HistogramF64::new(Arc::new(histogram.with_boundaries(buckets).build()))
    }

    fn histogram_duration(&self, params: MetricParameters) -> HistogramDuration {
        let params = MetricParameters { unit: "ms".into(), ..params };
        HistogramDuration::new(Arc::new(MillisecondHistogram(self.build_histogram(params))))
    }

    fn gauge(&self, p: MetricParameters) -> Gauge {
        Gauge::new(Arc::new(self.0.u64_gauge(p.name).with_description(p.description).with_unit(p.unit).build()))
    }

    fn gauge_f64(&self, p: MetricParameters) -> GaugeF64 {
        GaugeF64::new(Arc::new(self.0.f64_gauge(p.name).with_description(p.description).with_unit(p.unit).build()))
    }

    fn up_down_counter(&self, p: MetricParameters) -> UpDownCounter {
        let counter = self.0.i64_up_down_counter(p.name).with_description(p.description).with_unit(p.unit);
        UpDownCounter::new(Arc::new(counter.build()))
    }
}

struct MillisecondHistogram(OtelHistogram<u64>);

impl MetricAttributable<Box<dyn HistogramDurationBase>> for MillisecondHistogram {
    fn with_attributes(
        &self,
        attributes: &MetricAttributes,
    ) -> Result<Box<dyn HistogramDurationBase>, Box<dyn std::error::Error>> {
        Ok(Box::new(BoundMillisecondHistogram(self.0.with_attributes(attributes)?)))
    }
}

struct BoundMillisecondHistogram(Box<dyn HistogramBase>);

impl HistogramDurationBase for BoundMillisecondHistogram {
    fn records(&self, value: Duration) {
        self.0.records(u64::try_from(value.as_millis()).unwrap_or(u64::MAX));
    }
}
