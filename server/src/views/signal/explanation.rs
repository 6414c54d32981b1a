//! Explains why a signal has its status, and what would change that.
//!
//! The first source with an explanation wins, in this order: the status in the signal's file, the question that
//! withholds it, the action that cites it, a fault in its file or its target's, the router's reason. Nothing is
//! changed.

use super::SignalFile;
use super::find_misfit;
use super::orphan;
use crate::views::{VaultViews, quote_argument};
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::record::entity::SignalEffect;
use steward_domain::record::path::RecordPath;
use steward_domain::record::schema::NoteSchema;
use steward_domain::signals::signal::{Signal, SignalStatus};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{ActionRow, IndexError};

/// What the index knows about a signal.
#[derive(Clone, Debug, Default)]
pub struct SignalHistory {
    /// The router's reason for not applying it.
    router_reason: Option<String>,
    /// The note that it names; `None` if it names none.
    pub(super) target: Option<RecordPath>,
    /// The newest action that cites it.
    cited_by: Option<ActionRow>,
    /// The open question about that action's target, or about the signal's target.
    open_question: Option<ActionId>,
    /// The matter of the signal's target, or the target itself if it is a matter.
    matter: Option<RecordPath>,
    /// Why the link to that matter names no note, or several.
    matter_fault: Option<String>,
    /// Whether that action was confirmed and the confirmation undone.
    is_confirmation_undone: bool,
}

impl VaultViews {
    /// Reads the history of a signal.
    ///
    /// # Errors
    /// The index cannot be read.
    pub async fn read_signal_history(&self, signal: &RecordPath) -> Result<SignalHistory, IndexError> {
        let index = &self.index;
        let router_reason = index.signals().list_route_reasons(std::slice::from_ref(signal)).await?.remove(signal);
        let cited_by = index.actions().action_citing(signal).await?;
        let named = index.actions().find_signal_target(signal).await?;
        let target = cited_by.as_ref().map(|action| action.target.clone()).or_else(|| named.clone());
        let label = match &target {
            Some(target) => index.read().list_record_labels(std::slice::from_ref(target)).await?.remove(target),
            None => None,
        };
        let matter_fault = label.as_ref().and_then(|label| label.matter_fault.clone());
        let matter = label.and_then(|label| label.matter.or_else(|| target.clone()));
        let open_question = match target {
            Some(target) => index.read().find_open_question(&target).await?.map(|question| question.id),
            None => None,
        };
        let confirmation = match cited_by.as_ref().and_then(|action| action.resolved_by.as_ref()) {
            Some(confirmation) => index.actions().action_by_id(confirmation).await?,
            None => None,
        };
        let is_confirmation_undone = confirmation.is_some_and(|row| row.resolution == Some(ActionKind::Reversed));
        Ok(SignalHistory {
            router_reason,
            target: named,
            cited_by,
            open_question,
            matter,
            matter_fault,
            is_confirmation_undone,
        })
    }
}

impl SignalHistory {
    /// What became of the signal, in a word or two; `None` if no action says so.
    pub(crate) fn outcome_label(&self) -> Option<&'static str> {
        let action = self.cited_by.as_ref()?;
        match (action.resolution, action.disposition) {
            (Some(ActionKind::Confirmed), _) if self.is_confirmation_undone => Some("confirmed, then undone"),
            (Some(ActionKind::Confirmed), _) => Some("confirmed"),
            (Some(ActionKind::Reversed), _) => Some("undone"),
            (Some(ActionKind::Dismissed), _) => Some("dismissed"),
            (Some(ActionKind::Right), _) => Some("called right"),
            (Some(ActionKind::Wrong), _) => Some("called wrong"),
            (_, Disposition::Live) => Some("changed the note"),
            (_, Disposition::Pending | Disposition::Shadow) if action.settled => Some("the note is already so"),
            (Some(_), Disposition::Pending | Disposition::Shadow) => Some("settled by hand"),
            (_, Disposition::Pending) => Some("waits for you"),
            (_, Disposition::Shadow) => Some("would change the note"),
            (_, Disposition::Recorded) => (self.open_question.as_ref() == Some(&action.id)).then_some("asked about"),
        }
    }
}

