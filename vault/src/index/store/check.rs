//! Holds the tables against the files, changing neither.
//!
//! Every file is read and hashed, so an edit that kept size and time is found too. What differs is
//! taken over by [`crate::index::Index::sync_contents`].

use super::sync::ORDER;
use crate::files::root::VaultRoot;
use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::files;
use serde::Serialize;
use std::fmt;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::{RecordKind, RecordPath};

/// How a file and the index differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The file is there, the index does not know it.
    NotIndexed,
    /// The index knows it, the file is gone.
    Gone,
    /// The index knows another content.
    Content,
    /// The index knows it and cannot find it by its words, or finds what it does not know.
    Words,
}

/// One file that the index has wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct IndexDifference {
    /// Relative to the root of the vault.
    pub path: String,
    pub differs: DifferenceKind,
}

impl Index {
    /// Reads and hashes every file and says where the index is wrong, in the order of folders; then what is not found
    /// by its words, which [`crate::index::Index::rebuild`] mends.
    ///
    /// # Errors
    /// [`IndexError::Root`] when a folder cannot be listed; [`IndexError::Sql`].
    pub async fn compare_with_files(&self, root: &VaultRoot) -> Result<Vec<IndexDifference>, IndexError> {
        let _turn = self.scanning.lock().await;
        let mut found = Vec::new();
        for kind in ORDER {
            let mut known = self.read_known_files(kind, None).await?;
            let folder = root.clone();
            let hashes = tokio::task::spawn_blocking(move || hash_files(&folder, kind)).await??;
            for (path, hash) in hashes {
                match known.remove(&path) {
                    None => found.push(IndexDifference { path, differs: DifferenceKind::NotIndexed }),
                    Some(known) if known.hash != hash => {
                        found.push(IndexDifference { path, differs: DifferenceKind::Content })
                    }
                    Some(_) => {}
                }
            }
            let mut gone: Vec<String> = known.into_keys().collect();
            gone.sort();
            found.extend(gone.into_iter().map(|path| IndexDifference { path, differs: DifferenceKind::Gone }));
        }
        let unfound = self.list_unsearchable_records().await?.into_iter();
        found.extend(unfound.map(|path| IndexDifference { path, differs: DifferenceKind::Words }));
        Ok(found)
    }
}

/// Every file of a folder with the hash of its content; `None` where that cannot be read.
fn hash_files(root: &VaultRoot, kind: RecordKind) -> Result<Vec<(String, Option<ContentHash>)>, IndexError> {
    let hash = |name: String| {
        let path = format!("{}/{name}", kind.folder());
        let hash = RecordPath::parse(&path).ok().and_then(|p| root.read_file(&p).ok()).map(|s| s.hash);
        (path, hash)
    };
    Ok(files::list_folder(root, kind)?.into_iter().map(|e| hash(e.name)).collect())
}

impl fmt::Display for IndexDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.differs {
            DifferenceKind::NotIndexed => "is not in the index",
            DifferenceKind::Gone => "is in the index but not in the vault",
            DifferenceKind::Content => "has another content than the index knows",
            DifferenceKind::Words => "is not found by its words as the index knows it",
        };
        write!(f, "{} {how}", self.path)
    }
}
