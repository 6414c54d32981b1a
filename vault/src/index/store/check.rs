//! Comparison of the tables with the files. It changes neither.
//!
//! Every file is read and hashed, so an edit that kept size and time is found too.
//! [`crate::index::Index::sync_contents`] then updates the rows that differ.

use super::sync::SCAN_ORDER;
use crate::files::root::VaultRoot;
use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::files;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;

/// How a file and the index differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The file exists, but the index has no row for it.
    NotIndexed,
    /// The index has a row, but the file is gone.
    Gone,
    /// The index has the hash of different content.
    Content,
    /// The search text and the rows do not match: one of the two is missing.
    Words,
}

/// One file about which the index is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct IndexDifference {
    /// Relative to the root of the vault.
    pub path: String,
    pub differs: DifferenceKind,
}

impl Index {
    /// Reads and hashes every file and lists the differences in the order of folders.
    ///
    /// Records with missing or stray search text come last; [`crate::index::Index::rebuild`] repairs those.
    ///
    /// # Errors
    /// [`IndexError::Root`] if a folder cannot be listed; [`IndexError::Sql`].
    pub async fn compare_with_files(&self, root: &VaultRoot) -> Result<Vec<IndexDifference>, IndexError> {
        let _guard = self.scan_lock.lock().await;
        let mut found = Vec::new();
        for kind in SCAN_ORDER {
            let mut known = self.read_known_files(kind, None).await?;
            let folder = root.clone();
            let schema = Arc::clone(self.note_schema());
            let others = if kind.is_note() { self.list_known_notes_but(kind).await? } else { BTreeSet::new() };
            let hashes = tokio::task::spawn_blocking(move || hash_files(&folder, kind, &schema, &others)).await??;
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
        found.extend(self.compare_wikis(root).await?);
        let unsearchable = self.list_unsearchable_records().await?.into_iter();
        found.extend(unsearchable.map(|path| IndexDifference { path, differs: DifferenceKind::Words }));
        Ok(found)
    }
}

/// Hashes every file of a kind; `None` if the content cannot be read. `others` are known as notes of other kinds.
fn hash_files(
    root: &VaultRoot,
    kind: RecordKind,
    schema: &NoteSchema,
    others: &BTreeSet<String>,
) -> Result<Vec<(String, Option<ContentHash>)>, IndexError> {
    let is_mapped = kind.is_note() && schema.is_mapped();
    let hash = |path: String| {
        let hash = RecordPath::parse(&path).ok().and_then(|p| root.read_file(&p).ok()).map(|s| s.hash);
        (path, hash)
    };
    let entries = if is_mapped { root.list_notes()?.notes } else { files::list_folder(root, kind)? };
    let path = |name: String| if is_mapped { name } else { format!("{}/{name}", kind.folder()) };
    let paths = entries.into_iter().map(|entry| path(entry.name)).filter(|path| !others.contains(path));
    Ok(paths.map(hash).collect())
}

impl fmt::Display for IndexDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let difference = match self.differs {
            DifferenceKind::NotIndexed => "is not in the index",
            DifferenceKind::Gone => "is in the index but not in the vault",
            DifferenceKind::Content => "has different content in the index",
            DifferenceKind::Words => "and its search text in the index do not match",
        };
        write!(f, "{} {difference}", self.path)
    }
}
