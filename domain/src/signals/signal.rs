//! A signal: one fact about a task or a matter, with its verbatim quote and its source.
//!
//! People and other tools may write signals too. So reading is strict for fields on which a decision depends, and
//! lenient for all others. A signal that [`Signal::render`] wrote reads back equal. The steward and the router read
//! signals. The text of a signal must never be followed as an instruction.

use crate::action::mutation::Mutation;
use crate::action::plan::ContentHash;
use crate::record::entity::{
    RecordError, RecordFaults, RecordState, SignalEffect, check_type, invalid_value, read_confidence, read_effect,
    read_instant, read_text, require_text,
};
use crate::record::frontmatter::{self, RecordFields};
use crate::record::link::NoteNames;
use crate::record::moves::{MoveHistory, NoteFinder, PathTime};
use crate::record::path::{PathError, RecordKind, RecordPath, parse_link};
use crate::record::plain_text;
use crate::time;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The longest quote that is kept, in characters (S3-30).
pub const MAX_QUOTE_CHARS: usize = 200;
/// The longest excerpt of a quote that a clerk sees, in characters (S3-22).
pub const MAX_NOTE_CHARS: usize = 50;
/// The longest name of a source, in characters. Every record that cites the source repeats the name.
pub const MAX_SOURCE_CHARS: usize = 200;
/// The longest part of a source's name that is used in its instinct's file name, in characters.
const KEY_CHARS: usize = 80;
/// The most candidates that a signal keeps (S3-30).
pub const MAX_CANDIDATES: usize = 5;

/// The key of a source for trust and budgets. It is also the name of its instinct's file.
///
/// `Bank` becomes `bank`. If letters, digits and hyphens cannot spell the whole name, as in `mail:ann@b.example`,
/// the first 16 digits of its SHA-256 follow, so that no two names share a file.
#[must_use]
pub fn source_key(name: &str) -> String {
    let name = name.trim().to_lowercase();
    let slug: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(KEY_CHARS).collect();
    if slug == name && !slug.is_empty() && !slug.starts_with('-') {
        return slug;
    }
    let (prefix, hash) = (slug.trim_matches('-'), ContentHash::hash_bytes(name.as_bytes()));
    format!("{}-{}", if prefix.is_empty() { "source" } else { prefix }, &hash.as_str()[..16])
}

/// The status of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SignalStatus {
    /// Not applied yet.
    Unrouted,
    /// Applied, by Steward or by hand.
    Applied,
    /// It will not be applied. The reason says why.
    Skipped,
    /// It waits for a human, or for a mode in which it may act.
    Pending,
    /// It asks the principal to do something.
    ActionPending,
}

impl SignalStatus {
    /// The spelling in a record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Parses a status in any case. An unknown one counts as unrouted.
    #[must_use]
    pub fn parse_or_unrouted(text: &str) -> Self {
        text.trim().to_ascii_lowercase().parse().unwrap_or(Self::Unrouted)
    }
}

/// A record that a signal may be about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetCandidate {
    pub path: RecordPath,
    /// 0 to 1.
    pub score: f64,
}

/// One fact about a task or a matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    pub created: DateTime<Utc>,
    /// The stream event from which it was read, or `None` if a human or another tool wrote it.
    pub source_event: Option<RecordPath>,
    /// When it happened, as its source says.
    pub origin_at: Option<DateTime<Utc>>,
    /// The pattern of its source, as in `mail:billing@vendor.example`. It has at most 200 characters.
    pub source_type: String,
    /// The verbatim quote. At most 200 characters are kept.
    pub raw_quote: String,
    /// `None` if the target is ambiguous. Then nothing uses the signal until a human names a target.
    pub target: Option<RecordPath>,
    /// Whether it is about a task or a matter.
    pub target_kind: RecordKind,
    /// 0 to 1.
    pub target_confidence: f64,
    /// The records that it may be about, the likeliest first. There are at most 5.
    pub candidates: Vec<TargetCandidate>,
    pub effect: SignalEffect,
    /// `None` if the signal proposes no valid change.
    pub proposal: Option<Mutation>,
    /// 0 to 1.
    pub effect_confidence: f64,
    /// The words of the clerk or tool that extracted the signal. Untrusted.
    pub reasoning: String,
    pub status: SignalStatus,
    /// Why the status is what it is.
    pub reason: Option<String>,
}

