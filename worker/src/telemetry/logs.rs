//! Formats log lines: for people on a terminal, as JSON anywhere else, one event per line in both.
//!
//! An event carries the fields of the spans around it. In JSON all fields are on one level, and inner ones win, so that
//! `matter`, `task`, `action_id` and `workflow_id` are easy to find. Any value may hold text from unknown senders. So
//! control characters and characters that reorder text are escaped: a value must not forge a line or a field, or
//! control a terminal.

use crate::cli::output;
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use steward_domain::record::plain_text::is_unseen;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::fmt::time::ChronoLocal;
use tracing_subscriber::registry::LookupSpan;

type LogLayer<S> = Box<dyn Layer<S> + Send + Sync>;

/// Logs to standard error, as lines on a terminal and as JSON anywhere else.
pub(super) fn create_stderr_layer<S>() -> LogLayer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    if !io::stderr().is_terminal() {
        return create_json_layer(io::stderr);
    }
    create_line_layer(io::stderr, wants_colour(std::env::var_os("NO_COLOR").as_deref()))
}

fn wants_colour(no_color: Option<&OsStr>) -> bool {
    no_color.is_none_or(OsStr::is_empty)
}

/// Lines for people.
fn create_line_layer<S, W>(open: impl Fn() -> W + Send + Sync + 'static, colour: bool) -> LogLayer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: Write + 'static,
{
    let fields = debug_fn(|writer, field, value| match field.name() {
        "message" => write!(writer, "{}", output::escape_text(&format!("{value:?}"))),
        name => write!(writer, "{name}={}", format_value(&format!("{value:?}"))),
    });
    // There is no place to report that the log cannot be written.
    let lines = fmt::layer().compact().with_writer(open).with_ansi(colour).log_internal_errors(false);
    lines.with_timer(ChronoLocal::new("%H:%M:%S".into())).fmt_fields(fields.delimited(" ")).boxed()
}

/// One JSON object per line.
fn create_json_layer<S, W>(open: impl Fn() -> W + Send + Sync + 'static) -> LogLayer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: Write + 'static,
{
    let lines = fmt::layer().json().with_current_span(false).log_internal_errors(false);
    lines.with_writer(move || FlatJsonWriter(open())).boxed()
}

/// A value for a person: bare if it is one word, quoted if it could be mistaken for several fields.
fn format_value(text: &str) -> String {
    let bare = !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !"\"=".contains(c) && !is_unseen(c));
    // A value that was recorded as a string is already quoted.
    if bare || is_quoted(text) { output::escape_text(text) } else { output::escape_text(&format!("{text:?}")) }
}

/// Whether a text is one string in quotes: every quote inside it is escaped.
fn is_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let mut escaped = false;
    for c in inner.chars() {
        if c == '"' && !escaped {
            return false;
        }
        escaped = c == '\\' && !escaped;
    }
    !escaped
}

/// Receives each event from the JSON formatter in one call, and writes it flat and escaped.
struct FlatJsonWriter<W>(W);

impl<W: Write> Write for FlatJsonWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = output::escape_json(&Value::Object(flatten_event(serde_json::from_slice(event)?)).to_string());
        self.0.write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Moves the fields of an event and of its spans to the level of its time and target.
