//! Compares the schedules that a vault should have with those at the Temporal server.
//!
//! A server whose database was deleted or restored has lost schedules without any notice. The worker registers them
//! again; this module only compares and changes nothing.

use super::SCHEDULE_ID_PREFIX;
use super::ScheduleListingError;
use super::VAULT_SCHEDULES;
use super::is_other_vault;
use super::is_steward_schedule;
use super::list_entries;
use super::mark::ScheduleMark;
use crate::views::VaultViews;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steward_domain::fleet::names::VaultNames;
use steward_domain::record::entity::RecordState;
use steward_domain::steward::tick::Cadence;
use steward_vault::files::identity::VaultId;
use steward_vault::index::IndexError;
use steward_workflows::TRACKER_SCHEDULE;
use steward_workflows::schedule_id;
use temporalio_client::Client;
use temporalio_common::protos::temporal::api::schedule::v1::ScheduleListEntry;

/// How often a worker compares the schedules unless its record says otherwise: 5 min, in seconds.
pub const CHECK_SECONDS: u64 = 300;

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScheduleComparison {
    /// How many schedules the vault should have.
    pub expected: usize,
    /// The ids that the server does not list.
    pub missing: BTreeSet<String>,
    /// How many Steward schedules of this namespace name another vault.
    pub of_another_vault: usize,
}

impl ScheduleComparison {
    /// Describes the problem with the fix; `None` when there is none. `check_every` is how often the worker compares.
    #[must_use]
    pub fn describe_fault(&self, check_every: Duration) -> Option<String> {
        if self.of_another_vault > 0 {
            return Some(format!(
                "{} schedules in this namespace belong to another vault: `steward schedules plan` names it and the fix",
                self.of_another_vault
            ));
        }
        if self.missing.is_empty() {
            return None;
        }
        Some(format!(
            "{} of {} schedules are missing at the server; the worker registers them again within {}",
            self.missing.len(),
            self.expected,
            format_span(check_every)
        ))
    }
}

fn format_span(span: Duration) -> String {
    match span.as_secs() {
        seconds if seconds >= 120 && seconds % 60 == 0 => format!("{} minutes", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

impl VaultViews {
    /// Lists the plain ids of the schedules that this vault should have.
    ///
    /// The tracker's schedule is not included, because only the worker knows whether there is one.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_expected_schedules(&self) -> Result<BTreeSet<String>, IndexError> {
        let matters = self.index.read().list_matters(&Cadence::default()).await?.into_iter();
        let scheduled = matters.filter(|matter| matches!(matter.state, Some(RecordState::Open | RecordState::Done)));
        let routines = VAULT_SCHEDULES.iter().map(|(id, _)| *id).filter(|id| *id != TRACKER_SCHEDULE);
        Ok(scheduled.map(|matter| schedule_id(&matter.path)).chain(routines.map(str::to_owned)).collect())
    }
}

/// Lists the schedules of the namespace and compares them with the expected ids.
///
/// # Errors
/// [`ScheduleListingError`].
pub async fn compare_schedules(
    client: &Client,
    names: &VaultNames,
    expected: &BTreeSet<String>,
    ours: Option<VaultId>,
) -> Result<ScheduleComparison, ScheduleListingError> {
    Ok(count_missing(&list_entries(client, names, SCHEDULE_ID_PREFIX).await?, expected, ours))
}

fn count_missing(
    entries: &[ScheduleListEntry],
    expected: &BTreeSet<String>,
    ours: Option<VaultId>,
) -> ScheduleComparison {
    let listed: BTreeMap<&str, &ScheduleListEntry> =
        entries.iter().map(|entry| (entry.schedule_id.as_str(), entry)).collect();
    let is_missing = |id: &&String| !listed.contains_key(id.as_str());
    let names_another = |entry: &&&ScheduleListEntry| {
        let mark = ScheduleMark::find_in_spec(entry.info.as_ref().and_then(|info| info.spec.as_ref()));
        is_steward_schedule(entry) && is_other_vault(mark.and_then(|mark| mark.vault), ours)
    };
    ScheduleComparison {
        expected: expected.len(),
        missing: expected.iter().filter(is_missing).cloned().collect(),
        of_another_vault: listed.values().filter(names_another).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::record::path::{RecordKind, RecordPath};
    use temporalio_common::protos::temporal::api::common::v1::WorkflowType;
    use temporalio_common::protos::temporal::api::schedule::v1::{ScheduleListInfo, ScheduleSpec};

    fn id(last: u8) -> VaultId {
        format!("6f2c1a2e-8d3b-4c5f-9a7e-0123456789{last:02x}").parse().unwrap()
    }

    fn id_of(slug: &str) -> String {
        schedule_id(&RecordPath::new(RecordKind::Matter, slug).unwrap())
    }

    fn entry(slug: &str, vault: Option<VaultId>) -> ScheduleListEntry {
        let mut spec = ScheduleSpec::default();
        ScheduleMark { digest: "00".into(), vault, place: None, matter: None }.write_into_spec(&mut spec);
        let workflow_type = Some(WorkflowType { name: "StewardWorkflow".into() });
        let info = ScheduleListInfo { spec: Some(spec), workflow_type, ..Default::default() };
        ScheduleListEntry { schedule_id: id_of(slug), info: Some(info), ..Default::default() }
    }

    fn expected() -> BTreeSet<String> {
        ["house", "garden", "shed"].map(id_of).into()
    }

    #[test]
    fn missing_schedules_are_counted_and_the_fix_says_when_they_come_back() {
        let listed = [entry("house", Some(id(1))), entry("other", Some(id(1)))];
        let found = count_missing(&listed, &expected(), Some(id(1)));
        assert_eq!(found.missing, BTreeSet::from([id_of("garden"), id_of("shed")]));
        let fault = found.describe_fault(Duration::from_secs(300)).unwrap();
        assert_eq!(
            fault,
            "2 of 3 schedules are missing at the server; the worker registers them again within 5 minutes"
        );
        assert!(found.describe_fault(Duration::from_secs(90)).unwrap().ends_with("within 90 s"));
        let all = ["house", "garden", "shed"].map(|slug| entry(slug, Some(id(1))));
        assert_eq!(count_missing(&all, &expected(), Some(id(1))).describe_fault(Duration::ZERO), None);
    }

    #[test]
    fn schedules_of_another_vault_are_counted_apart() {
        let listed = ["house", "garden", "shed"].map(|slug| entry(slug, Some(id(2))));
        for ours in [Some(id(1)), None] {
            let found = count_missing(&listed, &expected(), ours);
            assert_eq!((found.missing.len(), found.of_another_vault), (0, 3));
            assert!(found.describe_fault(Duration::ZERO).unwrap().contains("another vault"));
        }
        let unmarked = ["house", "garden", "shed"].map(|slug| entry(slug, None));
        assert_eq!(count_missing(&unmarked, &expected(), Some(id(1))).of_another_vault, 0);
    }
}