impl Signal {
    /// Reads a signal's frontmatter.
    ///
    /// # Errors
    /// [`RecordFaults`] naming each field.
    pub fn read(fields: &RecordFields) -> Result<Self, RecordFaults> {
        let fields = &frontmatter::read_own_fields(fields);
        let mut faults = RecordFaults::default();
        faults.check_field(check_type(fields, RecordKind::Signal));
        let created = read_instant(fields, "created");
        let created = faults.check_field(created.and_then(|at| at.ok_or(RecordError::Missing { field: "created" })));
        let source_event = faults.check_field(read_text(fields, "source_event_path"));
        let origin_at = faults.check_field(read_text(fields, "origin_at"));
        let source_type = faults.check_field(read_source_type(fields));
        let raw_quote = faults.check_field(require_text(fields, "raw_quote"));
        let target_kind = faults.check_field(read_target_kind(fields));
        let candidates = read_candidates(fields);
        let target = faults.check_field(read_target(fields, target_kind, !candidates.is_empty()));
        let target_confidence = faults.check_field(read_confidence(fields, "target_confidence"));
        let effect = faults.check_field(read_effect(fields));
        let effect_confidence = faults.check_field(read_confidence(fields, "effect_confidence"));
        let status = faults.check_field(read_text(fields, "status"));
        let signal = || {
            Some(Self {
                created: created?,
                source_event: source_event?.and_then(|t| RecordPath::parse(t.trim()).ok()),
                origin_at: origin_at?.and_then(|t| time::parse(&t)),
                source_type: source_type?,
                raw_quote: raw_quote?.chars().take(MAX_QUOTE_CHARS).collect(),
                target: target?,
                target_kind: target_kind?,
                target_confidence: target_confidence?,
                candidates,
                effect: effect?,
                proposal: fields.get("mutation_proposal").and_then(|p| Mutation::from_proposal(p).ok()),
                effect_confidence: effect_confidence?,
                reasoning: read_text(fields, "reasoning").ok().flatten().unwrap_or_default(),
                status: SignalStatus::parse_or_unrouted(&status?.unwrap_or_default()),
                reason: read_text(fields, "reason").ok().flatten(),
            })
        };
        faults.finish_record(signal())
    }

    /// Finds the notes that the signal names. A name that fits no single note stays the path that it spells.
    #[must_use]
    pub fn resolve_links(mut self, names: &NoteNames, moves: &MoveHistory) -> Self {
        let notes = NoteFinder { names, moves, time: PathTime::At(self.created) };
        let find = |kind, note: &RecordPath| notes.find_spelled(kind, note).unwrap_or_else(|| note.clone());
        // What was said about a note that is no more says nothing about the one at its path.
        self.target = self.target.filter(|target| !notes.has_ended(target));
        self.proposal = self.proposal.filter(|p| p.new_parent().is_none_or(|matter| !notes.has_ended(matter)));
        self.target = self.target.map(|target| find(self.target_kind, &target));
        self.proposal = self.proposal.map(|proposal| proposal.resolve_links(notes));
        self
    }

    /// Renders the signal's file.
    #[must_use]
    pub fn render(&self) -> String {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        put("type", json!("signal"));
        put("created", json!(time::format_millis(self.created)));
        put("source_event_path", json!(self.source_event));
        put("origin_at", json!(self.origin_at.map(time::format_millis)));
        put("source_type", json!(self.source_type));
        put("raw_quote", json!(self.raw_quote));
        put("target_kind", json!(self.target_kind));
        put("target_path", json!(self.target));
        put("target_confidence", json!(self.target_confidence));
        put("target_candidates", json!(self.candidates));
        put("effect", json!(self.effect));
        put("mutation_proposal", self.proposal.as_ref().map_or(Value::Null, Mutation::to_proposal));
        put("effect_confidence", json!(self.effect_confidence));
        put("reasoning", json!(self.reasoning));
        put("status", json!(self.status.as_str()));
        put("reason", json!(self.reason));
        frontmatter::render_document(&fields, &format!("> {}\n", plain_text::escape_one_line(&self.raw_quote)))
    }

