//! `ReversibilityDrillWorkflow`: makes and undoes every class of change on a canary, once a night.
//!
//! The vault process keeps the canaries and compares the bytes. It demotes a class that it could not restore to shadow,
//! until a person restores the class. No record and no text of people's vaults must come here.

use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use serde::{Deserialize, Serialize};
use steward_domain::action::mutation::MutationClass;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// The result of a drill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrillOutput {
    /// Classes whose canaries were restored to the byte.
    pub restored: Vec<MutationClass>,
    /// Classes that were not restored, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<(MutationClass, String)>,
    /// How many of these this drill demoted to shadow.
    #[serde(default)]
    pub lowered: u32,
}

/// Drills every class. Result: [`DrillOutput`].
#[workflow]
#[derive(Default)]
pub struct ReversibilityDrillWorkflow;

#[workflow_methods]
impl ReversibilityDrillWorkflow {
    /// Runs the drill.
    ///
    /// # Errors
    /// Fails when the canaries or the vault cannot be written. That demotes nothing.
    #[run(name = "ReversibilityDrillWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, none: WorkflowArgument<()>) -> WorkflowResult<DrillOutput> {
        none.into_value("no argument").map_err(permanent_failure)?;
        let report = ctx
            .execute_local_activity(VaultActivities::drill, (), local_activity_options("undo a canary of each class"))
            .await?;
        let restored = report.restored.len();
        let failures = report.broken.iter().map(|(class, why)| format!("; {} is not: {why}", class.as_str()));
        let failures: String = failures.collect();
        ctx.set_current_details(format!("{restored} classes of change are restored by their undo{failures}"));
        Ok(report)
    }
}
