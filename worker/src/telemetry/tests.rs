//! Runs a whole tick on a real server and checks what a real collector receives.
//!
//! The environment and the global subscriber belong to a process. So each scene runs in a process of its own: this test
//! binary again, which `SCENE` tells what to run.

mod collector;
mod fakes;

use super::*;
use crate::temporal::test_server::{DevServer, connect};
use collector::{Collector, text_of};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::Value;
use std::process::Stdio;
use std::time::Instant;
use steward_workflows::StewardWorkflow;
use steward_workflows::clerk_queue;
use temporalio_client::{ClientOptions, WorkflowStartOptions};
use temporalio_sdk::{Runtime, Worker, WorkerOptions};

const QUEUE: &str = "steward";

/// The log and the report of a scene's process.
struct Played {
    log: String,
    report: Value,
}

impl Played {
    fn lines(&self) -> Vec<Value> {
        self.log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    }
}

/// Plays a scene in a process of its own, with these variables and no others.
async fn play(scene: &str, server: Option<&DevServer>, vars: &[(&str, &str)]) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let child = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "telemetry::tests::a_scene_is_played_only_when_told", "--quiet", "--nocapture"])
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("SCENE", scene)
        .env("REPORT", &report)
        .env("SERVER", server.map_or("", |s| &s.address))
        .envs(vars.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let child = tokio::time::timeout(Duration::from_secs(120), child).await.unwrap().unwrap();
    let log = String::from_utf8(child.stderr).unwrap();
    assert!(child.status.success(), "{log}\n{}", String::from_utf8_lossy(&child.stdout));
    Played { log, report: serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap() }
}

#[test]
fn a_scene_is_played_only_when_told() {
    let Ok(scene) = std::env::var("SCENE") else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let telemetry = init_telemetry(false).unwrap();
        let begun = Instant::now();
        match scene.as_str() {
            "nothing" => {}
            "tick" => tick(&telemetry, false).await,
            "tick of another's" => tick(&telemetry, true).await,
            other => panic!("{other}"),
        }
        let (tick, threads) = (begun.elapsed(), threads());
        let begun = Instant::now();
        telemetry.shutdown().await;
        let flush = begun.elapsed();
        let report =
            serde_json::json!({ "tick": tick.as_secs_f64(), "flush": flush.as_secs_f64(), "threads": threads });
        std::fs::write(std::env::var("REPORT").unwrap(), report.to_string()).unwrap();
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
}

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap().trim().to_owned()).collect()
}

/// Runs one tick of the real workflow with fake activities. It is started by a traced client or, as a schedule does, by
/// a client without traces.
async fn tick(telemetry: &Telemetry, by_another: bool) {
    let options = ClientOptions::new("default").plugins(telemetry.create_client_plugins()).build();
    let address = std::env::var("SERVER").unwrap();
    let client = connect(&address, options).await;
    let starter =
        if by_another { connect(&address, ClientOptions::new("default").build()).await } else { client.clone() };
    let runtime = Runtime::from_current_tokio(telemetry.build_runtime_options().unwrap()).unwrap();
    let vault = WorkerOptions::new(QUEUE).register_workflow::<StewardWorkflow>().unwrap();
    let vault = vault.register_activities(fakes::FakeVault).build();
    let clerk = WorkerOptions::new(clerk_queue(QUEUE)).register_activities(fakes::FakeClerkWorker).build();
    let mut vault = Worker::new(&runtime, client.clone(), vault).unwrap();
    let mut clerk = Worker::new(&runtime, client.clone(), clerk).unwrap();
    let (stop_vault, stop_clerk) = (vault.shutdown_handle(), clerk.shutdown_handle());
    let run = async {
        let options = WorkflowStartOptions::new(QUEUE, format!("tick-{}", std::process::id())).build();
        let tick =
            starter.start_workflow(StewardWorkflow::run, fakes::MATTER.to_owned().into(), options).await.unwrap();
        let report = tick.get_result(Default::default()).await.unwrap();
        stop_vault();
        stop_clerk();
        report
    };
    let (vault, clerk, report) = tokio::join!(vault.run(), clerk.run(), run);
    vault.unwrap();
    clerk.unwrap();
    assert_eq!(report.evaluated.len(), 2, "{report:?}");
}

/// The names of a span and of all above it, itself first.
fn chain(spans: &[Span], name: &str) -> Vec<String> {
    let mut at = spans.iter().find(|span| span.name == name);
    let mut names = Vec::new();
    while let Some(span) = at {
        names.push(span.name.clone());
        at = spans.iter().find(|above| above.span_id == span.parent_span_id);
    }
    names
}

