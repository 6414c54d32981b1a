use super::*;
use cap_std::ambient_authority;

fn dir() -> (tempfile::TempDir, Dir) {
    let temporary = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(temporary.path(), ambient_authority()).unwrap();
    (temporary, dir)
}

#[test]
fn a_new_file_never_goes_over_another_or_through_a_link() {
    let (temporary, dir) = dir();
    std::fs::write(temporary.path().join("a"), "mine").unwrap();
    std::os::unix::fs::symlink("a", temporary.path().join("b")).unwrap();
    for name in ["a", "b"] {
        let error = create_file(&dir, name, b"ours").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(dir.read("a").unwrap(), b"mine");
    }
}

#[test]
fn a_file_is_replaced_whole_and_leaves_no_trace_of_how() {
    let (temporary, dir) = dir();
    std::fs::write(temporary.path().join("a.tmp"), "what a crash left").unwrap();
    replace_file(&dir, "a", b"first").unwrap();
    replace_file(&dir, "a", b"second").unwrap();
    sync_folder(&dir).unwrap();
    assert_eq!(dir.read("a").unwrap(), b"second");
    assert_eq!(dir.entries().unwrap().count(), 1);
}

#[test]
fn a_stand_in_has_the_permissions_of_its_model() {
    let (_temporary, dir) = dir();
    create_file(&dir, "model", b"x").unwrap();
    for mode in [0o600, 0o640, 0o664, 0o755] {
        dir.set_permissions("model", Permissions::from_mode(mode)).unwrap();
        create_file_like(&dir, "new", b"y", &dir.metadata("model").unwrap()).unwrap();
        assert_eq!(dir.metadata("new").unwrap().mode() & 0o7777, mode);
        remove_file(&dir, "new").unwrap();
    }
    remove_file(&dir, "new").unwrap();
}
