use std::fs;

use super::*;

/// A ledger with one call in it, closed.
async fn used(home: &Home) {
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("old"), at(0)).await);
    close(ledger).await;
}

/// Closes the file, as the end of the process would.
async fn close(ledger: Ledger) {
    if let Some(opened) = ledger.session.into_inner().opened {
        opened.store.close().await;
    }
}

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

fn sidecar(home: &Home, suffix: &str) -> PathBuf {
    files::with_suffix(&home.database(), suffix)
}

#[tokio::test]
async fn a_first_boot_without_marker_and_file_is_fine() {
    let home = Home::new();
    used(&home).await;
    assert!(home.marker().exists());
    assert_eq!(home.put_aside(), 0);
}

#[tokio::test]
async fn a_deleted_ledger_refuses_for_a_day_across_restarts() {
    let home = Home::new();
    used(&home).await;
    remove(&home.database());
    let ledger = home.ledger(wide());
    let refusal = refused(ledger.reserve(&infra("a"), at(100)).await);
    assert_eq!((refusal.cap, refusal.clears_at), (GuardCap::LedgerLost, Some(at(100 + DAY_S))));
    for part in ["ledger.db", "the file is missing", "accepted"] {
        assert!(refusal.reason.contains(part), "{}", refusal.reason);
    }
    for later in [200, 50_000, 99 + DAY_S] {
        let ledger = home.ledger(wide());
        assert_eq!(cap_of(ledger.reserve(&infra("a"), at(later)).await), (GuardCap::LedgerLost, Some(100 + DAY_S)));
        assert_eq!(ledger.status(at(later)).await.refusal.unwrap().cap, GuardCap::LedgerLost);
        assert!(ledger.settle(&settled("old", answered()), at(later)).await.is_err());
        assert!(!home.database().exists());
    }
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("a"), at(100 + DAY_S)).await);
    granted(home.ledger(wide()).reserve(&infra("b"), at(101 + DAY_S)).await);
}

#[tokio::test]
async fn an_operator_accepts_the_loss_and_calls_go_at_once() {
    let home = Home::new();
    used(&home).await;
    remove(&home.database());
    let ledger = home.ledger(wide());
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(5)).await).0, GuardCap::LedgerLost);
    assert_eq!(ledger.accept_loss(at(6)).await.unwrap(), LossAcceptance::NewLedger);
    granted(ledger.reserve(&infra("a"), at(6)).await);
    granted(home.ledger(wide()).reserve(&infra("b"), at(7)).await);
}

#[tokio::test]
async fn a_loss_noticed_by_a_clock_far_ahead_does_not_last_for_years() {
    let home = Home::new();
    used(&home).await;
    remove(&home.database());
    let ledger = home.ledger(wide());
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(900 * DAY_S)).await).0, GuardCap::LedgerLost);
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(10)).await), (GuardCap::LedgerLost, Some(10 + DAY_S)));
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(20)).await), (GuardCap::LedgerLost, Some(10 + DAY_S)));
    granted(ledger.reserve(&infra("a"), at(10 + DAY_S)).await);
}

#[tokio::test]
async fn a_ledger_deleted_while_open_is_noticed_with_the_next_call() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("a"), at(0)).await);
    remove(&home.database());
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(1)).await), (GuardCap::LedgerLost, Some(1 + DAY_S)));
}

#[tokio::test]
async fn a_ledger_replaced_by_its_own_copy_while_open_is_lost() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("a"), at(0)).await);
    let copy = sidecar(&home, ".copy");
    let vacuum = format!("VACUUM INTO '{}'", copy.display());
    sqlx::query(sqlx::AssertSqlSafe(vacuum)).execute(&mut home.peek().await).await.unwrap();
    fs::rename(&copy, home.database()).unwrap();
    let refusal = refused(ledger.reserve(&infra("b"), at(1)).await);
    assert_eq!(refusal.cap, GuardCap::LedgerLost);
    assert!(refusal.reason.contains("while in use"), "{}", refusal.reason);
}

#[tokio::test]
async fn a_log_or_shared_memory_deleted_while_open_is_a_loss() {
    for suffix in ["-wal", "-shm"] {
        let home = Home::new();
        let ledger = home.ledger(wide());
        granted(ledger.reserve(&infra("a"), at(0)).await);
        remove(&sidecar(&home, suffix));
        assert_eq!(cap_of(ledger.reserve(&infra("b"), at(1)).await).0, GuardCap::LedgerLost, "{suffix}");
    }
}

#[tokio::test]
async fn a_state_folder_wiped_under_a_running_process_is_a_loss_not_a_first_boot() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("a"), at(0)).await);
    remove(&home.database());
    remove(&home.marker());
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(1)).await), (GuardCap::LedgerLost, Some(1 + DAY_S)));
    assert_eq!(cap_of(home.ledger(wide()).reserve(&infra("b"), at(2)).await), (GuardCap::LedgerLost, Some(1 + DAY_S)));
}