/// Asserts that all spans belong to one trace below `root`, and that the work of activities has the right parent.
fn holds_one_trace(collector: &Collector, root: &str) {
    let spans = collector.spans();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    assert_eq!(roots.iter().map(|span| &span.name).collect::<Vec<_>>(), [root], "{names:?}");
    assert!(spans.iter().all(|span| span.trace_id == roots[0].trace_id), "{names:?}");
    for (name, activity) in [
        ("clerk call", "steward.judge"),
        ("file write", "steward.apply"),
        ("rename", "steward.apply"),
        ("RunActivity:steward.observe", "steward.observe"),
    ] {
        let chain = chain(&spans, name);
        let (run, start) = (format!("RunActivity:{activity}"), format!("StartActivity:{activity}"));
        let above = [run.as_str(), &start, "RunWorkflow:StewardWorkflow", root];
        let above = if root == above[2] { &above[..3] } else { &above[..] };
        assert!(chain[0] == name && chain.join(" < ").ends_with(&above.join(" < ")), "{chain:?}");
    }
    let judged = spans.iter().find(|span| span.name == "RunActivity:steward.judge").unwrap();
    assert_eq!(text_of(&judged.attributes, "task").as_deref(), Some(fakes::JUDGED));
    assert_eq!(text_of(&judged.attributes, "matter").as_deref(), Some(fakes::MATTER));
    assert!(!names.contains(&"activity") && !names.contains(&"RunActivity"), "{names:?}");
}

#[tokio::test]
async fn one_trace_holds_a_tick_from_its_start_to_the_file_write() {
    let (server, collector) = (DevServer::start(), Collector::default());
    let endpoint = collector.serve().await;
    let vars = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_SERVICE_NAME", "vault of anna"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
    ];
    let played = play("tick", Some(&server), &vars).await;
    holds_one_trace(&collector, "StartWorkflow:StewardWorkflow");
    assert_eq!(collector.resource("service.name"), ["vault of anna"]);
    assert_eq!(collector.resource("deployment.environment.name"), ["test"]);
    assert!(played.report["threads"].to_string().contains("OpenTelemetry"), "{}", played.report);

    for (name, attribute) in [
        ("steward.ticks", ("outcome", "evaluating")),
        ("steward.decisions", ("disposition", "shadow")),
        ("steward.applies", ("outcome", "filed")),
        ("steward.clerk.calls", ("outcome", "answered")),
        ("steward.guard.refusals", ("cap", "task")),
    ] {
        assert_eq!(collector.count(name, attribute), Some(1), "{name}");
    }
    let names = collector.metric_names();
    assert!(names.iter().any(|name| name == "steward.clerk.latency"), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("temporal_workflow_")), "{names:?}");

    let lines = played.lines();
    let line =
        |message: &str| lines.iter().find(|line| line["message"] == message).unwrap_or_else(|| panic!("{lines:?}"));
    let asking = line("asking");
    assert_eq!((&asking["task"], &asking["matter"]), (&fakes::JUDGED.into(), &fakes::MATTER.into()));
    assert!(asking["workflow_id"].as_str().unwrap().starts_with("tick-"));
    assert!(line("writing")["action_id"].is_string());
    assert_eq!(line("activity failed")["error"], "no settling today");

    let history = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(history.path(), server.history(asking["workflow_id"].as_str().unwrap())).unwrap();
    let report = crate::preflight::Preflight::new(0).unwrap().check_files(&[history.path().to_owned()]).await.unwrap();
    assert!(report.is_safe(), "a traced run replays without traces: {report:?}");
}

