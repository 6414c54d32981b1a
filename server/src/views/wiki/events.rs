//! The events of the streams that belong to a wiki, as assistants see them.
//!
//! The index lists them. Without one the newest files are read. An event whose file a person called otherwise than Steward calls its
//! events is left out, because a name is shown as it is. Which streams belong to a wiki is for the caller to know.

use super::WikiIndex;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath, is_slug};
use steward_domain::signals::stream::{StreamEvent, find_event_time};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{EventSignal, StreamEventRow};

/// The most files that are read where no index lists the events: about a second.
const MAX_FILES: usize = 2_000;

/// An event in a list, without its words.
#[derive(Clone, Debug)]
pub(crate) struct ListedEvent {
    pub(crate) path: RecordPath,
    /// The name of its stream.
    pub(crate) stream: String,
    /// `<kind>:<author>`. Untrusted.
    pub(crate) pattern: String,
    /// When it happened.
    pub(crate) at: DateTime<Utc>,
}

/// The events of some streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventListing {
    /// Newest first.
    pub(crate) events: Vec<ListedEvent>,
    /// Whether the index listed them; otherwise files were read.
    pub(crate) is_indexed: bool,
    /// Whether there are more, older files that were not read.
    pub(crate) is_cut: bool,
}

/// How far a stream is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdapterStatus {
    pub(crate) is_paused: bool,
    pub(crate) ran_at: Option<DateTime<Utc>>,
    /// Untrusted.
    pub(crate) last_error: Option<String>,
    /// The events that the vault has of it.
    pub(crate) events: u64,
}

impl WikiIndex {
    /// Lists the events of these streams from a moment on.
    pub(crate) async fn list_events(&self, root: &VaultRoot, streams: &[&str], since: DateTime<Utc>) -> EventListing {
        let rows = match self.open().await.filter(|index| index.is_filled()) {
            Some(index) => index.signals().list_stream_events(streams, since).await.ok(),
            None => None,
        };
        let mut listing = match rows {
            Some(rows) => {
                let events = rows.into_iter().map(list_row).collect();
                EventListing { events, is_indexed: true, is_cut: false }
            }
            None => read_newest_files(root, streams),
        };
        listing.events.retain(|event| event.at >= since && has_own_name(&event.path));
        listing.events.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.path.cmp(&b.path)));
        listing
    }

    /// Lists the signals that were read from these events, by the paths of the events. Without an index nothing is known of them.
    pub(crate) async fn list_event_signals(&self, events: &[&RecordPath]) -> BTreeMap<String, Vec<EventSignal>> {
        match self.open().await {
            Some(index) => index.signals().list_event_signals(events).await.unwrap_or_default(),
            None => BTreeMap::new(),
        }
    }

    /// How far these streams are, by their names. Without an index their files are counted.
    pub(crate) async fn list_adapters(&self, root: &VaultRoot, streams: &[&str]) -> BTreeMap<String, AdapterStatus> {
        let counts = match self.open().await.filter(|index| index.is_filled()) {
            Some(index) => index.signals().list_stream_counts().await.ok(),
            None => None,
        };
        let counted = counts.map(|counts| {
            let known = counts.into_iter().filter(|count| streams.contains(&count.source.as_str()));
            let describe = |count: steward_vault::index::StreamCount| {
                let events = count.new + count.extracted + count.parked;
                let status = AdapterStatus {
                    is_paused: count.paused,
                    ran_at: count.ran_at,
                    last_error: count.last_error,
                    events,
                };
                (count.source, status)
            };
            known.map(describe).collect()
        });
        counted.unwrap_or_else(|| {
            let mut found: BTreeMap<String, AdapterStatus> = BTreeMap::new();
            for path in list_event_files(root, streams) {
                found.entry(find_stream(&path).to_owned()).or_default().events += 1;
            }
            found
        })
    }
}

/// Reads an event with its words; `None` if its file is gone or is no event.
pub(crate) fn read_stream_event(root: &VaultRoot, path: &RecordPath) -> Option<StreamEvent> {
    let file = root.read_file(path).ok()?;
    let document = frontmatter::read_document(&file.bytes).ok()?;
    StreamEvent::read(document.fields(), document.body()).ok()
}

fn list_row(row: StreamEventRow) -> ListedEvent {
    let at = find_event_time(&row.path, row.received_at);
    ListedEvent { path: row.path, stream: row.stream, pattern: row.pattern, at }
}

fn read_newest_files(root: &VaultRoot, streams: &[&str]) -> EventListing {
    let mut paths = list_event_files(root, streams);
    // What has no time in its name may be the newest of all.
    let key = |path: &RecordPath| find_event_time(path, DateTime::<Utc>::MAX_UTC);
    paths.sort_by_key(|path| std::cmp::Reverse(key(path)));
    let is_cut = paths.len() > MAX_FILES;
    paths.truncate(MAX_FILES);
    let read = |path: RecordPath| {
        let event = read_stream_event(root, &path)?;
        let stream = find_stream(&path).to_owned();
        Some(list_row(StreamEventRow { path, stream, pattern: event.pattern, received_at: event.received_at }))
    };
    EventListing { events: paths.into_iter().filter_map(read).collect(), is_indexed: false, is_cut }
}

