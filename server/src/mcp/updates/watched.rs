//! The resources that a client watches, each with how it was when it was last looked at.
//!
//! A file is known by its size, time and inode, and the findings of a wiki by all of its files. What a caller does not see looks as if it were not there.

use crate::mcp::caller::McpCaller;
use crate::mcp::paths::to_file;
use crate::mcp::resources::open_visible;
use crate::mcp::resources::uri::ResourceUri;
use crate::mcp::vault::McpVault;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steward_vault::wiki::folder::FileStat;

/// The most resources that a stream or a session watches: each is looked at whenever something may have changed.
pub(super) const MAX_WATCHED: usize = 100;

/// How long before its stream is watched a file may have changed and still be reported at once, in milliseconds: the stream is
/// acknowledged before we look.
const RECENT_MS: i64 = 2_000;

/// How a resource was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourceStamp {
    File(FileStat),
    /// A hash over all files of a wiki.
    Wiki(u64),
}

#[derive(Debug, Default)]
struct WatchedStamps {
    /// By address, as the client wrote it; `None` for what is not there.
    stamps: BTreeMap<String, Option<ResourceStamp>>,
    /// Whether somebody looks at them.
    is_claimed: bool,
}

/// What a client watches.
#[derive(Debug, Default)]
pub(crate) struct WatchedResources(Mutex<WatchedStamps>);

impl WatchedResources {
    fn lock(&self) -> MutexGuard<'_, WatchedStamps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a resource from now on; `false` if there are too many.
    pub(super) async fn watch(&self, vault: &Arc<McpVault>, caller: &McpCaller, uri: String) -> bool {
        let stamp = look_at(vault, caller, vec![uri.clone()]).await.remove(&uri).flatten();
        let mut watched = self.lock();
        if watched.stamps.len() >= MAX_WATCHED && !watched.stamps.contains_key(&uri) {
            return false;
        }
        watched.stamps.insert(uri, stamp);
        true
    }

    /// Watches a resource no more.
    pub(crate) fn forget(&self, uri: &str) {
        self.lock().stamps.remove(uri);
    }

    /// What differs from the last look. It is reported once.
    pub(super) async fn find_changes(&self, vault: &Arc<McpVault>, caller: &McpCaller) -> Vec<String> {
        let uris: Vec<String> = self.lock().stamps.keys().cloned().collect();
        let seen = look_at(vault, caller, uris).await;
        let mut watched = self.lock();
        let differing = seen.into_iter().filter(|(uri, stamp)| match watched.stamps.get_mut(uri) {
            Some(known) if known != stamp => {
                *known = *stamp;
                true
            }
            Some(_) | None => false,
        });
        differing.map(|(uri, _)| uri).collect()
    }

    /// The files that changed so shortly before they were watched that the client may not have seen the change.
    pub(super) fn list_recent(&self, now: DateTime<Utc>) -> Vec<String> {
        let is_recent = |stamp: &Option<ResourceStamp>| match stamp {
            Some(ResourceStamp::File(stat)) => now.timestamp_millis() - stat.modified_ms() <= RECENT_MS,
            Some(ResourceStamp::Wiki(_)) | None => false,
        };
        let watched = self.lock();
        watched.stamps.iter().filter(|(_, stamp)| is_recent(stamp)).map(|(uri, _)| uri.clone()).collect()
    }

    /// Whether nobody looked at them yet; then the one who asks does.
    pub(super) fn claim_watcher(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_claimed, true)
    }

    pub(super) fn release_watcher(&self) {
        self.lock().is_claimed = false;
    }

    /// Gives up the looking if nothing is watched any more.
    pub(super) fn release_if_empty(&self) -> bool {
        let mut watched = self.lock();
        watched.is_claimed = !watched.stamps.is_empty();
        !watched.is_claimed
    }
}

/// How the resources are now. A look that fails changes nothing, because it has no result.
async fn look_at(
    vault: &Arc<McpVault>,
    caller: &McpCaller,
    uris: Vec<String>,
) -> BTreeMap<String, Option<ResourceStamp>> {
    let (vault, caller) = (Arc::clone(vault), caller.clone());
    let stamp = move |uri: String| (stamp_resource(&vault, &caller, &uri), uri);
    let look = move || uris.into_iter().map(stamp).map(|(stamp, uri)| (uri, stamp)).collect();
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// How a resource is now; `None` if it is not there for the caller.
pub(super) fn stamp_resource(vault: &McpVault, caller: &McpCaller, uri: &str) -> Option<ResourceStamp> {
    let resource = ResourceUri::parse(uri)?;
    let workspace = open_visible(vault, caller, &resource)?;
    match &resource {
        ResourceUri::File { path, .. } => {
            let file = to_file(path).ok()?;
            let stat = workspace.folder.has_file(&file).then(|| workspace.folder.stat(&file)).flatten();
            stat.map(ResourceStamp::File)
        }
        ResourceUri::Lint { .. } | ResourceUri::Guide { .. } => Some(ResourceStamp::Wiki(workspace.look().digest())),
        ResourceUri::Today | ResourceUri::Matter { .. } | ResourceUri::Action { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::testing::TestVault;

    #[tokio::test]
    async fn what_changes_is_reported_once_and_only_to_who_sees_it() {
        let test = TestVault::new();
        let (page, lint, new) = ("wiki://acme/concepts/a.md", "lint://acme", "raw://acme/new.txt");
        let hidden = "wiki://other/concepts/b.md";
        let pinned = test.caller(Some("acme"));
        let watched = WatchedResources::default();
        for uri in [page, lint, new, hidden] {
            assert!(watched.watch(&test.vault, &pinned, uri.to_owned()).await);
        }
        assert!(watched.find_changes(&test.vault, &pinned).await.is_empty());
        test.write("acme/concepts/a.md", "other words, longer");
        test.write("other/concepts/b.md", "other words, longer");
        assert_eq!(watched.find_changes(&test.vault, &pinned).await, [lint, page]);
        assert!(watched.find_changes(&test.vault, &pinned).await.is_empty());
        test.write("acme/sources/new.txt", "it is there now");
        assert_eq!(watched.find_changes(&test.vault, &pinned).await, [lint, new]);
        watched.forget(lint);
        std::fs::remove_file(test.folder.path().join("wiki/acme/concepts/a.md")).unwrap();
        assert_eq!(watched.find_changes(&test.vault, &pinned).await, [page]);
    }

    #[tokio::test]
    async fn there_is_an_end_and_one_watcher() {
        let test = TestVault::new();
        let (caller, watched) = (test.caller(None), WatchedResources::default());
        for number in 0..MAX_WATCHED {
            assert!(watched.watch(&test.vault, &caller, format!("wiki://acme/{number}.md")).await);
        }
        assert!(!watched.watch(&test.vault, &caller, "wiki://acme/x.md".to_owned()).await);
        assert!(watched.watch(&test.vault, &caller, "wiki://acme/1.md".to_owned()).await);
        assert!(watched.claim_watcher() && !watched.claim_watcher());
        assert!(!watched.release_if_empty() && !watched.claim_watcher());
        (0..MAX_WATCHED).for_each(|number| watched.forget(&format!("wiki://acme/{number}.md")));
        assert!(watched.release_if_empty() && watched.claim_watcher());
    }
}
