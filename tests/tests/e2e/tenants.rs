//! The fleet's database, on a real Postgres: tenants, owners, and what each role may see.

use steward_domain::fleet::TenantId;
use steward_domain::fleet::ownership::OwnerInfo;
use steward_domain::gates::mode::Mode;
use steward_fleet::owner::ClaimError;
use steward_fleet::tenants::TenantChange;
use steward_fleet::{FleetError, FleetStore, PermitRefusal};
use steward_tests::postgres::{self, Postgres};

const VAULT: &str = "6f2c1a2e-8d3b-4c5f-9a7e-0123456789ab";

pub(crate) fn tenant(id: &str) -> TenantId {
    id.parse().unwrap()
}

pub(crate) fn info() -> OwnerInfo {
    OwnerInfo {
        instance: "7@host".into(),
        address: "127.0.0.1:8420".into(),
        build: "0.1.0".into(),
        mode: Mode::Shadow,
        policy_hash: "00".into(),
    }
}

/// A fleet with these tenants: the URL of its administrator, and the database as the administrator sees it.
pub(crate) async fn fleet(postgres: &Postgres, tenants: &[&str]) -> (String, FleetStore) {
    let url = postgres.create_database();
    let admin = FleetStore::initialise(&url).await.unwrap();
    for id in tenants {
        // Roles belong to the whole server, and other tests have tenants of the same name.
        postgres.sql(&url, &format!("DROP ROLE IF EXISTS \"steward_tenant_{id}\""));
        assert!(admin.add_tenant(&tenant(id), None, &format!("password{}", id.len())).await.unwrap());
    }
    (url, admin)
}

/// The database as a tenant sees it.
pub(crate) async fn connect(url: &str, id: &str) -> FleetStore {
    FleetStore::connect(&Postgres::url_for(url, &format!("steward_tenant_{id}"), &format!("password{}", id.len())))
        .await
        .unwrap()
}

