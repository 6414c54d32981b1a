//! `AnswerTogetherWorkflow`: one answer of a human to many actions, as one click.
//!
//! Each action gets its own answer, with a record of its own, one after the other by the activity that takes every
//! answer; all of them carry one id, by which they are one row and one lesson. A refusal stops no other. What was
//! answered before a crash is known again by the run's id. What undos owe to the tracker is taken back afterwards, so
//! that a slow tracker keeps no change in the vault waiting.

use crate::activities::{AnswerAsk, Answered, VaultActivities};
use crate::answer::{no_answer_in_time, with_tracker};
use crate::argument::Argument;
use crate::steward::{for_good, local};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use steward_domain::plan::ActionId;
use steward_domain::undo::{ResolutionKind, ResolutionRefusal};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Most actions of one click: their answers stay well below what one payload may have.
pub const MAX_TOGETHER: usize = 200;
/// Longest name of an action, in characters; an id has 16.
const MAX_ID_CHARS: usize = 64;
/// Nothing is begun in the tracker later than this after the vault's part: what is left stays owed, and is taken back
/// by the next run of `TrackerWorkflow`.
const TRACKER_NO_LATER: Duration = Duration::from_secs(40);

/// One answer to several actions; the argument of `AnswerTogetherWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TogetherAsk {
    /// Undo, confirm or dismiss.
    pub kind: ResolutionKind,
    /// Ids, or at least four digits of each that no other action begins with; 1 to [`MAX_TOGETHER`] of them.
    pub actions: Vec<String>,
    pub by: String,
    #[serde(default)]
    pub reason: Option<String>,
    /// By which the answers are known as one.
    pub together: ActionId,
}

impl TogetherAsk {
    /// The same answer to these actions, without those that are named twice; the same actions have the same id.
    #[must_use]
    pub fn new(kind: ResolutionKind, actions: Vec<String>, (by, reason): (String, Option<String>)) -> Self {
        let actions = once_each(actions);
        let mut parts: Vec<&str> = actions.iter().map(String::as_str).collect();
        parts.sort_unstable();
        parts.extend(["together", kind.as_str()]);
        let together = ActionId::derive(&parts);
        Self { kind, actions, by, reason, together }
    }
}

/// How each of them ended; the result of `AnswerTogetherWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnsweredTogether {
    pub together: ActionId,
    /// In the order in which they were named.
    pub answers: Vec<AnsweredOne>,
}

/// How one of them ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnsweredOne {
    /// As it was named.
    pub action: String,
    #[serde(flatten)]
    pub answered: Answered,
}

impl AnsweredTogether {
    /// How many were refused.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.answers.iter().filter(|one| matches!(one.answered, Answered::Refused { .. })).count()
    }
}

/// Takes one answer to several actions. Argument: [`TogetherAsk`]; result: [`AnsweredTogether`].
#[workflow]
#[derive(Default)]
pub struct AnswerTogetherWorkflow;

#[workflow_methods]
impl AnswerTogetherWorkflow {
    /// Runs the answers.
    ///
    /// # Errors
    /// Fails where it names no actions or too many, and when the vault cannot be read or written; what was answered
    /// by then stays answered.
    #[run(name = "AnswerTogetherWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, ask: Argument<TogetherAsk>) -> WorkflowResult<AnsweredTogether> {
        let ask = ask.into_value("an object with the keys kind, actions, by and together").map_err(for_good)?;
        let actions = checked(&ask).map_err(for_good)?;
        let mut answers = Vec::with_capacity(actions.len());
        for action in actions {
            let answered = take(ctx, &ask, &action).await?;
            answers.push(AnsweredOne { action, answered });
        }
        // Of two changes of one field the newer goes first, in whatever order they were named.
        for at in (0..answers.len()).rev() {
            if matches!(
                &answers[at].answered,
                Answered::Refused { refusal: ResolutionRefusal::NotTheNewest { .. }, .. }
            ) {
                answers[at].answered = take(ctx, &ask, &answers[at].action).await?;
            }
        }
        let started = ctx.workflow_time();
        for one in &mut answers {
            let elapsed = |start: SystemTime| ctx.workflow_time().and_then(|now| now.duration_since(start).ok());
            let late = started.and_then(elapsed).is_some_and(|elapsed| elapsed > TRACKER_NO_LATER);
            let answered = one.answered.clone();
            one.answered = if late { no_answer_in_time(answered) } else { with_tracker(ctx, answered).await };
        }
        let all = AnsweredTogether { together: ask.together, answers };
        let (count, refused) = (all.answers.len(), all.refused());
        ctx.set_current_details(format!("{} together: {}, {refused} refused", ask.kind.as_str(), count - refused));
        Ok(all)
    }
}

