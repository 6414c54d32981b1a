//! Chooses what tells some notes of a vault apart from others: a property, a tag or a folder.
//!
//! A selector must cover most of the wanted notes and none of the others. It is only proposed, and a person decides.

use super::NoteSample;
use crate::record::link::fold_name;
use crate::record::mapping::selector::NoteSelector;
use crate::record::path::RecordPath;
use serde_json::Value;
use std::collections::BTreeSet;

/// The share of tasks or matters that a selector must cover, in percent.
const MIN_COVERAGE: usize = 80;
/// Properties whose value says what a note is.
const CLASS_NAMES: [&str; 5] = ["type", "kind", "class", "category", "typ"];

/// A selector, and how many notes it matches.
pub(super) struct ChosenSelector {
    pub(super) selector: NoteSelector,
    covered: usize,
    matched: usize,
}

impl ChosenSelector {
    /// Whether most of the notes that it matches are wanted.
    pub(super) fn is_mostly_wanted(&self) -> bool {
        self.covered * 2 > self.matched
    }
}

/// The selector that covers the wanted notes best, matches none of the others, and fewest notes besides.
pub(super) fn choose_selector(
    notes: &[&NoteSample],
    wanted: &BTreeSet<RecordPath>,
    others: &BTreeSet<RecordPath>,
) -> Option<ChosenSelector> {
    let mut best: Option<ChosenSelector> = None;
    for selector in list_selectors(notes, wanted) {
        let matching: Vec<&RecordPath> =
            notes.iter().filter(|note| selector.matches(&note.path, &note.fields)).map(|note| &note.path).collect();
        let covered = matching.iter().filter(|path| wanted.contains(*path)).count();
        let is_apart = !matching.iter().any(|path| others.contains(*path));
        if !is_apart || covered * 100 < wanted.len() * MIN_COVERAGE {
            continue;
        }
        let found = ChosenSelector { selector, covered, matched: matching.len() };
        let rank = |chosen: &ChosenSelector| (chosen.covered, usize::MAX - chosen.matched);
        if best.as_ref().is_none_or(|best| rank(&found) > rank(best)) {
            best = Some(found);
        }
    }
    best
}

/// The selectors that single properties, tags and folders of the wanted notes suggest.
fn list_selectors(notes: &[&NoteSample], wanted: &BTreeSet<RecordPath>) -> Vec<NoteSelector> {
    let (mut classes, mut tags, mut folders) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for note in notes.iter().filter(|note| wanted.contains(&note.path)) {
        for (key, value) in &note.fields {
            if let Value::String(text) = value
                && CLASS_NAMES.contains(&fold_name(key).as_str())
            {
                classes.insert((key.clone(), text.trim().to_owned()));
            }
        }
        tags.extend(NoteSelector::list_tags(&note.fields));
        let folder = note.path.split_folder().0;
        folders.extend(folder.match_indices('/').map(|(at, _)| folder[..at].to_owned()));
        folders.insert(folder.to_owned());
    }
    folders.remove("");
    let classes = classes.into_iter().map(|(key, value)| NoteSelector::with_property(&key, Value::from(value)));
    let tags = tags.into_iter().map(|tag| NoteSelector::with_tag(&tag));
    // Of equally good selectors the first wins: what a person wrote into the note says more than its place.
    classes.chain(tags).chain(folders.iter().map(|folder| NoteSelector::in_folder(folder))).collect()
}

pub(super) fn describe_selection(chosen: &ChosenSelector, wanted: usize, what: &str) -> String {
    let besides = chosen.matched - chosen.covered;
    let more = if besides == 0 { String::new() } else { format!("; further notes: {besides}") };
    format!("it fits {} of {wanted} {what}{more}", chosen.covered)
}
