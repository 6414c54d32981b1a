//! What an action stages: its audit record, and for each file the new content or its removal.
//!
//! Nothing here is written: [`crate::action::apply`] stages it.

use crate::action::journal::{ContentChange, FileChange};
use crate::action::swap;
use crate::files::root::RecordSnapshot;
use steward_domain::action::plan::{ActionId, ContentHash};
use steward_domain::action::target::WriteTarget;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::path::PagePath;

/// The audit record of a change that is staged.
pub(crate) struct StagedRecord<'a> {
    pub(crate) path: RecordPath,
    pub(crate) text: String,
    pub(crate) id: &'a ActionId,
    pub(crate) seq: u64,
}

/// New content of a file, or its removal.
pub(crate) struct NewContent {
    pub(super) change: FileChange,
    /// `None` for a file that is removed.
    pub(super) bytes: Option<Vec<u8>>,
}

impl NewContent {
    /// New content of a file that exists.
    pub(crate) fn new(target: impl Into<WriteTarget>, current: &RecordSnapshot, bytes: Vec<u8>) -> Self {
        let content = ContentChange::Swap {
            before: current.hash.clone(),
            after: ContentHash::hash_bytes(&bytes),
            replaced: swap::replaced_words(&current.bytes, &bytes),
        };
        Self { change: FileChange { target: target.into(), content }, bytes: Some(bytes) }
    }

    /// A new file of a wiki.
    pub(crate) fn create(target: PagePath, bytes: Vec<u8>) -> Self {
        let content = ContentChange::Create { after: ContentHash::hash_bytes(&bytes) };
        Self { change: FileChange { target: target.into(), content }, bytes: Some(bytes) }
    }

    /// A file of a wiki that a run removes.
    pub(crate) fn remove(target: PagePath, before: ContentHash, run: &str) -> Self {
        let content = ContentChange::Remove { before, run: run.to_owned() };
        Self { change: FileChange { target: target.into(), content }, bytes: None }
    }
}
