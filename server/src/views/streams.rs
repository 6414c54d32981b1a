//! The streams: those that are set, in their order, then those that only have events left.
//!
//! Numbers come from the index, names and kinds from the configuration of the process that tells. Nothing is read from
//! a source here, and nothing is paused.

use serde::Serialize;
use steward_vault::index::{Index, IndexError, StreamCount};

/// A stream that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredStream {
    pub name: String,
    /// How it is read, as in `imap`.
    pub kind: &'static str,
}

/// One stream, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamRow {
    /// `None` for one that is configured no more and has events left.
    pub kind: Option<&'static str>,
    #[serde(flatten)]
    pub count: StreamCount,
}

/// Every stream.
///
/// # Errors
/// [`IndexError::Sql`].
pub async fn list_streams(index: &Index, set: &[ConfiguredStream]) -> Result<Vec<StreamRow>, IndexError> {
    let mut counts = index.list_stream_counts().await?;
    let mut rows = Vec::new();
    for stream in set {
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
