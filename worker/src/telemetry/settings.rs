//! What the environment says about telemetry.
//!
//! `STEWARD_LOG` is ours, and a mistake in it is an error. The `OTEL_…` variables are everybody's:
//! a mistake in them is a complaint, and the signal stays off. Only what decides whether and where
//! to export is read here; samplers, headers, intervals, limits and resource attributes are read
//! by the OpenTelemetry SDK itself.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// Where one signal goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CollectorEndpoint {
    pub(super) protocol: OtlpProtocol,
    /// The whole URL; for [`OtlpProtocol::Http`] with the path of the signal.
    pub(super) url: String,
}

/// How a collector is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtlpProtocol {
    Grpc,
    /// `http/protobuf`, the default.
    Http,
}

/// What the environment asks for.
#[derive(Debug)]
pub(super) struct TelemetrySettings {
    /// What is logged.
    pub(super) levels: Targets,
    /// `None` keeps the signal off.
    pub(super) traces: Option<CollectorEndpoint>,
    pub(super) metrics: Option<CollectorEndpoint>,
    /// What was asked for and cannot be had; each names its variable and the mend.
    pub(super) complaints: Vec<String>,
}

impl TelemetrySettings {
    /// Reads the variables through `get`.
    ///
    /// # Errors
    /// When `STEWARD_LOG` is not understood.
    pub(super) fn read(get: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let get = |name: &str| get(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        let levels = parse_levels(get("STEWARD_LOG").as_deref().unwrap_or("info"))?;
        let mut settings = Self { levels, traces: None, metrics: None, complaints: Vec::new() };
        if get("OTEL_SDK_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true")) {
            return Ok(settings);
        }
        let mut of = |signal| {
            read_collector(&get, signal).unwrap_or_else(|complaint| {
                settings.complaints.push(complaint);
                None
            })
        };
        (settings.traces, settings.metrics) = (of("TRACES"), of("METRICS"));
        Ok(settings)
    }
}

/// A level for our own crates (the others stay at warn), or a list like
/// `info,steward_vault=debug,temporalio_sdk_core=info`.
fn parse_levels(text: &str) -> anyhow::Result<Targets> {
    // The OpenTelemetry SDK repeats itself at every failed export; our exporters say it once.
    let mut levels = Targets::new().with_default(LevelFilter::WARN).with_target("opentelemetry", LevelFilter::OFF);
    levels = levels.with_target("steward", LevelFilter::INFO);
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (target, level) = part.split_once('=').unwrap_or(("steward", part));
        let level: LevelFilter = level.trim().parse().map_err(|_| {
            anyhow::anyhow!(
                "failed to read STEWARD_LOG: `{part}` is not a level: say off, error, warn, info, debug or trace, \
                 or <crate>=<level>, separated by commas"
            )
        })?;
        levels = levels.with_target(target.trim(), level);
    }
    Ok(levels)
}

fn read_collector(get: &impl Fn(&str) -> Option<String>, signal: &str) -> Result<Option<CollectorEndpoint>, String> {
    if get(&format!("OTEL_{signal}_EXPORTER")).as_deref() == Some("none") {
        return Ok(None);
    }
    let own = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
    let (name, url, whole) = match (get(&own), get("OTEL_EXPORTER_OTLP_ENDPOINT")) {
        (Some(url), _) => (own.as_str(), url, true),
        (None, Some(url)) => ("OTEL_EXPORTER_OTLP_ENDPOINT", url, false),
        (None, None) => return Ok(None),
    };
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(format!("{name} is `{url}`, which is no URL: begin it with http:// or https://"));
    }
    let protocol = read_protocol(get, signal)?;
    let url = match protocol {
        OtlpProtocol::Http if !whole => format!("{}/v1/{}", url.trim_end_matches('/'), signal.to_ascii_lowercase()),
        OtlpProtocol::Http | OtlpProtocol::Grpc => url,
    };
    Ok(Some(CollectorEndpoint { protocol, url }))
}

fn read_protocol(get: &impl Fn(&str) -> Option<String>, signal: &str) -> Result<OtlpProtocol, String> {
    let own = format!("OTEL_EXPORTER_OTLP_{signal}_PROTOCOL");
    for name in [own.as_str(), "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        return match get(name).as_deref() {
            None => continue,
            Some("grpc") => Ok(OtlpProtocol::Grpc),
            Some("http/protobuf") => Ok(OtlpProtocol::Http),
            Some(other) => {
                Err(format!("{name} is `{other}`, which this build does not speak: say grpc or http/protobuf"))
            }
        };
    }
    Ok(OtlpProtocol::Http)
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
    fn one_endpoint_serves_both_signals_each_under_its_path() {
        let settings = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")]);
        let at =
            |path: &str| Some(CollectorEndpoint { protocol: OtlpProtocol::Http, url: format!("http://c:4318{path}") });
        assert_eq!(settings.traces, at("/v1/traces"));
        assert_eq!(settings.metrics, at("/v1/metrics"));
    }

    #[test]
    fn a_signals_own_variables_go_first_and_its_url_is_taken_whole() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/here"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ]);
        assert_eq!(
            settings.traces,
            Some(CollectorEndpoint { protocol: OtlpProtocol::Http, url: "https://t/here".into() })
        );
        assert_eq!(
            settings.metrics,
            Some(CollectorEndpoint { protocol: OtlpProtocol::Grpc, url: "http://c:4317".into() })
        );
    }

    #[test]
    fn one_signal_can_be_left_out() {
        let settings = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_METRICS_EXPORTER", "none")]);
        assert!(settings.traces.is_some() && settings.metrics.is_none());
        assert!(read(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c/m")]).traces.is_none());
    }

    #[test]
    fn what_cannot_be_had_names_its_variable_and_the_mend() {
        let settings = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318")]);
        assert_eq!(settings.traces, None);
        assert!(settings.complaints[0].contains("OTEL_EXPORTER_OTLP_ENDPOINT is `c:4318`"), "{settings:?}");
        let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")];
        assert!(read(&vars).complaints[0].contains("say grpc or http/protobuf"));
    }

    #[test]
    fn a_level_is_for_our_crates_and_a_list_for_any() {
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
