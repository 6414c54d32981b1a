//! The newest signals about the record of an action, each for the proposed change, against it, or neutral.
//!
//! They are listed whether the action cites them or not, so that a person who decides sees what speaks against a
//! change. Quotes and sources are untrusted text.

use super::action::Action;
use super::quote;
use super::{FactsError, VaultViews};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::BTreeMap;
use steward_domain::action::mutation::Mutation;
use steward_domain::gates::evidence::names_signal;
use steward_domain::gates::result::GateName;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::stance::{SignalStance, StanceCase};
use steward_vault::index::WeighedSignal;
use utoipa::ToSchema;

/// Most signals about one record that are listed besides the cited ones; the newest.
const MOST_SIGNALS: u32 = 6;

/// A signal about the record of an action.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecordSignal {
    /// The signal's record.
    pub signal: String,
    /// Untrusted.
    pub source: String,
    /// At most 50 characters, verbatim. Untrusted.
    pub quote: String,
    /// The quote for pages, as far as it is known. Untrusted.
    #[serde(skip)]
    pub words: String,
    pub at: DateTime<Utc>,
    /// What it says about the proposed change: `for`, `against` or `neutral`.
    #[schema(value_type = String)]
    pub stance: SignalStance,
    /// Whether the action cites it.
    pub cited: bool,
    /// Whether it is the signal that holds the change back, because it is the least certain one.
    pub holds: bool,
    /// What the signal itself proposes, such as `state: done`; absent if it proposes no change. Untrusted.
    pub proposes: Option<String>,
    /// Whether it asks somebody to act, and nobody has done so.
    pub asks: bool,
}

impl VaultViews {
    /// Attaches the signals about their records to actions that propose, make or ask something.
    pub(super) async fn attach_record_signals(&self, actions: &mut [Action]) -> Result<(), FactsError> {
        let needs_signals = |action: &&mut Action| action.proposed.is_some() || action.is_question();
        let mut wanting: Vec<&mut Action> = actions.iter_mut().filter(needs_signals).collect();
        let targets: Vec<RecordPath> = wanting.iter().filter_map(|a| RecordPath::parse(&a.target).ok()).collect();
        let cited: Vec<&str> =
            wanting.iter().flat_map(|action| &action.evidence).map(|cited| cited.signal.as_str()).collect();
        let about = self.index.read().list_newest_signals(&targets, &cited, MOST_SIGNALS).await?;
        let about: BTreeMap<String, Vec<WeighedSignal>> =
            about.into_iter().map(|(target, signals)| (target.to_string(), signals)).collect();
        for action in &mut wanting {
            let signals = about.get(&action.target).map_or(&[][..], Vec::as_slice);
            action.signals = judge_signals(action, signals);
        }
        Ok(())
    }
}

/// The newest of these signals and those that the action cites, newest first.
fn judge_signals(action: &Action, signals: &[WeighedSignal]) -> Vec<RecordSignal> {
    let find_cited = |signal: &WeighedSignal| action.evidence.iter().find(|e| e.signal == signal.path.as_str());
    let supports = |signal: &&WeighedSignal| find_cited(signal).is_some_and(|cited| cited.supports);
    let newest_support = signals.iter().filter(supports).map(|signal| signal.created).max();
    let mut newest = 0;
    let mut listed = Vec::new();
    for signal in signals {
        let cited = find_cited(signal);
        newest += 1;
        // Another action about the same record may cite older ones.
        if cited.is_none() && newest > MOST_SIGNALS {
            continue;
        }
        let stance = action.proposed.as_ref().map_or(SignalStance::Neutral, |proposed| {
            let case = StanceCase {
                proposed,
                newest_support,
                is_cited_support: cited.is_some_and(|cited| cited.supports),
                mutation: signal.mutation.as_ref(),
                asks: signal.asks,
                is_settled: signal.is_settled,
                created: signal.created,
            };
            case.judge_stance()
        });
        listed.push(RecordSignal {
            signal: signal.path.to_string(),
            source: signal.source.clone(),
            quote: signal.note.clone(),
            words: quote::mark_cut_quote(&signal.note),
            at: signal.created,
            stance,
            cited: cited.is_some(),
            holds: stance == SignalStance::For && holds_back(action, signal),
            proposes: signal.mutation.as_ref().map(describe_proposal),
            asks: signal.asks,
        });
    }
    listed
}

/// Whether the closed gate of discretion is about this signal.
fn holds_back(action: &Action, signal: &WeighedSignal) -> bool {
    let confidence = signal.target_confidence.min(signal.effect_confidence);
    action.gates.iter().any(|gate| {
        gate.gate == GateName::Discretion.as_str()
            && !gate.open
            && names_signal(&gate.found, confidence, &signal.source)
    })
}

fn describe_proposal(mutation: &Mutation) -> String {
    let field = mutation.field();
    match mutation {
        Mutation::StateChange { to } => format!("{field}: {}", to.as_str()),
        Mutation::ContextEdit { to, .. } => format!("{field}: {to}"),
        Mutation::ParentMatter { to } => format!("{field}: {to}"),
        Mutation::Related { member, present: true, .. } => format!("{field}: + {member}"),
        Mutation::Related { member, present: false, .. } => format!("{field}: − {member}"),
    }
}
