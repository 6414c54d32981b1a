use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::*;

#[track_caller]
fn unreadable(outcome: ReserveOutcome, parts: &[&str]) {
    let refusal = refused(outcome);
    assert_eq!((refusal.cap, refusal.clears_at), (GuardCap::LedgerUnreadable, None), "{}", refusal.reason);
    assert!(refusal.reason.starts_with("failed to "), "{}", refusal.reason);
    for part in parts {
        assert!(refusal.reason.contains(part), "{part:?} is not in: {}", refusal.reason);
    }
}

/// A ledger with many rows, closed.
async fn filled(home: &Home) {
    let ledger = home.ledger(wide());
    for n in 0..200 {
        granted(ledger.reserve(&about(format!("{n}"), &format!("task/{n}.md"), "matter/m.md"), at(0)).await);
    }
    ledger.session.into_inner().opened.unwrap().store.close().await;
}

#[tokio::test]
async fn a_file_with_a_damaged_head_or_middle_is_refused_until_its_loss_is_accepted() {
    for offset in [0, 100, 4096 * 3 + 8] {
        let home = Home::new();
        filled(&home).await;
        let file = fs::File::options().write(true).open(home.database()).unwrap();
        file.write_all_at(&[0xAA; 300], offset).unwrap();
        drop(file);
        let ledger = home.ledger(wide());
        unreadable(ledger.reserve(&infra("a"), at(1)).await, &["ledger.db", "damaged", "--accept-ledger-loss"]);
        assert!(ledger.settle(&settled("1", answered()), at(1)).await.is_err());
        unreadable(ledger.reserve(&infra("a"), at(1 + DAY_S)).await, &["damaged"]);
        assert_eq!(ledger.accept_loss(at(2 + DAY_S)).await.unwrap(), LossAcceptance::NewLedger);
        granted(ledger.reserve(&infra("a"), at(2 + DAY_S)).await);
        assert_eq!(home.put_aside(), 1);
    }
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let home = Home::new();
    filled(&home).await;
    fs::File::options().write(true).open(home.database()).unwrap().set_len(4096 * 2).unwrap();
    unreadable(home.ledger(wide()).reserve(&infra("a"), at(1)).await, &["ledger.db", "damaged"]);
}

#[tokio::test]
async fn rows_that_cannot_be_are_damage() {
    for sql in ["DELETE FROM ledger", "DROP TABLE call", "UPDATE ledger SET newest_us = 9223372036854775807"] {
        let home = Home::new();
        filled(&home).await;
        let mut db = home.peek().await;
        sqlx::query(sql).execute(&mut db).await.unwrap();
        db.close().await.unwrap();
        let ledger = home.ledger(wide());
        unreadable(ledger.reserve(&infra("a"), at(1)).await, &["ledger.db", "damaged"]);
        if !sql.starts_with("DROP") {
            assert_eq!(ledger.accept_loss(at(2)).await.unwrap(), LossAcceptance::NewLedger);
            granted(ledger.reserve(&infra("a"), at(2)).await);
        }
    }
}

#[tokio::test]
async fn a_ledger_of_a_newer_version_is_left_alone() {
    let home = Home::new();
    filled(&home).await;
    let mut db = home.peek().await;
    sqlx::query("PRAGMA user_version = 3").execute(&mut db).await.unwrap();
    db.close().await.unwrap();
    let ledger = home.ledger(wide());
    unreadable(ledger.reserve(&infra("a"), at(1)).await, &["ledger.db", "schema 3", "run a newer version"]);
    assert!(ledger.accept_loss(at(1)).await.is_err());
    assert_eq!(home.put_aside(), 0);
}

#[tokio::test]
async fn a_database_of_something_else_without_a_marker_is_not_touched() {
    let home = Home::new();
    let options = SqliteConnectOptions::new().filename(home.database()).create_if_missing(true);
    let mut db = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query("CREATE TABLE recipes (name TEXT)").execute(&mut db).await.unwrap();
    db.close().await.unwrap();
    unreadable(home.ledger(wide()).reserve(&infra("a"), at(1)).await, &["ledger.db", "something else"]);
    assert_eq!(home.put_aside(), 0);
}