    /// The path of the signal for this quote of this event: `signal/<ts>-<hash8>.md`.
    ///
    /// The same event and quote always give the same name (S3-28). So `created` must be the event's own instant.
    ///
    /// # Errors
    /// [`PathError`]. It cannot happen for a checked path.
    pub fn record_path(event: &RecordPath, quote: &str, created: DateTime<Utc>) -> Result<RecordPath, PathError> {
        let hash = ContentHash::hash_bytes(format!("{event}\n{quote}").as_bytes());
        RecordPath::new(RecordKind::Signal, &format!("{}-{}", time::format_compact(created), &hash.as_str()[..8]))
    }

    /// The proposed state, if the proposal is a `state_change`.
    #[must_use]
    pub fn proposed_state(&self) -> Option<RecordState> {
        match self.proposal {
            Some(Mutation::StateChange { to }) => Some(to),
            Some(Mutation::ContextEdit { .. } | Mutation::ParentMatter { .. } | Mutation::Related { .. }) | None => {
                None
            }
        }
    }

    /// Whether it is applied already, by Steward or by hand.
    #[must_use]
    pub fn is_applied(&self) -> bool {
        self.status == SignalStatus::Applied
    }

    /// The excerpt of the quote that a clerk sees: at most 50 characters, verbatim.
    #[must_use]
    pub fn clerk_note(&self) -> String {
        self.raw_quote.chars().take(MAX_NOTE_CHARS).collect()
    }
}

fn read_target_kind(fields: &RecordFields) -> Result<RecordKind, RecordError> {
    match require_text(fields, "target_kind")?.as_str() {
        "task" => Ok(RecordKind::Task),
        "matter" => Ok(RecordKind::Matter),
        other => Err(invalid_value("target_kind", other, "`task` or `matter`")),
    }
}

fn read_source_type(fields: &RecordFields) -> Result<String, RecordError> {
    let source_type = require_text(fields, "source_type")?;
    if source_type.trim().is_empty() || source_type.chars().count() > MAX_SOURCE_CHARS {
        return Err(invalid_value("source_type", &source_type, "1 to 200 characters"));
    }
    Ok(source_type)
}

/// The target, or `None` for an ambiguous one. A signal without candidates must name a target. Without a kind its link
/// cannot be read.
fn read_target(
    fields: &RecordFields,
    kind: Option<RecordKind>,
    has_candidates: bool,
) -> Result<Option<RecordPath>, RecordError> {
    match read_text(fields, "target_path")? {
        Some(target) => kind.map(|kind| read_target_link(kind, "target_path", &target)).transpose(),
        None if has_candidates => Ok(None),
        None => Err(RecordError::Missing { field: "target_path" }),
    }
}

fn read_target_link(kind: RecordKind, field: &'static str, link: &str) -> Result<RecordPath, RecordError> {
    parse_link(kind, link).map_err(|source| RecordError::Link { field, source })
}

