//! The list of all workflows and activities of this build.
//!
//! Workers register the workflows from it, and `steward preflight` replays recorded runs against the same list. So a
//! workflow cannot be served without being checked. It must not hold anything but the list.

use crate::activities::{ClerkActivities, ExtractActivities, TrackActivities, VaultActivities};
use crate::{
    AssistantRunWorkflow, ClerkEvalWorkflow, EvalWorkflow, ExtractWorkflow, FileBackWorkflow, IngestWorkflow,
    PurgeWorkflow, QueryWorkflow, ResolveBatchWorkflow, ResolveWorkflow, ReversalCalibrationWorkflow,
    ReversibilityDrillWorkflow, ReviewWorkflow, RouterWorkflow, SetCeilingWorkflow, StewardWorkflow, TrackerWorkflow,
    WikiRunWorkflow,
};
use temporalio_common::{ActivityDefinition, WorkflowDefinition};
use temporalio_workflow::workflows::WorkflowImplementation;

/// Receives every workflow of this build.
pub trait WorkflowVisitor {
    type Error;

    /// Receives one workflow.
    ///
    /// # Errors
    /// Whatever the visitor cannot do; the visit then ends.
    fn visit_workflow<W>(&mut self) -> Result<(), Self::Error>
    where
        W: WorkflowImplementation,
        <W::Run as WorkflowDefinition>::Input: Send;
}

/// Receives every activity of this build.
pub trait ActivityVisitor {
    /// Receives one activity.
    fn visit_activity<A: ActivityDefinition>(&mut self, activity: A);
}

/// Shows all workflows to a visitor.
///
/// # Errors
/// The first error of the visitor.
pub fn visit_workflows<V: WorkflowVisitor>(visitor: &mut V) -> Result<(), V::Error> {
    visitor.visit_workflow::<StewardWorkflow>()?;
    visitor.visit_workflow::<ResolveWorkflow>()?;
    visitor.visit_workflow::<ResolveBatchWorkflow>()?;
    visitor.visit_workflow::<RouterWorkflow>()?;
    visitor.visit_workflow::<PurgeWorkflow>()?;
    visitor.visit_workflow::<ReversalCalibrationWorkflow>()?;
    visitor.visit_workflow::<ReversibilityDrillWorkflow>()?;
    visitor.visit_workflow::<SetCeilingWorkflow>()?;
    visitor.visit_workflow::<ExtractWorkflow>()?;
    visitor.visit_workflow::<TrackerWorkflow>()?;
    visitor.visit_workflow::<WikiRunWorkflow>()?;
    visitor.visit_workflow::<IngestWorkflow>()?;
    visitor.visit_workflow::<QueryWorkflow>()?;
    visitor.visit_workflow::<FileBackWorkflow>()?;
    visitor.visit_workflow::<AssistantRunWorkflow>()?;
    visitor.visit_workflow::<ReviewWorkflow>()?;
    visitor.visit_workflow::<EvalWorkflow>()?;
    visitor.visit_workflow::<ClerkEvalWorkflow>()
}

/// Shows all activities to a visitor.
pub fn visit_activities<V: ActivityVisitor>(visitor: &mut V) {
    visitor.visit_activity(VaultActivities::observe);
    visitor.visit_activity(VaultActivities::reserve);
    visitor.visit_activity(VaultActivities::settle);
    visitor.visit_activity(VaultActivities::apply);
    visitor.visit_activity(VaultActivities::release);
    visitor.visit_activity(VaultActivities::route);
    visitor.visit_activity(VaultActivities::purge);
    visitor.visit_activity(VaultActivities::step_back);
    visitor.visit_activity(VaultActivities::calibrate);
    visitor.visit_activity(VaultActivities::drill);
    visitor.visit_activity(VaultActivities::set_ceiling);
    visitor.visit_activity(VaultActivities::answer);
    visitor.visit_activity(VaultActivities::change_wiki);
    visitor.visit_activity(VaultActivities::stage_ingest);
    visitor.visit_activity(VaultActivities::stage_answer);
    visitor.visit_activity(VaultActivities::stage_assistant);
    visitor.visit_activity(VaultActivities::stage_review);
    visitor.visit_activity(VaultActivities::answer_question);
    visitor.visit_activity(VaultActivities::eval_clerk);
    visitor.visit_activity(VaultActivities::eval_turn);
    visitor.visit_activity(VaultActivities::send_turn);
    visitor.visit_activity(VaultActivities::verify_turn);
    visitor.visit_activity(VaultActivities::commit_ingest);
    visitor.visit_activity(ExtractActivities::next);
    visitor.visit_activity(ExtractActivities::event);
    visitor.visit_activity(TrackActivities::due);
    visitor.visit_activity(TrackActivities::deliver);
    visitor.visit_activity(ClerkActivities::judge);
}