#[tokio::test]
async fn a_full_disk_refuses_and_counts_nothing_until_there_is_space() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("first"), at(0)).await);
    {
        let mut session = ledger.session.lock().await;
        let db = session.opened.as_mut().unwrap().store.connection();
        let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *db).await.unwrap();
        let limit = format!("PRAGMA max_page_count = {pages}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(limit)).execute(db).await.unwrap();
    }
    let mut reserved = 1;
    let outcome = loop {
        match ledger.reserve(&infra(format!("{reserved}")), at(1)).await {
            ReserveOutcome::Reserved(_) => reserved += 1,
            refused @ ReserveOutcome::Refused(_) => break refused,
        }
    };
    unreadable(outcome, &["ledger.db", "disk is full", "free some space"]);
    // After the failure the file is opened anew, without the limit. So there is space again.
    assert_eq!(ledger.status(at(2)).await.ledger.unwrap().day.used, reserved);
    granted(ledger.reserve(&infra(format!("{reserved}")), at(2)).await);
}

#[tokio::test]
async fn a_marker_that_cannot_be_read_refuses_until_the_loss_is_accepted() {
    let home = Home::new();
    filled(&home).await;
    fs::write(home.marker(), "{\"ledger\": 7}").unwrap();
    let ledger = home.ledger(wide());
    unreadable(ledger.reserve(&infra("a"), at(1)).await, &["ledger.marker", "restore it"]);
    assert_eq!(ledger.accept_loss(at(1)).await.unwrap(), LossAcceptance::NewLedger);
    granted(ledger.reserve(&infra("a"), at(1)).await);
}

#[tokio::test]
async fn a_missing_folder_refuses_and_names_it_until_it_is_there() {
    for folder in ["state", "journal"] {
        let home = Home::new();
        fs::remove_dir(home.folder.path().join(folder)).unwrap();
        let ledger = home.ledger(wide());
        unreadable(ledger.reserve(&infra("a"), at(0)).await, &[folder]);
        fs::create_dir(home.folder.path().join(folder)).unwrap();
        granted(ledger.reserve(&infra("a"), at(1)).await);
    }
}

#[tokio::test]
async fn a_folder_in_place_of_the_file_is_refused() {
    let home = Home::new();
    fs::create_dir(home.database()).unwrap();
    unreadable(home.ledger(wide()).reserve(&infra("a"), at(0)).await, &["ledger.db"]);
}

#[tokio::test]
async fn a_transaction_that_hangs_in_another_process_refuses() {
    let home = Home::new();
    filled(&home).await;
    let mut hanging = home.peek().await;
    let tx = hanging.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let ledger = home.ledger(wide());
    unreadable(ledger.reserve(&infra("a"), at(1)).await, &["ledger.db", "another process"]);
    tx.rollback().await.unwrap();
    granted(ledger.reserve(&infra("a"), at(1)).await);
}

const READ_ONLY: &str = "STEWARD_TEST_READ_ONLY_HOME";
/// The user nobody, because permissions do not bind root.
const NOBODY: u32 = 65_534;

/// Runs in a process of its own, as a user whom permissions bind.
#[tokio::test]
async fn as_a_user_who_may_not_write() {
    let Ok(folder) = std::env::var(READ_ONLY) else { return };
    let folder = Path::new(&folder);
    let ledger = Ledger::open(&folder.join("state/ledger.db"), wide(), &folder.join("journal/ledger.marker")).unwrap();
    unreadable(ledger.reserve(&infra("a"), at(1)).await, &["ledger", "let this user write"]);
    assert!(ledger.settle(&settled("1", limited(60.0)), at(1)).await.is_err());
}

#[tokio::test]
async fn a_read_only_file_or_folder_refuses() {
    // A copy, because the user nobody may not read every build folder.
    let programs = TempDir::new().unwrap();
    fs::set_permissions(programs.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = programs.path().join("guard-tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for (file_mode, folder_mode) in [(0o444, 0o755), (0o444, 0o555), (0o000, 0o755), (0o644, 0o555)] {
        let home = Home::new();
        filled(&home).await;
        let root = home.folder.path();
        let mut child = Command::new(&program);
        if rustix::process::geteuid().is_root() {
            let lock = files::with_suffix(&home.marker(), ".lock");
            for path in [root, &root.join("state"), &root.join("journal"), &home.database(), &home.marker(), &lock] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            child.uid(NOBODY).gid(NOBODY);
        }
        fs::set_permissions(home.database(), fs::Permissions::from_mode(file_mode)).unwrap();
        fs::set_permissions(root.join("state"), fs::Permissions::from_mode(folder_mode)).unwrap();
        child.args(["steward::guard::tests::broken::as_a_user_who_may_not_write", "--exact"]).env(READ_ONLY, root);
        let output = child.current_dir(root).output().unwrap();
        fs::set_permissions(root.join("state"), fs::Permissions::from_mode(0o755)).unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("1 passed"), "{file_mode:o} {folder_mode:o}: {stdout}");
    }
}
