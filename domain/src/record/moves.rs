//! Which note a path meant: the moves and renames of notes, as chained audit records hold them.
//!
//! People rename and move notes. A path in an older audit record or signal means the note that had it at that time.
//! [`MoveHistory`] finds that note's path now. It opens no file, and it does not decide what has moved.

mod links;

use crate::record::link::{LinkScope, NoteNames};
use crate::record::path::{RecordKind, RecordPath};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use links::LinkReader;
pub(crate) use links::collect_texts;

/// One note that has another path now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NoteMove {
    pub from: RecordPath,
    /// `None` if the note ended, because another note was moved to its path.
    pub to: Option<RecordPath>,
}

/// The moves of one audit record. They happened at once: two notes may have changed places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedMoves {
    /// The number of the record in the chain.
    pub seq: u64,
    /// When the moves were noticed.
    pub at: DateTime<Utc>,
    pub moves: Vec<NoteMove>,
}

/// When a path was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathTime {
    /// In the audit record of this number.
    Seq(u64),
    /// At this moment. A move that is noticed later changes what the path means.
    At(DateTime<Utc>),
}

/// All moves of a vault's notes, in the order of their records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveHistory {
    by_old: BTreeMap<RecordPath, Vec<MoveAway>>,
    /// The number of each record by which a note came, and the path that it had before.
    by_new: BTreeMap<RecordPath, Vec<(u64, RecordPath)>>,
    /// Every path from which a note has moved.
    former: NoteNames,
}

/// Finds the notes that paths meant at one time.
#[derive(Clone, Copy, Debug)]
pub struct NoteFinder<'a> {
    pub names: &'a NoteNames,
    pub moves: &'a MoveHistory,
    pub time: PathTime,
}

impl NoteFinder<'_> {
    /// Whether the note that a path named is no more, because another one was moved over it.
    #[must_use]
    pub fn has_ended(&self, path: &RecordPath) -> bool {
        self.moves.find_current(path, self.time).is_none()
    }

    /// The path now of the note that a path named which was spelled from a link.
    #[must_use]
    pub fn find_spelled(&self, kind: RecordKind, spelled: &RecordPath) -> Option<RecordPath> {
        let Self { names, moves, time } = *self;
        moves
            .find_moved(spelled, time)
            .or_else(|| names.find_spelled(kind, spelled))
            .or_else(|| moves.former.find_spelled(kind, spelled).and_then(|former| moves.find_moved(&former, time)))
    }
}

/// A move away from a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MoveAway {
    seq: u64,
    at: DateTime<Utc>,
    to: Option<RecordPath>,
}

impl MoveHistory {
    /// No note has moved.
    #[must_use]
    pub const fn empty() -> Self {
        Self { by_old: BTreeMap::new(), by_new: BTreeMap::new(), former: NoteNames::new(LinkScope::KindFolder) }
    }

    /// Collects recorded moves, in any order. `scope` says which notes a link may name.
    #[must_use]
    pub fn new(scope: LinkScope, records: impl IntoIterator<Item = RecordedMoves>) -> Self {
        let mut history = Self { former: NoteNames::new(scope), ..Self::default() };
        for RecordedMoves { seq, at, moves } in records {
            for NoteMove { from, to } in moves {
                if let Some(to) = &to {
                    history.by_new.entry(to.clone()).or_default().push((seq, from.clone()));
                }
                history.former.insert(from.clone());
                history.by_old.entry(from).or_default().push(MoveAway { seq, at, to });
            }
        }
        history.by_old.values_mut().for_each(|moves| moves.sort_by_key(|away| away.seq));
        history.by_new.values_mut().for_each(|former| former.sort_by_key(|(seq, _)| *seq));
        history
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_old.is_empty()
    }

    /// The path now of the note that had `path` at that time; `None` if another note was moved over it.
    #[must_use]
    pub fn find_current(&self, path: &RecordPath, time: PathTime) -> Option<RecordPath> {
        let (mut path, mut time) = (path, time);
        while let Some(away) = self.find_move_away(path, time) {
            (path, time) = (away.to.as_ref()?, PathTime::Seq(away.seq));
        }
        Some(path.clone())
    }

    /// The paths that the note at `path` had before, the newest first.
    #[must_use]
    pub fn list_former_paths(&self, path: &RecordPath) -> Vec<RecordPath> {
        let (mut found, mut path, mut before): (Vec<RecordPath>, _, _) = (Vec::new(), path, u64::MAX);
        // A note that was moved away since lost its former paths with it.
        let last_away = |path: &RecordPath, before: u64| {
            self.by_old
                .get(path)
                .and_then(|moves| moves.iter().rfind(|away| away.seq < before))
                .map_or(0, |away| away.seq)
        };
        while let Some((seq, former)) = self
            .by_new
            .get(path)
            .and_then(|all| all.iter().rfind(|(seq, _)| *seq < before))
            .filter(|(seq, _)| *seq >= last_away(path, before))
        {
            (path, before) = (former, *seq);
            found.push(former.clone());
        }
        found
    }

    /// The path now of the note that had `path` at that time, if it has moved since.
    #[must_use]
    pub fn find_moved(&self, path: &RecordPath, time: PathTime) -> Option<RecordPath> {
        self.find_move_away(path, time)?;
        self.find_current(path, time)
    }

    /// The note that a link in `from` named at that time, if it has moved since.
    #[must_use]
    pub fn resolve_moved(&self, kind: RecordKind, link: &str, from: &RecordPath, time: PathTime) -> Option<RecordPath> {
        self.find_moved(&self.former.resolve(kind, link, from).ok()?, time)
    }

    fn find_move_away(&self, path: &RecordPath, time: PathTime) -> Option<&MoveAway> {
        let is_later = |away: &&MoveAway| match time {
            PathTime::Seq(seq) => away.seq > seq,
            PathTime::At(at) => away.at > at,
        };
        self.by_old.get(path)?.iter().find(is_later)
    }
}

#[cfg(test)]
mod tests;
