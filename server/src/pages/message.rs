//! The messages on a card: what speaks for a change, what speaks against it, and what holds it back.
//!
//! The newest come first. What speaks against is shown, and one message for the change: the one that holds it back, or
//! else the newest. The others are folded.

use crate::views::action::Action;
use crate::views::record_signals::RecordSignal;
use chrono::{DateTime, Utc};
use steward_domain::signals::stance::SignalStance;
use steward_domain::time::format_age;
use steward_domain::time::format_millis;

/// Most messages of a question that are shown before the others are folded. What speaks against a change is never folded.
const SHOWN: usize = 2;

/// One message on a card. Its words and its source are untrusted.
pub(crate) struct CardMessage {
    /// What it says about the change, in a word or two.
    pub(crate) label: String,
    /// The CSS class: `for`, `against` or `neutral`.
    pub(crate) tone: &'static str,
    pub(crate) words: String,
    pub(crate) source: String,
    pub(crate) at: String,
    pub(crate) ago: String,
    /// Whether it is the one that holds the change back.
    pub(crate) holds: bool,
}

/// The messages of a card.
#[derive(Default)]
pub(crate) struct CardMessages {
    pub(crate) shown: Vec<CardMessage>,
    pub(crate) folded: Vec<CardMessage>,
}

impl CardMessages {
    /// Chooses the messages to show.
    pub(crate) fn choose(action: &Action, now: DateTime<Utc>) -> Self {
        let is_question = action.proposed.is_none();
        let is_for = |signal: &&RecordSignal| signal.stance == SignalStance::For;
        let holding = action.signals.iter().find(|signal| signal.holds);
        let support = holding.or_else(|| action.signals.iter().find(is_for)).map(|signal| signal.signal.as_str());
        let (mut messages, mut others) = (Self::default(), 0);
        for signal in &action.signals {
            let is_shown = match signal.stance {
                SignalStance::For => support == Some(signal.signal.as_str()),
                SignalStance::Against => true,
                SignalStance::Neutral => is_question && (signal.asks || signal.proposes.is_some()),
            };
            let message = CardMessage::from_signal(signal, is_question, now);
            others += usize::from(is_shown && signal.stance == SignalStance::Neutral);
            let has_room = signal.stance != SignalStance::Neutral || others <= SHOWN;
            if is_shown && has_room { messages.shown.push(message) } else { messages.folded.push(message) }
        }
        messages
    }

    /// Whether anything speaks against the change.
    pub(crate) fn speak_against(&self) -> bool {
        self.shown.iter().any(|message| message.tone == SignalStance::Against.as_str())
    }
}

impl CardMessage {
    fn from_signal(signal: &RecordSignal, is_question: bool, now: DateTime<Utc>) -> Self {
        let label = match (signal.stance, &signal.proposes) {
            (SignalStance::For, _) => "For".to_owned(),
            (SignalStance::Against, Some(proposes)) => format!("Against, proposes {proposes}"),
            (SignalStance::Against, None) => "Against".to_owned(),
            (SignalStance::Neutral, Some(proposes)) if is_question => format!("Proposes {proposes}"),
            (SignalStance::Neutral, None) if is_question && signal.asks => "Asks for something".to_owned(),
            (SignalStance::Neutral, _) => "Neutral".to_owned(),
        };
        Self {
            label,
            tone: signal.stance.as_str(),
            words: signal.words.clone(),
            source: signal.source.clone(),
            at: format_millis(signal.at),
            ago: format_age(signal.at, now),
            holds: signal.holds,
        }
    }
}
