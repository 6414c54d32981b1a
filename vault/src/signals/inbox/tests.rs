use super::*;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;

fn new_inbox() -> (tempfile::TempDir, Inbox) {
    let dir = tempfile::tempdir().unwrap();
    let inbox = Inbox::open(&VaultRoot::open(dir.path()).unwrap()).unwrap();
    (dir, inbox)
}

fn day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 11, 21).unwrap()
}

fn names(dir: &tempfile::TempDir, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(dir.path().join(folder)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn links_pipes_and_folders_are_listed_for_what_they_are_and_never_opened() {
    let (dir, inbox) = new_inbox();
    let at = |name: &str| dir.path().join("inbox").join(name);
    fs::write(at("a.eml"), "x").unwrap();
    fs::write(at(".part"), "x").unwrap();
    fs::create_dir(at("folder.eml")).unwrap();
    symlink("/etc/hostname", at("link.eml")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe.eml"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
    let found = inbox.list_waiting_files().unwrap();
    let listed: Vec<(String, bool)> = found.iter().map(|d| (d.display_name(), d.is_file)).collect();
    let expected = [("a.eml", true), ("link.eml", false), ("pipe.eml", false)];
    assert_eq!(listed, expected.map(|(n, f)| (n.to_owned(), f)));
    for dropped in &found {
        assert_eq!(inbox.open_file(dropped).unwrap().is_some(), dropped.is_file, "{}", dropped.display_name());
        inbox.move_to_refused(dropped, "it is what it is").unwrap();
    }
    assert_eq!(names(&dir, "inbox"), [".part", "folder.eml", "refused"]);
    assert_eq!(fs::read_link(at("refused/link.eml")).unwrap().to_str(), Some("/etc/hostname"));
}

#[test]
fn a_file_that_was_replaced_since_it_was_listed_is_not_read() {
    let (dir, inbox) = new_inbox();
    fs::write(dir.path().join("inbox/a.eml"), "x").unwrap();
    let dropped = inbox.list_waiting_files().unwrap().remove(0);
    fs::write(dir.path().join("inbox/b"), "secret").unwrap();
    fs::rename(dir.path().join("inbox/b"), dir.path().join("inbox/a.eml")).unwrap();
    assert!(inbox.open_file(&dropped).unwrap().is_none());
    fs::remove_file(dir.path().join("inbox/a.eml")).unwrap();
    symlink("/etc/hostname", dir.path().join("inbox/a.eml")).unwrap();
    assert!(inbox.open_file(&dropped).unwrap().is_none());
}

#[test]
fn an_ingested_file_moves_and_never_over_another() {
    let (dir, inbox) = new_inbox();
    for text in ["one", "two", "three"] {
        fs::write(dir.path().join("inbox/a.eml"), text).unwrap();
        let dropped = inbox.list_waiting_files().unwrap().remove(0);
        let mut read = String::new();
        inbox.open_file(&dropped).unwrap().unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
        inbox.move_to_done(std::slice::from_ref(&dropped), day()).unwrap();
        inbox.move_to_done(&[dropped], day()).unwrap();
    }
    assert_eq!(names(&dir, "inbox/done/2026-11-21"), ["a-2.eml", "a-3.eml", "a.eml"]);
    assert!(inbox.list_waiting_files().unwrap().is_empty());
}

#[test]
fn a_name_of_any_bytes_can_be_refused() {
    let (dir, inbox) = new_inbox();
    let name = OsString::from_vec([b"\xff\x1b[31m".as_slice(), &[b'x'; 240], b".md"].concat());
    for _ in 0..2 {
        fs::write(dir.path().join("inbox").join(&name), "x").unwrap();
        let dropped = inbox.list_waiting_files().unwrap().remove(0);
        assert!(!dropped.display_name().contains('\u{1b}'), "{}", dropped.display_name());
        inbox.move_to_refused(&dropped, "no text").unwrap();
    }
    let refused = names(&dir, "inbox/refused");
    assert_eq!(refused.len(), 3, "{refused:?}");
    let note = refused.iter().find(|n| n.ends_with(".reason.txt")).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("inbox/refused").join(note)).unwrap(), "no text\n");
}

#[test]
fn an_inbox_that_is_a_link_is_refused_with_the_fix() {
    let dir = tempfile::tempdir().unwrap();
    symlink("/tmp", dir.path().join("inbox")).unwrap();
    let message = Inbox::open(&VaultRoot::open(dir.path()).unwrap()).unwrap_err().to_string();
    assert!(message.contains("link") && message.contains("remove it"), "{message}");
}

#[test]
fn a_file_that_was_written_or_replaced_since_it_was_listed_is_not_put_away() {
    type Change = fn(&std::path::Path);
    let changes: [(&str, Change); 2] = [
        ("appended to", |path| {
            let mut file = fs::File::options().append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, b"more").unwrap();
        }),
        ("replaced", |path| {
            fs::write(path.with_extension("new"), "xx").unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        }),
    ];
    for (what, change) in changes {
        let (dir, inbox) = new_inbox();
        let path = dir.path().join("inbox/a.eml");
        fs::write(&path, "x").unwrap();
        let dropped = inbox.list_waiting_files().unwrap().remove(0);
        let file = inbox.open_file(&dropped).unwrap().unwrap();
        assert!(inbox.is_unchanged(&dropped, &file).unwrap());
        change(&path);
        assert_eq!(inbox.is_unchanged(&dropped, &file).unwrap(), what == "replaced");
        inbox.move_to_done(std::slice::from_ref(&dropped), day()).unwrap();
        inbox.move_to_refused(&dropped, "unread").unwrap();
        assert!(names(&dir, "inbox/done/2026-11-21").is_empty() && names(&dir, "inbox/refused").is_empty(), "{what}");
        // As if it had happened a moment later.
        let to = make_real_folder(&inbox.dir, "done").unwrap();
        inbox.move_listed_file(&dropped, &to).unwrap();
        assert_eq!(names(&dir, "inbox"), ["a.eml", "done"], "{what}");
        assert_ne!(fs::read_to_string(&path).unwrap(), "x", "{what}");
    }
}