/// The reason of a signal's status, and advice on how to change it.
pub(super) struct ReasonAndAdvice {
    pub(super) why: String,
    pub(super) advice: String,
}

impl ReasonAndAdvice {
    fn new(why: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { why: why.into(), advice: advice.into() }
    }
}

const UNDO: &str = "undo the action with `steward undo` (see `steward audit list`)";
const FIX: &str = "correct what the reason names, and set `status: unrouted`";
const RESOLVED: &str = "nothing: it is not proposed again from this message; edit the record if it should change";

pub(super) fn explain_status(
    root: &VaultRoot,
    schema: &NoteSchema,
    filed: &SignalFile,
    history: &SignalHistory,
) -> ReasonAndAdvice {
    let signal = &filed.signal;
    let written = signal.reason.clone();
    if signal.status == SignalStatus::Applied {
        return ReasonAndAdvice::new(written.unwrap_or_else(|| "it was applied".to_owned()), UNDO);
    }
    let left = history.router_reason.clone();
    if let Some(reason) = [&written, &left].into_iter().flatten().find(|reason| reason.starts_with("withheld:")) {
        return explain_withheld(reason, history.open_question.as_ref());
    }
    if let Some(explanation) = history.cited_by.as_ref().and_then(|action| explain_action(action, history)) {
        return explanation;
    }
    let misfit = find_misfit(root, schema, filed);
    match (written, misfit) {
        (Some(reason), Some(misfit)) if misfit.starts_with(&reason) => ReasonAndAdvice::new(misfit, FIX),
        (Some(reason), _) => ReasonAndAdvice::new(reason, advise_next_step(signal, history.matter.as_ref())),
        (None, Some(misfit)) if ["target_closed:", "already_so:"].iter().any(|word| misfit.starts_with(word)) => {
            let advice = "nothing while the record stays so; `steward why <task>` shows the last decision about it";
            ReasonAndAdvice::new(misfit, advice)
        }
        (None, Some(misfit)) => ReasonAndAdvice::new(misfit, FIX),
        (None, None) => {
            let orphan = find_orphan(root, schema, signal, history);
            explain_unresolved(orphan, signal, history, left)
        }
    }
}

fn explain_withheld(reason: &str, open: Option<&ActionId>) -> ReasonAndAdvice {
    match open {
        Some(question) => ReasonAndAdvice::new(
            reason,
            format!("resolve the question: edit the record, or `steward dismiss {question}` if nothing is to be done"),
        ),
        None => ReasonAndAdvice::new(
            format!("{reason}, a question that has ended"),
            "nothing; edit the record if it should change",
        ),
    }
}

/// Explains by the action that cites the signal; `None` if the action decided nothing about it.
fn explain_action(action: &ActionRow, history: &SignalHistory) -> Option<ReasonAndAdvice> {
    let id = &action.id;
    let is_open_question = history.open_question.as_ref() == Some(id);
    let explanation = match (action.resolution, action.disposition) {
        (Some(ActionKind::Confirmed), _) if history.is_confirmation_undone => {
            ReasonAndAdvice::new(format!("undone: {id} was confirmed and then undone"), RESOLVED)
        }
        (Some(ActionKind::Reversed), _) => ReasonAndAdvice::new(format!("undone: {id}"), RESOLVED),
        (Some(ActionKind::Dismissed), _) => ReasonAndAdvice::new(format!("dismissed: {id}"), RESOLVED),
        (Some(ActionKind::Confirmed), _) => ReasonAndAdvice::new(format!("confirmed: {id}"), UNDO),
        (_, Disposition::Live) => {
            ReasonAndAdvice::new(format!("live: {id} changed the record"), format!("`steward undo {id}` reverts it"))
        }
        (_, Disposition::Pending | Disposition::Shadow) if action.settled => {
            ReasonAndAdvice::new(format!("{}: {id}; the record is already so", action.disposition.as_str()), "nothing")
        }
        (Some(_), Disposition::Pending | Disposition::Shadow) => {
            ReasonAndAdvice::new(format!("settled by hand: {id}"), RESOLVED)
        }
        (_, Disposition::Pending) => ReasonAndAdvice::new(
            format!("pending: {id} waits for you"),
            format!("`steward confirm {id}` or `steward dismiss {id}`"),
        ),
        (_, Disposition::Shadow) => ReasonAndAdvice::new(
            format!("shadow: {id} only records what would have been changed"),
            "let the stewards act (`STEWARD_LIVE_MODE`), or edit the record",
        ),
        (None, Disposition::Recorded) if is_open_question => ReasonAndAdvice::new(
            format!("needs_input: {id} asks you about it"),
            format!("edit the record, or `steward dismiss {id}` if nothing is to be done"),
        ),
        (_, Disposition::Recorded) => return None,
    };
    Some(explanation)
}

