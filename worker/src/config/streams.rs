//! The configured streams, and the drop folder, which exists even if it is not configured.
//!
//! The adapter of a stream reads the keys of its kind. This module checks only how the streams fit together.

use super::StewardConfig;
use anyhow::bail;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use steward_activities::signals::purge::KEEP_EVENTS_DAYS;
use steward_activities::signals::streams::StreamConfig;
use steward_server::views::streams::ConfiguredStream;

impl StewardConfig {
    /// The names and kinds of all streams, in their order.
    pub(crate) fn list_stream_names(&self) -> Vec<ConfiguredStream> {
        let name = |stream: &StreamConfig| ConfiguredStream {
            name: stream.name.clone(),
            kind: stream.kind,
            origin: self.origins.describe_stream_origin(&stream.name),
        };
        self.streams.iter().map(name).collect()
    }
}

pub(super) fn read_streams(tables: BTreeMap<String, Map<String, Value>>) -> anyhow::Result<Vec<StreamConfig>> {
    let read = |(name, table): (String, _)| StreamConfig::read(&name, table);
    let mut streams = tables.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let inboxes: Vec<&str> = streams.iter().filter(|s| s.kind == "inbox").map(|s| s.name.as_str()).collect();
    match inboxes.as_slice() {
        [] if streams.iter().all(|s| s.name != "inbox") => streams.push(StreamConfig::default_inbox()?),
        [] => bail!("streams.inbox: the name is reserved for the drop folder: give this stream another name"),
        [_] => {}
        [first, second, ..] => {
            bail!(
                "streams.{second}: there is only one drop folder, and streams.{first} reads it: remove one of the two"
            )
        }
    }
    Ok(streams)
}

/// At least one day, because with less an event could be removed right after its extraction.
pub(super) fn read_keep_events_days(days: Option<u32>) -> anyhow::Result<u32> {
    match days.unwrap_or(KEEP_EVENTS_DAYS) {
        days @ 1..=36_500 => Ok(days),
        other => bail!("STEWARD_KEEP_EVENTS_DAYS is {other}, expected 1 to 36500"),
    }
}
