use super::*;
use notify::event::{CreateKind, DataChange, MetadataKind, RemoveKind};
use std::fs;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Longer than any machine needs; a watcher that stays silent fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

fn place() -> WatchedPlace {
    WatchedPlace { root: "/vault".into(), steward_folder: None }
}

struct Watched {
    dir: tempfile::TempDir,
    hints: mpsc::Receiver<ChangeHint>,
    _watcher: VaultWatcher,
}

impl Watched {
    fn new(folders: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in folders {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("task-outside.md"), "x").unwrap();
        let (send, hints) = mpsc::channel(16);
        let watcher = watch_vault(&VaultRoot::open(dir.path()).unwrap(), send).unwrap();
        Self { dir, hints, _watcher: watcher }
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.dir.path().join(path), text).unwrap();
    }

    async fn hint(&mut self) -> ChangeHint {
        timeout(PATIENCE, self.hints.recv()).await.expect("no hint came").expect("the watcher ended")
    }

    /// Waits for a hint that names this record.
    async fn named(&mut self, path: &str) {
        let path = RecordPath::parse(path).unwrap();
        loop {
            if let ChangeHint::Paths(paths) = self.hint().await
                && paths.contains(&path)
            {
                return;
            }
        }
    }
}

#[tokio::test]
async fn every_way_to_change_a_record_is_hinted_at() {
    let mut watched = Watched::new(&["task", "signal"]);
    watched.write("task/a.md", "one");
    watched.named("task/a.md").await;
    watched.write("task/a.md", "two");
    watched.named("task/a.md").await;
    watched.write("task/.a.md.tmp", "three");
    fs::rename(watched.dir.path().join("task/.a.md.tmp"), watched.dir.path().join("task/a.md")).unwrap();
    watched.named("task/a.md").await;
    fs::remove_file(watched.dir.path().join("task/a.md")).unwrap();
    watched.named("task/a.md").await;
    watched.write("signal/s.md", "one");
    watched.named("signal/s.md").await;
}

#[tokio::test]
async fn a_rename_names_both_records() {
    let mut watched = Watched::new(&["task"]);
    watched.write("task/a.md", "one");
    watched.named("task/a.md").await;
    fs::rename(watched.dir.path().join("task/a.md"), watched.dir.path().join("task/b.md")).unwrap();
    let both = ["task/a.md", "task/b.md"].map(|p| RecordPath::parse(p).unwrap());
    let mut seen = BTreeSet::new();
    while !both.iter().all(|p| seen.contains(p)) {
        match watched.hint().await {
            ChangeHint::Paths(paths) => seen.extend(paths),
            ChangeHint::Rescan => return,
            ChangeHint::Inbox => {}
        }
    }
}

#[tokio::test]
async fn a_folder_created_later_is_watched_too() {
    let mut watched = Watched::new(&[]);
    fs::create_dir(watched.dir.path().join("matter")).unwrap();
    assert_eq!(watched.hint().await, ChangeHint::Rescan);
    watched.write("matter/m.md", "one");
    watched.named("matter/m.md").await;
}

#[tokio::test]
async fn a_folder_that_was_replaced_is_watched_again() {
    let mut watched = Watched::new(&["matter"]);
    fs::remove_dir(watched.dir.path().join("matter")).unwrap();
    assert_eq!(watched.hint().await, ChangeHint::Rescan);
    fs::create_dir(watched.dir.path().join("matter")).unwrap();
    assert_eq!(watched.hint().await, ChangeHint::Rescan);
    watched.write("matter/m.md", "one");
    watched.named("matter/m.md").await;
}

#[tokio::test]
async fn reading_and_files_of_others_are_no_hints() {
    let mut watched = Watched::new(&["task", "event", "attachments"]);
    watched.write("task/a.md", "one");
    watched.named("task/a.md").await;
    for _ in 0..50 {
        fs::read(watched.dir.path().join("task/a.md")).unwrap();
        fs::read_dir(watched.dir.path().join("task")).unwrap().for_each(drop);
    }
    for other in ["task/a.txt", "task/.hidden.md", "event/birthday.md", "attachments/x.md", "note.md"] {
        watched.write(other, "x");
    }
    watched.write("event/steward-action-x.md", "last");
    let expected = ChangeHint::Paths(vec![RecordPath::parse("event/steward-action-x.md").unwrap()]);
    assert_eq!(watched.hint().await, expected);
}

#[tokio::test]
async fn a_name_that_no_record_may_have_asks_for_a_scan() {
    let mut watched = Watched::new(&["task"]);
    watched.write("task/my task .md", "x");
    assert_eq!(watched.hint().await, ChangeHint::Rescan);
}

#[tokio::test]
async fn a_dropped_watcher_ends_its_channel() {
    let mut watched = Watched::new(&["task"]);
    let Watched { _watcher, hints, .. } = &mut watched;
    drop(std::mem::replace(_watcher, VaultWatcher { pending: Arc::default() }));
    assert_eq!(timeout(PATIENCE, hints.recv()).await.unwrap(), None);
}

#[test]
fn an_overflow_asks_for_a_scan() {
    let mut gathered = GatheredChanges::default();
    let overflow = Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
    gathered.add_event(&place(), &overflow);
    assert_eq!(gathered.into_hints().collect::<Vec<_>>(), [ChangeHint::Rescan]);
}

