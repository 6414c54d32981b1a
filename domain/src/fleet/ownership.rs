//! Who may own a vault: one copy of it at a time.
//!
//! A lock on the disk tells two processes of one machine apart. It cannot tell a vault from a copy that was restored on
//! another machine. So each copy has a random id, which backups leave out. The copy of the row may act; another one never
//! takes its place by waiting, but only by a person's command.

use super::TenantId;
use crate::action::audit::ChainHead;
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

/// A copy of a vault that wants to act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultCopy {
    /// The id of the vault.
    pub vault: String,
    /// The random id of the copy.
    pub copy: String,
    /// How far its audit chain has come.
    pub chain: ChainHead,
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
    /// When its process was started.
    pub since: DateTime<Utc>,
    /// The furthest that its audit chain has come.
    pub chain: ChainHead,
    pub progress: OwnerProgress,
    /// The copies that owned the vault before, and that a person shut out.
    pub shut_out: Vec<String>,
}

/// What a process reports about its work, every half a minute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OwnerProgress {
    /// The newest check of any matter; `None` before the first report or check.
    pub last_check: Option<DateTime<Utc>>,
    /// Open matters that were not checked in time.
    pub matters_late: u64,
    /// Signals that no check has seen.
    pub signals_fresh: u64,
}

impl OwnerRow {
    /// Whether a person shut this copy out.
    #[must_use]
    pub fn has_shut_out(&self, copy: &str) -> bool {
        self.shut_out.iter().any(|shut_out| shut_out == copy)
    }

    /// How many audit records a chain lacks that the owner had; `None` if it lacks none.
    #[must_use]
    pub fn count_missing(&self, chain: &ChainHead) -> Option<u64> {
        match self.chain.seq.checked_sub(chain.seq)? {
            0 if self.chain.sha256 != chain.sha256 => Some(1),
            0 => None,
            missing => Some(missing),
        }
    }
}

/// What a starting process may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimDecision {
    /// It owns the vault, under this epoch.
    Own { epoch: i64 },
    /// Another copy owns it.
    Refused { owner: Box<OwnerRow> },
    /// This copy owns it, and lacks the newest audit records: its disk was set back.
    SetBack { owner: Box<OwnerRow>, missing: u64 },
}

/// Decides whether a copy whose process holds the vault's lock may own the vault.
///
/// The lock proves that the previous process of the same copy is gone, so that copy goes on at once. A snapshot of its disk
/// has the same id, so its chain is compared as well.
#[must_use]
pub fn decide_claim(row: Option<&OwnerRow>, here: &VaultCopy) -> ClaimDecision {
    let Some(row) = row else { return ClaimDecision::Own { epoch: 1 } };
    if row.copy != here.copy {
        return ClaimDecision::Refused { owner: Box::new(row.clone()) };
    }
    match row.count_missing(&here.chain) {
        None => ClaimDecision::Own { epoch: row.epoch + 1 },
        Some(missing) => ClaimDecision::SetBack { owner: Box::new(row.clone()), missing },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::plan::ContentHash;

    #[test]
    fn the_same_copy_goes_on_and_another_one_never_does_however_long_it_waits() {
        let info = OwnerInfo {
            instance: "7@a".into(),
            address: String::new(),
            build: "0.1.0".into(),
            mode: Mode::Shadow,
            policy_hash: "0".into(),
        };
        let chain = |seq: u64| ChainHead { seq, sha256: ContentHash::hash_bytes(&seq.to_be_bytes()) };
        let here = |copy: &str, chain: ChainHead| VaultCopy { vault: "v".into(), copy: copy.into(), chain };
        let (tenant, seen) = ("acme".parse().unwrap(), DateTime::UNIX_EPOCH);
        let row = OwnerRow {
            tenant,
            copy: "one".into(),
            epoch: 41,
            info,
            seen,
            since: seen,
            chain: chain(7),
            progress: OwnerProgress::default(),
            shut_out: Vec::new(),
        };
        assert_eq!(decide_claim(None, &here("one", chain(0))), ClaimDecision::Own { epoch: 1 });
        // A process that was killed may have filed records that the database has not heard of.
        for records in [7, 8] {
            assert_eq!(decide_claim(Some(&row), &here("one", chain(records))), ClaimDecision::Own { epoch: 42 });
        }
        let other = ChainHead { seq: 7, sha256: ContentHash::genesis() };
        for (set_back, lacks) in [(chain(4), 3), (chain(0), 7), (other, 1)] {
            let decided = decide_claim(Some(&row), &here("one", set_back));
            assert!(matches!(decided, ClaimDecision::SetBack { missing, .. } if missing == lacks), "{decided:?}");
        }
        for seen in [DateTime::UNIX_EPOCH, DateTime::<Utc>::MAX_UTC] {
            let row = OwnerRow { seen, ..row.clone() };
            let decided = decide_claim(Some(&row), &here("two", chain(9)));
            assert!(matches!(decided, ClaimDecision::Refused { owner } if owner.copy == "one"));
        }
    }
}
