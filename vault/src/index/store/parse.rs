//! Parses a file's bytes into rows.
//!
//! Every fault of a record becomes a problem with a hint. The record then has no row of its kind, so that nothing acts
//! on it. An instinct is the exception: an unreadable one must not lift the limits of its source, so it gets a row with
//! no observations and the ceiling `ask`. Pure; [`crate::index::store::rows`] writes the rows.

pub(crate) mod action;
mod faults;
pub(crate) mod instinct;
mod sources;

use super::codec::{encode_enum, to_micros};
use crate::index::store::files::{FileContent, ScanContext};
use crate::index::store::rows::to_json;
use faults::FaultMessages;
use serde::Serialize;
use serde_json::Value;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::ContentHash;
use steward_domain::gates::matter_policy::{self, MatterPolicy};
use steward_domain::record::entity::{Instinct, Matter, RecordError, RecordFaults, Task};
use steward_domain::record::frontmatter::{self, Document, member_name};
use steward_domain::record::link::link_key;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteReading;
use steward_domain::signals::signal::{Signal, SignalStatus, source_key};
use steward_domain::signals::stream::{EventStatus, StreamEvent};

/// The content of a record in the form of the tables.
#[derive(Debug)]
pub(crate) enum ParsedRecord {
    Matter(MatterData),
    Task(TaskData),
    Signal(SignalData),
    Instinct(instinct::InstinctData),
    Stream(EventData),
    Action(Box<ActionData>),
}

#[derive(Debug, Serialize)]
pub(crate) struct MatterData {
    pub(crate) path: String,
    pub(crate) name: String,
    state: String,
    state_as_written: Option<String>,
    /// The lower of the matter's ceiling and the policy's ceiling.
    ceiling: String,
    policy: Option<String>,
    policy_faults: Option<String>,
    hash: String,
    /// The content hash.
    pub(crate) content: String,
}

/// A link to a matter beyond the first.
#[derive(Debug, Serialize)]
struct FurtherParent {
    link: String,
    key: String,
}

