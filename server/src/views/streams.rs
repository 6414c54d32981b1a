//! The list of streams: the configured ones in their order, then those that only have events left.
//!
//! The numbers come from the index, names and kinds from the configuration of this process. Nothing is read from a
//! source or paused here.

use super::VaultViews;
use serde::Serialize;
use steward_vault::index::{IndexError, StreamCount};

/// A stream of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredStream {
    pub name: String,
    /// How it is read, such as `imap`.
    pub kind: &'static str,
    /// Where it is set: a file with the line, or that it needs no setting.
    pub origin: String,
}

/// One stream with its counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamRow {
    /// `None` for a stream that is not configured any more and has events left.
    pub kind: Option<&'static str>,
    #[serde(flatten)]
    pub count: StreamCount,
}

impl VaultViews {
    /// Lists all streams.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_streams(&self, configured: &[ConfiguredStream]) -> Result<Vec<StreamRow>, IndexError> {
        let mut counts = self.list_stream_counts().await?;
        let mut rows = Vec::new();
        for stream in configured {
            let at = counts.iter().position(|count| count.source == stream.name);
            let count = at.map_or_else(
                || StreamCount { source: stream.name.clone(), ..StreamCount::default() },
                |at| counts.remove(at),
            );
            rows.push(StreamRow { kind: Some(stream.kind), count });
        }
        rows.extend(counts.into_iter().map(|count| StreamRow { kind: None, count }));
        Ok(rows)
    }
}