#[tokio::test]
async fn a_marker_deleted_alone_is_written_again() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("a"), at(0)).await);
    remove(&home.marker());
    granted(ledger.reserve(&infra("b"), at(1)).await);
    assert!(home.marker().exists());
    close(ledger).await;
    remove(&home.marker());
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("c"), at(2)).await);
    assert!(home.marker().exists());
    assert_eq!(ledger.status(at(2)).await.ledger.unwrap().day.used, 3);
}

#[tokio::test]
async fn another_ledger_an_empty_file_or_a_foreign_database_in_its_place_is_a_loss() {
    let other = Home::new();
    used(&other).await;
    let foreign = other.folder.path().join("foreign.db");
    let mut db =
        SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&foreign).create_if_missing(true))
            .await
            .unwrap();
    sqlx::raw_sql("CREATE TABLE recipes (name TEXT); PRAGMA user_version = 9").execute(&mut db).await.unwrap();
    db.close().await.unwrap();
    let empty = other.folder.path().join("empty.db");
    fs::write(&empty, "").unwrap();
    for impostor in [other.database(), foreign, empty] {
        let home = Home::new();
        used(&home).await;
        fs::copy(&impostor, home.database()).unwrap();
        let ledger = home.ledger(wide());
        assert_eq!(cap_of(ledger.reserve(&infra("a"), at(1)).await), (GuardCap::LedgerLost, Some(1 + DAY_S)));
        granted(ledger.reserve(&infra("a"), at(1 + DAY_S)).await);
        assert_eq!(home.put_aside(), 1, "{impostor:?} is kept for inspection");
    }
}

#[tokio::test]
async fn a_file_that_comes_back_after_its_loss_was_noticed_stays_lost() {
    let home = Home::new();
    let holder = home.ledger(wide());
    granted(holder.reserve(&infra("a"), at(0)).await);
    let away = sidecar(&home, ".away");
    fs::rename(home.database(), &away).unwrap();
    assert_eq!(cap_of(home.ledger(wide()).reserve(&infra("b"), at(1)).await).0, GuardCap::LedgerLost);
    fs::rename(&away, home.database()).unwrap();
    // The process that had it open the whole time reads the marker and stops as well.
    assert_eq!(cap_of(holder.reserve(&infra("b"), at(2)).await), (GuardCap::LedgerLost, Some(1 + DAY_S)));
    assert_eq!(cap_of(home.ledger(wide()).reserve(&infra("b"), at(2)).await), (GuardCap::LedgerLost, Some(1 + DAY_S)));
}

#[tokio::test]
async fn every_process_moves_on_to_the_new_ledger_when_one_accepted() {
    let home = Home::new();
    let handles: Vec<_> = (0..3).map(|_| home.ledger(wide())).collect();
    for (n, ledger) in handles.iter().enumerate() {
        granted(ledger.reserve(&infra(format!("a{n}")), at(0)).await);
    }
    remove(&home.database());
    assert_eq!(handles[0].accept_loss(at(1)).await.unwrap(), LossAcceptance::NewLedger);
    for (n, ledger) in handles.iter().enumerate() {
        granted(ledger.reserve(&infra(format!("b{n}")), at(2)).await);
    }
    assert_eq!(handles[2].status(at(2)).await.ledger.unwrap().day.used, 3);
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_first_boot_is_a_first_boot_again() {
    let home = Home::new();
    fs::write(home.database(), "").unwrap();
    fs::write(sidecar(&home, "-wal"), "left over").unwrap();
    used(&home).await;
    assert!(home.marker().exists());
}

#[tokio::test]
async fn a_crash_between_the_new_ledger_and_its_marker_keeps_the_loss() {
    let home = Home::new();
    used(&home).await;
    let marker = fs::read(home.marker()).unwrap();
    remove(&home.database());
    let ledger = home.ledger(wide());
    assert_eq!(ledger.accept_loss(at(1)).await.unwrap(), LossAcceptance::NewLedger);
    close(ledger).await;
    fs::write(home.marker(), marker).unwrap();
    assert_eq!(cap_of(home.ledger(wide()).reserve(&infra("a"), at(2)).await).0, GuardCap::LedgerLost);
}

#[tokio::test]
async fn a_folder_that_was_moved_away_and_back_is_no_loss() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("before"), at(0)).await);
    let (state, away) = (home.folder.path().join("state"), home.folder.path().join("away"));
    fs::rename(&state, &away).unwrap();
    for _ in 0..2 {
        let refusal = refused(ledger.reserve(&infra("meanwhile"), at(10)).await);
        assert_eq!(refusal.cap, GuardCap::LedgerUnreadable, "{}", refusal.reason);
    }
    fs::rename(&away, &state).unwrap();
    granted(ledger.reserve(&infra("after"), at(20)).await);
    assert_eq!(ledger.status(at(20)).await.ledger.unwrap().day.used, 2);
}