impl FurtherParent {
    fn new(link: String) -> Self {
        Self { key: link_key(&link), link }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct TaskData {
    pub(crate) path: String,
    parent: String,
    parent_link: String,
    parent_key: String,
    further_parents: Vec<FurtherParent>,
    id: Option<String>,
    pub(crate) name: String,
    state: String,
    state_as_written: Option<String>,
    surface_class: String,
    due: Option<i64>,
    snoozed_until: Option<i64>,
    next_check_after: Option<i64>,
    /// How far a steward may go with this task, whatever its matter allows.
    ceiling: String,
    has_unreadable_due: bool,
    hash: String,
    /// The content hash.
    pub(crate) content: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct SignalData {
    pub(crate) path: String,
    target: Option<String>,
    pub(crate) created: i64,
    pub(crate) source: String,
    instinct: String,
    pub(crate) note: String,
    effect: String,
    class: Option<&'static str>,
    proposal: Option<String>,
    proposed_state: Option<String>,
    changes: Option<String>,
    target_confidence: f64,
    effect_confidence: f64,
    status: &'static str,
    reason: Option<String>,
    applied: bool,
    source_event: Option<String>,
    hash: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct EventData {
    path: String,
    source: String,
    pattern: String,
    received_at: i64,
    status: &'static str,
    tries: u32,
    reason: Option<String>,
    hash: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct ActionData {
    pub(crate) path: String,
    id: String,
    kind: &'static str,
    pub(crate) target: String,
    pub(crate) at: i64,
    decision: &'static str,
    confidence: f64,
    disposition: &'static str,
    mode: &'static str,
    pending: bool,
    /// The action that it answers or reports on.
    follows: Option<String>,
    /// The same, if it ends that action.
    resolves: Option<String>,
    proposed_state: Option<String>,
    class: Option<&'static str>,
    judged: bool,
    issue: Option<String>,
    tracks_of: Option<String>,
    trust_subject: Option<String>,
    trust_mode: Option<&'static str>,
    closed: String,
    moves_to: Option<String>,
    changes: Option<String>,
    moved_from: Option<String>,
    proposal: Option<String>,
    /// The hash of the previous record in the chain.
    prev: String,
    /// The content hash of the target after the change.
    content: Option<String>,
    misnamed: bool,
    edited: bool,
    batch_id: Option<String>,
    /// A model resolved the action.
    by_agent: bool,
    /// A person who says that a proposal is right has made the change.
    settles: bool,
    /// It is a proposal under another mapping than the one in force.
    ended: bool,
    seq: u64,
    evidence: Vec<String>,
    pub(crate) sources: Vec<SourceContribution>,
    /// The quotes, for the search.
    #[serde(skip)]
    pub(crate) quotes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct SourceContribution {
    source: String,
    pub(crate) name: String,
    /// `None` for a source that supported the change but was not weighed.
    contribution: Option<f64>,
    cited: bool,
    supports: bool,
}

/// Parses one file. An error is the problem's message.
pub(crate) fn parse_record(
    kind: RecordKind,
    path: &RecordPath,
    content: &FileContent,
    scan: &ScanContext,
) -> Result<ParsedRecord, String> {
    if kind == RecordKind::Event {
        return action::parse_action(path, &content.bytes, scan);
    }
    let document = frontmatter::read_document_fast(&content.bytes).map_err(|e| format!("failed to {e}"))?;
    parse_document(kind, path, &document, &content.hash, scan)
}

/// Parses a file whose frontmatter is read. An error is the problem's message.
pub(crate) fn parse_document(
    kind: RecordKind,
    path: &RecordPath,
    document: &Document,
    hash: &ContentHash,
    scan: &ScanContext,
) -> Result<ParsedRecord, String> {
    let fields = document.fields();
    let parsed = match kind {
        RecordKind::Matter => return parse_matter(path, document, hash, scan).map_err(FaultMessages::join),
        RecordKind::Task => parse_task(path, document, hash, scan),
        RecordKind::Signal => Signal::read(fields).map(|signal| signal_row(path, signal, scan)),
        RecordKind::Stream => {
            StreamEvent::read(fields, document.body()).map(|e| event_row(path, e, hash)).map_err(RecordFaults::from)
        }
        RecordKind::Instinct | RecordKind::Event => {
            Ok(instinct::instinct_row(path.as_str(), path.slug(), Instinct::read(fields)))
        }
    };
    parsed.map_err(|faults| FaultMessages::locate_faults(&faults, kind, document, &scan.schema).join())
}

fn parse_matter(
    path: &RecordPath,
    document: &Document,
    hash: &ContentHash,
    scan: &ScanContext,
) -> Result<ParsedRecord, FaultMessages> {
    let schema = &scan.schema;
    let NoteReading { fields, ceiling, .. } = schema.read_note(RecordKind::Matter, path, document.fields());
    let (policy, faults) = matter_policy::read::read_matter_policy(document);
    let matter = Matter::read(&fields).map_err(|wrong| {
        FaultMessages::locate_faults(&wrong, RecordKind::Matter, document, schema).with_policy_faults(&faults)
    })?;
    let messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Ok(ParsedRecord::Matter(MatterData {
        path: path.to_string(),
        name: name_or_slug(matter.name, path),
        state: encode_enum(matter.state),
        state_as_written: fields.get("state").and_then(Value::as_str).map(str::to_owned),
        ceiling: encode_enum(
            policy.as_ref().map(MatterPolicy::effective_ceiling).unwrap_or_default().min(matter.ceiling).min(ceiling),
        ),
        policy: policy.map(|policy| to_json(&policy)),
        policy_faults: (!messages.is_empty()).then(|| to_json(&messages)),
        hash: hash.as_str().to_owned(),
        content: scan.hash_content(RecordKind::Matter, path, document),
    }))
}

fn parse_task(
    path: &RecordPath,
    document: &Document,
    hash: &ContentHash,
    scan: &ScanContext,
) -> Result<ParsedRecord, RecordFaults> {
    let schema = &scan.schema;
    let NoteReading { fields, ceiling, further_parents, has_unreadable_due } =
        schema.read_note(RecordKind::Task, path, document.fields());
    let task = Task::read(&fields);
    // A change must name the text that it replaces, and an empty value has none.
    if fields.get("state").is_some_and(Value::is_null) {
        let expected = "`open`, `done` or `archived` (or remove the line)";
        let fault = RecordError::Value { field: "state", found: String::new(), expected };
        return Err(task.err().unwrap_or_default().with_fault(fault));
    }
    let task = task?;
    Ok(ParsedRecord::Task(TaskData {
        path: path.to_string(),
        parent: task.parent_matter.to_string(),
        parent_key: link_key(&task.parent_link),
        parent_link: task.parent_link,
        further_parents: further_parents.into_iter().map(FurtherParent::new).collect(),
        id: task.id.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()),
        name: name_or_slug(task.name, path),
        state: encode_enum(task.state),
        state_as_written: fields.get("state").and_then(Value::as_str).map(str::to_owned),
        surface_class: encode_enum(task.surface_class),
        due: task.due.map(to_micros),
        snoozed_until: task.snoozed_until.map(to_micros),
        next_check_after: task.next_check_after.map(to_micros),
        ceiling: encode_enum(ceiling),
        has_unreadable_due,
        hash: hash.as_str().to_owned(),
        content: scan.hash_content(RecordKind::Task, path, document),
    }))
}

fn signal_row(path: &RecordPath, signal: Signal, scan: &ScanContext) -> ParsedRecord {
    // A signal is new by its own words, wherever the notes are that they name.
    let hash = hash_meaning(&signal);
    let signal = signal.resolve_links(&scan.names, &scan.moves);
    ParsedRecord::Signal(SignalData {
        path: path.to_string(),
        target: signal.target.as_ref().map(RecordPath::to_string),
        created: to_micros(signal.created),
        instinct: source_key(&signal.source_type),
        note: signal.clerk_note(),
        effect: encode_enum(signal.effect),
        class: signal.proposal.as_ref().map(|p| p.class().as_str()),
        proposal: signal.proposal.as_ref().map(|p| p.to_proposal().to_string()),
        proposed_state: signal.proposed_state().map(encode_enum),
        changes: signal.proposal.as_ref().map(changed_field),
        target_confidence: signal.target_confidence,
        effect_confidence: signal.effect_confidence,
        status: signal.status.as_str(),
        reason: signal.reason.clone(),
        applied: signal.is_applied(),
        source_event: signal.source_event.as_ref().map(RecordPath::to_string),
        hash: hash.as_str().to_owned(),
        source: signal.source_type,
    })
}

/// The hash by which a signal counts as new. The status is not part of it, except `applied`: a person who removes that
/// wants the signal to be judged again.
fn hash_meaning(signal: &Signal) -> ContentHash {
    let status = if signal.is_applied() { SignalStatus::Applied } else { SignalStatus::Unrouted };
    let meaning = Signal { status, reason: None, ..signal.clone() };
    ContentHash::hash_bytes(to_json(&meaning).as_bytes())
}

fn event_row(path: &RecordPath, event: StreamEvent, hash: &ContentHash) -> ParsedRecord {
    // The folder names the stream, regardless of the file's content.
    let folder = path.slug().split('/').next().unwrap_or_default();
    ParsedRecord::Stream(EventData {
        path: path.to_string(),
        source: folder.to_owned(),
        pattern: event.pattern,
        received_at: to_micros(event.received_at),
        status: event.status.as_str(),
        tries: event.tries,
        reason: event.reason,
        hash: hash.as_str().to_owned(),
    })
}

impl ActionData {
    /// Whether the record owes the tracker a delivery.
    pub(crate) fn has_owed_delivery(&self) -> bool {
        self.issue.is_some()
    }
}

impl EventData {
    /// Whether the extraction has not tried the event yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.status == EventStatus::New.as_str() && self.tries == 0
    }
}

/// The field that a mutation changes, and for a list also the member.
fn changed_field(mutation: &Mutation) -> String {
    match mutation {
        Mutation::StateChange { .. } | Mutation::ContextEdit { .. } | Mutation::ParentMatter { .. } => {
            mutation.field().to_owned()
        }
        Mutation::Related { member, .. } => {
            let name = Value::from(member.as_str());
            format!("{} {}", mutation.field(), member_name(&name).unwrap_or(member))
        }
    }
}

/// Falls back to the file's name, because people leave `name` out.
fn name_or_slug(name: String, path: &RecordPath) -> String {
    if name.trim().is_empty() { path.slug().to_owned() } else { name }
}
