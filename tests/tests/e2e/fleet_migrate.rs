//! `steward fleet migrate` over tables that an older build made and filled: every row stays, and tenants go on.
//!
//! Each earlier migration is applied as sqlx records it, and rows are added in between, so that each meets a filled table.

use crate::tenants::{connect, copy_of, info, tenant};
use std::path::PathBuf;
use steward_domain::action::audit::ChainHead;
use steward_fleet::FleetStore;
use steward_tests::postgres::{self, Postgres};
use steward_tests::run;
use steward_tests::steward::Steward;

/// The table in which sqlx keeps what was applied.
const APPLIED: &str = "CREATE TABLE _sqlx_migrations (version bigint PRIMARY KEY, description text NOT NULL, \
    installed_on timestamptz NOT NULL DEFAULT now(), success boolean NOT NULL, checksum bytea NOT NULL, \
    execution_time bigint NOT NULL)";

/// Rows that a fleet has after so many migrations.
fn rows_after(version: usize) -> &'static str {
    match version {
        1 => {
            "INSERT INTO tenant (id, vault_id, mode_ceiling) VALUES ('old-a', 'vault', 'live'), ('old-b', NULL, 'shadow');
             INSERT INTO owner VALUES ('old-a', 'copy', 7, 'i', 'a', '0.1.0', 'live', 'hash', clock_timestamp());
             INSERT INTO stop (scope, stopped_by, reason) VALUES ('old-b', 'ann', 'a reason')"
        }
        2 => {
            "INSERT INTO bucket (name, windows) VALUES ('model', '[{\"seconds\": 60, \"calls\": 5, \"tokens\": null}]');
             INSERT INTO bucket_state (bucket, last_number) VALUES ('model', 1);
             INSERT INTO gate_call (bucket, number, tenant, tenant_number, call, reserved_at, tokens)
                 VALUES ('model', 1, 'old-a', 1, 'a-call', clock_timestamp(), 900);
             INSERT INTO gate_tokens VALUES ('model', 'old-a', 60, date_trunc('minute', now()), 900);
             INSERT INTO gate_tenant (bucket, tenant, last_number) VALUES ('model', 'old-a', 1);
             UPDATE tenant SET bucket = 'model' WHERE id = 'old-a'"
        }
        _ => "SELECT 1",
    }
}

fn list_migrations() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(run::project().join("fleet/migrations")).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Applies a migration, and records it as sqlx does.
fn apply(postgres: &Postgres, url: &str, version: usize, file: &PathBuf) {
    let text = std::fs::read_to_string(file).unwrap();
    let stem = file.file_stem().unwrap().to_str().unwrap();
    let description = stem.split_once('_').unwrap().1.replace('_', " ");
    postgres.sql(url, &text);
    postgres.sql(
        url,
        &format!(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
             VALUES ({version}, '{description}', true, sha384(convert_to($text${text}$text$, 'UTF8')), 1)"
        ),
    );
}

/// The rows of every table that the first two versions have, as text.
fn read_rows(postgres: &Postgres, url: &str) -> Vec<String> {
    let selects = [
        "SELECT id, vault_id, mode_ceiling, bucket FROM tenant ORDER BY id",
        "SELECT tenant, copy, epoch, build, mode FROM owner",
        "SELECT scope, stopped_by, reason, stopped_at FROM stop",
        "SELECT name, windows FROM bucket",
        "SELECT bucket, number, tenant, call, tokens FROM gate_call",
        "SELECT bucket, tenant, tokens FROM gate_tokens",
    ];
    selects.iter().map(|select| postgres.sql(url, select)).collect()
}

#[tokio::test]
async fn every_row_of_an_older_fleet_stays_and_its_tenants_go_on() {
    let postgres = postgres::server().await;
    // The roles belong to the whole server.
    FleetStore::initialise(&postgres.create_database()).await.unwrap();
    let url = postgres.create_database();
    postgres.sql(&url, APPLIED);
    let migrations = list_migrations();
    let (_, earlier) = migrations.split_last().unwrap();
    for (at, file) in earlier.iter().enumerate() {
        apply(postgres, &url, at + 1, file);
        postgres.sql(&url, rows_after(at + 1));
    }
    for id in ["old-a", "old-b"] {
        let role = format!("steward_tenant_{id}");
        postgres.sql(&url, &format!("DROP ROLE IF EXISTS \"{role}\""));
        postgres.sql(&url, &format!("CREATE ROLE \"{role}\" LOGIN PASSWORD 'password5' IN ROLE steward_tenant"));
    }
    let before = read_rows(postgres, &url);
    assert!(before.iter().all(|rows| !rows.is_empty()), "{before:#?}");

    let (folder, _) = run::new_folder();
    let steward = Steward::new(&folder).with("STEWARD_FLEET_DB", &url);
    steward.run(&["fleet", "migrate"]).await.expect(0);
    steward.run(&["fleet", "migrate"]).await.expect(0);
    assert_eq!(read_rows(postgres, &url), before);
    // One of them has another mode than expected.
    let listed = steward.run(&["fleet", "tenant", "list", "--json"]).await.expect(4).json();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed:#}");
    // The copy that owned the vault goes on with the next epoch.
    let store = connect(&url, "old-a").await;
    let permit = store.claim_vault(&tenant("old-a"), &copy_of("vault", "copy"), &info()).await.unwrap();
    permit.obtain(&ChainHead::genesis()).await.unwrap();
    assert_eq!(postgres.sql(&url, "SELECT epoch FROM owner"), "8");
}
