//! Backups beside people and Steward at work, and what a restored vault is.

use crate::desk::{Desk, Wish, faults, lock, names, records, settle};
use sqlx::ConnectOptions;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use steward_vault::action::writer::VaultWriter;
use steward_vault::backup::{
    Backup, BackupError, BackupSource, RestoreTarget, create_backup, find_newest_backup, list_backups, restore_backup,
    verify_backup,
};
use steward_vault::files::copy_id::{find_copy_id, read_or_create_copy_id};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

/// A vault with an index, and a folder for backups.
struct BackupDesk {
    desk: Desk,
    index: Index,
    backups: tempfile::TempDir,
}

impl BackupDesk {
    async fn new() -> Self {
        let desk = Desk::new();
        drop(desk.writer());
        let index = Index::open(&desk.state()).await.unwrap();
        Self { desk, index, backups: tempfile::tempdir().unwrap() }
    }

    fn folder(&self) -> PathBuf {
        self.backups.path().join("home")
    }

    fn try_create_with(&self, writer: Option<&VaultWriter>) -> Result<Backup, BackupError> {
        let (root, state_dir) = (self.desk.root(), self.desk.state());
        let source = BackupSource { root: &root, state_dir: &state_dir, index: &self.index, writer, copies_all: false };
        tokio::task::block_in_place(|| create_backup(&source, &self.folder(), "0.0.0"))
    }

    fn create(&self) -> Backup {
        self.try_create_with(None).unwrap()
    }
}

/// A vault that was restored.
struct RestoredVault {
    dir: tempfile::TempDir,
}

impl RestoredVault {
    fn vault(&self) -> PathBuf {
        self.dir.path().join("vault")
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }
}

fn try_restore(backup: &Path) -> Result<RestoredVault, BackupError> {
    let restored = RestoredVault { dir: tempfile::tempdir().unwrap() };
    let (vault, state_dir) = (restored.vault(), restored.state());
    tokio::task::block_in_place(|| restore_backup(backup, RestoreTarget { vault: &vault, state_dir: &state_dir }))?;
    Ok(restored)
}

async fn connect(state: &Path) -> sqlx::SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new().filename(state.join("state.db")).connect().await.unwrap()
}

fn find_faults(backup: &Path) -> Vec<String> {
    tokio::task::block_in_place(|| verify_backup(backup)).unwrap().faults
}

