//! Merges frontmatter: maps by key, lists as sets, and of any other value the person's stays.
//!
//! It works on values. How they are written is decided elsewhere.

use serde_json::{Map, Value};

/// Merges maps: `ours` is what a run wants, `theirs` what stands there now.
pub(super) fn merge_maps(
    base: &Map<String, Value>,
    ours: &Map<String, Value>,
    theirs: &Map<String, Value>,
) -> Map<String, Value> {
    let added = ours.keys().filter(|key| !theirs.contains_key(*key));
    let keys: Vec<&String> = theirs.keys().chain(added).collect();
    keys.into_iter()
        .filter_map(|key| Some((key.clone(), merge_values(base.get(key), ours.get(key), theirs.get(key))?)))
        .collect()
}

fn merge_values(base: Option<&Value>, ours: Option<&Value>, theirs: Option<&Value>) -> Option<Value> {
    if ours == base || ours == theirs {
        return theirs.cloned();
    }
    if theirs == base {
        return ours.cloned();
    }
    let empty = Map::new();
    match (ours, theirs) {
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
            let base = base.and_then(Value::as_object).unwrap_or(&empty);
            Some(Value::Object(merge_maps(base, ours, theirs)))
        }
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) => {
            let base = base.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            Some(Value::Array(merge_sets(base, ours, theirs)))
        }
        (_, theirs) => theirs.cloned(),
    }
}

/// What stands there now, without what the run removed and with what it added.
fn merge_sets(base: &[Value], ours: &[Value], theirs: &[Value]) -> Vec<Value> {
    let is_removed = |item: &&Value| base.contains(item) && !ours.contains(item);
    let is_added = |item: &&Value| !base.contains(item) && !theirs.contains(item);
    let kept = theirs.iter().filter(|item| !is_removed(item));
    kept.chain(ours.iter().filter(is_added)).cloned().collect()
}
