//! Reads streams and stores their messages as events: one file for each adapter, and one intake for all of them.
//!
//! An adapter reads its source and reports what it found and how far it came. It writes nothing, and treats everything
//! that it reads as text only. The [`Intake`] stores each message once as a stream event, and only then moves the
//! cursor. The extractor decides what events mean. A new kind of stream is a file here and a line in `kinds!`. The
//! engine decides when streams run.

mod intake;
mod mail;
mod redirects;
mod settings;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use std::io;
use std::time::Duration;
use steward_domain::signals::stream::IncomingEvent;
use steward_vault::action::create::CreateError;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::IndexError;
use steward_vault::signals::inbox::InboxError;

pub use settings::read_secret;

pub use intake::{Intake, IntakeBatch, IntakeTally};
pub use settings::{StreamConfig, StreamKeys};

/// Largest message that is ingested, in bytes: 1 MiB. Configurable as `max_message_bytes` of a stream.
///
/// The text of a mail takes some kilobytes. A larger one carries files, which Steward does not open. A larger message
/// is refused whole and not cut, because a cut mail could say the opposite of the whole one.
pub const MAX_MESSAGE_BYTES: u64 = 1024 * 1024;
/// Most messages that are held in memory at once: 200.
const BATCH: usize = 200;
/// About how many bytes of messages are held in memory at once: 8 MiB.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// How far back a source is read the first time: 7 days, as long as an event lives.
const FIRST_DAYS: u64 = 7;

/// A kind of stream: its name in `steward.toml`, its default interval, and the function that reads its keys.
struct StreamKind {
    name: &'static str,
    interval: Duration,
    read: fn(StreamKeys) -> Result<StreamOpener, String>,
}

/// Declares one kind of stream a line: its file, which is its name in `steward.toml`, and its default interval.
macro_rules! kinds {
    ($($file:ident every $interval:expr;)*) => {
        $(pub mod $file;)*
        /// All kinds of streams.
        const KINDS: &[StreamKind] = &[$(StreamKind { name: stringify!($file), interval: $interval, read: $file::read }),*];
    };
}

kinds! {
    inbox every Duration::from_secs(10);
    maildir every Duration::from_secs(30);
    ics every Duration::from_secs(15 * 60);
    // An IMAP server announces new mail. The interval is for a server that stays silent for too long.
    imap every Duration::from_secs(28 * 60);
    webhook every Duration::MAX;
}

/// Opens a configured stream: reads its secrets and sets up its client. It sends nothing.
pub(crate) type StreamOpener = Box<dyn Fn(&VaultRoot) -> Result<StreamSource, StreamError> + Send + Sync>;

/// A stream that can be read.
pub enum StreamSource {
    /// Steward asks the source.
    Polled(Box<dyn StreamAdapter>),
    /// The source sends to Steward.
    Pushed(webhook::Webhook),
}

/// Reads one source.
pub trait StreamAdapter: Send {
    /// Reads what is new and hands it to the intake, in batches.
    fn read_round<'a>(&'a mut self, intake: &'a mut Intake) -> BoxFuture<'a, Result<NextRound, StreamError>>;

    /// Waits until there may be something new, for a source that can announce it. The future may be dropped.
    fn wait_for_news(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// When a stream wants its next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRound {
    /// After its interval.
    Usual,
    /// After this time, because something is not finished yet.
    Within(Duration),
}

/// One thing that an adapter found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundMessage {
    pub source_id: String,
    /// `<kind>:<author>`, as `source_pattern` builds it.
    pub pattern: String,
    pub origin_at: Option<DateTime<Utc>>,
    pub author: Option<String>,
    pub subject: Option<String>,
    pub text: String,
}

impl FoundMessage {
    pub(crate) fn as_incoming(&self) -> IncomingEvent<'_> {
        IncomingEvent {
            source_id: &self.source_id,
            pattern: &self.pattern,
            origin_at: self.origin_at,
            author: self.author.as_deref(),
            subject: self.subject.as_deref(),
            text: &self.text,
        }
    }

    fn memory_size(&self) -> usize {
        self.text.len() + self.source_id.len() + 200
    }
}

/// Why a stream cannot be read. Its cursor stays where it was, and other streams go on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error("streams.{stream}: {message}")]
    Setting { stream: String, message: String },
    #[error("{0}")]
    Secret(String),
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error(transparent)]
    Inbox(#[from] InboxError),
    #[error(transparent)]
    Store(#[from] CreateError),
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A server failed. The message holds no secret.
    #[error("{server}: {message}")]
    Server { server: String, message: String },
    #[error("reading was interrupted: {0}")]
    CutShort(#[from] tokio::task::JoinError),
}

/// Names the source of an event, for trust: the kind and the author in lower case, `unknown` without an author.
fn source_pattern(kind: &str, author: Option<&str>) -> String {
    let author = author.map(str::trim).filter(|author| !author.is_empty()).unwrap_or("unknown");
    format!("{kind}:{}", author.to_lowercase())
}

/// The id of a message that has none: the hash of its bytes.
fn hash_id(bytes: &[u8]) -> String {
    let hash: String = Sha256::digest(bytes).iter().take(16).map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hash}")
}

/// Runs blocking work on a blocking thread.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StreamError> {
    Ok(tokio::task::spawn_blocking(work).await?)
}

#[cfg(test)]
mod tests;