fn inode(path: &Path) -> u64 {
    path.metadata().unwrap().ino()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_plain_files_that_sha256sum_can_check_and_links_what_has_not_changed() {
    let desk = BackupDesk::new().await;
    let odd = desk.desk.path().join(OsStr::from_bytes(b"odd\\name\n\xff.pdf"));
    std::fs::write(&odd, "%PDF").unwrap();
    std::fs::create_dir(desk.desk.file("empty")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", desk.desk.file("outside")).unwrap();
    std::fs::set_permissions(desk.desk.file("task/pay.md"), PermissionsExt::from_mode(0o640)).unwrap();
    read_or_create_copy_id(&desk.desk.root()).unwrap();
    let first = desk.create();
    assert_eq!((first.info.chain.seq, first.info.doubtful.len()), (0, 0));
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", "--quiet", "files.sha256"]).current_dir(&first.folder);
    assert!(check.status().unwrap().success());
    assert_eq!(find_faults(&first.folder), Vec::<String>::new());
    let copied = first.folder.join("vault/task/pay.md");
    assert_eq!(std::fs::read(&copied).unwrap(), desk.desk.read("task/pay.md").into_bytes());
    let (copy, original) = (copied.metadata().unwrap(), desk.desk.file("task/pay.md").metadata().unwrap());
    assert_eq!(
        (copy.mode(), copy.mtime(), copy.mtime_nsec()),
        (original.mode(), original.mtime(), original.mtime_nsec())
    );
    assert_eq!(std::fs::read_link(first.folder.join("vault/outside")).unwrap(), Path::new("/etc/hostname"));
    assert!(first.folder.join("vault/empty").is_dir());
    assert_eq!(
        names(&first.folder.join("vault/.steward")),
        [".gitignore", "journal", "staged", "vault.json"],
        "no lock and no copy id"
    );
    assert_eq!(first.folder.metadata().unwrap().mode() & 0o777, 0o700);

    // The same size and the same time of change: only the content tells a note apart.
    let modified = desk.desk.file("task/pay.md").metadata().unwrap().modified().unwrap();
    let other = desk.desk.read("task/pay.md").replace("ann", "bob");
    desk.desk.write("task/pay.md", other.as_bytes());
    std::fs::File::open(desk.desk.file("task/pay.md")).unwrap().set_modified(modified).unwrap();
    let second = desk.create();
    assert_eq!(std::fs::read_to_string(second.folder.join("vault/task/pay.md")).unwrap(), other);
    let pdf = Path::new("vault").join(odd.file_name().unwrap());
    assert_eq!(inode(&first.folder.join(&pdf)), inode(&second.folder.join(&pdf)));
    assert_ne!(inode(&first.folder.join(&pdf)), inode(&odd), "the original may be changed in place");
    assert_eq!(find_faults(&first.folder), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_vault_is_the_same_vault_and_another_copy_that_may_not_count_calls_yet() {
    let desk = BackupDesk::new().await;
    let writer = desk.desk.writer();
    writer.apply_plan(Wish::done("pay", desk.desk.read("task/pay.md").as_bytes(), "run-1").plan()).unwrap();
    let ours = read_or_create_copy_id(writer.root()).unwrap();
    let lease = "INSERT INTO leases (task, run, until) VALUES ('task/pay.md', 'run-9', 9000000000000000)";
    sqlx::query(lease).execute(&mut connect(&desk.desk.state()).await).await.unwrap();
    let backup = desk.try_create_with(Some(&writer)).unwrap();
    assert_eq!(backup.info.chain.seq, 1);
    let restored = try_restore(&backup.folder).unwrap();
    let root = VaultRoot::open(&restored.vault()).unwrap();
    assert_eq!(find_copy_id(&root).unwrap(), None);
    assert_ne!(read_or_create_copy_id(&root).unwrap(), ours);
    let again = lock(&restored.vault());
    assert_eq!(again.identity().id, writer.identity().id);
    settle(&again);
    assert_eq!((faults(&root), records(&restored.vault()).len()), (Vec::new(), 1));
    assert!(std::fs::read_to_string(restored.vault().join("task/pay.md")).unwrap().contains("state: done"));
    let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM leases");
    let leases = count.fetch_one(&mut connect(&restored.state()).await).await.unwrap();
    assert_eq!(leases, 0, "a lease of the copy before would hold its task");

    let full = RestoreTarget { vault: &restored.vault(), state_dir: &restored.state() };
    let refused = tokio::task::block_in_place(|| restore_backup(&backup.folder, full)).unwrap_err();
    assert!(matches!(refused, BackupError::NotEmpty(_)), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_was_altered_is_named_by_file_and_not_restored() {
    let desk = BackupDesk::new().await;
    let backup = desk.create();
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 5] = [
        ("pay.md: was changed", |folder| std::fs::write(folder.join("vault/task/pay.md"), "---\n").unwrap()),
        ("pay.md: is missing", |folder| std::fs::remove_file(folder.join("vault/task/pay.md")).unwrap()),
        ("more.md: is not in the list", |folder| std::fs::write(folder.join("vault/more.md"), "x").unwrap()),
        ("backup.json: was changed", |folder| {
            let text = std::fs::read_to_string(folder.join("backup.json")).unwrap();
            std::fs::write(folder.join("backup.json"), text.replace("\"build\": \"0.0.0\"", "\"build\": \"0.0.1\""))
                .unwrap();
        }),
        ("state.db: was changed", |folder| std::fs::write(folder.join("state/state.db"), "x").unwrap()),
    ];
    for (fault, damage) in damages {
        let copy = tempfile::tempdir().unwrap();
        let folder = copy.path().join("backup");
        assert!(Command::new("cp").arg("-a").arg(&backup.folder).arg(&folder).status().unwrap().success());
        damage(&folder);
        let found = find_faults(&folder);
        assert!(found.len() == 1 && found[0].ends_with(fault), "{fault}: {found:?}");
        let refused = try_restore(&folder).err().unwrap().to_string();
        assert!(refused.contains(fault), "{refused}");
    }
    assert!(matches!(verify_backup(&desk.desk.path()), Err(BackupError::Incomplete { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vault_whose_audit_records_have_a_fault_is_restored_all_the_same() {
    let desk = BackupDesk::new().await;
    let writer = desk.desk.writer();
    writer.apply_plan(Wish::done("pay", desk.desk.read("task/pay.md").as_bytes(), "run-1").plan()).unwrap();
    settle(&writer);
    for name in names(&desk.desk.file("event")) {
        std::fs::remove_file(desk.desk.file("event").join(name)).unwrap();
    }
    let backup = desk.try_create_with(Some(&writer)).unwrap();
    let checked = tokio::task::block_in_place(|| verify_backup(&backup.folder)).unwrap();
    assert_eq!((checked.faults.len(), checked.audit_faults.len()), (0, 1));
    let restored = try_restore(&backup.folder).unwrap();
    assert_eq!(faults(&VaultRoot::open(&restored.vault()).unwrap()), checked.audit_faults);
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_that_would_do_harm_are_refused_and_an_interrupted_backup_leaves_nothing() {
    let desk = BackupDesk::new().await;
    let (root, state_dir) = (desk.desk.root(), desk.desk.state());
    let source =
        BackupSource { root: &root, state_dir: &state_dir, index: &desk.index, writer: None, copies_all: false };
    for inside in [desk.desk.file("backups/house"), state_dir.join("b")] {
        let refused = tokio::task::block_in_place(|| create_backup(&source, &inside, "0")).unwrap_err();
        assert!(matches!(refused, BackupError::InsideVault(_)) && !inside.exists(), "{refused}");
    }
    desk.create();
    std::fs::create_dir_all(desk.folder().join(".new-1/vault")).unwrap();
    std::fs::create_dir_all(state_dir.join(".ssh")).unwrap();
    std::fs::write(state_dir.join(".ssh/id_ed25519"), "a key").unwrap();
    let backup = desk.create();
    assert!(!desk.folder().join(".new-1").exists());
    assert!(backup.folder.join("state").exists() && !backup.folder.join("state/.ssh").exists());

    let other = BackupDesk::new().await;
    let source = BackupSource {
        root: &other.desk.root(),
        state_dir: &other.desk.state(),
        index: &other.index,
        writer: None,
        copies_all: false,
    };
    let refused = tokio::task::block_in_place(|| create_backup(&source, &desk.folder(), "0")).unwrap_err();
    assert!(matches!(refused, BackupError::OtherVault(_)), "{refused}");

    let held = std::fs::File::open(desk.folder().join(".steward-backups")).unwrap();
    held.lock().unwrap();
    assert!(matches!(desk.try_create_with(None), Err(BackupError::Busy(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_of_a_backup_does_not_go_on_into_the_next_one() {
    let desk = BackupDesk::new().await;
    std::fs::write(desk.desk.file("photo.jpg"), "a picture").unwrap();
    std::fs::set_permissions(desk.desk.file("photo.jpg"), PermissionsExt::from_mode(0o644)).unwrap();
    let first = desk.create();
    for path in ["vault/task/pay.md", "vault/photo.jpg"] {
        std::fs::write(first.folder.join(path), "x").unwrap();
    }
    let second = desk.create();
    assert_eq!(find_faults(&second.folder), Vec::<String>::new(), "another size, and another content");
    std::fs::set_permissions(desk.desk.file("photo.jpg"), PermissionsExt::from_mode(0o600)).unwrap();
    let third = desk.create();
    assert_eq!(third.folder.join("vault/photo.jpg").metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(inode(&second.folder.join("vault/task/pay.md")), inode(&third.folder.join("vault/task/pay.md")));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_come_and_go_while_they_are_copied_leave_a_whole_backup() {
    let desk = BackupDesk::new().await;
    let stop = AtomicBool::new(false);
    let backups = tokio::task::block_in_place(|| {
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for name in ["video.mp4", "moved.md"] {
                        std::fs::write(desk.desk.file(name), vec![b'x'; 3_000_000]).unwrap();
                        std::fs::rename(desk.desk.file(name), desk.desk.file("away")).unwrap();
                    }
                }
            });
            let made = [(); 8].map(|()| desk.create());
            stop.store(true, Ordering::Relaxed);
            made
        })
    });
    for backup in backups.iter().skip(4) {
        assert_eq!(find_faults(&backup.folder), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manipulated_backup_writes_nothing_outside_and_a_pipe_holds_nobody() {
    let desk = BackupDesk::new().await;
    let victim = tempfile::tempdir().unwrap();
    let backup = desk.create();
    let manipulate = |change: &dyn Fn(&Path)| {
        let copy = tempfile::tempdir().unwrap();
        let folder = copy.path().join("backup");
        assert!(Command::new("cp").arg("-a").arg(&backup.folder).arg(&folder).status().unwrap().success());
        change(&folder);
        (copy, folder)
    };
    let link = |folder: &Path| std::os::unix::fs::symlink(victim.path(), folder.join("vault/evil")).unwrap();
    let (_copy, folder) = manipulate(&link);
    assert!(try_restore(&folder).err().unwrap().to_string().contains("vault/evil: this link"));
    let pipe =
        |folder: &Path| assert!(Command::new("mkfifo").arg(folder.join("vault/pipe")).status().unwrap().success());
    let (_copy, folder) = manipulate(&pipe);
    assert!(try_restore(&folder).err().unwrap().to_string().contains("is no file, folder or link"));
    let replaced = |folder: &Path| {
        std::fs::rename(folder.join("vault"), victim.path().join("vault")).unwrap();
        std::os::unix::fs::symlink(victim.path().join("vault"), folder.join("vault")).unwrap();
    };
    let (_copy, folder) = manipulate(&replaced);
    assert!(try_restore(&folder).err().is_some(), "its files are missing, and the link is not in the list");

    // Links of the vault itself come back, and nothing is written through them.
    std::os::unix::fs::symlink(victim.path(), desk.desk.file("outside")).unwrap();
    let restored = try_restore(&desk.create().folder).unwrap();
    assert_eq!(std::fs::read_link(restored.vault().join("outside")).unwrap(), victim.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_was_cut_short_is_served_by_nobody() {
    let desk = BackupDesk::new().await;
    let restored = try_restore(&desk.create().folder).unwrap();
    std::fs::write(restored.vault().join(".steward/restoring"), "").unwrap();
    let refused = VaultWriter::lock(VaultRoot::open(&restored.vault()).unwrap()).unwrap_err().to_string();
    assert!(refused.contains("was not to its end"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_other_files_and_a_state_folder_around_the_vault_are_refused() {
    let desk = BackupDesk::new().await;
    std::fs::create_dir_all(desk.folder().join(".new-thesis")).unwrap();
    assert!(matches!(desk.try_create_with(None), Err(BackupError::Foreign(_))));
    assert!(desk.folder().join(".new-thesis").exists());
    let (root, around) = (desk.desk.root(), desk.desk.path().parent().unwrap().to_owned());
    let source = BackupSource { root: &root, state_dir: &around, index: &desk.index, writer: None, copies_all: false };
    let elsewhere = desk.backups.path().join("elsewhere");
    let refused = tokio::task::block_in_place(|| create_backup(&source, &elsewhere, "0")).unwrap_err();
    assert!(matches!(refused, BackupError::StateAroundVault(_)), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_four_stay_and_a_clock_that_was_ahead_hides_no_new_one() {
    let desk = BackupDesk::new().await;
    let made: Vec<PathBuf> = (0..6).map(|_| desk.create().folder).collect();
    assert_eq!(list_backups(&desk.folder()).unwrap(), made[2..], "in the order in which they were made");
    assert_eq!(find_newest_backup(&desk.folder()).unwrap().unwrap().0, made[5]);
    // Backups that were made while the clock was ahead are the oldest, and an empty folder is none.
    let ahead: Vec<PathBuf> = made[2..4]
        .iter()
        .map(|path| desk.folder().join(path.file_name().unwrap().to_str().unwrap().replace("20", "21")))
        .collect();
    for (path, ahead) in made[2..4].iter().zip(&ahead) {
        std::fs::rename(path, ahead).unwrap();
    }
    std::fs::create_dir(desk.folder().join("2026-01-01T00-00-00.000Z")).unwrap();
    assert_eq!(find_newest_backup(&desk.folder()).unwrap().unwrap().0, made[5]);
    let newest = desk.create().folder;
    let kept = list_backups(&desk.folder()).unwrap();
    assert_eq!(kept, [ahead[1].clone(), made[4].clone(), made[5].clone(), newest]);
    assert!(desk.folder().join("2026-01-01T00-00-00.000Z").exists());
}

/// Applies changes to many tasks and edits notes as a person until it is told to stop.
fn work(desk: &Desk, writer: &VaultWriter, stop: &AtomicBool) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let path = format!("task/t{number}.md");
        desk.write(&path, desk.read("task/pay.md").as_bytes());
        let judged = std::fs::read(desk.file(&path)).unwrap();
        writer.apply_plan(Wish::done(&format!("t{number}"), &judged, &format!("run-{number}")).plan()).unwrap();
        desk.write("note.md", format!("words {number}\n").repeat(500).as_bytes());
        if number % 7 == 0 {
            settle(writer);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_half_of_a_change_is_in_a_backup_that_is_made_while_changes_are_made() {
    let desk = BackupDesk::new().await;
    let (writer, stop) = (desk.desk.writer(), AtomicBool::new(false));
    let turns = [Some(&writer), Some(&writer), None, Some(&writer), Some(&writer), None];
    let backups = tokio::task::block_in_place(|| {
        std::thread::scope(|threads| {
            threads.spawn(|| work(&desk.desk, &writer, &stop));
            let made = turns.map(|writer| desk.try_create_with(writer));
            stop.store(true, Ordering::Relaxed);
            made
        })
    });
    let busy = backups.iter().filter(|made| matches!(made, Err(BackupError::Changing(_)))).count();
    assert!(busy <= 2, "only a backup without a turn may give up");
    backups
        .into_iter()
        .filter(|made| !matches!(made, Err(BackupError::Changing(_))))
        .for_each(|made| drop(made.unwrap()));
    // If none gave up, the oldest are gone by now.
    let kept = list_backups(&desk.folder()).unwrap();
    let restored: Vec<RestoredVault> = kept.iter().map(|folder| try_restore(folder).unwrap()).collect();
    assert!(restored.len() >= 4);
    let mut seen = BTreeSet::new();
    for vault in &restored {
        let writer = lock(&vault.vault());
        settle(&writer);
        assert_eq!(faults(writer.root()), Vec::<String>::new());
        let changed: BTreeSet<String> =
            records(&vault.vault()).into_values().map(|record| record.draft.target.to_string()).collect();
        let is_done = |name: &String| {
            let text = std::fs::read_to_string(vault.vault().join("task").join(name)).unwrap();
            text.contains("state: done")
        };
        let done: BTreeSet<String> =
            names(&vault.vault().join("task")).into_iter().filter(is_done).map(|name| format!("task/{name}")).collect();
        assert_eq!(done, changed, "each change with its record, and each record with its change");
        seen.insert(changed.len());
    }
    assert!(seen.len() > 1, "the vault changed between the backups: {seen:?}");
}