#[tokio::test]
async fn one_copy_owns_a_vault_until_a_person_lets_another_take_it() {
    let (url, admin) = fleet(postgres::server().await, &["owner-one"]).await;
    let (store, id) = (connect(&url, "owner-one").await, tenant("owner-one"));
    let first = store.claim_vault(&id, VAULT, "copy-a", &info()).await.unwrap();
    assert_eq!((first.epoch(), first.obtain().await.unwrap().ceiling), (1, Mode::Shadow));
    // The process died; its supervisor started it again.
    let again = store.claim_vault(&id, VAULT, "copy-a", &info()).await.unwrap();
    assert_eq!(again.epoch(), 2);
    assert_eq!(first.obtain().await.unwrap_err(), PermitRefusal::Lost, "an earlier process of the same copy");
    assert!(again.obtain().await.unwrap().is_fresh());

    // A backup was restored elsewhere: another copy with the same vault id.
    let refused = store.claim_vault(&id, VAULT, "copy-b", &info()).await.unwrap_err().to_string();
    for part in ["7@host", "epoch 2", "steward fleet take owner-one"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(store.take_vault(&id, "copy-b", "ann@elsewhere").await.unwrap());
    assert_eq!(again.obtain().await.unwrap_err(), PermitRefusal::Lost);
    let taken = store.claim_vault(&id, VAULT, "copy-b", &info()).await.unwrap();
    assert_eq!(taken.epoch(), 4);
    assert!(matches!(store.claim_vault(&id, VAULT, "copy-a", &info()).await, Err(ClaimError::OtherCopy(_))));
    taken.obtain().await.unwrap();

    let other = store.claim_vault(&id, "another-vault", "copy-b", &info()).await.unwrap_err().to_string();
    assert!(other.contains(VAULT) && other.contains("another-vault"), "{other}");
    admin.drop_tenant(&id).await.unwrap();
    assert_eq!(taken.obtain().await.unwrap_err(), PermitRefusal::Dropped);
    assert!(matches!(store.claim_vault(&id, VAULT, "copy-b", &info()).await, Err(ClaimError::Dropped(_))));
    let back =
        FleetStore::connect(&Postgres::url_for(&url, "steward_tenant_owner-one", "password9")).await.unwrap_err();
    assert!(!back.is_transient(), "its role has no login any more, and waiting does not help: {back}");
    assert!(!admin.change_tenant(&id, TenantChange::default()).await.unwrap(), "it stays dropped");
    assert!(!admin.add_tenant(&id, None, "x").await.unwrap(), "its id is never used again");
}

#[tokio::test]
async fn a_permit_carries_the_ceiling_and_a_stop_and_a_change_reaches_the_next_one() {
    let postgres = postgres::server().await;
    let (url, admin) = fleet(postgres, &["permit-a", "permit-b"]).await;
    let id = tenant("permit-a");
    let permit = connect(&url, "permit-a").await.claim_vault(&id, VAULT, "copy", &info()).await.unwrap();
    let raised = TenantChange { mode_ceiling: Some(Mode::Live), ..TenantChange::default() };
    assert!(admin.change_tenant(&id, raised).await.unwrap());
    assert_eq!(permit.obtain().await.unwrap().ceiling, Mode::Live);
    postgres.sql(&url, "INSERT INTO stop (scope, stopped_by, reason) VALUES ('permit-b', 'ann', 'theirs')");
    assert_eq!(permit.obtain().await.unwrap().stop, None, "a stop of another tenant");
    postgres.sql(&url, "INSERT INTO stop (scope, stopped_by, reason) VALUES ('*', 'ann', 'all of them')");
    let stop = permit.obtain().await.unwrap().stop.unwrap();
    assert_eq!((stop.by.as_str(), stop.reason.as_str()), ("ann", "all of them"));
}

#[tokio::test]
async fn a_tenants_role_sees_and_changes_its_own_rows_alone() {
    let postgres = postgres::server().await;
    let (url, admin) = fleet(postgres, &["rows-a", "rows-b"]).await;
    let (ours, theirs) = (connect(&url, "rows-a").await, connect(&url, "rows-b").await);
    let permit = theirs.claim_vault(&tenant("rows-b"), VAULT, "copy", &info()).await.unwrap();
    assert_eq!(ours.list_tenants(None).await.unwrap().len(), 1, "the other tenant is not there for it");
    assert_eq!(admin.list_tenants(None).await.unwrap().len(), 2);
    let claimed = ours.claim_vault(&tenant("rows-b"), VAULT, "copy", &info()).await.unwrap_err();
    assert!(matches!(claimed, ClaimError::Unknown(_)), "{claimed}");
    assert!(!ours.take_vault(&tenant("rows-b"), "mine", "mallory").await.unwrap());
    let mallory = Postgres::url_for(&url, "steward_tenant_rows-a", "password6");
    for sql in [
        "UPDATE tenant SET mode_ceiling = 'live'",
        "INSERT INTO tenant (id) VALUES ('new')",
        "INSERT INTO owner SELECT 'rows-b', 'c', 9, '', '', '', 'live', '', now()",
        "DELETE FROM owner",
        "INSERT INTO stop (scope, stopped_by) VALUES ('*', 'mallory')",
        "DELETE FROM stop",
        "UPDATE fleet SET min_reader = 9",
        "CREATE TABLE x (y int)",
    ] {
        let refused = postgres.try_sql(&mallory, sql).unwrap_err();
        assert!(refused.contains("permission denied") || refused.contains("row-level security"), "{sql}: {refused}");
    }
    assert_eq!(postgres.sql(&mallory, "UPDATE owner SET copy = 'mine'"), "UPDATE 0");
    permit.obtain().await.unwrap();
}

#[tokio::test]
async fn another_version_of_the_database_is_refused_by_both_versions() {
    let postgres = postgres::server().await;
    let url = postgres.create_database();
    let refused = async || FleetStore::connect(&url).await.unwrap_err();
    assert!(matches!(refused().await, FleetError::NotInitialised));
    FleetStore::initialise(&url).await.unwrap();
    FleetStore::initialise(&url).await.unwrap();
    FleetStore::connect(&url).await.unwrap();
    postgres.sql(&url, "UPDATE fleet SET version = 4, min_reader = 2");
    FleetStore::connect(&url).await.unwrap();
    postgres.sql(&url, "UPDATE fleet SET min_reader = 3");
    assert!(matches!(refused().await, FleetError::TooNew { version: 4, min_reader: 3 }));
    postgres.sql(&url, "UPDATE fleet SET version = 1, min_reader = 1");
    assert!(refused().await.to_string().contains("steward fleet migrate"));
    let nowhere = FleetStore::connect("postgres://x:secret@127.0.0.1:9/x").await.unwrap_err().to_string();
    assert!(!nowhere.contains("secret"), "{nowhere}");
}
