//! The names of files, folders and modules. Names such as `util` or `common` say nothing and are refused.

use crate::tree::{Source, hold, nothing_wrong, root, tracked};
use std::collections::BTreeSet;

/// The folders of the project; those that begin with a dot belong to tools.
const TOP_FOLDERS: &[&str] =
    &["domain", "vault", "workflows", "activities", "fleet", "server", "worker", "proto", "deploy", "docs", "tests"];

/// Words of an earlier design, with the words that replaced them.
const REPLACED_WORDS: [(&str, &str); 2] = [("brake", "stop"), ("keeper", "vault writer")];

const CATCH_ALLS: &[&str] = &["common", "util", "utils", "helper", "helpers", "misc", "scripts", "crates"];

fn no_mod_rs(file: &Source) -> Vec<String> {
    if file.path.rsplit('/').next() == Some("mod.rs") {
        return vec![format!("{}: name it after its folder, beside it", file.path)];
    }
    Vec::new()
}

/// The change history may name what was replaced.
fn no_replaced_words(file: &Source) -> Vec<String> {
    let is_exempt = file.is_sample() || file.path == "CHANGELOG.md";
    let is_checked = [".rs", ".md", ".html", ".proto"].iter().any(|ending| file.path.ends_with(ending)) && !is_exempt;
    let (path, text) = (file.path.to_lowercase(), file.text.to_lowercase());
    let words = REPLACED_WORDS.iter().filter(|(old, _)| is_checked && (path.contains(old) || text.contains(old)));
    words.map(|(old, new)| format!("{}: say `{new}`, not `{old}`", file.path)).collect()
}

fn no_catch_alls(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for part in file.path.split('/') {
        if CATCH_ALLS.contains(&part.strip_suffix(".rs").unwrap_or(part)) {
            found.push(format!("{}: `{part}` says nothing about what is in it", file.path));
        }
    }
    for (number, line) in (1..).zip(file.text.lines()).filter(|_| file.is_rust() && !file.is_sample()) {
        if module(line).is_some_and(|name| CATCH_ALLS.contains(&name)) {
            found.push(format!("{}:{number}: `{}` says nothing about what is in it", file.path, line.trim()));
        }
    }
    found
}

/// The name of the module that a line declares.
fn module(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (_, rest) = line.split_once("mod ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// Unknown folders at the top, and folders that are empty but for a placeholder.
fn unknown_or_empty_folders<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut there, mut with_files) = (BTreeSet::new(), BTreeSet::new());
    for (folder, rest) in paths.filter_map(|path| path.split_once('/')) {
        there.insert(folder);
        if !rest.ends_with(".gitkeep") {
            with_files.insert(folder);
        }
    }
    let unknown = there.iter().filter(|folder| !folder.starts_with('.') && !TOP_FOLDERS.contains(folder));
    let mut found: Vec<String> = unknown.map(|folder| format!("{folder}/ is no folder of the project")).collect();
    found.extend(there.difference(&with_files).map(|folder| format!("{folder}/ is empty")));
    found
}

#[test]
fn no_file_is_called_mod_rs() {
    hold(no_mod_rs);
    assert_eq!(no_mod_rs(&Source::new("vault/src/index/mod.rs", "")).len(), 1, "a bad one is caught");
    nothing_wrong(&no_mod_rs(&Source::new("vault/src/index.rs", "")));
}

#[test]
fn nothing_is_called_common_or_utils() {
    hold(no_catch_alls);
}

#[test]
fn no_word_of_an_earlier_design_is_left() {
    hold(no_replaced_words);
    assert_eq!(no_replaced_words(&Source::new("tests/tests/browser/brake.rs", "fn a_keeper() {}")).len(), 2);
    nothing_wrong(&no_replaced_words(&Source::new("CHANGELOG.md", "`brake` is now `stop`")));
}

#[test]
fn a_catch_all_is_caught() {
    for path in ["vault/src/utils.rs", "tests/tests/common/server.rs", "scripts/build.sh", "crates/domain/Cargo.toml"] {
        assert_eq!(no_catch_alls(&Source::new(path, "")).len(), 1, "{path}");
    }
    for line in ["mod helpers;", "    pub(crate) mod common {", "pub mod misc;"] {
        assert_eq!(no_catch_alls(&Source::new("vault/src/lib.rs", line)).len(), 1, "{line}");
    }
    nothing_wrong(&no_catch_alls(&Source::new("vault/src/uncommon.rs", "mod utility;\n// a mod utils\n")));
}

#[test]
fn every_folder_at_the_top_is_known_and_not_empty() {
    let files = tracked();
    nothing_wrong(&unknown_or_empty_folders(files.iter().map(|file| file.path.as_str())));
    let folders = TOP_FOLDERS.iter().filter(|folder| root().join(folder).is_dir());
    assert!(folders.count() >= 6, "most folders are missing");
}

#[test]
fn an_unknown_folder_and_an_empty_one_are_caught() {
    let paths = [".ci/run", "notes/a.md", "domain/src/lib.rs", "proto/.gitkeep", "Makefile"];
    assert_eq!(unknown_or_empty_folders(paths.into_iter()), ["notes/ is no folder of the project", "proto/ is empty"]);
}
