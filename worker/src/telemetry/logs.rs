//! Log lines: for people on a terminal, JSON anywhere else, one event a line in both.
//!
//! An event carries the fields of the spans around it, the inner ones first in precedence, so that
//! `matter`, `task`, `action_id` and `workflow_id` are where one looks for them. Text from outside
//! may be in any value: control characters and what reorders text are escaped, so that a value can
//! neither forge a line nor drive a terminal.

use crate::cli::output;
use chrono::{DateTime, Local, SecondsFormat, Utc};
use serde_json::{Map, Value};
use std::fmt::{self, Write as _};
use std::io::{IsTerminal, Write as _};
use steward_domain::record::plain_text::is_unseen;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogStyle {
    /// For people.
    Lines {
        colour: bool,
    },
    Json,
}

/// Where lines go, one call a line.
type LogSink = Box<dyn Fn(&[u8]) + Send + Sync>;

/// The layer that writes log lines.
pub(super) struct LogLayer {
    style: LogStyle,
    sink: LogSink,
}

impl LogLayer {
    /// To standard error, in the style that fits it.
    pub(super) fn to_stderr() -> Self {
        let style = LogStyle::detect(std::io::stderr().is_terminal(), std::env::var("NO_COLOR").ok().as_deref());
        // There is nowhere to say that the log cannot be written.
        Self::new(style, Box::new(|line| drop(std::io::stderr().lock().write_all(line))))
    }

    pub(super) fn new(style: LogStyle, sink: LogSink) -> Self {
        Self { style, sink }
    }
}

impl LogStyle {
    fn detect(terminal: bool, no_color: Option<&str>) -> Self {
        match (terminal, no_color) {
            (false, _) => Self::Json,
            (true, no_color) => Self::Lines { colour: no_color.unwrap_or_default().is_empty() },
        }
    }
}

impl<S> Layer<S> for LogLayer
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id) {
            let mut fields = LogFields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<LogFields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let mut fields = LogFields::default();
        event.record(&mut fields);
        for span in ctx.event_scope(event).into_iter().flatten() {
            if let Some(around) = span.extensions().get::<LogFields>() {
                fields.add_outer_fields(around);
            }
        }
        let mut line = match self.style {
            LogStyle::Lines { colour } => format_line(event.metadata(), &fields, Local::now(), colour),
            LogStyle::Json => format_json(event.metadata(), fields, Utc::now()),
        };
        line.push('\n');
        (self.sink)(line.as_bytes());
    }
}

/// The fields of an event or a span, in the order they were given.
#[derive(Default)]
struct LogFields {
    message: String,
    rest: Map<String, Value>,
}

impl LogFields {
    fn insert_field(&mut self, field: &Field, value: Value) {
        match field.name() {
            "message" => self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            // How a span is drawn in a trace is no news to a reader of logs.
            name if name.starts_with("otel.") => {}
            name => drop(self.rest.insert(name.to_owned(), value)),
        }
    }

    /// Takes over what a span around says and the inside does not.
    fn add_outer_fields(&mut self, around: &Self) {
        for (name, value) in &around.rest {
            self.rest.entry(name.as_str()).or_insert_with(|| value.clone());
        }
    }
}

