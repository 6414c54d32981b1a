//! Who may own a vault: one copy of it at a time.
//!
//! A lock on the disk tells two processes of one machine apart. It cannot tell a vault from a copy that was restored on
//! another machine. So each copy has a random id, which backups leave out. The copy of the row may act; another one never
//! takes its place by waiting, but only by a person's command.

use super::TenantId;
use crate::gates::mode::Mode;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// A process that is silent for this long is shown as away: 60 s. It lost nothing by that.
pub const AWAY_AFTER: TimeDelta = TimeDelta::seconds(60);

/// How a process describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerInfo {
    /// `<process>@<host>`.
    pub instance: String,
    /// The address of its server; empty without one.
    pub address: String,
    /// Its version.
    pub build: String,
    /// The mode that it was started with.
    pub mode: Mode,
    /// A hash of the settings that limit it.
    pub policy_hash: String,
}

/// The owner of a vault, as the database has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerRow {
    pub tenant: TenantId,
    /// The copy of the vault that may act.
    pub copy: String,
    pub epoch: i64,
    #[serde(flatten)]
    pub info: OwnerInfo,
    /// When its process was heard last, by the database's clock.
    pub seen: DateTime<Utc>,
}

/// What a starting process may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimDecision {
    /// It owns the vault, under this epoch.
    Own { epoch: i64 },
    /// Another copy owns it.
    Refused { owner: Box<OwnerRow> },
}

/// Decides whether a copy whose process holds the vault's lock may own the vault.
///
/// The lock proves that the previous process of the same copy is gone, so that copy goes on at once.
#[must_use]
pub fn decide_claim(row: Option<&OwnerRow>, copy: &str) -> ClaimDecision {
    match row {
        None => ClaimDecision::Own { epoch: 1 },
        Some(row) if row.copy == copy => ClaimDecision::Own { epoch: row.epoch + 1 },
        Some(row) => ClaimDecision::Refused { owner: Box::new(row.clone()) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_copy_goes_on_and_another_one_never_does_however_long_it_waits() {
        let info = OwnerInfo {
            instance: "7@a".into(),
            address: String::new(),
            build: "0.1.0".into(),
            mode: Mode::Shadow,
            policy_hash: "0".into(),
        };
        let seen = DateTime::UNIX_EPOCH;
        let row = OwnerRow { tenant: "acme".parse().unwrap(), copy: "one".into(), epoch: 41, info, seen };
        assert_eq!(decide_claim(None, "one"), ClaimDecision::Own { epoch: 1 });
        assert_eq!(decide_claim(Some(&row), "one"), ClaimDecision::Own { epoch: 42 });
        for seen in [DateTime::UNIX_EPOCH, DateTime::<Utc>::MAX_UTC] {
            let row = OwnerRow { seen, ..row.clone() };
            assert!(matches!(decide_claim(Some(&row), "two"), ClaimDecision::Refused { owner } if owner.copy == "one"));
        }
    }
}
