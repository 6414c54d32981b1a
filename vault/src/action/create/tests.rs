use super::*;
use std::fs;
use steward_domain::signals::stream::IncomingEvent;
use steward_domain::time;

fn vault() -> (tempfile::TempDir, VaultWriter) {
    let dir = tempfile::tempdir().unwrap();
    let writer = VaultWriter::lock(VaultRoot::open(dir.path()).unwrap()).unwrap();
    (dir, writer)
}

fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap()
}

fn at(day: u32) -> DateTime<Utc> {
    time::parse(&format!("2026-11-{day:02}")).unwrap()
}

fn event(status: EventStatus, received_at: DateTime<Utc>) -> String {
    let incoming = IncomingEvent { source_id: "1", pattern: "x:y", text: "paid", ..IncomingEvent::default() };
    StreamEvent { status, ..StreamEvent::new("mail", &incoming, received_at) }.render()
}

#[test]
fn a_new_file_is_written_once_and_asking_again_is_fine() {
    let (dir, writer) = vault();
    let path = path("stream/mail/a.md");
    assert!(writer.create_file(&path, b"words").unwrap());
    assert!(!writer.create_file(&path, b"words").unwrap());
    assert_eq!(fs::read(dir.path().join("stream/mail/a.md")).unwrap(), b"words");
    assert!(fs::read_dir(dir.path().join(".steward/staged")).unwrap().next().is_none(), "something was left");
}

#[test]
fn a_file_with_other_words_is_never_overwritten() {
    let (dir, writer) = vault();
    let path = path("signal/a.md");
    fs::create_dir(dir.path().join("signal")).unwrap();
    fs::write(dir.path().join("signal/a.md"), "a human's").unwrap();
    assert!(matches!(writer.create_file(&path, b"ours"), Err(CreateError::Taken { .. })));
    assert_eq!(fs::read(dir.path().join("signal/a.md")).unwrap(), b"a human's");
}

#[test]
fn no_record_that_decisions_change_can_be_written_whole() {
    let (_dir, writer) = vault();
    for bad in ["task/a.md", "matter/a.md", "event/steward-action-a.md"] {
        assert!(matches!(writer.create_file(&path(bad), b"x"), Err(CreateError::Kind { .. })), "{bad}");
    }
}

#[test]
fn a_link_leads_no_new_file_out_of_the_vault() {
    let (dir, writer) = vault();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("stream")).unwrap();
    fs::create_dir(dir.path().join("other")).unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("stream/mail")).unwrap();
    std::os::unix::fs::symlink("../other", dir.path().join("stream/chat")).unwrap();
    for source in ["mail", "chat"] {
        let message = writer.create_file(&path(&format!("stream/{source}/a.md")), b"x").unwrap_err().to_string();
        assert!(message.contains("link") && message.contains("remove it"), "{message}");
    }
    assert!(fs::read_dir(outside.path()).unwrap().next().is_none());
    assert!(fs::read_dir(dir.path().join("other")).unwrap().next().is_none());
}

#[test]
fn what_a_crash_left_on_its_way_in_does_not_show_and_does_not_hinder() {
    let (dir, writer) = vault();
    writer.create_file(&path("stream/mail/a.md"), b"a").unwrap();
    fs::write(dir.path().join(".steward/staged/incoming-0.md"), "half a fi").unwrap();
    assert!(writer.create_file(&path("stream/mail/b.md"), b"b").unwrap());
    fs::write(dir.path().join(".steward/staged/incoming-0.md"), "half a fi").unwrap();
    drop(writer);
    VaultWriter::lock(VaultRoot::open(dir.path()).unwrap()).unwrap();
    assert!(fs::read_dir(dir.path().join(".steward/staged")).unwrap().next().is_none());
    assert_eq!(fs::read_dir(dir.path().join("stream/mail")).unwrap().count(), 2);
}

#[test]
fn of_a_batch_that_fails_in_the_middle_the_rest_can_be_asked_for_again() {
    let (dir, writer) = vault();
    fs::create_dir_all(dir.path().join("stream/mail")).unwrap();
    fs::write(dir.path().join("stream/mail/b.md"), "other").unwrap();
    let files = ["a", "b", "c"].map(|n| (path(&format!("stream/mail/{n}.md")), n.as_bytes().to_vec()));
    assert!(writer.create_files(&files).is_err());
    fs::remove_file(dir.path().join("stream/mail/b.md")).unwrap();
    assert_eq!(writer.create_files(&files).unwrap(), [true, true, true]);
    assert_eq!(writer.create_files(&files).unwrap(), [false, false, false]);
}

#[test]
fn only_extracted_events_that_are_old_are_dropped() {
    let (dir, writer) = vault();
    let events = [
        ("old", EventStatus::Extracted, 1),
        ("young", EventStatus::Extracted, 20),
        ("waiting", EventStatus::New, 1),
        ("parked", EventStatus::Parked, 1),
    ];
    let mut paths = Vec::new();
    for (name, status, day) in events {
        let path = path(&format!("stream/mail/{name}.md"));
        writer.create_file(&path, event(status, at(day)).as_bytes()).unwrap();
        paths.push(path);
    }
    fs::write(dir.path().join("stream/mail/note.md"), "---\ntype: note\n---\n").unwrap();
    paths.extend([path("stream/mail/note.md"), path("stream/mail/gone.md")]);
    assert_eq!(writer.remove_extracted_events(&paths, at(10)).unwrap(), 1);
    assert_eq!(writer.remove_extracted_events(&paths, at(10)).unwrap(), 0, "twice is once");
    let mut left: Vec<String> = fs::read_dir(dir.path().join("stream/mail"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["note.md", "parked.md", "waiting.md", "young.md"]);
}

#[test]
fn a_note_that_a_person_asked_for_replaces_nothing_and_follows_no_link() {
    let (dir, writer) = vault();
    fs::create_dir(dir.path().join("Projects")).unwrap();
    std::os::unix::fs::symlink("Projects", dir.path().join("Linked")).unwrap();
    writer.create_note(&path("Projects/Other tasks.md"), b"one").unwrap();
    writer.create_note(&path("Root.md"), b"root").unwrap();
    assert_eq!(fs::read(dir.path().join("Root.md")).unwrap(), b"root");
    let taken = writer.create_note(&path("Projects/Other tasks.md"), b"two");
    assert!(matches!(taken, Err(CreateError::Taken { .. })), "{taken:?}");
    assert_eq!(fs::read(dir.path().join("Projects/Other tasks.md")).unwrap(), b"one");
    let failed = writer.create_note(&path("Linked/x.md"), b"x");
    assert!(matches!(failed, Err(CreateError::Disk(_))), "{failed:?}");
    writer.create_note(&path("New/deep/x.md"), b"x").unwrap();
    assert_eq!(fs::read(dir.path().join("New/deep/x.md")).unwrap(), b"x");
    assert_eq!(fs::read_dir(dir.path().join("Projects")).unwrap().count(), 1);
}