impl Visit for LogFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert_field(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert_field(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert_field(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert_field(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert_field(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert_field(field, format!("{value:?}").into());
    }
}

const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

fn format_line(from: &Metadata<'_>, fields: &LogFields, at: DateTime<Local>, colour: bool) -> String {
    let (dim, plain) = if colour { (DIM, PLAIN) } else { ("", "") };
    let (tint, untint) = if colour { (level_colour(*from.level()), PLAIN) } else { ("", "") };
    let mut line = format!("{dim}{}{plain} {tint}{:5}{untint} ", at.format("%H:%M:%S"), from.level());
    if !from.target().starts_with("steward") {
        let crate_name = from.target().split("::").next().unwrap_or_default();
        line += &format!("{dim}{crate_name}:{plain} ");
    }
    line += &output::escape_text(&fields.message);
    for (name, value) in &fields.rest {
        let _ = write!(line, " {dim}{name}={plain}{}", format_value(value));
    }
    line
}

fn level_colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\u{1b}[31m",
        Level::WARN => "\u{1b}[33m",
        Level::INFO => "\u{1b}[32m",
        Level::DEBUG => "\u{1b}[34m",
        Level::TRACE => "\u{1b}[35m",
    }
}

/// A value as a person reads it: bare where it is one word, quoted where it could be taken for more.
fn format_value(value: &Value) -> String {
    let Value::String(text) = value else { return value.to_string() };
    let bare = !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !"\"=".contains(c) && !is_unseen(c));
    if bare {
        return text.clone();
    }
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", output::escape_text(&quoted))
}

fn format_json(from: &Metadata<'_>, fields: LogFields, at: DateTime<Utc>) -> String {
    let mut line = Map::new();
    line.insert("timestamp".into(), at.to_rfc3339_opts(SecondsFormat::Millis, true).into());
    line.insert("level".into(), from.level().as_str().into());
    line.insert("target".into(), from.target().into());
    line.insert("message".into(), fields.message.into());
    for (name, value) in fields.rest {
        line.entry(name).or_insert(value);
    }
    output::escape_json(&Value::Object(line).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt;

    /// What the log says while `work` runs.
    fn log_of(style: LogStyle, work: impl FnOnce()) -> String {
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&written);
        let logs = LogLayer::new(style, Box::new(move |line| sink.lock().unwrap().extend_from_slice(line)));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(logs), work);
        let written = written.lock().unwrap().clone();
        String::from_utf8(written).unwrap()
    }

    const PEOPLE: LogStyle = LogStyle::Lines { colour: false };

    fn a_decision() {
        let outer =
            tracing::info_span!("activity", workflow_id = "al-steward-eagle", task = "task/outer", otel.name = "x");
        let _outer = outer.enter();
        let inner = tracing::info_span!("apply", task = "task/survey", late = tracing::field::Empty).entered();
        inner.record("late", 3);
        tracing::info!(action_id = %"a1b2", confidence = 0.5, reason = "two words", "decision filed");
    }

    #[test]
    fn an_event_carries_the_fields_of_the_spans_around_it() {
        let line = log_of(PEOPLE, a_decision);
        let (_, line) = line.split_once(' ').unwrap();
        assert_eq!(
            line,
            "INFO  decision filed action_id=a1b2 confidence=0.5 reason=\"two words\" task=task/survey late=3 \
             workflow_id=al-steward-eagle\n"
        );
        let json: Value = serde_json::from_str(&log_of(LogStyle::Json, a_decision)).unwrap();
        assert_eq!(json["level"], "INFO");
        assert_eq!(json["target"], "steward::telemetry::logs::tests");
        assert_eq!(json["message"], "decision filed");
        assert_eq!(json["workflow_id"], "al-steward-eagle");
        assert_eq!(json["task"], "task/survey");
        assert_eq!(json["confidence"], 0.5);
        assert!(json["timestamp"].as_str().unwrap().ends_with('Z') && json.get("otel.name").is_none());
    }

    const EVIL: &str =
        "done\nERROR forged task=task/other\r\u{1b}[2J\u{9b}31m\u{7f}\u{85}\u{2028}\u{202e}\t\0 \\\"quote";

    #[test]
    fn text_from_outside_never_forges_a_line() {
        let say = || {
            let span = tracing::info_span!("activity", matter = EVIL, workflow_id = %EVIL).entered();
            tracing::warn!(task = EVIL, reason = %EVIL, debug = ?EVIL, error = %std::io::Error::other(EVIL), "{EVIL}");
            drop(span);
        };
        for style in [PEOPLE, LogStyle::Json] {
            let log = log_of(style, say);
            assert_eq!(log.matches('\n').count(), 1, "{log:?}");
            assert!(log.ends_with('\n'));
            assert!(!log.trim_end_matches('\n').chars().any(is_unseen), "{log:?}");
        }
        let json: Value = serde_json::from_str(&log_of(LogStyle::Json, say)).unwrap();
        for field in ["message", "matter", "workflow_id", "task", "reason", "error"] {
            assert_eq!(json[field], EVIL, "JSON loses nothing: {field}");
        }
    }

    #[test]
    fn text_from_outside_never_forges_a_field() {
        let log = log_of(PEOPLE, || tracing::warn!(reason = %"x task=task/other", "refused"));
        assert!(log.ends_with("refused reason=\"x task=task/other\"\n"), "{log:?}");
        let log = log_of(PEOPLE, || tracing::warn!(reason = "x\" task=\"y", "refused"));
        assert!(log.ends_with("refused reason=\"x\\\" task=\\\"y\"\n"), "{log:?}");
        let log = log_of(LogStyle::Json, || tracing::warn!(level = "INFO", target = "x", timestamp = "y", "refused"));
        assert!(log.contains("\"level\":\"WARN\"") && !log.contains("\"INFO\""), "{log:?}");
    }

    #[test]
    fn colour_is_for_terminals_that_want_it() {
        assert_eq!(LogStyle::detect(true, None), LogStyle::Lines { colour: true });
        assert_eq!(LogStyle::detect(true, Some("")), LogStyle::Lines { colour: true });
        assert_eq!(LogStyle::detect(true, Some("1")), LogStyle::Lines { colour: false });
        assert_eq!(LogStyle::detect(false, None), LogStyle::Json);
        let log = log_of(LogStyle::Lines { colour: true }, a_decision);
        assert!(log.contains("\u{1b}[32mINFO \u{1b}[0m decision filed"), "{log:?}");
        assert!(!log_of(PEOPLE, a_decision).contains('\u{1b}'));
    }

    #[test]
    fn another_crates_line_says_whose_it_is() {
        let log = log_of(PEOPLE, || tracing::warn!(target: "temporalio_sdk_core::worker", "slow"));
        assert!(log.ends_with(" WARN  temporalio_sdk_core: slow\n"), "{log:?}");
    }
}
