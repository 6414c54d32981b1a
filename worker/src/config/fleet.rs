//! The settings of a vault in a fleet: its tenant, and the database that the fleet shares.
//!
//! Both or neither. A vault whose tenant was forgotten must not begin to act alone, and a tenant without the database
//! could not see a stop of the fleet.

use anyhow::{Context, bail};
use serde::{Serialize, Serializer};
use steward_domain::fleet::TenantId;
use steward_domain::fleet::names::{DEFAULT_QUEUE, VaultNames};

/// The place of a vault in a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FleetMembership {
    pub(crate) tenant: TenantId,
    /// The URL of the database. It may hold a password, so it is never shown.
    #[serde(serialize_with = "hide")]
    pub(crate) database: String,
}

fn hide<S: Serializer>(_: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("set")
}

/// Reads both settings.
///
/// # Errors
/// One of them is missing, or the tenant's id or the URL is invalid.
pub(super) fn read_membership(
    tenant: Option<String>,
    database: Option<String>,
) -> anyhow::Result<Option<FleetMembership>> {
    let (tenant, database) = match (tenant, database) {
        (None, None) => return Ok(None),
        (Some(tenant), Some(database)) => (tenant, database),
        (Some(_), None) => bail!("STEWARD_TENANT is set and STEWARD_FLEET_DB is not: set both, or neither"),
        (None, Some(_)) => bail!("STEWARD_FLEET_DB is set and STEWARD_TENANT is not: set both, or neither"),
    };
    let tenant = tenant.parse().context("STEWARD_TENANT")?;
    if !database.starts_with("postgres://") && !database.starts_with("postgresql://") {
        bail!(
            "STEWARD_FLEET_DB is no URL of a Postgres database, such as postgres://steward_tenant_acme@db.example/steward"
        );
    }
    Ok(Some(FleetMembership { tenant, database }))
}

/// The task queue of the vault. That of a tenant follows from its id.
///
/// # Errors
/// A task queue is set for a tenant, or one that only a tenant may have.
pub(super) fn choose_task_queue(configured: Option<String>, fleet: Option<&FleetMembership>) -> anyhow::Result<String> {
    let of_tenant = fleet.and_then(|fleet| VaultNames::new(Some(fleet.tenant.clone())).tenant_queue());
    match (of_tenant, configured) {
        (Some(_), Some(_)) => {
            bail!("STEWARD_TASK_QUEUE is set for a tenant, whose queue follows from STEWARD_TENANT: remove it")
        }
        (Some(queue), None) => Ok(queue),
        (None, Some(queue)) if VaultNames::is_tenant_queue(&queue) => {
            bail!("STEWARD_TASK_QUEUE is `{}`: only the queue of a tenant begins with `steward.`", queue.escape_debug())
        }
        (None, Some(queue)) => Ok(queue),
        (None, None) => Ok(DEFAULT_QUEUE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DB: &str = "postgres://steward_a:secret@db/steward";

    fn read(tenant: &str, database: &str) -> anyhow::Result<Option<FleetMembership>> {
        let set = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        read_membership(set(tenant), set(database))
    }

    #[test]
    fn one_variable_alone_is_refused_and_the_password_is_never_shown() {
        assert_eq!(read("", "").unwrap(), None);
        for (tenant, database, named) in [
            ("a", "", "STEWARD_FLEET_DB is not"),
            ("", DB, "STEWARD_TENANT is not"),
            ("A", DB, "STEWARD_TENANT"),
            ("../a", DB, "STEWARD_TENANT"),
            ("a", "mysql://db", "postgres://"),
        ] {
            let refused = format!("{:#}", read(tenant, database).unwrap_err());
            assert!(refused.contains(named) && !refused.contains("secret"), "{refused}");
        }
        let member = read("a", DB).unwrap().unwrap();
        assert!(!serde_json::to_string(&member).unwrap().contains("secret"));
    }

    #[test]
    fn the_queue_of_a_tenant_follows_from_its_id_and_nobody_elses_looks_like_it() {
        let member = read("a", DB).unwrap();
        let choose = |configured: Option<&str>, fleet| choose_task_queue(configured.map(str::to_owned), fleet);
        assert_eq!(choose(None, member.as_ref()).unwrap(), "steward.a");
        assert!(choose(Some("q"), member.as_ref()).is_err());
        assert_eq!(choose(None, None).unwrap(), "steward");
        assert_eq!(choose(Some("q"), None).unwrap(), "q");
        assert!(choose(Some("steward.a"), None).is_err());
    }
}