async fn take(
    ctx: &WorkflowContext<AnswerTogetherWorkflow>,
    ask: &TogetherAsk,
    action: &str,
) -> WorkflowResult<Answered> {
    let ask = AnswerAsk {
        kind: ask.kind,
        action: action.to_owned(),
        by: ask.by.clone(),
        reason: ask.reason.clone(),
        edited: None,
        together: Some(ask.together.clone()),
    };
    Ok(ctx.execute_local_activity(VaultActivities::answer, ask, local("answer")).await?)
}

fn checked(ask: &TogetherAsk) -> Result<Vec<String>, String> {
    if ask.kind == ResolutionKind::Raise {
        return Err("only undo, confirm and dismiss are answered together".into());
    }
    let actions = once_each(ask.actions.clone());
    if !(1..=MAX_TOGETHER).contains(&actions.len()) {
        return Err(format!("{} actions are answered together, expected 1 to {MAX_TOGETHER}", actions.len()));
    }
    if actions.iter().any(|action| action.chars().count() > MAX_ID_CHARS) {
        return Err(format!("the name of an action has more than {MAX_ID_CHARS} characters"));
    }
    Ok(actions)
}

fn once_each(actions: Vec<String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::with_capacity(actions.len().min(MAX_TOGETHER));
    // More than are taken are refused as they are.
    for action in actions.into_iter().take(10 * MAX_TOGETHER) {
        if !once.contains(&action) {
            once.push(action);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(actions: &[&str]) -> TogetherAsk {
        let actions = actions.iter().map(|a| (*a).to_owned()).collect();
        TogetherAsk::new(ResolutionKind::Undo, actions, ("ann".into(), None))
    }

    #[test]
    fn the_same_actions_are_the_same_click_in_whatever_order_and_however_often_they_are_named() {
        let one = ask(&["aaaa", "bbbb"]);
        assert_eq!(ask(&["bbbb", "aaaa", "bbbb"]).together, one.together);
        assert_eq!(ask(&["bbbb", "aaaa", "bbbb"]).actions, ["bbbb", "aaaa"]);
        assert_ne!(ask(&["aaaa"]).together, one.together);
        let dismissed = TogetherAsk::new(ResolutionKind::Dismiss, one.actions.clone(), ("ann".into(), None));
        assert_ne!(dismissed.together, one.together);
    }

    #[test]
    fn none_too_many_and_what_is_no_id_are_refused_whole() {
        let many: Vec<String> = (0..=MAX_TOGETHER).map(|n| format!("{n:04x}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(checked(&ask(&many)).unwrap_err().contains("expected 1 to 200"));
        assert_eq!(checked(&ask(&many[1..])).unwrap().len(), MAX_TOGETHER);
        assert!(checked(&ask(&[])).is_err());
        assert!(checked(&ask(&["x".repeat(65).as_str()])).is_err());
        let raise = TogetherAsk { kind: ResolutionKind::Raise, ..ask(&["aaaa"]) };
        assert!(checked(&raise).is_err());
    }

    #[test]
    fn the_longest_results_fit_into_a_payload() {
        let refusal = ResolutionRefusal::AlreadyAnswered {
            id: "f".repeat(16),
            how: "confirmed".into(),
            by: "\u{1f600}".repeat(230),
        };
        let answered = Answered::refused(refusal);
        let one = AnsweredOne { action: "f".repeat(MAX_ID_CHARS), answered };
        let all = AnsweredTogether { together: ask(&["aaaa"]).together, answers: vec![one; MAX_TOGETHER] };
        assert!(serde_json::to_vec(&all).unwrap().len() < 1_000_000);
        assert_eq!(all.refused(), MAX_TOGETHER);
        let text = serde_json::to_value(&all).unwrap();
        assert_eq!((&text["answers"][0]["kind"], &text["answers"][0]["status"]), (&"refused".into(), &409.into()));
        assert_eq!(serde_json::from_value::<AnsweredTogether>(text).unwrap(), all);
    }
}
