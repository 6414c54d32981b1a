//! Creates the tables and the database roles, as a role that may do that.
//!
//! Each tenant has a role of its own, which sees its own rows alone. A password is made here, shown once and kept nowhere.

use crate::events::{Operator, RecordedChange};
use crate::store::{FleetError, FleetStore, MIGRATIONS};
use serde_json::json;
use steward_domain::fleet::TenantId;
use url::Url;

/// The roles of all fleets of a server, without a login: one for people who operate, one for all tenants, one for
/// what only watches.
const ROLES: [&str; 3] = ["steward_operator", "steward_tenant", "steward_reader"];

impl FleetStore {
    /// Creates the roles and the tables, or brings them up to this build. Both only add.
    ///
    /// # Errors
    /// [`FleetError`], also if the role that is connected may not create roles.
    pub async fn initialise(url: &str) -> Result<Self, FleetError> {
        let store = Self::connect_unchecked(url)?;
        for role in ROLES {
            // Another fleet of the same server may create them at this moment.
            let create = format!(
                "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') \
                 THEN CREATE ROLE {role} NOLOGIN; END IF; \
                 EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
            );
            sqlx::raw_sql(sqlx::AssertSqlSafe(create)).execute(&store.pool).await?;
        }
        MIGRATIONS.run(&store.pool).await?;
        Ok(store)
    }

    /// Creates a tenant and its role, with this password; `false` if the tenant exists. Its bucket must exist.
    ///
    /// # Errors
    /// [`FleetError`]. The password must be letters and digits.
    pub async fn add_tenant(
        &self,
        tenant: &TenantId,
        bucket: Option<&str>,
        password: &str,
        operator: &Operator,
    ) -> Result<bool, FleetError> {
        let mut transaction = self.pool.begin().await?;
        let insert = sqlx::query("INSERT INTO tenant (id, bucket) VALUES ($1, $2) ON CONFLICT DO NOTHING");
        let insert = insert.bind(tenant.as_str()).bind(bucket);
        if insert.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(false);
        }
        debug_assert!(password.bytes().all(|byte| byte.is_ascii_alphanumeric()), "it stands in quotes");
        // Parameters cannot be used here. A tenant's id holds only lower-case letters, digits and hyphens.
        let role = tenant_role(tenant);
        let create = format!("CREATE ROLE \"{role}\" LOGIN PASSWORD '{password}' IN ROLE steward_tenant");
        // A process that sleeps inside a transaction must not hold the others for as long as it sleeps.
        let limits = format!(
            "ALTER ROLE \"{role}\" SET idle_in_transaction_session_timeout = '1s'; ALTER ROLE \"{role}\" SET lock_timeout = '2s'"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("{create}; {limits}"))).execute(&mut *transaction).await?;
        let after = Some(json!({"bucket": bucket}));
        let change = RecordedChange { event: "tenant_add", subject: tenant.as_str(), before: None, after };
        operator.record(&mut transaction, change).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Drops a tenant for ever and takes its role's login away.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn drop_tenant(&self, tenant: &TenantId, operator: &Operator) -> Result<(), FleetError> {
        let mut transaction = self.pool.begin().await?;
        let drop = sqlx::query("UPDATE tenant SET state = 'dropped' WHERE id = $1").bind(tenant.as_str());
        drop.execute(&mut *transaction).await?;
        let close = format!("ALTER ROLE \"{}\" NOLOGIN", tenant_role(tenant));
        sqlx::raw_sql(sqlx::AssertSqlSafe(close)).execute(&mut *transaction).await?;
        let change = RecordedChange { event: "tenant_drop", subject: tenant.as_str(), before: None, after: None };
        operator.record(&mut transaction, change).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// The URL of the same database for a tenant's role.
#[must_use]
pub fn build_tenant_url(url: &str, tenant: &TenantId, password: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return String::new() };
    // An administrator's name and password may stand in the query, where they would win.
    let kept: Vec<(String, String)> = parsed
        .query_pairs()
        .filter(|(name, _)| !matches!(name.as_ref(), "user" | "password"))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    parsed.set_query(None);
    if !kept.is_empty() {
        parsed.query_pairs_mut().extend_pairs(kept);
    }
    // These fail only for a URL without a host, which no database has.
    let _ = parsed.set_username(&tenant_role(tenant)).and_then(|()| parsed.set_password(Some(password)));
    parsed.to_string()
}

/// The database role of a tenant.
fn tenant_role(tenant: &TenantId) -> String {
    // Not `steward_<tenant>`: a tenant may be called `operator`.
    format!("steward_tenant_{tenant}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_tenant_holds_nothing_of_the_administrator() {
        let tenant = "acme".parse().unwrap();
        for url in [
            "postgres://admin:s%40cret@db:5432/steward",
            "postgres://db:5432/steward?user=admin&password=s%40cret",
            "postgres://admin@db:5432/steward?password=s@cret",
        ] {
            assert_eq!(build_tenant_url(url, &tenant, "pw"), "postgres://steward_tenant_acme:pw@db:5432/steward");
        }
        let kept = build_tenant_url("postgres://admin@db/steward?sslmode=require&user=x", &tenant, "pw");
        assert_eq!(kept, "postgres://steward_tenant_acme:pw@db/steward?sslmode=require");
    }
}