#[test]
fn very_many_changes_ask_for_a_scan() {
    let mut gathered = GatheredChanges::default();
    for n in 0..=MANY {
        gathered.add_path(&place(), Path::new(&format!("/vault/task/t{n}.md")));
    }
    assert_eq!(gathered.into_hints().collect::<Vec<_>>(), [ChangeHint::Rescan]);
}

#[test]
fn a_limit_of_the_system_is_named_with_its_fix() {
    let full = notify::Error::new(ErrorKind::MaxFilesWatch);
    let message = WatchError::new(Path::new("/vault"), full).to_string();
    assert!(message.contains("fs.inotify.max_user_watches"), "{message}");
    let instances = notify::Error::io(io::Error::from_raw_os_error(24));
    assert!(matches!(WatchError::new(Path::new("/vault"), instances), WatchError::Limit { .. }));
}

#[tokio::test]
async fn stream_events_are_hinted_at_also_in_a_folder_that_came_later() {
    let mut watched = Watched::new(&["stream"]);
    fs::create_dir(watched.dir.path().join("stream/mail")).unwrap();
    assert_eq!(watched.hint().await, ChangeHint::Rescan);
    watched.write("stream/mail/a.md", "one");
    watched.named("stream/mail/a.md").await;
}

#[tokio::test]
async fn whatever_is_dropped_is_hinted_at_also_when_the_folder_came_later() {
    let mut watched = Watched::new(&[]);
    fs::create_dir(watched.dir.path().join("inbox")).unwrap();
    assert_eq!(watched.hint().await, ChangeHint::Inbox);
    watched.write("inbox/no record's name.eml", "one");
    assert_eq!(watched.hint().await, ChangeHint::Inbox);
}

fn event(kind: EventKind, path: &str) -> notify::Result<Event> {
    Ok(Event::new(kind).add_path(Path::new("/vault").join(path)))
}

#[test]
fn a_file_that_is_whole_is_hinted_at_once_and_one_that_may_change_further_waits() {
    const TO: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));
    const FROM: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::From));
    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const READ: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Read));
    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const TOUCHED: EventKind = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
    let urgency = |kind| HintUrgency::classify_event(&Event::new(kind));
    for kind in [TO, CLOSED] {
        assert_eq!(urgency(kind), Some(HintUrgency::AtOnce), "{kind:?}");
    }
    for kind in [FROM, WRITTEN, TOUCHED, EventKind::Create(CreateKind::File), EventKind::Remove(RemoveKind::File)] {
        assert_eq!(urgency(kind), Some(HintUrgency::Later), "{kind:?}");
    }
    assert_eq!(urgency(READ), None);

    let (pending, begun) = (PendingChanges::default(), Instant::now());
    pending.add_reported(&place(), event(WRITTEN, "task/written.md"));
    pending.add_reported(&place(), event(EventKind::Remove(RemoveKind::File), "task/saved.md"));
    pending.add_reported(&place(), event(TO, "task/saved.md"));
    pending.add_reported(&place(), event(CLOSED, "signal/s.md"));
    let named = |paths: &[&str]| paths.iter().map(|p| RecordPath::parse(p).unwrap()).collect::<BTreeSet<_>>();
    let first = pending.next().unwrap();
    // On a machine so slow that the wait was over, both come at once.
    if begun.elapsed() < pending::DEBOUNCE / 2 {
        assert_eq!(first.paths, named(&["signal/s.md", "task/saved.md"]));
        assert_eq!(pending.next().unwrap().paths, named(&["task/written.md"]));
    }
    pending.close();
    assert!(pending.next().is_none());
}

#[test]
fn what_nobody_takes_does_not_grow() {
    let pending = PendingChanges::default();
    for n in 0..3 * MANY {
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        pending.add_reported(&place(), event(closed, &format!("task/t{n}.md")));
    }
    let taken = pending.next().unwrap();
    assert!(taken.rescan && taken.paths.len() <= MANY, "{}", taken.paths.len());
}

#[test]
fn in_a_vault_with_a_mapping_every_note_counts_and_our_own_files_by_their_place_below_our_folder() {
    let mapped = WatchedPlace { root: "/vault".into(), steward_folder: Some("Meta/Steward".into()) };
    let gather = |path: &str| {
        let mut gathered = GatheredChanges::default();
        gathered.add_path(&mapped, Path::new(path));
        gathered
    };
    let paths = |path: &str| gather(path).paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(paths("/vault/Projects/Roof repair.md"), ["Projects/Roof repair.md"]);
    assert_eq!(paths("/vault/Roof.md"), ["Roof.md"]);
    assert_eq!(paths("/vault/Meta/Steward/signal/s.md"), ["signal/s.md"]);
    assert!(gather("/vault/Meta/Steward/inbox/mail.eml").inbox && !gather("/vault/inbox/mail.eml").inbox);
    assert_eq!(paths("/vault/inbox/mine.md"), ["inbox/mine.md"], "a folder of the person's");
    for quiet in ["/vault/.obsidian/app.json", "/vault/.git/x.md", "/vault/pictures/a.png"] {
        assert!(gather(quiet).is_empty(), "{quiet}");
    }
    for scan in ["/vault", "/vault/Meta/Steward", "/vault/Folder that went", "/vault/Notes/x\u{1}.md"] {
        assert!(gather(scan).rescan, "{scan}");
    }
}
