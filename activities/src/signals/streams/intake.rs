//! Stores the messages that adapters found, each once, and must not move the cursor before.
//!
//! An event's name is made from its source's id and its text, so a message that is delivered twice has one name. An
//! ingested message is known by that name for a month after it was last met, so that a purged event does not come
//! back. A crash between files and cursor leaves files that are found the next time. A dry run ([`Intake::new_dry`])
//! takes the same path and only keeps what it would store.

use super::FoundMessage;
use super::StreamError;
use super::run_blocking;
use chrono::Utc;
use std::collections::BTreeSet;
use std::sync::Arc;
use steward_domain::record::path::{PathError, RecordPath};
use steward_domain::signals::stream::StreamEvent;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::crash;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{Index, StreamIngestion};

/// The messages that an adapter hands over at once, some megabytes at most.
#[derive(Debug, Default)]
pub struct IntakeBatch {
    pub found: Vec<FoundMessage>,
    /// The source's own keys of what was read, if it has keys that nobody else can choose.
    pub keys: Vec<String>,
    /// How far the adapter has read with this.
    pub cursor: Option<String>,
    /// How many messages could not be ingested.
    pub refused: u64,
}

/// What an intake did since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntakeTally {
    pub stored: u64,
    /// Messages that were ingested before.
    pub known: u64,
    pub refused: u64,
}

enum IntakeStore {
    Vault(Arc<VaultWriter>),
    Nowhere { root: VaultRoot, would: Vec<StreamEvent> },
}

/// Stores the events of one stream.
pub struct Intake {
    stream: String,
    index: Arc<Index>,
    store: IntakeStore,
    tally: IntakeTally,
    left: Option<String>,
}

impl Intake {
    /// Creates the intake of a stream into a vault.
    #[must_use]
    pub fn new(stream: &str, writer: Arc<VaultWriter>, index: Arc<Index>) -> Self {
        Self {
            stream: stream.to_owned(),
            index,
            store: IntakeStore::Vault(writer),
            tally: IntakeTally::default(),
            left: None,
        }
    }

    /// Creates an intake for a dry run, which stores nothing and moves nothing.
    #[must_use]
    pub fn new_dry(stream: &str, root: VaultRoot, index: Arc<Index>) -> Self {
        let store = IntakeStore::Nowhere { root, would: Vec::new() };
        Self { stream: stream.to_owned(), index, store, tally: IntakeTally::default(), left: None }
    }

    /// Reports whether this is a dry run, which must leave the source as it is.
    #[must_use]
    pub fn is_dry(&self) -> bool {
        matches!(self.store, IntakeStore::Nowhere { .. })
    }

    /// The counts so far.
    #[must_use]
    pub fn current_tally(&self) -> IntakeTally {
        self.tally
    }

    /// Records that one of many messages could not be read and is left for the next round.
    pub(super) fn leave_for_next_round(&mut self, why: &StreamError) {
        tracing::warn!(stream = %self.stream, "left for the next round: {}", why.to_string().escape_debug());
        self.left.get_or_insert_with(|| why.to_string());
    }

    /// Why the first message was left for the next round, if one was.
    #[must_use]
    pub fn first_left_reason(&self) -> Option<&str> {
        self.left.as_deref()
    }

    /// The events that a dry run would have stored.
    #[must_use]
    pub fn would_store(&self) -> &[StreamEvent] {
        match &self.store {
            IntakeStore::Vault(_) => &[],
            IntakeStore::Nowhere { would, .. } => would,
        }
    }

    /// Reads how far the adapter has read; `None` before the first time.
    ///
    /// # Errors
    /// [`StreamError::Index`].
    pub async fn read_cursor(&self) -> Result<Option<String>, StreamError> {
        Ok(self.index.signals().read_stream_cursor(&self.stream).await?)
    }

    /// Filters the keys that were never ingested, in their order.
    ///
    /// # Errors
    /// [`StreamError::Index`].
    pub async fn filter_unknown(&self, keys: Vec<String>) -> Result<Vec<String>, StreamError> {
        let seen = self.index.signals().list_seen_stream_keys(&self.stream, &keys, Utc::now()).await?;
        Ok(keys.into_iter().filter(|key| !seen.contains(key)).collect())
    }

    /// Stores new messages durably, then records all of them as ingested.
    ///
    /// # Errors
    /// [`StreamError`]. Messages that are stored by then are known the next time.
    pub async fn ingest_batch(&mut self, batch: IntakeBatch) -> Result<(), StreamError> {
        let now = Utc::now();
        let mut keys = batch.keys;
        let mut events = Vec::with_capacity(batch.found.len());
        let mut names = BTreeSet::new();
        for found in &batch.found {
            let event = StreamEvent::new(&self.stream, &found.as_incoming(), now);
            let path = event.record_path().map_err(|e| self.map_path_error(&e))?;
            if names.insert(path.to_string()) {
                events.push((path, event));
            }
        }
        let names: Vec<String> = names.into_iter().collect();
        let seen = self.index.signals().list_seen_stream_keys(&self.stream, &names, now).await?;
        events.retain(|(path, _)| !seen.contains(path.as_str()));
        keys.extend(names);
        crash::die_if_armed("before-storing");
        let stored = self.store_events(events).await?;
        crash::die_if_armed("after-storing");
        let found = batch.found.len() as u64;
        self.tally.stored += stored;
        self.tally.known += found - stored;
        self.tally.refused += batch.refused;
        if self.is_dry() {
            return Ok(());
        }
        let ingestion = StreamIngestion {
            stream: &self.stream,
            keys: &keys,
            cursor: batch.cursor.as_deref(),
            refused: batch.refused,
            now,
        };
        self.index.signals().record_ingestion(&ingestion).await?;
        crash::die_if_armed("after-remembering");
        Ok(())
    }

    /// Stores events, and returns how many were new.
    async fn store_events(&mut self, events: Vec<(RecordPath, StreamEvent)>) -> Result<u64, StreamError> {
        match &mut self.store {
            IntakeStore::Nowhere { root, would } => {
                let before = would.len();
                would.extend(events.into_iter().filter(|(path, _)| !root.exists(path)).map(|(_, event)| event));
                Ok((would.len() - before) as u64)
            }
            IntakeStore::Vault(writer) => {
                let writer = Arc::clone(writer);
                let work = move || {
                    // An existing file was written before a crash, with another time of arrival.
                    let fresh = events.into_iter().filter(|(path, _)| !writer.root().exists(path));
                    let files: Vec<_> = fresh.map(|(path, event)| (path, event.render().into_bytes())).collect();
                    writer.create_files(&files).map(|written| written.into_iter().filter(|w| *w).count() as u64)
                };
                Ok(run_blocking(work).await??)
            }
        }
    }

    fn map_path_error(&self, e: &PathError) -> StreamError {
        StreamError::Setting { stream: self.stream.escape_debug().to_string(), message: e.to_string() }
    }
}
