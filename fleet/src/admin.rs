//! Creates the tables and the database roles, as a role that may do that.
//!
//! Each tenant has a role of its own, which sees its own rows alone. A password is made here, shown once and kept nowhere.

use crate::store::{FleetError, FleetStore, MIGRATIONS};
use steward_domain::fleet::TenantId;

/// The roles of all fleets of a server, without a login: one for people who operate, one for all tenants.
const ROLES: [&str; 2] = ["steward_operator", "steward_tenant"];

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

    /// Creates a tenant and its role, with this password; `false` if the tenant exists.
    ///
    /// # Errors
    /// [`FleetError`]. The password must be letters and digits.
    pub async fn add_tenant(&self, tenant: &TenantId, password: &str) -> Result<bool, FleetError> {
        let mut transaction = self.pool.begin().await?;
        let insert = sqlx::query("INSERT INTO tenant (id) VALUES ($1) ON CONFLICT DO NOTHING").bind(tenant.as_str());
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
        transaction.commit().await?;
        Ok(true)
    }
}

/// The URL of the same database for a tenant's role.
#[must_use]
pub fn build_tenant_url(url: &str, tenant: &TenantId, password: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("{scheme}://{}:{password}@{place}", tenant_role(tenant))
}

/// The database role of a tenant.
#[must_use]
pub fn tenant_role(tenant: &TenantId) -> String {
    format!("steward_{tenant}")
}
