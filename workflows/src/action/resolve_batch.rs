//! `ResolveBatchWorkflow`: resolves a batch of actions with one click of a person.
//!
//! Each action gets a resolution and a record of its own, one after the other, by the same activity as a single one.
//! All of them carry one batch id, so they are shown as one row and count as one feedback. A refusal must not stop the
//! others. Actions that were resolved before a crash are known by the run's id. Debts to the tracker are delivered
//! afterwards, so that a slow tracker delays no change in the vault.

use crate::action::resolve::{leave_tracker_debt, settle_tracker_debt};
use crate::activities::{ResolveInput, ResolveOutput, VaultActivities};
use crate::argument::WorkflowArgument;
use crate::steward::tick::{local_activity_options, permanent_failure};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use steward_domain::action::audit::ResolverKind;
use steward_domain::action::plan::ActionId;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::record::plain_text::escape_one_line;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Most actions of one batch: 200. Their results stay well below the size limit of a payload.
pub const MAX_BATCH_ACTIONS: usize = 200;
/// Longest name of an action, in characters: 64. An id has 16.
const MAX_ID_CHARS: usize = 64;
/// No delivery to the tracker starts later than this after the vault's part: 40 s. The next run of `TrackerWorkflow`
/// delivers the rest.
const TRACKER_START_NO_LATER: Duration = Duration::from_secs(40);

/// One resolution of several actions; the argument of `ResolveBatchWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolveBatchInput {
    /// Undo, confirm or dismiss.
    pub kind: ResolutionKind,
    /// Ids, or at least four first digits of each that no other action begins with; 1 to [`MAX_BATCH_ACTIONS`] of them.
    pub actions: Vec<String>,
    pub by: String,
    #[serde(default)]
    pub reason: Option<String>,
    /// The id of the batch.
    pub batch_id: ActionId,
}

impl ResolveBatchInput {
    /// Builds the input without duplicate actions. The same actions have the same batch id.
    #[must_use]
    pub fn new(kind: ResolutionKind, actions: Vec<String>, by: String, reason: Option<String>) -> Self {
        let actions = deduplicate_actions(actions);
        let mut parts: Vec<&str> = actions.iter().map(String::as_str).collect();
        parts.sort_unstable();
        parts.extend(["batch", kind.as_str()]);
        let batch_id = ActionId::derive(&parts);
        Self { kind, actions, by, reason, batch_id }
    }
}

/// How each resolution of a batch ended; the result of `ResolveBatchWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolveBatchOutput {
    pub batch_id: ActionId,
    /// The results, in the order in which the actions were named.
    pub resolutions: Vec<ResolveBatchItem>,
}

/// How the resolution of one action ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolveBatchItem {
    /// The action, as it was named.
    pub action: String,
    #[serde(flatten)]
    pub resolution: ResolveOutput,
}

impl ResolveBatchOutput {
    /// Counts the refused resolutions.
    #[must_use]
    pub fn count_refused(&self) -> usize {
        self.resolutions.iter().filter(|item| matches!(item.resolution, ResolveOutput::Refused { .. })).count()
    }
}

/// Resolves several actions. Argument: [`ResolveBatchInput`]; result: [`ResolveBatchOutput`].
#[workflow]
#[derive(Default)]
pub struct ResolveBatchWorkflow;

#[workflow_methods]
impl ResolveBatchWorkflow {
    /// Runs the resolutions.
    ///
    /// # Errors
    /// Fails if the input names no actions or too many, and when the vault cannot be read or written. Actions that were
    /// resolved by then stay resolved.
    #[run(name = "ResolveBatchWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<ResolveBatchInput>,
    ) -> WorkflowResult<ResolveBatchOutput> {
        let input =
            argument.into_value("an object with the keys kind, actions, by and batch_id").map_err(permanent_failure)?;
        let actions = validate_actions(&input).map_err(permanent_failure)?;
        let mut resolutions = Vec::with_capacity(actions.len());
        for action in actions {
            let resolution = resolve_one(ctx, &input, &action).await?;
            resolutions.push(ResolveBatchItem { action, resolution });
        }
        // Of two changes of one field, the newer must be undone first, in whatever order they were named.
        for at in (0..resolutions.len()).rev() {
            if matches!(
                &resolutions[at].resolution,
                ResolveOutput::Refused { refusal: ResolutionRefusal::NotTheNewest { .. }, .. }
            ) {
                resolutions[at].resolution = resolve_one(ctx, &input, &resolutions[at].action).await?;
            }
        }
        let started = ctx.workflow_time();
        for item in &mut resolutions {
            let elapsed = |start: SystemTime| ctx.workflow_time().and_then(|now| now.duration_since(start).ok());
            let late = started.and_then(elapsed).is_some_and(|elapsed| elapsed > TRACKER_START_NO_LATER);
            let output = item.resolution.clone();
            item.resolution = if late { leave_tracker_debt(output) } else { settle_tracker_debt(ctx, output).await };
        }
        let output = ResolveBatchOutput { batch_id: input.batch_id, resolutions };
        let (count, refused) = (output.resolutions.len(), output.count_refused());
        ctx.set_current_details(format!("{} batch: {} done, {refused} refused", input.kind.as_str(), count - refused));
        Ok(output)
    }
}

