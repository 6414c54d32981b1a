//! The names of a vault at the Temporal server: those of its schedules, runs and task queues.
//!
//! A vault that has a namespace alone uses the plain names. A tenant shares its namespace, so each of its ids ends in
//! `@<tenant>`; no plain id holds an `@`. Whose id it is, is decided here and nowhere else.

use super::TenantId;

/// The sign between a plain id and the tenant.
const SEPARATOR: char = '@';
/// The beginning of a tenant's task queue. An id of a tenant holds no dot.
const QUEUE_PREFIX: &str = "steward.";
/// The task queue of a vault without a tenant, unless it is configured.
pub const DEFAULT_QUEUE: &str = "steward";

/// The names of one vault; of a vault alone by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VaultNames {
    tenant: Option<TenantId>,
}

impl VaultNames {
    #[must_use]
    pub fn new(tenant: Option<TenantId>) -> Self {
        Self { tenant }
    }

    /// The tenant; `None` for a vault alone.
    #[must_use]
    pub fn tenant(&self) -> Option<&TenantId> {
        self.tenant.as_ref()
    }

    /// The id of a schedule or run of this vault, from its plain id.
    #[must_use]
    pub fn qualify_id(&self, plain: &str) -> String {
        match &self.tenant {
            Some(tenant) => format!("{plain}{SEPARATOR}{tenant}"),
            None => plain.to_owned(),
        }
    }

    /// The plain id of a schedule or run of this vault; `None` if it belongs to another one.
    #[must_use]
    pub fn plain_id<'id>(&self, id: &'id str) -> Option<&'id str> {
        match (&self.tenant, id.rsplit_once(SEPARATOR)) {
            (None, None) => Some(id),
            (Some(ours), Some((plain, theirs))) => (theirs == ours.as_str()).then_some(plain),
            (None, Some(_)) | (Some(_), None) => None,
        }
    }

    /// Whether this is a task queue that only a tenant may have.
    #[must_use]
    pub fn is_tenant_queue(queue: &str) -> bool {
        queue.starts_with(QUEUE_PREFIX)
    }

    /// The part of an id that all tenants have in common, for a search.
    #[must_use]
    pub fn qualify_prefix(plain: &str) -> String {
        format!("{plain}{SEPARATOR}")
    }

    /// Splits the id of any tenant's schedule or run; `None` if it is that of a vault alone.
    #[must_use]
    pub fn parse_id(id: &str) -> Option<(&str, TenantId)> {
        let (plain, tenant) = id.rsplit_once(SEPARATOR)?;
        Some((plain, tenant.parse().ok()?))
    }

    /// The task queue of a tenant; `None` for a vault alone, which configures it.
    #[must_use]
    pub fn tenant_queue(&self) -> Option<String> {
        self.tenant.as_ref().map(|tenant| format!("{QUEUE_PREFIX}{tenant}"))
    }
}

/// The task queue of clerk calls, for the task queue of a vault: `<queue>-clerk`, and `steward.<tenant>.clerk` for a
/// tenant, because another tenant may be named `<tenant>-clerk`.
#[must_use]
pub fn clerk_queue(task_queue: &str) -> String {
    if VaultNames::is_tenant_queue(task_queue) { format!("{task_queue}.clerk") } else { format!("{task_queue}-clerk") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tenant: &str) -> VaultNames {
        VaultNames::new((!tenant.is_empty()).then(|| tenant.parse().unwrap()))
    }

    #[test]
    fn each_vault_knows_its_own_ids_and_nobody_elses() {
        let tenants = ["", "a", "a-clerk", "clerk", "b"];
        let plain =
            ["al-steward-a", "al-steward-a-clerk", "al-signal-router", "steward-undo-3f9a", "al-steward-b-0a1b2c3d"];
        let ids: Vec<(&str, &str, String)> = tenants
            .iter()
            .flat_map(|&tenant| plain.map(|plain| (tenant, plain, names(tenant).qualify_id(plain))))
            .collect();
        for (owner, plain, id) in &ids {
            for tenant in tenants {
                let expected = (tenant == *owner).then_some(*plain);
                assert_eq!(names(tenant).plain_id(id), expected, "{id} for {tenant:?}");
            }
            assert_eq!(ids.iter().filter(|(_, _, other)| other == id).count(), 1, "{id} is unique");
        }
        assert_eq!(names("").qualify_id("al-steward-a"), "al-steward-a", "to the letter as without a fleet");
    }

    #[test]
    fn no_two_tenants_share_a_queue() {
        let tenants = ["a", "a-clerk", "clerk", "a-clerk-clerk"];
        let mut queues: Vec<String> = tenants.iter().filter_map(|tenant| names(tenant).tenant_queue()).collect();
        queues.extend(queues.clone().iter().map(|queue| clerk_queue(queue)));
        queues.extend([DEFAULT_QUEUE.to_owned(), clerk_queue(DEFAULT_QUEUE)]);
        let distinct: std::collections::BTreeSet<&String> = queues.iter().collect();
        assert_eq!(distinct.len(), queues.len(), "{queues:?}");
        assert_eq!(
            (clerk_queue("steward"), clerk_queue("steward.a")),
            ("steward-clerk".into(), "steward.a.clerk".into())
        );
    }
}