/// Why the task of an undecided signal has no steward, with the fix.
fn find_orphan(root: &VaultRoot, schema: &NoteSchema, signal: &Signal, history: &SignalHistory) -> Option<String> {
    let is_undecided = signal.status == SignalStatus::Unrouted && signal.effect == SignalEffect::Mutation;
    let (target, matter) = signal.target.as_ref().zip(history.matter.as_ref()).filter(|_| is_undecided)?;
    match &history.matter_fault {
        Some(fault) => Some(orphan::explain_faulty_link(schema, target, fault)),
        None => orphan::explain_missing_steward(root, schema, target, matter),
    }
}

fn explain_unresolved(
    orphan: Option<String>,
    signal: &Signal,
    history: &SignalHistory,
    left: Option<String>,
) -> ReasonAndAdvice {
    let is_unrouted = signal.status == SignalStatus::Unrouted;
    if let Some(advice) = orphan {
        return ReasonAndAdvice::new(left.unwrap_or_else(|| "no_steward".to_owned()), advice);
    }
    match (left, &history.cited_by) {
        (Some(left), _) if left.starts_with("snoozed:") => {
            ReasonAndAdvice::new(left, "nothing until then, unless you change `snoozed_until` of the record")
        }
        (Some(left), _) if left.starts_with("quiet_hours:") => ReasonAndAdvice::new(left, "nothing until then"),
        (Some(left), None) => ReasonAndAdvice::new(left, advise_next_step(signal, history.matter.as_ref())),
        (left, Some(action)) => ReasonAndAdvice::new(
            left.unwrap_or_else(|| format!("judged: {} found nothing to change", action.id)),
            "nothing, unless the router proposes it within one interval of the matter; edit the record if it should \
             change",
        ),
        (None, None) if is_unrouted => ReasonAndAdvice::new(
            "nothing has been decided about it yet",
            advise_next_step(signal, history.matter.as_ref()),
        ),
        (None, None) => {
            ReasonAndAdvice::new("no reason was recorded", advise_next_step(signal, history.matter.as_ref()))
        }
    }
}

fn advise_next_step(signal: &Signal, matter: Option<&RecordPath>) -> String {
    match (signal.status, &signal.target, signal.effect) {
        (SignalStatus::Applied, _, _) => UNDO.to_owned(),
        (_, None, _) => "write `target_path` with one of the candidates, and `status: unrouted`".to_owned(),
        (_, Some(_), SignalEffect::None) => {
            "nothing: it states no change; edit the record by hand if it should change".to_owned()
        }
        (_, Some(_), SignalEffect::Action) => "do what it asks, then set `status: applied`".to_owned(),
        (SignalStatus::Unrouted, Some(_), SignalEffect::Mutation) => {
            let matter = matter.map_or_else(|| "<matter>".to_owned(), |matter| quote_argument(matter.slug()));
            format!("its steward considers it at the next check; `steward tick --wait {matter}` starts one now")
        }
        (SignalStatus::Pending, Some(_), SignalEffect::Mutation) => {
            "confirm its action with `steward confirm`, or let the stewards act (`STEWARD_LIVE_MODE`)".to_owned()
        }
        (SignalStatus::Skipped | SignalStatus::ActionPending, Some(_), SignalEffect::Mutation) => FIX.to_owned(),
    }
}
