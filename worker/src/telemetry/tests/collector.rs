//! A small OTLP collector on loopback that keeps the spans and metrics it receives.
//!
//! It accepts OTLP over HTTP and over gRPC on one port. Tests read the received data; nothing is written to disk.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::sync::{Arc, Mutex};
use tonic::{Request, Response, Status};

/// The received spans, metrics and resources.
#[derive(Clone, Default)]
pub(super) struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
    metrics: Arc<Mutex<Vec<Metric>>>,
    resources: Arc<Mutex<Vec<Vec<KeyValue>>>>,
}

impl Collector {
    /// Serves OTLP over HTTP and gRPC; returns the endpoint.
    pub(super) async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let grpc_path = |service: &str| format!("/opentelemetry.proto.collector.{service}/Export");
        let routes = axum::Router::new()
            .route("/v1/traces", post(async |State(collector): State<Self>, body: Bytes| collector.traces(body)))
            .route("/v1/metrics", post(async |State(collector): State<Self>, body: Bytes| collector.metrics(body)))
            .route_service(&grpc_path("trace.v1.TraceService"), TraceServiceServer::new(self.clone()))
            .route_service(&grpc_path("metrics.v1.MetricsService"), MetricsServiceServer::new(self.clone()))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        endpoint
    }

    fn traces(&self, body: Bytes) -> StatusCode {
        let Ok(request) = ExportTraceServiceRequest::decode(body) else { return StatusCode::BAD_REQUEST };
        self.keep_traces(request);
        StatusCode::OK
    }

    fn metrics(&self, body: Bytes) -> StatusCode {
        let Ok(request) = ExportMetricsServiceRequest::decode(body) else { return StatusCode::BAD_REQUEST };
        self.keep_metrics(request);
        StatusCode::OK
    }

    fn keep_traces(&self, request: ExportTraceServiceRequest) {
        for group in request.resource_spans {
            self.resources.lock().unwrap().push(group.resource.unwrap_or_default().attributes);
            self.spans.lock().unwrap().extend(group.scope_spans.into_iter().flat_map(|s| s.spans));
        }
    }

    fn keep_metrics(&self, request: ExportMetricsServiceRequest) {
        for group in request.resource_metrics {
            self.resources.lock().unwrap().push(group.resource.unwrap_or_default().attributes);
            self.metrics.lock().unwrap().extend(group.scope_metrics.into_iter().flat_map(|s| s.metrics));
        }
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }

    /// The names of all metrics.
    pub(super) fn metric_names(&self) -> Vec<String> {
        self.metrics.lock().unwrap().iter().map(|m| m.name.clone()).collect()
    }

    /// The last value of a counter at one value of its attribute.
    pub(super) fn count(&self, name: &str, attribute: (&str, &str)) -> Option<i64> {
        use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
        let metrics = self.metrics.lock().unwrap();
        let points = metrics.iter().filter(|m| m.name == name).filter_map(|m| match &m.data {
            Some(metric::Data::Sum(sum)) => Some(&sum.data_points),
            _ => None,
        });
        let mut points = points.flatten();
        let point = points.rfind(|p| text_of(&p.attributes, attribute.0).as_deref() == Some(attribute.1))?;
        match point.value? {
            Value::AsInt(n) => Some(n),
            Value::AsDouble(_) => None,
        }
    }

    /// The values of a key in the exported resources.
    pub(super) fn resource(&self, key: &str) -> Vec<String> {
        let resources = self.resources.lock().unwrap();
        let mut values: Vec<String> = resources.iter().map(|r| text_of(r, key).unwrap_or_default()).collect();
        values.dedup();
        values
    }
}

/// The text of an attribute.
pub(super) fn text_of(attributes: &[KeyValue], key: &str) -> Option<String> {
    match attributes.iter().find(|a| a.key == key)?.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text.clone()),
        _ => None,
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.keep_traces(request.into_inner());
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.keep_metrics(request.into_inner());
        Ok(Response::new(Default::default()))
    }
}
