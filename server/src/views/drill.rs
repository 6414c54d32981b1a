//! Whether the reversibility drill still runs, for `steward status`, `steward doctor` and the pages.
//!
//! What a drill finds is in the audit chain; one that cannot run finds nothing, and only here that is told. It is
//! judged while a process serves the vault: nobody drills one that is not served.

use crate::http::holder::VaultHolder;
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_domain::time;
use steward_vault::index::{Index, IndexError};
use steward_workflows::DRILL_SCHEDULE;

/// How it stands with the drill.
#[derive(Debug, Serialize)]
pub struct NightlyDrillStatus {
    /// The last one that tried every class.
    pub last: Option<DateTime<Utc>>,
    /// There was none for 48 h, and the vault was served for as long.
    pub late: bool,
}

impl NightlyDrillStatus {
    /// What is known of it now.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read(index: &Index, holder: &VaultHolder, now: DateTime<Utc>) -> Result<Self, IndexError> {
        let drills = index.read_drill_history().await?;
        let is_served = match holder {
            VaultHolder::Runs(_) => true,
            VaultHolder::Nobody | VaultHolder::Died(_) | VaultHolder::Silent(_) => false,
        };
        Ok(Self { last: drills.last, late: is_served && drills.is_late(now) })
    }

    /// As it is told to a person; with the mend where it is late.
    #[must_use]
    pub fn describe_status(&self) -> String {
        let last =
            self.last.map_or_else(|| "none yet".to_owned(), |at| format!("last at {}", time::format_seconds(at)));
        if !self.late {
            return last;
        }
        format!(
            "{last}, and it is due each night: whether changes can be taken back is not known; see `{DRILL_SCHEDULE}` at \
             the server and the worker's log, and check that the state folder can be written"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::holder::HolderRecord;
    use chrono::TimeDelta;
    use serde_json::json;
    use steward_domain::gates::mode::DecisionPolicy;

    #[tokio::test]
    async fn a_drill_that_does_not_run_is_told_while_the_vault_is_served() {
        let dir = tempfile::tempdir().unwrap();
        let index = Index::open(dir.path()).await.unwrap();
        let start = time::parse("2026-11-20T12:00:00Z").unwrap();
        let note =
            json!({"command": "up", "pid": 1, "address": "", "task_queue": "q", "policy": DecisionPolicy::default()});
        let runs = VaultHolder::Runs(serde_json::from_value::<HolderRecord>(note).unwrap());
        let after = async |hours, holder| {
            let drilled = NightlyDrillStatus::read(&index, holder, start + TimeDelta::hours(hours)).await.unwrap();
            (drilled.late, drilled.describe_status())
        };
        index.record_service_start(start).await.unwrap();
        assert_eq!(after(47, &runs).await, (false, "none yet".to_owned()));
        let (late, told) = after(49, &runs).await;
        assert!(late && told.starts_with("none yet, and it is due each night"), "{told}");
        assert!(told.contains("al-reversibility-drill"), "{told}");
        assert_eq!(after(49, &VaultHolder::Nobody).await, (false, "none yet".to_owned()));
        index.record_drill(start + TimeDelta::hours(14)).await.unwrap();
        assert_eq!(after(49, &runs).await, (false, "last at 2026-11-21T02:00:00Z".to_owned()));
        assert!(after(63, &runs).await.0);
    }
}
