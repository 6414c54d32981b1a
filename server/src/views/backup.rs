//! Whether backups are made in time, for `steward status`, `steward doctor`, the pages and the metrics.
//!
//! The folder of backups is the truth: the newest one counts, whoever made it. Only the process that holds the vault makes
//! them regularly, so without one nothing is late.

use crate::http::holder::{HolderBackups, VaultHolder};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use std::path::PathBuf;
use steward_domain::time::format_seconds;
use steward_vault::backup::{find_last_copy, find_newest_backup};

/// How many intervals may pass without a backup.
const LATE_AFTER: i32 = 2;

/// The status of the backups of a vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackupStatus {
    pub folder: PathBuf,
    /// Seconds between two backups.
    pub every_seconds: u32,
    /// The moment whose state the newest one holds; `None` without one.
    pub newest: Option<DateTime<Utc>>,
    /// When restic or another program last copied them elsewhere; `None` if that is not known.
    pub copied: Option<DateTime<Utc>>,
    /// Whether there was none for two intervals, or the folder cannot be read.
    pub late: bool,
    /// Why the last attempt failed.
    pub fault: Option<String>,
}

impl BackupStatus {
    /// Reads the status; `None` if the process that holds the vault makes no backups, or none holds it.
    #[must_use]
    pub fn read(holder: &VaultHolder, now: DateTime<Utc>) -> Option<Self> {
        let VaultHolder::Runs(record) = holder else { return None };
        let HolderBackups { folder, every_seconds, fault } = record.backup.clone()?;
        let found = find_newest_backup(&folder);
        let fault = fault.or_else(|| found.as_ref().err().map(ToString::to_string));
        let newest = found.ok().flatten().map(|(_, at)| at);
        let patience = TimeDelta::seconds(i64::from(every_seconds)) * LATE_AFTER;
        // A first backup is made soon after the start, so none at all needs a fault to be late.
        let late = newest.map_or(fault.is_some(), |at| now - at > patience);
        let copied = find_last_copy(&folder);
        Some(Self { folder, every_seconds, newest, copied, late, fault })
    }

    /// Describes the status for a person.
    #[must_use]
    pub fn describe(&self) -> String {
        let folder = self.folder.display();
        let newest = self.newest.map_or_else(
            || format!("none yet in {folder}"),
            |at| format!("last at {}, in {folder}", format_seconds(at)),
        );
        let newest =
            self.copied.map_or(newest.clone(), |at| format!("{newest}; copied elsewhere at {}", format_seconds(at)));
        match (&self.fault, self.late) {
            (Some(fault), _) => format!("{newest}. The last attempt failed: {fault}"),
            (None, true) => format!("{newest}. One is due every {} s: see the log of the process", self.every_seconds),
            (None, false) => newest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::holder::HolderRecord;
    use serde_json::json;
    use steward_domain::gates::mode::DecisionPolicy;
    use steward_domain::time;

    fn write_backup(folder: &std::path::Path) {
        let chain = json!({"seq": 0, "sha256": "0".repeat(64)});
        let info = json!({"format": 1, "vault": "6f2c1a2e-8d3b-4c5f-9a7e-0123456789ab", "taken_at": "2026-11-25T12:00:00Z",
            "build": "0", "chain": chain, "files": 0, "bytes": 0, "doubtful": []});
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("backup.json"), info.to_string()).unwrap();
    }

    #[test]
    fn backups_are_late_after_two_intervals_and_a_failure_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let record = |fault: Option<&str>| {
            let backup = json!({"folder": dir.path(), "every_seconds": 900, "fault": fault});
            let record = json!({"command": "up", "pid": 1, "address": "", "task_queue": "q", "policy": DecisionPolicy::default(),
                "backup": backup});
            VaultHolder::Runs(serde_json::from_value::<HolderRecord>(record).unwrap())
        };
        let read = |fault, at| BackupStatus::read(&record(fault), time::parse(at).unwrap()).unwrap();
        assert!(!read(None, "2026-11-25T12:00:00Z").late, "the first one is being made");
        assert!(read(Some("the disk is full"), "2026-11-25T12:00:00Z").late);
        write_backup(&dir.path().join("2026-11-25T12-00-00.000Z"));
        assert!(!read(None, "2026-11-25T12:30:00Z").late);
        let late = read(Some("the disk is full"), "2026-11-25T12:30:01Z");
        assert!(late.late && late.describe().ends_with("failed: the disk is full"), "{}", late.describe());
        assert!(read(None, "2026-11-25T12:30:01Z").describe().contains("due every 900 s"));
        assert_eq!(BackupStatus::read(&VaultHolder::Nobody, Utc::now()), None);
    }
}
