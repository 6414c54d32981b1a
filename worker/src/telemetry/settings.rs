//! Reads the telemetry settings from the environment.
//!
//! An invalid `STEWARD_LOG` is an error. The `OTEL_…` variables are shared with other programs, so an invalid one is
//! only a complaint, and the signal stays off. The exporters and the OpenTelemetry SDK read these variables themselves.
//! This module reads only two kinds. The first decides whether to export at all: without an endpoint, an exporter would
//! use localhost. The second are values that an exporter would silently replace by a default.

use axum::http::Uri;
use axum::http::uri::Scheme;
use std::time::Duration;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The collector of one signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CollectorEndpoint {
    /// The value of the variable, for warnings.
    pub(super) url: String,
    pub(super) transport: CollectorTransport,
    /// How long one export may take over HTTP: 10 s, or `OTEL_EXPORTER_OTLP_TIMEOUT` in milliseconds.
    pub(super) timeout: Duration,
}

/// How a collector is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CollectorTransport {
    Http,
    Grpc,
    /// The exporter needs explicit root certificates; over HTTP it uses those of the system.
    GrpcOverTls,
}

/// How long an export may take by default: 10 s, as OpenTelemetry's specification says.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The telemetry settings of the environment.
#[derive(Debug)]
pub(super) struct TelemetrySettings {
    /// The log levels of each target.
    pub(super) levels: Targets,
    /// `None` keeps the signal off.
    pub(super) traces: Option<CollectorEndpoint>,
    pub(super) metrics: Option<CollectorEndpoint>,
    /// Whether `OTEL_SDK_DISABLED` turns all telemetry but the logs off.
    pub(super) is_disabled: bool,
    /// Whether the metrics can be scraped, because the process has a server. The environment does not say it.
    pub(super) is_scraped: bool,
    /// Invalid values; each text names the variable and the fix.
    pub(super) complaints: Vec<String>,
}

impl TelemetrySettings {
    /// Reads the variables through `get`.
    ///
    /// # Errors
    /// `STEWARD_LOG` is not valid.
    pub(super) fn read(get: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let get = |name: &str| get(name).filter(|v| !v.trim().is_empty());
        let levels = parse_levels(get("STEWARD_LOG").as_deref().unwrap_or("info"))?;
        let is_disabled = get("OTEL_SDK_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true"));
        let mut settings =
            Self { levels, traces: None, metrics: None, is_disabled, is_scraped: false, complaints: Vec::new() };
        if is_disabled {
            return Ok(settings);
        }
        let mut read_signal = |signal| {
            read_collector(&get, signal).unwrap_or_else(|complaint| {
                settings.complaints.push(complaint);
                None
            })
        };
        (settings.traces, settings.metrics) = (read_signal("TRACES"), read_signal("METRICS"));
        Ok(settings)
    }
}

/// Parses a level for Steward's crates (the others stay at warn), or a list like
/// `info,steward_vault=debug,temporalio_sdk_core=info`.
fn parse_levels(text: &str) -> anyhow::Result<Targets> {
    // The OpenTelemetry SDK logs every failed export; `QuietExporter` logs it once.
    let mut levels = Targets::new().with_default(LevelFilter::WARN).with_target("opentelemetry", LevelFilter::OFF);
    levels = levels.with_target("steward", LevelFilter::INFO);
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (target, level) = part.split_once('=').unwrap_or(("steward", part));
        let level: LevelFilter = level.trim().parse().map_err(|_| {
            anyhow::anyhow!(
                "failed to read STEWARD_LOG: `{part}` is not a level: use off, error, warn, info, debug or trace, \
                 or <crate>=<level>, separated by commas"
            )
        })?;
        levels = levels.with_target(target.trim(), level);
    }
    Ok(levels)
}

