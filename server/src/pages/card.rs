//! An action as a card: what a person reads first, and the buttons for it.
//!
//! A card turns the values of an action into texts: the outcome in a word or two, the confidence, and the gates that
//! held it. Foreign text stays plain text; the templates escape it.

use super::build_record_url;
use super::build_url;
use super::message::CardMessages;
use super::note::NoteLinks;
use crate::views::FactsError;
use crate::views::VaultViews;
use crate::views::action::{Action, ActionChange, ActionEvidence};
use crate::views::quote;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use steward_domain::action::audit::ActionKind;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::path::RecordPath;
use steward_domain::time::format_age;
use steward_domain::time::format_millis;
use steward_vault::index::ActionRow;

/// Most quotes on a card; the page of the action shows all.
const QUOTES: usize = 2;

/// One action, or several equal ones, as a card.
pub(crate) struct ActionCard {
    pub(crate) action: Action,
    /// The name of the target.
    pub(crate) title: String,
    /// The outcome in a word or two.
    pub(crate) status: String,
    /// The path and the name of a task's matter.
    pub(crate) matter: Option<(String, String)>,
    /// When the task is due, if that is known.
    pub(crate) due: Option<DateTime<Utc>>,
    /// Links that open the note.
    pub(crate) links: NoteLinks,
    /// The CSS class that colours the card.
    pub(crate) tone: &'static str,
    pub(crate) at: String,
    pub(crate) ago: String,
    /// The messages about the record, for the change and against it.
    pub(crate) messages: CardMessages,
    /// The confidence, and the gates that held the action.
    pub(crate) confidence: String,
    /// Who resolved it and why; only for a resolution.
    pub(crate) resolver: Option<String>,
    /// How often the same was proposed, or how many actions a batch resolved.
    pub(crate) times: usize,
}

impl ActionCard {
    fn from_action(mut action: Action, name: Option<String>, links: NoteLinks, now: DateTime<Utc>) -> Self {
        let resolver = action.by.as_ref().map(|by| match &action.reason {
            Some(reason) => format!("{by}: {reason}"),
            None => by.clone(),
        });
        if action.sender.is_some() {
            action.change = action.change.map(spell_setting);
        }
        let sender = action.sender.as_ref().map(|sender| sender.name.clone());
        Self {
            title: sender.or(name).unwrap_or_else(|| action.target.clone()),
            status: describe_outcome(&action),
            tone: choose_tone(&action),
            matter: None,
            due: None,
            links,
            at: format_millis(action.at),
            ago: format_age(action.at, now),
            messages: CardMessages::choose(&action, now),
            confidence: describe_confidence(&action),
            resolver,
            times: 1,
            action,
        }
    }

    /// The first cited signals that support the decision, where no messages are listed. None for an undo or a dismissal,
    /// which a person decided.
    pub(crate) fn supporting_quotes(&self) -> impl Iterator<Item = &ActionEvidence> {
        let is_listed = !self.action.signals.is_empty();
        let most = if is_listed || self.action.rejects_a_decision() { 0 } else { QUOTES };
        self.action.evidence.iter().filter(|cited| cited.supports).take(most)
    }

    /// How many records the card counts for: a repeated proposal counts once, a batch counts each action.
    pub(crate) fn count_records(&self) -> usize {
        if self.action.batch_id.is_some() { self.times } else { 1 }
    }

    /// The URL of the preview for undoing the whole batch; `None` unless the card is a batch that can still be undone.
    pub(crate) fn batch_undo_url(&self) -> Option<String> {
        let batch = self.action.batch_id.as_ref().filter(|_| self.times > 1 && self.action.undo_until.is_some())?;
        Some(build_url("/batch/undo", &[("batch_id", batch)]))
    }

    /// The page about its target: a note, or the sender on the page "Trust".
    pub(crate) fn target_url(&self) -> String {
        match &self.action.sender {
            Some(sender) => build_url("/trust", &[("q", &sender.key)]),
            None => build_record_url(&self.action.target),
        }
    }

