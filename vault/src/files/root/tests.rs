use super::*;
use steward_domain::record::frontmatter::MAX_RECORD_BYTES;

fn vault() -> (tempfile::TempDir, VaultRoot) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("task")).unwrap();
    let root = VaultRoot::open(dir.path()).unwrap();
    (dir, root)
}

#[test]
fn a_listing_says_nothing_about_folders_that_could_not_be_listed() {
    let path = "Work/".to_owned();
    let error = VaultRootError::Io { path: path.clone(), source: std::io::ErrorKind::PermissionDenied.into() };
    let listing = NoteListing { notes: Vec::new(), unlisted: vec![(path, error)] };
    for (note, is_covered) in [("Work/a.md", false), ("Work/deep/a.md", false), ("Works/a.md", true), ("a.md", true)] {
        assert_eq!(listing.covers(note), is_covered, "{note}");
    }
}

fn task(slug: &str) -> RecordPath {
    RecordPath::new(RecordKind::Task, slug).unwrap()
}

#[test]
fn a_link_out_of_the_vault_is_not_followed() {
    let (dir, root) = vault();
    std::os::unix::fs::symlink("/etc/hostname", dir.path().join("task/out.md")).unwrap();
    assert!(matches!(root.read_file(&task("out")), Err(VaultRootError::Link { .. })));
    std::os::unix::fs::symlink("/etc", dir.path().join("matter")).unwrap();
    assert!(root.list_files(RecordKind::Matter).is_err());
    assert!(root.read_file(&RecordPath::new(RecordKind::Matter, "hostname").unwrap()).is_err());
}

#[test]
fn a_record_beyond_the_limit_is_refused_with_its_size() {
    let (dir, root) = vault();
    std::fs::write(dir.path().join("task/big.md"), vec![b'x'; MAX_RECORD_BYTES + 1]).unwrap();
    let message = root.read_file(&task("big")).unwrap_err().to_string();
    assert!(message.starts_with("task/big.md: ") && message.contains("split it"), "{message}");
}

#[test]
fn a_listing_holds_markdown_files_only_and_sorted() {
    let (dir, root) = vault();
    for name in ["b.md", "a.md", ".hidden.md", "x.txt", "c.md~"] {
        std::fs::write(dir.path().join("task").join(name), "x").unwrap();
    }
    let names: Vec<String> = root.list_files(RecordKind::Task).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["a.md", "b.md"]);
    assert!(root.list_files(RecordKind::Signal).unwrap().is_empty());
}

#[test]
fn a_missing_vault_says_which_setting_to_fix() {
    let message = VaultRoot::open(Path::new("/nowhere/vault")).unwrap_err().to_string();
    assert!(message.contains("STEWARD_VAULT"), "{message}");
}
