//! A stream event: one raw event from outside, verbatim.
//!
//! Adapters write events and nothing else. The extraction reads each event once and writes signals. The text is
//! untrusted. It is stored escaped, so that an editor shows the words and renders no markup, and it is read back
//! unchanged. An event's name comes from its source's id and its content, so a second delivery is the same event.

use crate::action::plan::ContentHash;
use crate::record::entity::{RecordError, check_type, invalid_value, read_instant, read_text, require_text};
use crate::record::frontmatter::{self, RecordFields};
use crate::record::path::{PathError, RecordKind, RecordPath, is_slug};
use crate::record::plain_text;
use crate::signals::signal::MAX_SOURCE_CHARS;
use crate::time;
use chrono::{DateTime, Datelike, NaiveDateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;

/// The longest text of an event that is kept, in bytes. A longer one is cut and marked.
///
/// The words of a mail take some kilobytes. Escaping at most doubles them, and a record may have 1 MiB.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;
/// The longest header (author, subject, id) that is kept, in characters.
const MAX_HEADER_CHARS: usize = 300;

/// The years that are written with four digits. A time in any other year is ignored.
const YEARS: RangeInclusive<i32> = 1..=9_999;

/// How often an event is tried before it is parked (S3-28).
pub const MAX_TRIES: u32 = 3;

/// The status of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EventStatus {
    /// Not extracted yet. An earlier try may have failed.
    New,
    /// Its signals are written.
    Extracted,
    /// Not tried again. The reason says why.
    Parked,
}

impl EventStatus {
    /// The spelling in a record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One raw event from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEvent {
    /// The stream's name: a slug, and the folder below `stream/`.
    pub source: String,
    /// The source's own id of the event (a Message-ID, a delivery id). It has at most 300 characters.
    pub source_id: String,
    /// The source for trust, `<kind>:<who>`, as in `mail:billing@vendor.example`.
    pub pattern: String,
    /// When it happened, as the source says, in the years 1 to 9999.
    pub origin_at: Option<DateTime<Utc>>,
    pub received_at: DateTime<Utc>,
    pub author: Option<String>,
    pub subject: Option<String>,
    /// The words, with `\n` between lines and without other invisible characters.
    pub text: String,
    /// Whether the text was too long and was cut.
    pub cut: bool,
    pub status: EventStatus,
    /// How often its extraction failed.
    pub tries: u32,
    pub reason: Option<String>,
}

/// An event as an adapter received it.
#[derive(Clone, Debug, Default)]
pub struct IncomingEvent<'a> {
    pub source_id: &'a str,
    /// `<kind>:<who>`.
    pub pattern: &'a str,
    pub origin_at: Option<DateTime<Utc>>,
    pub author: Option<&'a str>,
    pub subject: Option<&'a str>,
    pub text: &'a str,
}

impl StreamEvent {
    /// Ingests an event.
    ///
    /// Headers become one line, and the text keeps its lines. Characters that hide text or turn its direction become
    /// spaces.
    #[must_use]
    pub fn new(source: &str, incoming: &IncomingEvent<'_>, received_at: DateTime<Utc>) -> Self {
        let header = |text: &str| plain_text::to_one_line(text).chars().take(MAX_HEADER_CHARS).collect::<String>();
        let optional_header = |text: Option<&str>| text.map(header).filter(|t| !t.is_empty());
        let (text, cut) = normalize_text(incoming.text);
        let pattern: String = header(incoming.pattern).chars().take(MAX_SOURCE_CHARS).collect();
        Self {
            source: source.to_owned(),
            source_id: header(incoming.source_id),
            pattern,
            origin_at: incoming.origin_at.filter(|at| YEARS.contains(&at.year())).map(time::truncate_to_millis),
            received_at: time::truncate_to_millis(received_at),
            author: optional_header(incoming.author),
            subject: optional_header(incoming.subject),
            text,
            cut,
            status: EventStatus::New,
            tries: 0,
            reason: None,
        }
    }