    /// The order in which proposals are shown: what is due first, then what something speaks against or what is least
    /// certain, then the oldest.
    pub(crate) fn urgency(&self) -> (bool, Option<DateTime<Utc>>, bool, i64, DateTime<Utc>) {
        #[expect(clippy::cast_possible_truncation, reason = "a confidence of 0 to 1 in thousandths")]
        let confidence = (self.action.confidence * 1_000.0) as i64;
        (self.due.is_none(), self.due, !self.messages.speak_against(), confidence, self.action.at)
    }

    /// The label of the part that is folded.
    pub(crate) fn folded_label(&self) -> String {
        match self.messages.folded.len() {
            0 => "More".into(),
            1 => "1 more message, and more".into(),
            count => format!("{count} more messages, and more"),
        }
    }

    /// The day on which it is due, for a person.
    pub(crate) fn due_day(&self) -> Option<String> {
        self.due.map(|due| due.format("%-d %b").to_string())
    }

    /// Whether it waits for a person: a proposal, or a question.
    pub(crate) fn is_open(&self) -> bool {
        self.action.waits || self.action.is_open_question()
    }

    /// The names of the sources behind the action, each once.
    pub(crate) fn sources(&self) -> Vec<&str> {
        let mut sources: Vec<&str> = Vec::new();
        for cited in self.action.evidence.iter().filter(|cited| cited.supports) {
            if !sources.contains(&cited.source.as_str()) {
                sources.push(&cited.source);
            }
        }
        sources
    }
}

impl Action {
    /// Whether a person undid or dismissed a decision. Its signals and its reasoning are no reasons for that.
    pub(crate) fn rejects_a_decision(&self) -> bool {
        let rejecting = [ActionKind::Reversed, ActionKind::Dismissed, ActionKind::Wrong, ActionKind::Reopened];
        rejecting.iter().any(|kind| self.kind == kind.as_str())
    }
}

impl ActionEvidence {
    pub(crate) fn format_target_confidence(&self) -> String {
        format!("{:.2}", self.target_confidence)
    }

    pub(crate) fn format_effect_confidence(&self) -> String {
        format!("{:.2}", self.effect_confidence)
    }
}

/// Builds the cards of these rows, in their order. Reads one file for each.
pub(crate) async fn read_cards(views: &VaultViews, rows: Vec<ActionRow>) -> Result<Vec<ActionCard>, FactsError> {
    let now = Utc::now();
    let actions = quote::complete_quotes(views.root(), views.read_actions(rows, now).await?).await?;
    build_cards(views, actions, now).await
}

/// Builds the cards of these actions, in their order.
pub(crate) async fn build_cards(
    views: &VaultViews,
    actions: Vec<Action>,
    now: DateTime<Utc>,
) -> Result<Vec<ActionCard>, FactsError> {
    let targets: Vec<RecordPath> = actions.iter().filter_map(|action| RecordPath::parse(&action.target).ok()).collect();
    let names = views.read().list_record_labels(&targets).await?;
    let matters: Vec<RecordPath> = names.values().filter_map(|label| label.matter.clone()).collect();
    let matters = views.read().list_record_labels(&matters).await?;
    let card = |action: Action| {
        let target = RecordPath::parse(&action.target).ok();
        let label = target.and_then(|target| names.get(&target));
        let matter = label.and_then(|label| label.matter.as_ref());
        let matter = matter.and_then(|path| Some((path.to_string(), matters.get(path)?.name.clone())));
        let links = NoteLinks::new(views.root(), &action.target);
        let due = label.and_then(|label| label.due);
        ActionCard { matter, due, ..ActionCard::from_action(action, label.map(|label| label.name.clone()), links, now) }
    };
    Ok(actions.into_iter().map(card).collect())
}

/// Merges equal cards into the newest one: repeated proposals for one record, and the actions of one batch.
pub(crate) fn merge_repeated_cards(cards: Vec<ActionCard>) -> Vec<ActionCard> {
    let mut kept: Vec<ActionCard> = Vec::with_capacity(cards.len());
    for card in cards {
        let action = &card.action;
        let is_same = |other: &&mut ActionCard| {
            let other = &other.action;
            let repeats = other.target == action.target && other.change == action.change && action.change.is_some();
            other.kind == action.kind
                && other.resolution == action.resolution
                && (repeats || (action.batch_id.is_some() && other.batch_id == action.batch_id))
        };
        match kept.iter_mut().find(is_same) {
            Some(other) => other.times += card.times,
            None => kept.push(card),
        }
    }
    kept
}

