use std::fs;

use super::*;

/// Rust files that name `needle`, under the workspace.
fn files_with(needle: &str, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().unwrap().is_dir() {
            if !name.starts_with('.') && name != "target" {
                files_with(needle, &entry.path(), found);
            }
        } else if name.ends_with(".rs") && fs::read_to_string(entry.path()).unwrap().contains(needle) {
            found.push(entry.path().to_string_lossy().into_owned());
        }
    }
}

#[test]
fn the_ledger_alone_turns_a_grant_into_a_reservation() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    // The name is in two parts, so that this file does not contain it.
    files_with(concat!("into_", "reservation"), workspace, &mut found);
    let others: Vec<_> = found
        .iter()
        .filter(|file| {
            !file.contains("/domain/src/steward/guard") && !file.ends_with("/vault/src/steward/guard/book.rs")
        })
        .collect();
    assert!(others.is_empty(), "only the ledger may make a reservation: {others:?}");
    assert_eq!(found.iter().filter(|file| file.ends_with("book.rs")).count(), 1);
}