async fn resolve_one(
    ctx: &WorkflowContext<ResolveBatchWorkflow>,
    batch: &ResolveBatchInput,
    action: &str,
) -> WorkflowResult<ResolveOutput> {
    let input = ResolveInput {
        kind: batch.kind,
        action: action.to_owned(),
        by: batch.by.clone(),
        reason: batch.reason.clone(),
        edited: None,
        batch_id: Some(batch.batch_id.clone()),
        resolved_by: ResolverKind::Human,
    };
    let options = local_activity_options(&format!("{} {}", batch.kind.as_str(), escape_one_line(action)));
    Ok(ctx.execute_local_activity(VaultActivities::answer, input, options).await?)
}

fn validate_actions(input: &ResolveBatchInput) -> Result<Vec<String>, String> {
    if !matches!(input.kind, ResolutionKind::Undo | ResolutionKind::Confirm | ResolutionKind::Dismiss) {
        return Err("a batch can only undo, confirm or dismiss".into());
    }
    let actions = deduplicate_actions(input.actions.clone());
    if !(1..=MAX_BATCH_ACTIONS).contains(&actions.len()) {
        return Err(format!("the batch has {} actions, expected 1 to {MAX_BATCH_ACTIONS}", actions.len()));
    }
    if actions.iter().any(|action| action.chars().count() > MAX_ID_CHARS) {
        return Err(format!("the name of an action has more than {MAX_ID_CHARS} characters"));
    }
    Ok(actions)
}

fn deduplicate_actions(actions: Vec<String>) -> Vec<String> {
    let mut unique: Vec<String> = Vec::with_capacity(actions.len().min(MAX_BATCH_ACTIONS));
    // Only ten times the limit is read, so that an endless list costs little.
    for action in actions.into_iter().take(10 * MAX_BATCH_ACTIONS) {
        if !unique.contains(&action) {
            unique.push(action);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(actions: &[&str]) -> ResolveBatchInput {
        let actions = actions.iter().map(|a| (*a).to_owned()).collect();
        ResolveBatchInput::new(ResolutionKind::Undo, actions, "ann".into(), None)
    }

    #[test]
    fn the_same_actions_are_the_same_click_in_whatever_order_and_however_often_they_are_named() {
        let one = ask(&["aaaa", "bbbb"]);
        assert_eq!(ask(&["bbbb", "aaaa", "bbbb"]).batch_id, one.batch_id);
        assert_eq!(ask(&["bbbb", "aaaa", "bbbb"]).actions, ["bbbb", "aaaa"]);
        assert_ne!(ask(&["aaaa"]).batch_id, one.batch_id);
        let dismissed = ResolveBatchInput::new(ResolutionKind::Dismiss, one.actions.clone(), "ann".into(), None);
        assert_ne!(dismissed.batch_id, one.batch_id);
    }

    #[test]
    fn none_too_many_and_what_is_no_id_are_refused_whole() {
        let many: Vec<String> = (0..=MAX_BATCH_ACTIONS).map(|n| format!("{n:04x}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(validate_actions(&ask(&many)).unwrap_err().contains("expected 1 to 200"));
        assert_eq!(validate_actions(&ask(&many[1..])).unwrap().len(), MAX_BATCH_ACTIONS);
        assert!(validate_actions(&ask(&[])).is_err());
        assert!(validate_actions(&ask(&["x".repeat(65).as_str()])).is_err());
        let raise = ResolveBatchInput { kind: ResolutionKind::Raise, ..ask(&["aaaa"]) };
        assert!(validate_actions(&raise).is_err());
    }

    #[test]
    fn the_longest_results_fit_into_a_payload() {
        let refusal = ResolutionRefusal::AlreadyResolved {
            id: "f".repeat(16),
            how: "confirmed".into(),
            by: "\u{1f600}".repeat(230),
            undo: Some("f".repeat(16)),
        };
        let answered = ResolveOutput::from_refusal(refusal);
        let one = ResolveBatchItem { action: "f".repeat(MAX_ID_CHARS), resolution: answered };
        let all = ResolveBatchOutput { batch_id: ask(&["aaaa"]).batch_id, resolutions: vec![one; MAX_BATCH_ACTIONS] };
        assert!(serde_json::to_vec(&all).unwrap().len() < 1_000_000);
        assert_eq!(all.count_refused(), MAX_BATCH_ACTIONS);
        let text = serde_json::to_value(&all).unwrap();
        assert_eq!(
            (&text["resolutions"][0]["kind"], &text["resolutions"][0]["status"]),
            (&"refused".into(), &409.into())
        );
        assert_eq!(serde_json::from_value::<ResolveBatchOutput>(text).unwrap(), all);
    }
}