    /// The path of its file: `stream/<source>/<origin>-<hash16>.md`.
    ///
    /// The hash covers the source's id, the pattern, the subject and the text. So a second delivery has the same name.
    /// The id alone would not do: anybody could silence a message by sending its id first.
    ///
    /// # Errors
    /// [`PathError`] if the stream's name is not a slug.
    pub fn record_path(&self) -> Result<RecordPath, PathError> {
        let parts = [self.source_id.as_str(), &self.pattern, self.subject.as_deref().unwrap_or_default(), &self.text];
        let hash = ContentHash::hash_bytes(parts.join("\u{0}").as_bytes());
        let at = self.origin_at.map(|at| format!("{}-", time::format_compact(at))).unwrap_or_default();
        RecordPath::new(RecordKind::Stream, &format!("{}/{at}{}", self.source, &hash.as_str()[..16]))
    }

    /// Renders the event's file.
    #[must_use]
    pub fn render(&self) -> String {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        put("type", json!("stream"));
        put("source", json!(self.source));
        put("source_id", json!(self.source_id));
        put("pattern", json!(self.pattern));
        put("origin_at", json!(self.origin_at.map(time::format_millis)));
        put("received_at", json!(time::format_millis(self.received_at)));
        put("author", json!(self.author));
        put("subject", json!(self.subject));
        put("cut", json!(self.cut));
        put("status", json!(self.status.as_str()));
        put("tries", json!(self.tries));
        put("reason", json!(self.reason));
        let body: String = self.text.lines().map(|line| format!("{}\n", plain_text::escape_markdown(line))).collect();
        frontmatter::render_document(&fields, &body)
    }

    /// Reads an event back.
    ///
    /// # Errors
    /// [`RecordError`] naming the field.
    pub fn read(fields: &RecordFields, body: &str) -> Result<Self, RecordError> {
        let fields = &frontmatter::read_own_fields(fields);
        check_type(fields, RecordKind::Stream)?;
        let source = require_text(fields, "source")?;
        if !is_slug(&source) {
            return Err(invalid_value("source", &source, "the name of a stream"));
        }
        let status = require_text(fields, "status")?;
        let known = [EventStatus::New, EventStatus::Extracted, EventStatus::Parked];
        let status = known.into_iter().find(|s| s.as_str() == status.trim());
        Ok(Self {
            source,
            source_id: require_text(fields, "source_id")?,
            pattern: require_text(fields, "pattern")?,
            origin_at: read_instant(fields, "origin_at")?,
            received_at: read_instant(fields, "received_at")?.ok_or(RecordError::Missing { field: "received_at" })?,
            author: read_text(fields, "author")?,
            subject: read_text(fields, "subject")?,
            text: body.lines().map(plain_text::unescape_markdown).collect::<Vec<_>>().join("\n"),
            cut: fields.get("cut").and_then(Value::as_bool).unwrap_or(false),
            status: status.ok_or_else(|| invalid_value("status", "?", "`new`, `extracted` or `parked`"))?,
            tries: fields.get("tries").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
            reason: read_text(fields, "reason")?,
        })
    }
}

/// When an event happened: when its source says, as the name of its file has it, but never after it was received.
///
/// A sender chooses the time of a source. One in the future would keep the event at the top of every list.
#[must_use]
pub fn find_event_time(path: &RecordPath, received_at: DateTime<Utc>) -> DateTime<Utc> {
    let name = path.slug().rsplit('/').next().unwrap_or_default();
    let stated = name.split_once('-').and_then(|(at, _)| NaiveDateTime::parse_from_str(at, "%Y%m%dT%H%M%S%3fZ").ok());
    stated.map_or(received_at, |at| at.and_utc().min(received_at))
}