/// The change of a sender's ceiling in the words of the buttons.
fn spell_setting(change: ActionChange) -> ActionChange {
    let spell =
        |value: Option<String>| Some(spell_ceiling(value.map(|value| Ceiling::parse_or_ask(&value))).to_owned());
    ActionChange { field: "setting".into(), before: spell(change.before), after: spell(change.after) }
}

/// A sender's ceiling in the words of the buttons.
pub(crate) fn spell_ceiling(ceiling: Option<Ceiling>) -> &'static str {
    match ceiling {
        Some(Ceiling::Act) => "let it act",
        Some(Ceiling::Confirm) => "ask me first",
        Some(Ceiling::Ask) => "only watch",
        None => "no setting of its own",
    }
}

fn describe_outcome(action: &Action) -> String {
    let followed =
        action.resolution.as_deref().map(|kind| format!(", {}", describe_record_kind(kind))).unwrap_or_default();
    match (action.kind.as_str(), action.disposition.as_str()) {
        ("steward-action", "live") => format!("changed{followed}"),
        ("steward-action", "pending") if action.waits => "waits for you".into(),
        ("steward-action", "pending") if followed.is_empty() && action.is_answered_elsewhere => {
            "proposed, answered with an equal proposal".into()
        }
        ("steward-action", "pending") if action.is_repeated => "proposed again since".into(),
        ("steward-action", "pending") if followed.is_empty() => "proposed, already so".into(),
        ("steward-action", "pending") => format!("proposed{followed}"),
        ("steward-action", "shadow") => format!("would change{followed}"),
        ("steward-action", _) if action.is_question() && action.resolution.as_deref() == Some(DISMISSED) => {
            "asked you, kept open".into()
        }
        ("steward-action", _) if action.decision == "needs_input" => format!("asks you{followed}"),
        ("steward-action", _) => action.decision.replace('_', " "),
        ("steward-action-confirmed", _) if action.edited && action.decision == "needs_input" => {
            format!("answered{followed}")
        }
        ("steward-action-confirmed", _) if action.edited => format!("edited and confirmed{followed}"),
        ("steward-action-confirmed", _) => format!("confirmed{followed}"),
        // To dismiss a question keeps its note open.
        (DISMISSED, _) if action.decision == "needs_input" && action.class.is_none() => "kept open".into(),
        (kind, _) => format!("{}{followed}", describe_record_kind(kind)),
    }
}

const DISMISSED: &str = "steward-action-dismissed";

/// The kind of a record in a word or two. A kind that this version does not know stays as it is.
fn describe_record_kind(kind: &str) -> &str {
    let known = ActionKind::deserialize(StrDeserializer::<serde::de::value::Error>::new(kind));
    known.map_or(kind, |known| known.describe())
}

fn choose_tone(action: &Action) -> &'static str {
    if action.problem.is_some() || action.kind == "steward-action-track-failed" {
        return "failed";
    }
    match (action.waits || action.is_open_question(), action.disposition.as_str()) {
        (true, _) => "waits",
        (false, "live") if action.resolution.as_deref() == Some(ActionKind::Reversed.as_str()) => "calm",
        (false, "live") => "done",
        (false, "shadow") => "shadow",
        (false, _) => "calm",
    }
}

fn describe_confidence(action: &Action) -> String {
    let closed = action.gates.iter().filter(|gate| !gate.open);
    let closed: Vec<String> =
        closed.map(|gate| format!("{}: {}, needs {}", gate.gate.replace('_', " "), gate.found, gate.needed)).collect();
    let gates = match closed.as_slice() {
        [] if action.gates.is_empty() => return format!("{:.0} % confident.", action.confidence * 100.0),
        [] => format!("Passed all {} gates", action.gates.len()),
        closed => format!("Held by {}", closed.join("; ")),
    };
    format!("{:.0} % confident. {gates}.", action.confidence * 100.0)
}
