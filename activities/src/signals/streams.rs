//! What happens outside, brought in: one file an adapter, and one intake for all of them.
//!
//! An adapter reads its source and says what it found and how far it has come; it writes nothing, and
//! takes no word of what it reads for more than words. The [`Intake`] stores what was found as stream
//! events, each once, and only then moves the cursor. What events mean is for the extractor. A new kind
//! of stream is a file here and a line in `kinds!`; when streams run is the engine's business.

mod intake;
mod mail;
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

pub(crate) use settings::read_secret;

pub use intake::{Intake, IntakeBatch, IntakeTally};
pub use settings::{StreamConfig, StreamKeys};

/// Largest message that is taken in, in bytes: 1 MiB. A mail's words are some kilobytes; what is larger
/// carries files, which nobody here opens. Configurable as `max_message_bytes` of a stream.
pub const MAX_MESSAGE_BYTES: u64 = 1024 * 1024;
/// Messages that are held in memory at once.
const BATCH: usize = 200;
/// Bytes of messages that are held in memory at once, about: 8 MiB.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// How far back a source is read that is read for the first time: 7 days, as long as an event lives.
const FIRST_DAYS: u64 = 7;

/// A kind of stream: its name in `steward.toml`, its usual interval, and who reads its keys.
struct Kind {
    name: &'static str,
    interval: Duration,
    read: fn(StreamKeys) -> Result<StreamOpener, String>,
}

/// One line is a kind of stream: its file, which is its name in `steward.toml`, and its usual interval.
macro_rules! kinds {
    ($($file:ident every $interval:expr;)*) => {
        $(pub mod $file;)*
        /// Every kind of stream there is.
        const KINDS: &[Kind] = &[$(Kind { name: stringify!($file), interval: $interval, read: $file::read }),*];
    };
}

kinds! {
    inbox every Duration::from_secs(10);
    maildir every Duration::from_secs(30);
    ics every Duration::from_secs(15 * 60);
    // An IMAP server is listened to; this is for one that tells nothing for longer than it may.
    imap every Duration::from_secs(28 * 60);
    webhook every Duration::MAX;
}

/// Opens a stream that is configured: reads its secrets and sets up its client, sends nothing.
pub(crate) type StreamOpener = Box<dyn Fn(&VaultRoot) -> Result<StreamSource, StreamError> + Send + Sync>;

/// A stream that can be read.
pub enum StreamSource {
    /// We ask.
    Polled(Box<dyn StreamAdapter>),
    /// We are told.
    Pushed(webhook::Webhook),
}

/// Reads one source.
pub trait StreamAdapter: Send {
    /// Reads what is new and hands it to the intake, in batches.
    fn read_round<'a>(&'a mut self, intake: &'a mut Intake) -> BoxFuture<'a, Result<NextRound, StreamError>>;

    /// Waits until there may be something new, for a source that can tell. It may be dropped meanwhile.
    fn wait_for_news(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// When a stream wants its next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRound {
    /// After its interval.
    Usual,
    /// Something is not finished yet: after this long.
    Within(Duration),
}

/// One thing that an adapter found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundMessage {
    pub source_id: String,
    /// `<kind>:<who>`, see [`pattern`].
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

/// Why a stream cannot be read. Its cursor stays where it was; other streams go on.
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
    /// A server did not do what it should; the message holds no secret.
    #[error("{server}: {message}")]
    Server { server: String, message: String },
    #[error("the reading was cut short: {0}")]
    CutShort(#[from] tokio::task::JoinError),
}

/// Whose word an event is, for trust: the kind and who says it, lower-cased, `unknown` where nobody does.
fn source_pattern(kind: &str, who: Option<&str>) -> String {
    let who = who.map(str::trim).filter(|who| !who.is_empty()).unwrap_or("unknown");
    format!("{kind}:{}", who.to_lowercase())
}

/// The id of what has none: the hash of its bytes.
fn hash_id(bytes: &[u8]) -> String {
    let hash: String = Sha256::digest(bytes).iter().take(16).map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hash}")
}

/// Runs work where it may block.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StreamError> {
    Ok(tokio::task::spawn_blocking(work).await?)
}

#[cfg(test)]
mod tests;