/// The text line by line, without invisible characters, and whether it was cut to [`MAX_TEXT_BYTES`].
fn normalize_text(text: &str) -> (String, bool) {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let unified = text[..end].replace("\r\n", "\n").replace('\r', "\n");
    let kept: Vec<String> = unified.lines().map(plain_text::to_one_line).collect();
    (kept.join("\n").trim().to_owned(), end < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at() -> DateTime<Utc> {
        time::parse("2026-11-20T08:00:00.120Z").unwrap()
    }

    fn event(text: &str) -> StreamEvent {
        let incoming = IncomingEvent { source_id: "<a@b>", pattern: "mail:a@b", text, ..IncomingEvent::default() };
        StreamEvent::new("mail", &incoming, at())
    }

    fn read_back(event: &StreamEvent) -> StreamEvent {
        let document = frontmatter::read_document(event.render().as_bytes()).unwrap();
        StreamEvent::read(document.fields(), document.body()).unwrap()
    }

    #[test]
    fn what_comes_twice_has_one_name_and_other_content_another() {
        let mut later = event("paid");
        later.received_at += chrono::TimeDelta::hours(1);
        assert_eq!(event("paid").record_path(), later.record_path());
        assert_ne!(event("paid").record_path(), event("open").record_path());
        let other = StreamEvent { source_id: "<c@d>".into(), ..event("paid") };
        assert_ne!(event("paid").record_path(), other.record_path());
        let copied = StreamEvent { pattern: "mail:eve@b".into(), ..event("paid") };
        assert_ne!(event("paid").record_path(), copied.record_path(), "who sends a copy first silences nobody");
    }

    #[test]
    fn a_stream_that_is_no_folder_name_has_no_path() {
        assert!(StreamEvent { source: "../x".into(), ..event("a") }.record_path().is_err());
        assert!(StreamEvent { source: "a/b".into(), ..event("a") }.record_path().is_err());
    }

    #[test]
    fn a_time_that_no_calendar_has_is_none_and_the_event_has_its_name() {
        for (text, kept) in [
            ("9999-12-31T23:59:59-05:00", false),
            ("0000-01-01T00:00:00Z", false),
            ("9999-12-31T23:59:59Z", true),
            ("0001-01-01T00:00:00Z", true),
        ] {
            let incoming =
                IncomingEvent { source_id: "1", text: "x", origin_at: time::parse(text), ..IncomingEvent::default() };
            assert!(incoming.origin_at.is_some(), "{text}");
            let event = StreamEvent::new("mail", &incoming, at());
            assert_eq!((event.origin_at.is_some(), event.record_path().is_ok()), (kept, true), "{text}");
            assert_eq!(read_back(&StreamEvent { pattern: "x:y".into(), ..event.clone() }).origin_at, event.origin_at);
        }
    }

    #[test]
    fn an_event_happened_when_its_source_says_but_not_after_it_came() {
        let time_of = |origin: Option<&str>| {
            let origin_at = origin.and_then(time::parse);
            let event = StreamEvent { origin_at, ..event("x") };
            time::format_seconds(find_event_time(&event.record_path().unwrap(), at()))
        };
        assert_eq!(time_of(Some("2026-11-19T10:00:00Z")), "2026-11-19T10:00:00Z");
        assert_eq!(time_of(Some("2031-01-01T00:00:00Z")), "2026-11-20T08:00:00Z");
        assert_eq!(time_of(None), "2026-11-20T08:00:00Z");
        let renamed = RecordPath::parse("stream/mail/notes-of-mine.md").unwrap();
        assert_eq!(find_event_time(&renamed, at()), at());
    }

    #[test]
    fn a_text_without_end_is_cut_and_says_so() {
        let event = event(&"ä*".repeat(MAX_TEXT_BYTES));
        assert!(event.cut && event.text.len() <= MAX_TEXT_BYTES);
        assert_eq!(read_back(&event), event);
    }

    #[test]
    fn what_unknown_senders_write_shows_as_words() {
        let text = "# Big\n---\n![[secret]]\n<script>x</script>\n- [ ] do\n\n    deep\n1. one";
        let file = event(text).render();
        let body = frontmatter::read_document(file.as_bytes()).unwrap().body().to_owned();
        for markup in ["\n# ", "\n---", "![[", "\n<script", "x</", "\n- ["] {
            assert!(!format!("\n{body}").contains(markup), "{markup:?} in {body}");
        }
    }

    proptest! {
        #[test]
        fn any_event_reads_back_as_it_was_written(text in "[\\PC\n\r\t\u{202e}\\\\*_#<>-]{0,200}", subject in "\\PC{0,40}") {
            let incoming = IncomingEvent {
                source_id: "1", pattern: "x:y", subject: Some(&subject), text: &text, origin_at: Some(at()), ..IncomingEvent::default()
            };
            let event = StreamEvent::new("inbox", &incoming, at());
            prop_assert_eq!(read_back(&event), event);
        }
    }
}
