//! Notes that would be matters or tasks and are left out, with the reason.
//!
//! A note is left out rather than guessed at. The others go on, and the reason is shown to the person.

use super::reading::is_filled;
use super::{find_property, first_text};
use crate::record::frontmatter::RecordFields;
use crate::record::link::fold_name;
use crate::record::mapping::NoteMapping;
use crate::record::path::{RecordKind, RecordPath};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The longest value of a person's that a message repeats, in characters.
const SHOWN_CHARS: usize = 60;
/// Names of copies that sync tools make: Syncthing, Dropbox, Nextcloud and Obsidian Sync.
const SYNC_COPIES: [&str; 3] = [".sync-conflict-", "conflicted copy", "(conflict"];
/// What template plugins replace (Templater, core templates). A note that holds it is not filled in yet.
const TEMPLATE_MARKS: [&str; 2] = ["<%", "{{"];

/// Why a note that would be a matter or a task is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum NoteExclusion {
    #[error("it is mapped as a matter and as a task: narrow `where` of one of them")]
    BothKinds,
    #[error("it is a template: `{property}` holds `{mark}`")]
    Template { property: String, mark: String },
    #[error("`{property}` stands in it twice, in different case: remove one of them")]
    DoubledProperty { property: String },
    #[error("it lies in a folder of compiled knowledge")]
    Knowledge,
    #[error("it is a copy that a sync tool made: merge it into its original")]
    SyncCopy,
    #[error("`{twin}` differs from it only in case or in its umlauts: rename one of them")]
    Twin { twin: String },
    #[error("it has no `{property}`, so its state is unknown")]
    NoState { property: String },
    #[error("`{property}` is `{value}`, which is not mapped to a state")]
    UnmappedState { property: String, value: String },
    #[error("it names no matter")]
    NoParent,
    #[error("`{property}` holds no link: write it in quotes, as in \"[[Name]]\"")]
    UnreadableParent { property: String },
    #[error("{fault}")]
    Unreadable { fault: String },
    /// Two or more faults that a person can fix, so that none is found only after another was fixed.
    #[error("{}", .faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    SeveralFaults { faults: Vec<NoteExclusion> },
}

/// Finds what keeps a note that is mapped as this kind from being used.
pub(super) fn find_exclusion(
    path: &RecordPath,
    fields: &RecordFields,
    notes: &NoteMapping,
    kind: RecordKind,
) -> Option<NoteExclusion> {
    if is_sync_copy(path.as_str()) {
        return Some(NoteExclusion::SyncCopy);
    }
    for (property, value) in fields {
        let text = value.to_string();
        if let Some(mark) = TEMPLATE_MARKS.into_iter().find(|mark| text.contains(mark)) {
            return Some(NoteExclusion::Template { property: shorten(property), mark: mark.to_owned() });
        }
    }
    let mut keys = BTreeSet::new();
    let doubled = fields.keys().filter(|key| !keys.insert(fold_name(key)));
    let mut faults: Vec<_> =
        doubled.map(|property| NoteExclusion::DoubledProperty { property: shorten(property) }).collect();
    if kind == RecordKind::Task {
        faults.extend(find_state_fault(fields, notes));
        faults.extend(find_parent_fault(path, fields, notes));
    }
    if faults.len() > 1 { Some(NoteExclusion::SeveralFaults { faults }) } else { faults.pop() }
}

fn find_state_fault(fields: &RecordFields, notes: &NoteMapping) -> Option<NoteExclusion> {
    let state = notes.state.as_ref()?;
    let found = find_property(fields, &state.property).map(|(_, value)| value).filter(|value| !value.is_null());
    let Some(value) = found else {
        return Some(NoteExclusion::NoState { property: state.property.clone() });
    };
    state.read_state(value).is_none().then(|| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        NoteExclusion::UnmappedState { property: state.property.clone(), value: shorten(&value) }
    })
}

fn find_parent_fault(path: &RecordPath, fields: &RecordFields, notes: &NoteMapping) -> Option<NoteExclusion> {
    let parent = notes.parent.as_ref()?;
    let named = parent.property.as_deref().and_then(|property| find_property(fields, property));
    let named = named.filter(|(_, value)| is_filled(value));
    if let Some((property, _)) = named.filter(|(_, value)| first_text(value).is_none()) {
        return Some(NoteExclusion::UnreadableParent { property: shorten(property) });
    }
    let is_in_folder = parent.folder && !path.split_folder().0.is_empty();
    (named.is_none() && !is_in_folder && parent.default.is_none()).then_some(NoteExclusion::NoParent)
}

/// Whether a note has the name of a copy that a sync tool made.
#[must_use]
pub fn is_sync_copy(path: &str) -> bool {
    let name = fold_name(path.rsplit('/').next().unwrap_or(path));
    SYNC_COPIES.iter().any(|mark| name.contains(mark))
}

fn shorten(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect()
}