#[test]
fn a_file_that_was_moved_too_early_comes_back_over_no_other() {
    let (dir, inbox) = new_inbox();
    fs::write(dir.path().join("inbox/a.eml"), "one").unwrap();
    let to = make_real_folder(&inbox.dir, "done").unwrap();
    rename_to_free_name(&inbox.dir, OsStr::new("a.eml"), &to, OsStr::new("a.eml")).unwrap();
    fs::write(dir.path().join("inbox/a.eml"), "two").unwrap();
    let back = rename_to_free_name(&to, OsStr::new("a.eml"), &inbox.dir, OsStr::new("a.eml")).unwrap();
    assert_eq!(back.unwrap(), "a-2.eml");
    assert_eq!(fs::read_to_string(dir.path().join("inbox/a.eml")).unwrap(), "two");
    assert_eq!(fs::read_to_string(dir.path().join("inbox/a-2.eml")).unwrap(), "one");
}

#[test]
fn a_file_whose_writer_writes_on_after_it_was_put_away_comes_back() {
    let (dir, inbox) = new_inbox();
    let path = dir.path().join("inbox/a.eml");
    for refused in [false, true] {
        let mut writer = fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut writer, b"ha").unwrap();
        let dropped = inbox.list_waiting_files().unwrap().remove(0);
        let moved = if refused {
            inbox.move_to_refused(&dropped, "half").unwrap()
        } else {
            inbox.move_to_done(&[dropped], day()).unwrap().pop()
        };
        let moved = moved.unwrap();
        assert!(!inbox.return_file(&moved).unwrap() && !path.exists());
        std::io::Write::write_all(&mut writer, b"lf").unwrap();
        assert!(inbox.return_file(&moved).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "half");
        assert!(!inbox.return_file(&moved).unwrap());
        // A file that a person puts in its place stays there.
        let dropped = inbox.list_waiting_files().unwrap().remove(0);
        let moved = inbox.move_to_done(&[dropped], day()).unwrap().pop().unwrap();
        let done = dir.path().join("inbox/done/2026-11-21/a.eml");
        fs::write(done.with_extension("new"), "edited").unwrap();
        fs::rename(done.with_extension("new"), &done).unwrap();
        assert!(!inbox.return_file(&moved).unwrap());
        fs::remove_file(done).unwrap();
    }
}
