//! The budget of deletions: what is deleted cannot be brought back, so too many at once wait for an operator.
//!
//! The schedules of matters that were moved do not count, because they have another one by then. It must not delete
//! anything itself.

use super::{SchedulePlan, ScheduleStep, ScheduleStepVerb};
use crate::registrar::ScheduleSettings;
use serde::Serialize;
use std::collections::BTreeSet;

/// Deletions above the budget, which wait for an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RefusedDeletions {
    /// The ids of the schedules that would be deleted.
    pub(crate) ids: Vec<String>,
    /// How many schedules may be deleted without a confirmation.
    pub(crate) budget: usize,
    /// How many schedules are ours.
    pub(crate) known: usize,
    /// The hint for the operator.
    pub(crate) hint: String,
}

impl SchedulePlan {
    /// Turns the deletions into refusals if there are more than may be done without a confirmation.
    pub(super) fn enforce_deletion_budget(
        &mut self,
        known: usize,
        moved: &BTreeSet<&str>,
        settings: &ScheduleSettings,
    ) {
        let budget = (known * usize::from(settings.deletion_percent) / 100).max(settings.deletion_floor);
        let is_deletion =
            |step: &&mut ScheduleStep| step.verb == ScheduleStepVerb::Delete && !moved.contains(step.id.as_str());
        let deletions = self.steps.iter_mut().filter(is_deletion);
        let deletions: Vec<&mut ScheduleStep> = deletions.collect();
        if settings.operator_confirmed || deletions.len() <= budget {
            return;
        }
        let hint = format!(
            "{} of {known} schedules would be deleted, but only {budget} may be deleted without a confirmation; check \
             the vault, and if their matters are gone for good, run `steward schedules apply --confirm-deletions`",
            deletions.len()
        );
        let mut ids = Vec::new();
        for step in deletions {
            ids.push(step.id.clone());
            step.verb = ScheduleStepVerb::Keep { why: "its deletion waits for a confirmation".to_owned() };
        }
        ids.sort();
        self.refused = Some(RefusedDeletions { ids, budget, known, hint });
    }
}
