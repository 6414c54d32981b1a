//! Whether the nightly reversibility drill still runs, for `steward status`, `steward doctor` and the pages.
//!
//! The findings of a drill are in the audit chain. A drill that cannot run leaves no finding, so only this module
//! reports it. A drill can be late only while a process serves the vault, because without one no drill runs.

use crate::http::holder::VaultHolder;
use crate::views::VaultViews;
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_domain::time;
use steward_vault::index::IndexError;
use steward_workflows::DRILL_SCHEDULE;

/// The status of the nightly drill.
#[derive(Debug, Serialize)]
pub struct NightlyDrillStatus {
    /// The last drill that tried every class.
    pub last: Option<DateTime<Utc>>,
    /// Whether there was none for 48 h, while the vault was served for as long.
    pub late: bool,
}

impl VaultViews {
    /// Reads the status of the nightly drill.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_drill_status(&self, now: DateTime<Utc>) -> Result<NightlyDrillStatus, IndexError> {
        self.read_drill_status_of(&self.holder(), now).await
    }

    async fn read_drill_status_of(
        &self,
        holder: &VaultHolder,
        now: DateTime<Utc>,
    ) -> Result<NightlyDrillStatus, IndexError> {
        let drills = self.index.trust().read_drill_history().await?;
        let is_served = match holder {
            VaultHolder::Runs(_) => true,
            VaultHolder::Nobody | VaultHolder::Died(_) | VaultHolder::Silent(_) => false,
        };
        Ok(NightlyDrillStatus { last: drills.last, late: is_served && drills.is_late(now) })
    }
}

impl NightlyDrillStatus {
    /// Describes the status for a person, with the fix if the drill is late.
    #[must_use]
    pub fn describe_status(&self) -> String {
        let last =
            self.last.map_or_else(|| "none yet".to_owned(), |at| format!("last at {}", time::format_seconds(at)));
        if !self.late {
            return last;
        }
        format!(
            "{last}, but it is due every night. So it is unknown whether changes can be undone. See the schedule \
             `{DRILL_SCHEDULE}` in Temporal and the worker's log, and check that the state folder is writable"
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
    use steward_vault::files::root::VaultRoot;
    use steward_vault::index::Index;

    #[tokio::test]
    async fn a_drill_that_does_not_run_is_reported_while_the_vault_is_served() {
        let dir = tempfile::tempdir().unwrap();
        let index = Index::open(dir.path()).await.unwrap();
        let start = time::parse("2026-11-20T12:00:00Z").unwrap();
        let record =
            json!({"command": "up", "pid": 1, "address": "", "task_queue": "q", "policy": DecisionPolicy::default()});
        let runs = VaultHolder::Runs(serde_json::from_value::<HolderRecord>(record).unwrap());
        let views = VaultViews::new(VaultRoot::open(dir.path()).unwrap(), index.clone());
        let after = async |hours, holder| {
            let drill = views.read_drill_status_of(holder, start + TimeDelta::hours(hours)).await.unwrap();
            (drill.late, drill.describe_status())
        };
        index.trust().record_service_start(start).await.unwrap();
        assert_eq!(after(47, &runs).await, (false, "none yet".to_owned()));
        let (late, text) = after(49, &runs).await;
        assert!(late && text.starts_with("none yet, but it is due every night"), "{text}");
        assert!(text.contains("al-reversibility-drill"), "{text}");
        assert_eq!(after(49, &VaultHolder::Nobody).await, (false, "none yet".to_owned()));
        index.trust().record_drill(start + TimeDelta::hours(14)).await.unwrap();
        assert_eq!(after(49, &runs).await, (false, "last at 2026-11-21T02:00:00Z".to_owned()));
        assert!(after(63, &runs).await.0);
    }
}