#[tokio::test]
async fn a_collector_that_redirects_leads_nowhere() {
    let (server, collector) = (DevServer::start(), Collector::default());
    let other = collector.serve().await;
    let redirect = async move |uri: axum::http::Uri| axum::response::Redirect::temporary(&format!("{other}{uri}"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let routes = axum::Router::new().fallback(redirect);
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    play("tick", Some(&server), &[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())]).await;
    assert!(collector.spans().is_empty() && collector.metric_names().is_empty());
}

#[tokio::test]
async fn grpc_carries_the_same_and_a_scheduled_tick_is_a_trace_of_its_own() {
    let (server, collector) = (DevServer::start(), Collector::default());
    let endpoint = collector.serve().await;
    let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    play("tick of another's", Some(&server), &vars).await;
    holds_one_trace(&collector, "RunWorkflow:StewardWorkflow");
    assert_eq!(collector.resource("service.name"), ["steward"]);
    assert_eq!(collector.count("steward.ticks", ("outcome", "evaluating")), Some(1));
}

#[tokio::test]
async fn without_a_variable_nothing_is_exported_and_no_exporter_runs() {
    let server = DevServer::start();
    let collector = Collector::default();
    let endpoint = collector.serve().await;
    let disabled = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_SDK_DISABLED", "true")];
    for vars in [&[][..], &disabled] {
        let played = play("tick", Some(&server), vars).await;
        let threads = played.report["threads"].to_string();
        assert!(threads.contains("tokio") && !threads.contains("OpenTelemetry"), "{threads}");
        assert!(played.log.contains("\"workflow_id\":\"tick-"), "the log is there all the same: {}", played.log);
    }
    assert!(collector.spans().is_empty() && collector.metric_names().is_empty());
}

#[tokio::test]
async fn the_sampler_is_the_environments() {
    let (server, collector) = (DevServer::start(), Collector::default());
    let endpoint = collector.serve().await;
    let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_TRACES_SAMPLER", "always_off")];
    play("tick", Some(&server), &vars).await;
    assert!(collector.spans().is_empty(), "{:?}", collector.spans());
    assert!(!collector.metric_names().is_empty());
}

/// Exports far more often than by default, so that a failure occurs many times in a short scene.
const OFTEN: [(&str, &str); 2] = [("OTEL_BSP_SCHEDULE_DELAY", "20"), ("OTEL_METRIC_EXPORT_INTERVAL", "20")];

/// Seconds that pass only if an export of [`UNTIRING`] is awaited, not on a busy machine.
const MAX_DELAY: f64 = 60.0;
/// Lets an exporter wait for a response for 10 minutes.
const UNTIRING: (&str, &str) = ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000");

#[tokio::test]
async fn an_unreachable_collector_is_logged_once_and_delays_nothing() {
    let server = DevServer::start();
    for protocol in ["http/protobuf", "grpc"] {
        let away = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"), ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)];
        let played = play("tick", Some(&server), &[away, OFTEN].concat()).await;
        let lines = played.lines();
        let logged: Vec<&Value> =
            lines.iter().filter(|l| l["message"].as_str().unwrap().contains("collector")).collect();
        assert_eq!(logged.len(), 2, "once for each signal: {logged:?}");
        assert!(lines.iter().all(|l| !l["target"].as_str().unwrap().contains("opentelemetry")), "{lines:?}");
        assert!(played.report["tick"].as_f64().unwrap() < MAX_DELAY, "{}", played.report);
    }
}

#[tokio::test]
async fn a_collector_that_never_answers_delays_nothing() {
    let server = DevServer::start();
    // The kernel accepts the connections, and nothing reads from them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    for protocol in ["http/protobuf", "grpc"] {
        let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)];
        let played = play("tick", Some(&server), &[&vars[..], &OFTEN, &[UNTIRING]].concat()).await;
        assert!(played.report["tick"].as_f64().unwrap() < MAX_DELAY, "{}", played.report);
        assert!(played.report["flush"].as_f64().unwrap() < MAX_DELAY, "{}", played.report);
    }
}

#[tokio::test]
async fn a_mistake_in_the_standard_variables_is_a_warning() {
    let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon")];
    let played = play("nothing", None, &vars).await;
    assert!(played.log.contains("use grpc or http/protobuf"), "{}", played.log);
    assert!(!played.report["threads"].to_string().contains("OpenTelemetry"), "{}", played.report);
    for (name, value, complaint) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:1", "is `127.0.0.1:1`, which is not a URL"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip", "no traces are exported: unsupported compression algorithm 'zip'"),
    ] {
        let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"), (name, value)];
        let played = play("nothing", None, &vars).await;
        assert!(played.log.contains(complaint), "{}", played.log);
        assert!(!played.report["threads"].to_string().contains("OpenTelemetry"), "{}", played.report);
    }
}

#[tokio::test]
async fn a_collector_behind_tls_can_be_named_in_both_protocols() {
    for protocol in ["http/protobuf", "grpc"] {
        let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1"), ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)];
        let played = play("nothing", None, &vars).await;
        assert!(!played.log.contains("are exported"), "{}", played.log);
        assert!(played.report["threads"].to_string().contains("OpenTelemetry"), "{}", played.report);
    }
}

#[tokio::test]
async fn an_endpoint_of_one_signal_is_taken_whole() {
    let (server, collector) = (DevServer::start(), Collector::default());
    let endpoint = collector.serve().await;
    let traces = format!("{endpoint}/v1/traces");
    let vars = [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", traces.as_str()),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ];
    play("tick", Some(&server), &vars).await;
    holds_one_trace(&collector, "StartWorkflow:StewardWorkflow");
    assert!(collector.metric_names().is_empty());
}
