//! An action as a card: what a person reads first, and what they may do about it.
//!
//! Facts in, words out: what came to what, in one word or two, and how sure it was against what stood in the way. Text
//! from outside stays text; the templates escape it.

use super::build_url;
use super::format_age;
use crate::views::FactsError;
use crate::views::action::{self, Action, ActionEvidence};
use crate::views::quote;
use chrono::{DateTime, Utc};
use steward_domain::record::path::RecordPath;
use steward_domain::time::format_millis;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{ActionRow, Index};

/// Quotes that a card shows; the page of its action shows all.
const QUOTES: usize = 2;

/// One card.
pub(crate) struct ActionCard {
    pub(crate) action: Action,
    /// The name of what it is about.
    pub(crate) title: String,
    /// In a word or two, what it came to.
    pub(crate) status: String,
    /// The matter of a task, its record and its name.
    pub(crate) matter: Option<(String, String)>,
    /// What colours it.
    pub(crate) tone: &'static str,
    pub(crate) at: String,
    pub(crate) ago: String,
    /// The confidence, and what stood in the way.
    pub(crate) sure: String,
    /// Of an answer who said so, and why.
    pub(crate) said: Option<String>,
    /// How often the same was said, or how many were answered together.
    pub(crate) times: usize,
}

impl ActionCard {
    fn from_action(action: Action, name: Option<String>, now: DateTime<Utc>) -> Self {
        let said = action.by.as_ref().map(|by| match &action.reason {
            Some(reason) => format!("{by}: {reason}"),
            None => by.clone(),
        });
        Self {
            title: name.unwrap_or_else(|| action.target.clone()),
            status: describe_outcome(&action),
            tone: choose_tone(&action),
            matter: None,
            at: format_millis(action.at),
            ago: format_age(action.at, now),
            sure: describe_confidence(&action),
            said,
            times: 1,
            action,
        }
    }

    /// The cited signals that say so, first of all.
    pub(crate) fn supporting_quotes(&self) -> impl Iterator<Item = &ActionEvidence> {
        self.action.evidence.iter().filter(|cited| cited.speaks).take(QUOTES)
    }

    /// How many records it stands for: of what was said again one, of what was answered together each.
    pub(crate) fn count_records(&self) -> usize {
        if self.action.together.is_some() { self.times } else { 1 }
    }

    /// It stands for several that were answered together and may be taken back together: where that is shown first.
    pub(crate) fn batch_undo_url(&self) -> Option<String> {
        let together = self.action.together.as_ref().filter(|_| self.times > 1 && self.action.undo_until.is_some())?;
        Some(build_url("/together/undo", &[("together", together)]))
    }

    pub(crate) fn has_resolutions(&self) -> bool {
        self.action.waits || self.action.is_open_question() || self.action.undo_until.is_some()
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

/// The cards of these rows, in their order.
pub(crate) async fn read_cards(
    root: &VaultRoot,
    index: &Index,
    rows: Vec<ActionRow>,
) -> Result<Vec<ActionCard>, FactsError> {
    let now = Utc::now();
    let actions = quote::complete_quotes(root, action::read_actions(root, index, rows, now).await?).await?;
    build_cards(index, actions, now).await
}

/// The cards of these actions, in their order.
pub(crate) async fn build_cards(
    index: &Index,
    actions: Vec<Action>,
    now: DateTime<Utc>,
) -> Result<Vec<ActionCard>, FactsError> {
    let targets: Vec<RecordPath> = actions.iter().filter_map(|action| RecordPath::parse(&action.target).ok()).collect();
    let names = index.list_record_labels(&targets).await?;
    let matters: Vec<RecordPath> = names.values().filter_map(|named| named.matter.clone()).collect();
    let matters = index.list_record_labels(&matters).await?;
    let card = |action: Action| {
        let target = RecordPath::parse(&action.target).ok();
        let known = target.and_then(|target| names.get(&target));
        let matter = known.and_then(|known| known.matter.as_ref());
        let matter = matter.and_then(|path| Some((path.to_string(), matters.get(path)?.name.clone())));
        ActionCard { matter, ..ActionCard::from_action(action, known.map(|known| known.name.clone()), now) }
    };
    Ok(actions.into_iter().map(card).collect())
}

/// What said the very same about the same record becomes one card, the newest; and so do answers given together.
pub(crate) fn merge_repeated_cards(cards: Vec<ActionCard>) -> Vec<ActionCard> {
    let mut kept: Vec<ActionCard> = Vec::with_capacity(cards.len());
    for card in cards {
        let said = &card.action;
        let same = |other: &&mut ActionCard| {
            let other = &other.action;
            let again = other.target == said.target && other.change == said.change && said.change.is_some();
            other.kind == said.kind
                && other.answered == said.answered
                && (again || (said.together.is_some() && other.together == said.together))
        };
        match kept.iter_mut().find(same) {
            Some(other) => other.times += card.times,
            None => kept.push(card),
        }
    }
    kept
}

fn describe_outcome(action: &Action) -> String {
    let followed =
        action.answered.as_deref().map(|kind| format!(", {}", describe_record_kind(kind))).unwrap_or_default();
    match (action.kind.as_str(), action.landing.as_str()) {
        ("steward-action", "live") => format!("changed{followed}"),
        ("steward-action", "pending") if action.waits => "waits for you".into(),
        ("steward-action", "pending") if followed.is_empty() => "proposed, and is so by now".into(),
        ("steward-action", "pending") => format!("proposed{followed}"),
        ("steward-action", "shadow") => format!("would change{followed}"),
        ("steward-action", _) if action.decision == "needs_input" => format!("asks you{followed}"),
        ("steward-action", _) => action.decision.replace('_', " "),
        ("steward-action-confirmed", _) if action.edited => format!("edited and confirmed{followed}"),
        ("steward-action-confirmed", _) => format!("confirmed{followed}"),
        (kind, _) => describe_record_kind(kind).to_owned(),
    }
}

/// What a kind of record says of another one.
fn describe_record_kind(kind: &str) -> &str {
    match kind {
        "steward-action-reversed" => "undone",
        "steward-action-confirmed" => "confirmed",
        "steward-action-dismissed" => "dismissed",
        "steward-action-tracked" => "tracker told",
        "steward-action-track-failed" => "tracker failed",
        "steward-action-done-anyway" => "done by hand",
        "steward-action-opposed" => "decided otherwise by hand",
        "steward-source-pruned" => "source pruned",
        "steward-trust-lowered" => "one step back",
        "steward-trust-raised" => "raised",
        other => other,
    }
}

fn choose_tone(action: &Action) -> &'static str {
    if action.problem.is_some() || action.kind == "steward-action-track-failed" {
        return "failed";
    }
    match (action.waits || action.is_open_question(), action.landing.as_str()) {
        (true, _) => "waits",
        (false, "live") => "done",
        (false, "shadow") => "shadow",
        (false, _) => "calm",
    }
}

fn describe_confidence(action: &Action) -> String {
    let closed = action.gates.iter().filter(|gate| !gate.open);
    let closed: Vec<String> =
        closed.map(|gate| format!("{}: {}, needs {}", gate.gate.replace('_', " "), gate.found, gate.needed)).collect();
    let held = match closed.as_slice() {
        [] => format!("all {} gates open", action.gates.len()),
        closed => format!("held by {}", closed.join("; ")),
    };
    format!("{:.2} sure; {held}", action.confidence)
}
