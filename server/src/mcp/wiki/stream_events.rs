//! Chooses the events that a call about a wiki may see: those of the streams that belong to it.
//!
//! No other stream is ever listed, whatever a call names. Which streams belong to a wiki is for the configuration to say.

use super::excerpt::shorten_words;
use super::search::read_moment;
use crate::mcp::attachments::AttachedStream;
use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside};
use crate::mcp::outside::OutsideWords;
use crate::mcp::tokens::keep_rows;
use crate::mcp::workspace::Workspace;
use crate::views::wiki::ListedEvent;
use chrono::{DateTime, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use std::time::{Duration, Instant};
use steward_domain::signals::stream::StreamEvent;
use tokio::runtime::Handle;

/// The most events whose words one call reads: about a second.
const MAX_READ: usize = 2_000;
/// How long the words of events are read.
const MAX_READ_TIME: Duration = Duration::from_secs(2);
/// The most characters of an event's words in a list.
const EXCERPT_CHARS: usize = 280;
/// What is shown for a wiki without streams.
pub(super) const NO_STREAMS: &str = "no_streams: no stream belongs to this wiki. Set `streams` of its table in your configuration, as in \
    [wiki.<name>] streams = [\"imap:work\"]";
/// What is shown if files were read instead of an index.
const NO_INDEX: &str = "no_index: the files were read, because no index can be used; signals are not shown";
/// What is shown if not all events were looked at.
const CUT: &str = "cut: not all events were looked at. Go on with the cursor, or narrow the time or the source";

/// Which events are meant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventSelection<'a> {
    /// A stream as the configuration names it.
    pub(super) source: Option<&'a str>,
    /// What an event is, such as `mail`.
    pub(super) event_type: Option<&'a str>,
    /// A part of who wrote it.
    pub(super) actor: Option<&'a str>,
    pub(super) since: Option<&'a str>,
    pub(super) until: Option<&'a str>,
}

/// An event that was chosen.
pub(super) struct ChosenEvent {
    pub(super) listed: ListedEvent,
    /// The stream as the configuration names it.
    pub(super) source: String,
}

/// The chosen events.
#[derive(Default)]
pub(super) struct ChosenEvents {
    /// Newest first.
    pub(super) events: Vec<ChosenEvent>,
    pub(super) notice: Option<String>,
}

/// Words of an event that stand in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct EventReference {
    /// Outside words: `#` with a number, or the last part of a URL, as they stand in the event.
    pub(super) text: OutsideWords,
}

impl ChosenEvent {
    /// What the event is, and who wrote it.
    pub(super) fn split_pattern(&self) -> (&str, &str) {
        self.listed.pattern.split_once(':').unwrap_or((&self.listed.pattern, ""))
    }

    /// How the event is named: its stream and its file. Only names that Steward makes are listed.
    pub(super) fn id(&self) -> &str {
        self.listed.path.slug()
    }

    /// Reads the words of the event; `None` if its file is gone.
    pub(super) fn read(&self, workspace: &Workspace<'_>) -> Option<StreamEvent> {
        crate::views::wiki::read_stream_event(workspace.vault.root(), &self.listed.path)
    }
}

impl ChosenEvents {
    /// Reads the words of events from a place in the list on, until enough are chosen or the time is up.
    pub(super) fn read_from<T>(
        &mut self,
        workspace: &Workspace<'_>,
        begin: usize,
        enough: usize,
        mut choose: impl FnMut(&ChosenEvent, StreamEvent) -> Option<T>,
    ) -> ReadEvents<T> {
        let until = Instant::now() + MAX_READ_TIME;
        let mut read = ReadEvents { rows: Vec::new(), next: begin };
        for event in self.events.iter().skip(begin) {
            if read.rows.len() >= enough {
                break;
            }
            if read.next - begin >= MAX_READ || Instant::now() >= until {
                self.notice = Some(CUT.to_owned());
                break;
            }
            if let Some(row) = event.read(workspace).and_then(|words| choose(event, words)) {
                read.rows.push(EventRow { place: read.next, row });
            }
            read.next += 1;
        }
        read
    }
}

