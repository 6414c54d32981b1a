//! The fleet's database, on a real Postgres: tenants, owners, and what each role may see.

use steward_domain::action::audit::ChainHead;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::ownership::{OwnerInfo, VaultCopy};
use steward_domain::fleet::provider_gate::BucketWindow;
use steward_domain::gates::mode::Mode;
use steward_fleet::owner::ClaimError;
use steward_fleet::tenants::{TenantChange, TenantUpdate};
use steward_fleet::{FleetError, FleetStore, Operator, PermitRefusal};
use steward_tests::postgres::{self, Postgres};

const VAULT: &str = "6f2c1a2e-8d3b-4c5f-9a7e-0123456789ab";

pub(crate) fn tenant(id: &str) -> TenantId {
    id.parse().unwrap()
}

pub(crate) fn operator() -> Operator {
    Operator { name: "ann".into(), reason: "a test".into() }
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

/// A copy of a vault without audit records.
pub(crate) fn copy_of(vault: &str, copy: &str) -> VaultCopy {
    VaultCopy { vault: vault.into(), copy: copy.into(), chain: ChainHead::genesis() }
}

/// A fleet with these tenants: the URL of its administrator, and the database as the administrator sees it.
pub(crate) async fn fleet(postgres: &Postgres, tenants: &[&str]) -> (String, FleetStore) {
    let url = postgres.create_database();
    let admin = FleetStore::initialise(&url).await.unwrap();
    for id in tenants {
        // Roles belong to the whole server, and other tests have tenants of the same name.
        postgres.sql(&url, &format!("DROP ROLE IF EXISTS \"steward_tenant_{id}\""));
        assert!(admin.add_tenant(&tenant(id), None, &format!("password{}", id.len()), &operator()).await.unwrap());
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
    let first = store.claim_vault(&id, &copy_of(VAULT, "copy-a"), &info()).await.unwrap();
    assert_eq!((first.epoch(), first.obtain(&ChainHead::genesis()).await.unwrap().ceiling), (1, Mode::Shadow));
    // The process died; its supervisor started it again.
    let again = store.claim_vault(&id, &copy_of(VAULT, "copy-a"), &info()).await.unwrap();
    assert_eq!(again.epoch(), 2);
    assert_eq!(
        first.obtain(&ChainHead::genesis()).await.unwrap_err(),
        PermitRefusal::Lost,
        "an earlier process of the same copy"
    );
    assert!(again.obtain(&ChainHead::genesis()).await.unwrap().is_fresh());

    // A backup was restored elsewhere: another copy with the same vault id.
    let refused = store.claim_vault(&id, &copy_of(VAULT, "copy-b"), &info()).await.unwrap_err().to_string();
    for part in ["7@host", "epoch 2", "steward fleet take owner-one"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(store.take_vault(&id, &copy_of(VAULT, "copy-b"), &operator()).await.unwrap());
    assert_eq!(again.obtain(&ChainHead::genesis()).await.unwrap_err(), PermitRefusal::Lost);
    let taken = store.claim_vault(&id, &copy_of(VAULT, "copy-b"), &info()).await.unwrap();
    assert_eq!(taken.epoch(), 4);
    assert!(matches!(store.claim_vault(&id, &copy_of(VAULT, "copy-a"), &info()).await, Err(ClaimError::ShutOut(_))));
    taken.obtain(&ChainHead::genesis()).await.unwrap();

    let other = store.claim_vault(&id, &copy_of("another-vault", "copy-b"), &info()).await.unwrap_err().to_string();
    assert!(other.contains(VAULT) && other.contains("another-vault"), "{other}");
    admin.drop_tenant(&id, &operator()).await.unwrap();
    assert_eq!(taken.obtain(&ChainHead::genesis()).await.unwrap_err(), PermitRefusal::Dropped);
    assert!(matches!(store.claim_vault(&id, &copy_of(VAULT, "copy-b"), &info()).await, Err(ClaimError::Dropped(_))));
    let back =
        FleetStore::connect(&Postgres::url_for(&url, "steward_tenant_owner-one", "password9")).await.unwrap_err();
    assert!(!back.is_transient(), "its role has no login any more, and waiting does not help: {back}");
    let changed = admin.change_tenant(&id, TenantChange::default(), &operator()).await.unwrap();
    assert_eq!(changed, TenantUpdate::Missing, "it stays dropped");
    assert!(!admin.add_tenant(&id, None, "x", &operator()).await.unwrap(), "its id is never used again");
}

#[tokio::test]
async fn a_permit_carries_the_ceiling_and_a_stop_and_a_change_reaches_the_next_one() {
    let postgres = postgres::server().await;
    let (url, admin) = fleet(postgres, &["permit-a", "permit-b"]).await;
    let id = tenant("permit-a");
    let permit = connect(&url, "permit-a").await.claim_vault(&id, &copy_of(VAULT, "copy"), &info()).await.unwrap();
    let raised = TenantChange { mode_ceiling: Some(Mode::Live), ..TenantChange::default() };
    assert_eq!(admin.change_tenant(&id, raised, &operator()).await.unwrap(), TenantUpdate::Changed);
    assert_eq!(permit.obtain(&ChainHead::genesis()).await.unwrap().ceiling, Mode::Live);
    assert!(admin.stop_tenants(Some(&tenant("permit-b")), &operator()).await.unwrap());
    assert_eq!(permit.obtain(&ChainHead::genesis()).await.unwrap().stop, None, "a stop of another tenant");
    assert!(admin.stop_tenants(None, &operator()).await.unwrap());
    assert!(!admin.stop_tenants(None, &operator()).await.unwrap(), "it is in force already");
    let stop = permit.obtain(&ChainHead::genesis()).await.unwrap().stop.unwrap();
    assert_eq!((stop.by.as_str(), stop.reason.as_str()), ("ann", "a test"));
    assert!(admin.resume_tenants(None, &operator()).await.unwrap());
    assert_eq!(permit.obtain(&ChainHead::genesis()).await.unwrap().stop, None);
    let scopes: Vec<String> = admin.list_stops().await.unwrap().into_iter().map(|stop| stop.scope).collect();
    assert_eq!(scopes, ["permit-b"], "the other stop stays");
}

#[tokio::test]
async fn a_tenants_role_sees_and_changes_its_own_rows_alone() {
    let postgres = postgres::server().await;
    let (url, admin) = fleet(postgres, &["rows-a", "rows-b"]).await;
    let (ours, theirs) = (connect(&url, "rows-a").await, connect(&url, "rows-b").await);
    let permit = theirs.claim_vault(&tenant("rows-b"), &copy_of(VAULT, "copy"), &info()).await.unwrap();
    assert_eq!(ours.list_tenants(None).await.unwrap().len(), 1, "the other tenant is not there for it");
    assert_eq!(admin.list_tenants(None).await.unwrap().len(), 2);
    let claimed = ours.claim_vault(&tenant("rows-b"), &copy_of(VAULT, "copy"), &info()).await.unwrap_err();
    assert!(matches!(claimed, ClaimError::Unknown(_)), "{claimed}");
    assert!(!ours.take_vault(&tenant("rows-b"), &copy_of(VAULT, "mine"), &operator()).await.unwrap());
    let mallory = Postgres::url_for(&url, "steward_tenant_rows-a", "password6");
    for sql in [
        "UPDATE tenant SET mode_ceiling = 'live'",
        "INSERT INTO tenant (id) VALUES ('new')",
        "INSERT INTO owner SELECT 'rows-b', 'c', 9, '', '', '', 'live', '', now()",
        "DELETE FROM owner",
        "INSERT INTO stop (scope, stopped_by) VALUES ('*', 'mallory')",
        "DELETE FROM stop",
        "SELECT * FROM ops_log",
        "SELECT record_event('ann', 'resume', '*', NULL, NULL, '')",
        "SELECT record_event('ann', 'take', 'rows-b', NULL, NULL, '')",
        "INSERT INTO ops_log (role, operator, event, subject, reason) VALUES ('a', 'b', 'c', 'd', 'e')",
        "UPDATE fleet SET min_reader = 9",
        "CREATE TABLE x (y int)",
    ] {
        let refused = postgres.try_sql(&mallory, sql).unwrap_err();
        assert!(refused.contains("permission denied") || refused.contains("row-level security"), "{sql}: {refused}");
    }
    assert_eq!(postgres.sql(&mallory, "UPDATE owner SET copy = 'mine'"), "UPDATE 0");
    postgres.sql(&mallory, "SELECT record_event('mallory', 'take', 'rows-a', NULL, NULL, '')");
    permit.obtain(&ChainHead::genesis()).await.unwrap();
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
    let uncached = FleetStore::connect(&format!("{url}?statement-cache-capacity=0")).await.unwrap();
    uncached.list_buckets().await.unwrap();
    let known: i32 = postgres.sql(&url, "SELECT version FROM fleet").parse().unwrap();
    let (later, next) = (known + 2, known + 1);
    postgres.sql(&url, &format!("UPDATE fleet SET version = {later}, min_reader = {known}"));
    FleetStore::connect(&url).await.unwrap();
    postgres.sql(&url, &format!("UPDATE fleet SET min_reader = {next}"));
    let too_new = refused().await;
    assert!(matches!(too_new, FleetError::TooNew { version, min_reader } if (version, min_reader) == (later, next)));
    postgres.sql(&url, &format!("UPDATE fleet SET version = {}, min_reader = 2", known - 1));
    assert!(refused().await.to_string().contains("steward fleet migrate"));
    let nowhere = FleetStore::connect("postgres://x:secret@127.0.0.1:9/x").await.unwrap_err().to_string();
    assert!(!nowhere.contains("secret"), "{nowhere}");
}

#[tokio::test]
async fn every_change_of_an_operator_leaves_a_line_that_nobody_can_change() {
    let postgres = postgres::server().await;
    let (url, admin) = fleet(postgres, &["log-a"]).await;
    let id = tenant("log-a");
    admin
        .set_bucket("model", &[BucketWindow { seconds: 60, calls: Some(1), tokens: None }], &operator())
        .await
        .unwrap();
    let change = TenantChange { bucket: Some("model".into()), ..TenantChange::default() };
    assert_eq!(admin.change_tenant(&id, change, &operator()).await.unwrap(), TenantUpdate::Changed);
    let store = connect(&url, "log-a").await;
    store.claim_vault(&id, &copy_of(VAULT, "copy-a"), &info()).await.unwrap();
    assert!(store.take_vault(&id, &copy_of(VAULT, "copy-b"), &operator()).await.unwrap());
    assert!(admin.stop_tenants(Some(&id), &operator()).await.unwrap());
    assert!(admin.resume_tenants(Some(&id), &operator()).await.unwrap());
    let events = admin.list_operator_events(50).await.unwrap();
    let lines: Vec<(&str, &str)> = events.iter().rev().map(|e| (e.event.as_str(), e.subject.as_str())).collect();
    let expected = ["tenant_add", "bucket_set", "tenant_set", "take", "stop", "resume"];
    assert_eq!(lines, expected.map(|event| (event, if event == "bucket_set" { "model" } else { "log-a" })));
    let set = &events[3];
    assert_eq!((set.role.as_str(), set.operator.as_str(), set.reason.as_str()), ("admin", "ann", "a test"));
    assert_eq!(set.before.as_ref().unwrap()["bucket"], serde_json::Value::Null);
    assert_eq!(set.after.as_ref().unwrap()["bucket"], "model");
    assert_eq!(events[2].role, "steward_tenant_log-a", "the role that took the vault");

    // Operators read the log and write it by the function alone; a change whose line fails is none.
    postgres.sql(&url, "DROP ROLE IF EXISTS ann");
    postgres.sql(&url, "CREATE ROLE ann LOGIN PASSWORD 'annspassword' IN ROLE steward_operator");
    let ann = Postgres::url_for(&url, "ann", "annspassword");
    for sql in ["UPDATE ops_log SET operator = 'bob'", "DELETE FROM ops_log", "DROP TABLE ops_log"] {
        let refused = postgres.try_sql(&ann, sql).unwrap_err();
        assert!(refused.contains("permission denied") || refused.contains("must be owner"), "{sql}: {refused}");
    }
    let by_ann = FleetStore::connect(&ann).await.unwrap();
    let change = TenantChange { mode_ceiling: Some(Mode::Live), ..TenantChange::default() };
    assert_eq!(by_ann.change_tenant(&id, change.clone(), &operator()).await.unwrap(), TenantUpdate::Changed);
    postgres.sql(&url, "REVOKE EXECUTE ON FUNCTION record_event FROM steward_operator");
    let lower = TenantChange { mode_ceiling: Some(Mode::Shadow), ..change };
    by_ann.change_tenant(&id, lower, &operator()).await.unwrap_err();
    assert_eq!(admin.list_tenants(Some(&id)).await.unwrap()[0].mode_ceiling, Mode::Live);
    assert!(by_ann.stop_tenants(None, &operator()).await.unwrap(), "a stop holds without a line");
    assert!(admin.list_tenants(Some(&id)).await.unwrap()[0].stop.is_some());
}
