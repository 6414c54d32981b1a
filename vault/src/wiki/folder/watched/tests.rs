//! What is kept never outlives a change.

use super::*;
use std::fs;
use std::path::Path;

fn look(path: &Path, cache: &ReadCache) -> Arc<WikiSnapshot> {
    WikiFolder::open(path).unwrap().look(cache)
}

fn names(snapshot: &WikiSnapshot) -> Vec<String> {
    snapshot.files().map(|file| file.path).collect()
}

/// What a change is called, what makes it, and the files that are there afterwards.
type Change<'a> = (&'a str, &'a dyn Fn(), &'a [&'a str]);

#[test]
fn a_wiki_without_a_change_is_listed_once_and_each_change_is_seen_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wiki");
    fs::create_dir_all(path.join("concepts")).unwrap();
    fs::write(path.join("concepts/a.md"), "a").unwrap();
    let cache = ReadCache::default();
    let first = look(&path, &cache);
    if !cache.change_watched(|wikis| wikis.contains_key(&path.canonicalize().unwrap())) {
        // The file system of this machine's temporary files is not one that can be watched.
        return;
    }
    assert!(Arc::ptr_eq(&first, &look(&path, &cache)), "nothing changed");
    let changes: [Change; 9] = [
        ("a new file", &|| fs::write(path.join("concepts/b.md"), "b").unwrap(), &["concepts/a.md", "concepts/b.md"]),
        ("other words", &|| fs::write(path.join("concepts/b.md"), "bb").unwrap(), &["concepts/a.md", "concepts/b.md"]),
        (
            "words in place",
            &|| {
                use std::os::unix::fs::FileExt;
                let file = fs::OpenOptions::new().write(true).open(path.join("concepts/a.md")).unwrap();
                file.write_at(b"x", 0).unwrap();
            },
            &["concepts/a.md", "concepts/b.md"],
        ),
        ("a file that went", &|| fs::remove_file(path.join("concepts/a.md")).unwrap(), &["concepts/b.md"]),
        (
            "a file exchanged for another",
            &|| {
                fs::write(dir.path().join("new"), "c").unwrap();
                fs::rename(dir.path().join("new"), path.join("concepts/b.md")).unwrap();
            },
            &["concepts/b.md"],
        ),
        ("a new folder", &|| fs::create_dir_all(path.join("entities/deep")).unwrap(), &["concepts/b.md"]),
        (
            "a file in it",
            &|| fs::write(path.join("entities/deep/d.md"), "d").unwrap(),
            &["concepts/b.md", "entities/deep/d.md"],
        ),
        (
            "a folder that moved",
            &|| fs::rename(path.join("entities"), path.join("people")).unwrap(),
            &["concepts/b.md", "people/deep/d.md"],
        ),
        ("a folder that went", &|| fs::remove_dir_all(path.join("people")).unwrap(), &["concepts/b.md"]),
    ];
    for (what, change, expected) in changes {
        let before = look(&path, &cache);
        change();
        let after = look(&path, &cache);
        assert!(!Arc::ptr_eq(&before, &after), "{what}");
        assert_eq!(names(&after), *expected, "{what}");
        assert!(Arc::ptr_eq(&after, &look(&path, &cache)), "{what}: and then nothing");
    }
}

#[test]
fn another_folder_under_the_same_path_is_another_wiki() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("wiki"), dir.path().join("other"));
    for (folder, name) in [(&path, "a.md"), (&other, "b.md")] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(name), "x").unwrap();
    }
    let cache = ReadCache::default();
    assert_eq!(names(&look(&path, &cache)), ["a.md"]);
    fs::rename(&path, dir.path().join("away")).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(names(&look(&path, &cache)), ["b.md"]);
}

#[test]
fn the_digest_is_that_of_the_files() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.md"), "a").unwrap();
    let digest = || look(dir.path(), &ReadCache::default()).digest();
    let first = digest();
    assert_eq!(first, digest());
    fs::write(dir.path().join("a.md"), "bb").unwrap();
    assert_ne!(first, digest());
}
