//! Tenants: the vaults that share one Temporal namespace and one database of the fleet.
//!
//! A vault without a tenant has a namespace of its own and needs no database. Everything here is pure: the rules for the
//! names of a tenant, for which copy of a vault may act, and for the rate limits that tenants share.

pub mod names;
pub mod ownership;
pub mod provider_gate;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The most characters of a tenant's id and of a bucket's name.
const MAX_NAME: usize = 31;

/// The id of a tenant: a lower-case letter, then up to 30 lower-case letters, digits and hyphens.
///
/// It is part of schedule and workflow ids and of task queues, so it never holds `@` or a dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TenantId(String);

/// The text is not the id of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not the id of a tenant: use 1 to {MAX_NAME} lower-case letters, digits and hyphens, and begin with a letter",
    .0.escape_debug()
)]
pub struct InvalidTenantId(String);

impl TenantId {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_fleet_name(text: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.len() <= MAX_NAME && text.chars().all(is_legal)
}

impl FromStr for TenantId {
    type Err = InvalidTenantId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_fleet_name(text) { Ok(Self(text.to_owned())) } else { Err(InvalidTenantId(text.to_owned())) }
    }
}

impl TryFrom<String> for TenantId {
    type Error = InvalidTenantId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<TenantId> for String {
    fn from(tenant: TenantId) -> Self {
        tenant.0
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_id_has_no_character_that_could_be_taken_for_another_part_of_a_name() {
        for legal in ["a", "acme", "a-clerk", "team-7", "a--b-", &"a".repeat(31)] {
            assert_eq!(legal.parse::<TenantId>().unwrap().as_str(), legal);
        }
        let long = "a".repeat(32);
        for illegal in
            ["", "A", "1a", "-a", "a.b", "a@b", "a/b", "../a", "a b", "ä", "a\n", "a_b", "a%2f", "a'b", "a\0", &long]
        {
            let refused = illegal.parse::<TenantId>().unwrap_err().to_string();
            assert!(refused.contains("is not the id of a tenant") && !refused.contains('\n'), "{refused}");
            assert!(serde_json::from_value::<TenantId>(illegal.into()).is_err());
        }
    }
}