/// What was made of the events that were read.
pub(super) struct ReadEvents<T> {
    pub(super) rows: Vec<EventRow<T>>,
    /// The place in the list where reading ended.
    pub(super) next: usize,
}

/// What was made of one event.
pub(super) struct EventRow<T> {
    /// The place of the event in the list.
    pub(super) place: usize,
    pub(super) row: T,
}

impl<T: Serialize> ReadEvents<T> {
    /// The rows that an answer has room for, and the place in the list where the next answer begins.
    pub(super) fn keep_rows(self) -> (Vec<T>, usize) {
        let places: Vec<usize> = self.rows.iter().map(|row| row.place).collect();
        let rows = keep_rows(self.rows.into_iter().map(|row| row.row).collect());
        let next = places.get(rows.len()).copied().unwrap_or(self.next);
        (rows, next)
    }
}

/// Chooses events of the streams that belong to the wiki.
///
/// # Errors
/// [`ToolErrorCode::BadArguments`]: a time is none, or the source is no stream of this wiki.
pub(super) fn choose_events(
    workspace: &Workspace<'_>,
    selection: EventSelection<'_>,
) -> Result<ChosenEvents, ToolError> {
    let since = selection.since.map(read_moment).transpose()?;
    let until = selection.until.map(read_moment).transpose()?;
    let streams = workspace.vault.attachments.find(&workspace.name).streams;
    if streams.is_empty() {
        return Ok(ChosenEvents { events: Vec::new(), notice: Some(NO_STREAMS.to_owned()) });
    }
    let streams = match selection.source {
        Some(source) => vec![find_source(streams, source)?],
        None => streams,
    };
    let names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
    let vault = workspace.vault;
    let from = since.unwrap_or(DateTime::<Utc>::UNIX_EPOCH);
    let listing = Handle::current().block_on(vault.wikis.list_events(vault.root(), &names, from));
    let actor = selection.actor.map(str::to_lowercase);
    let is_meant = |event: &ChosenEvent| {
        let (event_type, author) = event.split_pattern();
        until.is_none_or(|until| event.listed.at < until)
            && selection.event_type.is_none_or(|wanted| event_type == wanted)
            && actor.as_ref().is_none_or(|wanted| author.to_lowercase().contains(wanted))
    };
    let label = |listed: ListedEvent| {
        let stream = streams.iter().find(|stream| stream.name == listed.stream)?;
        Some(ChosenEvent { source: stream.to_string(), listed })
    };
    let notice = match (listing.is_cut, listing.is_indexed) {
        (true, _) => Some(CUT.to_owned()),
        (false, false) => Some(NO_INDEX.to_owned()),
        (false, true) => None,
    };
    Ok(ChosenEvents { events: listing.events.into_iter().filter_map(label).filter(is_meant).collect(), notice })
}

fn find_source(streams: Vec<AttachedStream>, source: &str) -> Result<AttachedStream, ToolError> {
    let names = streams.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    streams.into_iter().find(|stream| stream.to_string() == source).ok_or_else(|| {
        let what = format!("`{}` is no stream of this wiki", shorten_outside(source));
        ToolError::new(ToolErrorCode::BadArguments, what, format!("Use one of: {names}"))
    })
}

/// The title of an event: its subject, else its first line.
pub(super) fn find_title(event: &StreamEvent) -> OutsideWords {
    let first = || event.text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let title = event.subject.as_deref().unwrap_or_else(first);
    shorten_words(title, EXCERPT_CHARS)
}

/// The beginning of an event's words, on one line.
pub(super) fn cut_excerpt(event: &StreamEvent) -> OutsideWords {
    let words: Vec<&str> = event.text.split_whitespace().take(EXCERPT_CHARS).collect();
    shorten_words(&words.join(" "), EXCERPT_CHARS)
}