///
/// If several have one name, the innermost stays.
fn flatten_event(mut event: Map<String, Value>) -> Map<String, Value> {
    let spans = match event.remove("spans") {
        Some(Value::Array(spans)) => spans,
        Some(_) | None => Vec::new(),
    };
    let without_name = |mut span: Value| {
        span.as_object_mut().and_then(|fields| fields.remove("name"));
        span
    };
    for fields in event.remove("fields").into_iter().chain(spans.into_iter().rev().map(without_name)) {
        let Value::Object(fields) = fields else { continue };
        for (name, value) in fields {
            event.entry(name).or_insert(value);
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Copy, PartialEq)]
    enum LogForm {
        Lines { colour: bool },
        Json,
    }

    /// The log while `work` runs.
    fn log_of(form: LogForm, work: impl FnOnce()) -> String {
        let mut file = tempfile::tempfile().unwrap();
        let log = file.try_clone().unwrap();
        let open = move || log.try_clone().unwrap();
        let layer = match form {
            LogForm::Lines { colour } => create_line_layer(open, colour),
            LogForm::Json => create_json_layer(open),
        };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    const PEOPLE: LogForm = LogForm::Lines { colour: false };

    fn a_decision() {
        let _outer = tracing::info_span!("activity", workflow_id = "al-steward-eagle", task = "task/outer").entered();
        let inner = tracing::info_span!("apply", task = "task/survey", late = tracing::field::Empty).entered();
        inner.record("late", 3);
        tracing::info!(action_id = %"a1b2", confidence = 0.5, reason = "two words", "decision filed");
    }

    #[test]
    fn an_event_carries_the_fields_of_the_spans_around_it() {
        let line = log_of(PEOPLE, a_decision);
        let (time, line) = line.split_once(' ').unwrap();
        assert_eq!(time.len(), "12:00:00".len());
        assert_eq!(
            line,
            " INFO activity:apply: steward::telemetry::logs::tests: decision filed action_id=a1b2 confidence=0.5 \
             reason=\"two words\" workflow_id=\"al-steward-eagle\" task=\"task/outer\" task=\"task/survey\" late=3\n"
        );
        let json: Value = serde_json::from_str(&log_of(LogForm::Json, a_decision)).unwrap();
        assert_eq!(json["level"], "INFO");
        assert_eq!(json["target"], "steward::telemetry::logs::tests");
        assert_eq!(json["message"], "decision filed");
        assert_eq!(json["workflow_id"], "al-steward-eagle");
        assert_eq!(json["task"], "task/survey");
        assert_eq!((&json["confidence"], &json["late"]), (&0.5.into(), &3.into()));
        assert!(json["timestamp"].as_str().unwrap().ends_with('Z'));
        assert_eq!(json.as_object().unwrap().len(), 10, "and nothing else: {json}");
    }

    const EVIL: &str =
        "done\nERROR forged task=task/other\r\u{1b}[2J\u{9b}31m\u{7f}\u{85}\u{2028}\u{202e}\t\0 \\\"quote";

    #[test]
    fn untrusted_text_never_forges_a_line() {
        let say = || {
            let span = tracing::info_span!("activity", matter = EVIL, workflow_id = %EVIL).entered();
            tracing::warn!(task = EVIL, reason = %EVIL, debug = ?EVIL, error = %std::io::Error::other(EVIL), "{EVIL}");
            drop(span);
        };
        for form in [PEOPLE, LogForm::Json] {
            let log = log_of(form, say);
            assert_eq!(log.matches('\n').count(), 1, "{log:?}");
            assert!(log.ends_with('\n'));
            assert!(!log.trim_end_matches('\n').chars().any(is_unseen), "{log:?}");
        }
        let coloured = log_of(LogForm::Lines { colour: true }, say);
        assert!(coloured.matches('\n').count() == 1 && !coloured.contains("\u{1b}[2J"), "{coloured:?}");
        let json: Value = serde_json::from_str(&log_of(LogForm::Json, say)).unwrap();
        for field in ["message", "matter", "workflow_id", "task", "reason", "error"] {
            assert_eq!(json[field], EVIL, "JSON loses nothing: {field}");
        }
    }

    #[test]
    fn untrusted_text_never_forges_a_field() {
        let log = log_of(PEOPLE, || tracing::warn!(reason = %"x task=task/other", "refused"));
        assert!(log.ends_with("refused reason=\"x task=task/other\"\n"), "{log:?}");
        let log = log_of(PEOPLE, || tracing::warn!(reason = "x\" task=\"y", "refused"));
        assert!(log.ends_with("refused reason=\"x\\\" task=\\\"y\"\n"), "{log:?}");
        for quoted in ["\"x\" task=\"y\"", "\"x\\", "\"x\\\\\" task=\"y\"", "\""] {
            let log = log_of(PEOPLE, || tracing::warn!(reason = %quoted, "refused"));
            assert!(log.ends_with(&format!("refused reason={quoted:?}\n")), "{log:?}");
        }
        let log = log_of(LogForm::Json, || tracing::warn!(level = "INFO", target = "x", timestamp = "y", "refused"));
        assert!(log.contains("\"level\":\"WARN\"") && !log.contains("\"INFO\""), "{log:?}");
    }

    #[test]
    fn colour_is_for_terminals_that_want_it() {
        assert!(wants_colour(None) && wants_colour(Some(OsStr::new(""))) && !wants_colour(Some(OsStr::new("1"))));
        let log = log_of(LogForm::Lines { colour: true }, a_decision);
        assert!(log.contains("\u{1b}[32m INFO\u{1b}[0m"), "{log:?}");
        assert!(!log_of(PEOPLE, a_decision).contains('\u{1b}'));
    }

    #[test]
    fn a_line_of_another_crate_names_its_target() {
        let log = log_of(PEOPLE, || tracing::warn!(target: "temporalio_sdk_core::worker", "slow"));
        assert!(log.ends_with(" WARN temporalio_sdk_core::worker: slow\n"), "{log:?}");
    }
}