/// The collector of a signal; its own variables precede those of all signals.
fn read_collector(get: &impl Fn(&str) -> Option<String>, signal: &str) -> Result<Option<CollectorEndpoint>, String> {
    if get(&format!("OTEL_{signal}_EXPORTER")).as_deref() == Some("none") {
        return Ok(None);
    }
    let find_variable = |suffix: &str| {
        let names = [format!("OTEL_EXPORTER_OTLP_{signal}_{suffix}"), format!("OTEL_EXPORTER_OTLP_{suffix}")];
        names.into_iter().find_map(|name| get(&name).map(|value| (name, value)))
    };
    let Some((name, url)) = find_variable("ENDPOINT") else { return Ok(None) };
    let scheme = url.parse::<Uri>().ok().and_then(|uri| uri.scheme().cloned());
    let is_tls = match scheme.as_ref().map(Scheme::as_str) {
        Some("http") => false,
        Some("https") => true,
        Some(_) | None => {
            return Err(format!("{name} is `{url}`, which is not a URL: begin it with http:// or https://"));
        }
    };
    let is_grpc = match find_variable("PROTOCOL") {
        None => false,
        Some((name, protocol)) => match protocol.as_str() {
            "grpc" => true,
            "http/protobuf" => false,
            other => {
                return Err(format!(
                    "{name} is `{other}`, which this build does not support: use grpc or http/protobuf"
                ));
            }
        },
    };
    let transport = match (is_grpc, is_tls) {
        (false, _) => CollectorTransport::Http,
        (true, false) => CollectorTransport::Grpc,
        (true, true) => CollectorTransport::GrpcOverTls,
    };
    let timeout = match find_variable("TIMEOUT") {
        None => TIMEOUT,
        Some((name, text)) => match text.trim().parse() {
            Ok(millis) => Duration::from_millis(millis),
            Err(_) => return Err(format!("{name} is `{text}`, which is no number of milliseconds, as 10000")),
        },
    };
    Ok(Some(CollectorEndpoint { url, transport, timeout }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> TelemetrySettings {
        TelemetrySettings::read(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())).unwrap()
    }

    #[test]
    fn nothing_is_exported_unless_a_variable_asks_for_it() {
        for vars in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "x"), ("OTEL_TRACES_SAMPLER", "always_on")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "  ")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_SDK_DISABLED", "TRUE")],
        ] {
            let settings = read(vars);
            assert_eq!((settings.traces, settings.metrics), (None, None), "{vars:?}");
            assert!(settings.complaints.is_empty());
        }
    }

    #[test]
    fn the_variables_of_one_signal_come_first() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/here"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ]);
        let to = |url: &str, transport| Some(CollectorEndpoint { url: url.into(), transport, timeout: TIMEOUT });
        let (http, over_tls) = (CollectorTransport::Http, CollectorTransport::GrpcOverTls);
        assert_eq!((settings.traces, settings.metrics), (to("https://t/here", http), to("https://c:4317", over_tls)));
        let plain = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
        assert_eq!(read(&plain).traces, to("http://c:4317", CollectorTransport::Grpc));
    }

    #[test]
    fn one_signal_can_be_left_out() {
        let settings = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_METRICS_EXPORTER", "none")]);
        assert!(settings.traces.is_some() && settings.metrics.is_none());
        assert!(read(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c/m")]).traces.is_none());
    }

    #[test]
    fn a_value_that_an_exporter_would_replace_names_its_variable_and_the_fix() {
        for url in ["c:4318", "http://not a url", "http://", " http://c:4318", "ftp://c:4318", "/v1/traces"] {
            let settings = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", url)]);
            assert_eq!((settings.traces, settings.metrics, settings.complaints.len()), (None, None, 2), "{url}");
            let complaint = format!("OTEL_EXPORTER_OTLP_ENDPOINT is `{url}`, which is not a URL");
            assert!(settings.complaints[0].starts_with(&complaint), "{:?}", settings.complaints);
        }
        let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "c/m")];
        let settings = read(&vars);
        assert!(settings.traces.is_some() && settings.metrics.is_none(), "{settings:?}");
        assert!(settings.complaints[0].starts_with("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is `c/m`"), "{settings:?}");
        let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")];
        assert!(read(&vars).complaints[0].contains("use grpc or http/protobuf"));
        let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "10s")];
        let settings = read(&vars);
        assert!(settings.traces.is_none() && settings.metrics.is_some(), "{settings:?}");
        assert!(settings.complaints[0].starts_with("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT is `10s`"), "{settings:?}");
        let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "250")];
        assert_eq!(read(&vars).traces.unwrap().timeout, Duration::from_millis(250));
    }

    #[test]
    fn a_level_is_for_stewards_crates_and_a_list_for_any() {
        use tracing::Level;
        let enabled = |text: &str, target: &str, level| parse_levels(text).unwrap().would_enable(target, &level);
        assert!(enabled("debug", "steward_vault::action::writer", Level::DEBUG));
        assert!(!enabled("debug", "temporalio_sdk_core::worker", Level::INFO));
        assert!(enabled("info", "temporalio_sdk_core::worker", Level::WARN));
        assert!(!enabled("debug", "opentelemetry_sdk", Level::ERROR));
        assert!(enabled("warn,steward_vault=debug,temporalio_sdk_core=info", "steward_vault", Level::DEBUG));
        assert!(!enabled("warn,steward_vault=debug", "steward_activities", Level::INFO));
        assert!(enabled("temporalio_sdk_core=info", "temporalio_sdk_core", Level::INFO));
        assert!(!enabled("off", "steward", Level::ERROR));
        let refused = parse_levels("loud").unwrap_err().to_string();
        assert!(refused.contains("failed to read STEWARD_LOG: `loud` is not a level"), "{refused}");
    }
}
