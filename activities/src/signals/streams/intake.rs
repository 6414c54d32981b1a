//! Stores what adapters found, each thing once, and only then moves the cursor.
//!
//! An event's name comes from its source's id and its words: what is delivered twice has one name. What
//! was taken in before is known by that name for a month after it was last met, so that an event that
//! was purged does not come back. A crash between the files and the cursor leaves files that are found
//! there the next time. A rehearsal ([`Intake::new_dry`]) goes the same way and keeps what it would store.

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

/// What an adapter hands over at once; some megabytes at most.
#[derive(Debug, Default)]
pub struct IntakeBatch {
    pub found: Vec<FoundMessage>,
    /// The source's own names of what was read, where it has some that nobody else can choose.
    pub keys: Vec<String>,
    /// How far the adapter has read with this.
    pub cursor: Option<String>,
    /// What could not be taken in.
    pub refused: u64,
}

/// What an intake did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntakeTally {
    pub stored: u64,
    /// Taken in before.
    pub known: u64,
    pub refused: u64,
}

enum IntakeStore {
    Vault(Arc<VaultWriter>),
    Nowhere { root: VaultRoot, would: Vec<StreamEvent> },
}

/// Where the events of one stream go.
pub struct Intake {
    stream: String,
    index: Arc<Index>,
    store: IntakeStore,
    tally: IntakeTally,
    left: Option<String>,
}

impl Intake {
    /// The intake of a stream into a vault.
    #[must_use]
    pub fn new(stream: &str, keeper: Arc<VaultWriter>, index: Arc<Index>) -> Self {
        Self {
            stream: stream.to_owned(),
            index,
            store: IntakeStore::Vault(keeper),
            tally: IntakeTally::default(),
            left: None,
        }
    }

    /// An intake that stores nothing and moves nothing.
    #[must_use]
    pub fn new_dry(stream: &str, root: VaultRoot, index: Arc<Index>) -> Self {
        let store = IntakeStore::Nowhere { root, would: Vec::new() };
        Self { stream: stream.to_owned(), index, store, tally: IntakeTally::default(), left: None }
    }

    /// Whether the source must be left as it is.
    #[must_use]
    pub fn is_dry(&self) -> bool {
        matches!(self.store, IntakeStore::Nowhere { .. })
    }

    /// What was done so far.
    #[must_use]
    pub fn current_tally(&self) -> IntakeTally {
        self.tally
    }

    /// Notes that one thing of many could not be read and is left for the next round.
    pub(super) fn leave_for_next_round(&mut self, why: &StreamError) {
        tracing::warn!(stream = %self.stream, "left for the next round: {}", why.to_string().escape_debug());
        self.left.get_or_insert_with(|| why.to_string());
    }

    /// The first thing that was left in an otherwise good round, and why.
    #[must_use]
    pub fn first_left_reason(&self) -> Option<&str> {
        self.left.as_deref()
    }

    /// What a rehearsal would have stored.
    #[must_use]
    pub fn would_store(&self) -> &[StreamEvent] {
        match &self.store {
            IntakeStore::Vault(_) => &[],
            IntakeStore::Nowhere { would, .. } => would,
        }
    }

    /// How far the adapter has read; `None` before the first time.
    ///
    /// # Errors
    /// [`StreamError::Index`].
    pub async fn read_cursor(&self) -> Result<Option<String>, StreamError> {
        Ok(self.index.read_stream_cursor(&self.stream).await?)
    }

    /// The keys among these that were never taken in, in their order.
    ///
    /// # Errors
    /// [`StreamError::Index`].
    pub async fn filter_unknown(&self, keys: Vec<String>) -> Result<Vec<String>, StreamError> {
        let seen = self.index.list_seen_stream_keys(&self.stream, &keys, Utc::now()).await?;
        Ok(keys.into_iter().filter(|key| !seen.contains(key)).collect())
    }

    /// Stores what is new, durable, then remembers all of it.
    ///
    /// # Errors
    /// [`StreamError`]; what is stored by then is known the next time.
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
        let seen = self.index.list_seen_stream_keys(&self.stream, &names, now).await?;
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
        let taken = StreamIngestion {
            stream: &self.stream,
            keys: &keys,
            cursor: batch.cursor.as_deref(),
            refused: batch.refused,
            now,
        };
        self.index.record_ingestion(&taken).await?;
        crash::die_if_armed("after-remembering");
        Ok(())
    }

    /// How many were not there yet.
    async fn store_events(&mut self, events: Vec<(RecordPath, StreamEvent)>) -> Result<u64, StreamError> {
        match &mut self.store {
            IntakeStore::Nowhere { root, would } => {
                let before = would.len();
                would.extend(events.into_iter().filter(|(path, _)| !root.exists(path)).map(|(_, event)| event));
                Ok((would.len() - before) as u64)
            }
            IntakeStore::Vault(keeper) => {
                let keeper = Arc::clone(keeper);
                let work = move || {
                    // One that is there came before a crash, with another moment of arrival.
                    let fresh = events.into_iter().filter(|(path, _)| !keeper.root().exists(path));
                    let files: Vec<_> = fresh.map(|(path, event)| (path, event.render().into_bytes())).collect();
                    keeper.create_files(&files).map(|written| written.into_iter().filter(|w| *w).count() as u64)
                };
                Ok(run_blocking(work).await??)
            }
        }
    }

    fn map_path_error(&self, e: &PathError) -> StreamError {
        StreamError::Setting { stream: self.stream.escape_debug().to_string(), message: e.to_string() }
    }
}
