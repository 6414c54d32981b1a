//! `ReversibilityDrillWorkflow`: once a night, every class of change is made on a canary and taken back.
//!
//! The canaries are the vault process's own; it compares the bytes, and lowers a class that it could not restore
//! to shadow until a human raises it. It carries no record and no text of people's vaults.

use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use serde::{Deserialize, Serialize};
use steward_domain::action::mutation::MutationClass;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// What a drill found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrillOutput {
    /// Classes whose canaries were back to the byte.
    pub restored: Vec<MutationClass>,
    /// Classes that were not restored, with what was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<(MutationClass, String)>,
    /// How many of these were lowered to shadow by this drill, and not before.
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
    /// Fails when the canaries or the vault cannot be written; that lowers nothing.
    #[run(name = "ReversibilityDrillWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, none: WorkflowArgument<()>) -> WorkflowResult<DrillOutput> {
        none.into_value("no argument").map_err(permanent_failure)?;
        let report = ctx.execute_local_activity(VaultActivities::drill, (), local_activity_options("drill")).await?;
        let (whole, broken) = (report.restored.len(), &report.broken);
        let broken: String = broken.iter().map(|(class, why)| format!("; {} is not: {why}", class.as_str())).collect();
        ctx.set_current_details(format!("{whole} classes of change are restored by their undo{broken}"));
        Ok(report)
    }
}