/// The valid candidates. Malformed ones are ignored, because people may write the list by hand.
fn read_candidates(fields: &RecordFields) -> Vec<TargetCandidate> {
    let list = fields.get("target_candidates").and_then(Value::as_array);
    let read = |one: &Value| serde_json::from_value(one.clone()).ok();
    list.into_iter().flatten().filter_map(read).take(MAX_CANDIDATES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal() -> Signal {
        Signal {
            created: time::parse("2026-11-20T08:00:00.120Z").unwrap(),
            source_event: Some(RecordPath::parse("stream/mail/20261120T080000Z-abc.md").unwrap()),
            origin_at: time::parse("2026-11-20T07:59:00Z"),
            source_type: "mail:billing@vendor.example".into(),
            raw_quote: "Your invoice 4711 was *paid*: thank you! [[task/x]] \"ok\"".into(),
            target: Some(RecordPath::parse("task/pay.md").unwrap()),
            target_kind: RecordKind::Task,
            target_confidence: 0.9,
            candidates: vec![TargetCandidate { path: RecordPath::parse("task/pay.md").unwrap(), score: 0.9 }],
            effect: SignalEffect::Mutation,
            proposal: Some(Mutation::StateChange { to: RecordState::Done }),
            effect_confidence: 0.97,
            reasoning: "it says: paid # really".into(),
            status: SignalStatus::Unrouted,
            reason: None,
        }
    }

    fn read_back(signal: &Signal) -> Signal {
        let text = signal.render();
        Signal::read(frontmatter::read_document(text.as_bytes()).unwrap().fields()).unwrap()
    }

    #[test]
    fn a_signal_reads_back_as_it_was_written() {
        let matter = Some(RecordPath::parse("matter/farm.md").unwrap());
        let all = [
            signal(),
            Signal { target: None, status: SignalStatus::Skipped, reason: Some("ambiguous".into()), ..signal() },
            Signal {
                target: matter,
                target_kind: RecordKind::Matter,
                proposal: None,
                origin_at: None,
                source_event: None,
                ..signal()
            },
        ];
        for signal in all {
            assert_eq!(read_back(&signal), signal);
        }
    }

    #[test]
    fn a_signal_names_its_notes_in_any_case_and_an_unknown_name_stays() {
        let mut names = NoteNames::default();
        for note in ["task/Überweisung.md", "matter/The Farm.md"] {
            names.insert(RecordPath::parse(note).unwrap());
        }
        let moved = Mutation::ParentMatter { to: RecordPath::parse("matter/the farm.md").unwrap() };
        let target = Some(RecordPath::parse("task/u\u{308}berweisung.md").unwrap());
        let found = Signal { target, proposal: Some(moved), ..signal() }.resolve_links(&names, &MoveHistory::default());
        assert_eq!(found.target.unwrap().as_str(), "task/Überweisung.md");
        assert_eq!(found.proposal.unwrap().new_parent().unwrap().as_str(), "matter/The Farm.md");
        assert_eq!(signal().resolve_links(&names, &MoveHistory::default()), signal());
    }

    #[test]
    fn the_same_quote_of_the_same_event_has_one_name_and_another_quote_another() {
        let event = RecordPath::parse("stream/mail/a.md").unwrap();
        let at = time::parse("2026-11-20T08:00:00Z").unwrap();
        let name = |quote| Signal::record_path(&event, quote, at).unwrap().to_string();
        assert_eq!(name("paid"), name("paid"));
        assert_ne!(name("paid"), name("paid "));
        assert!(name("paid").starts_with("signal/20261120T080000000Z-"), "{}", name("paid"));
    }

    #[test]
    fn a_signal_without_target_and_candidates_is_refused_and_one_with_candidates_waits() {
        let mut fields = frontmatter::read_document(signal().render().as_bytes()).unwrap().fields().clone();
        fields.insert("target_path".into(), Value::Null);
        assert_eq!(Signal::read(&fields).unwrap().target, None);
        fields.insert("target_candidates".into(), json!([]));
        assert_eq!(Signal::read(&fields), Err(RecordError::Missing { field: "target_path" }.into()));
    }

    #[test]
    fn a_source_without_end_is_refused() {
        let mut fields = frontmatter::read_document(signal().render().as_bytes()).unwrap().fields().clone();
        fields.insert("source_type".into(), json!("x".repeat(MAX_SOURCE_CHARS + 1)));
        assert!(Signal::read(&fields).unwrap_err().to_string().contains("`source_type`"));
    }

    #[test]
    fn an_unknown_status_counts_as_unrouted() {
        assert_eq!(SignalStatus::parse_or_unrouted(" Applied "), SignalStatus::Applied);
        assert_eq!(SignalStatus::parse_or_unrouted("later"), SignalStatus::Unrouted);
    }
}