/// The files of these streams.
fn list_event_files(root: &VaultRoot, streams: &[&str]) -> Vec<RecordPath> {
    let files = root.list_files(RecordKind::Stream).unwrap_or_default().into_iter();
    let is_meant = |name: &str| name.split_once('/').is_some_and(|(stream, _)| streams.contains(&stream));
    let paths = files.filter(|file| is_meant(&file.name));
    paths.filter_map(|file| RecordPath::parse(&format!("{}/{}", RecordKind::Stream.folder(), file.name)).ok()).collect()
}

/// The folder of the event names its stream, whatever its file says.
fn find_stream(path: &RecordPath) -> &str {
    path.slug().split('/').next().unwrap_or_default()
}

fn has_own_name(path: &RecordPath) -> bool {
    path.slug().split('/').all(is_slug)
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::signals::stream::IncomingEvent;
    use steward_domain::time;
    use steward_vault::index::Index;

    fn put_event(vault: &std::path::Path, stream: &str, origin: &str, text: &str) -> RecordPath {
        let incoming = IncomingEvent {
            source_id: text,
            pattern: "mail:ann@b.example",
            origin_at: time::parse(origin),
            text,
            ..IncomingEvent::default()
        };
        let event = StreamEvent::new(stream, &incoming, time::parse("2026-11-21T12:00:00Z").unwrap());
        let path = event.record_path().unwrap();
        std::fs::create_dir_all(vault.join("stream").join(stream)).unwrap();
        std::fs::write(vault.join(path.as_str()), event.render()).unwrap();
        path
    }

    #[tokio::test]
    async fn the_index_and_the_files_list_the_same_events_and_no_stream_but_those_named() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let old = put_event(dir.path(), "office", "2026-11-19T08:00:00Z", "old");
        let new = put_event(dir.path(), "office", "2026-11-20T08:00:00Z", "new");
        put_event(dir.path(), "home", "2026-11-20T09:00:00Z", "private");
        std::fs::write(
            dir.path().join("stream/office/obey me.md"),
            std::fs::read(dir.path().join(new.as_str())).unwrap(),
        )
        .unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let index = Index::open(state.path()).await.unwrap();
        index.sync_all(&root, Utc::now()).await.unwrap();
        let (indexed, bare) = (WikiIndex::opened(index), WikiIndex::new(&dir.path().join("nowhere")));
        for (wikis, is_indexed) in [(&indexed, true), (&bare, false)] {
            let listed = wikis.list_events(&root, &["office"], DateTime::UNIX_EPOCH).await;
            let paths: Vec<&RecordPath> = listed.events.iter().map(|event| &event.path).collect();
            assert_eq!((paths, listed.is_indexed), (vec![&new, &old], is_indexed));
            let late = wikis.list_events(&root, &["office"], time::parse("2026-11-20T00:00:00Z").unwrap()).await;
            assert_eq!(late.events.len(), 1);
            assert!(wikis.list_events(&root, &[], DateTime::UNIX_EPOCH).await.events.is_empty());
            let adapters = wikis.list_adapters(&root, &["office"]).await;
            assert_eq!(adapters.keys().collect::<Vec<_>>(), ["office"]);
        }
    }

    #[tokio::test]
    async fn a_signal_of_an_event_is_shown_with_its_matter() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let event = put_event(dir.path(), "office", "2026-11-19T08:00:00Z", "paid");
        for (file, text) in [
            ("matter/roof.md", "---\ntype: matter\nid: m1\nname: Roof\nstate: open\n---\n".to_owned()),
            (
                "signal/s1.md",
                format!(
                    "---\ntype: signal\ncreated: 2026-11-21T12:00:00Z\nsource_event_path: {event}\nsource_type: mail:ann@b.example\nraw_quote: paid\ntarget_path: matter/roof.md\ntarget_kind: matter\ntarget_confidence: 0.9\neffect: action\neffect_confidence: 0.9\nstatus: action_pending\n---\n"
                ),
            ),
        ] {
            std::fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        let root = VaultRoot::open(dir.path()).unwrap();
        let index = Index::open(state.path()).await.unwrap();
        let report = index.sync_all(&root, Utc::now()).await.unwrap();
        let found = WikiIndex::opened(index).list_event_signals(&[&event]).await;
        let expected = EventSignal { signal: "signal/s1.md".to_owned(), matter: Some("matter/roof.md".to_owned()) };
        assert_eq!(found.get(event.as_str()), Some(&vec![expected]), "{report:?}");
    }
}
