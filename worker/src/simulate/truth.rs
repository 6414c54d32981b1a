//! The ground truth of a simulated month, which the stewards must find out by themselves.
//!
//! It is one JSON file beside the vault. It holds the sources with their reliability, the principal's habits, and every
//! proposal by its action's id: whether it was right, and how the principal reacted. Checks read the file; the
//! simulation only writes it. No part of it may go into the vault.

use super::SimulationOptions;
use super::calendar::SimulatedMessage;
use super::household::SOURCES;
use super::principal::{PRINCIPAL, PrincipalReaction, SimulatedPrincipal};
use serde::Serialize;
use std::collections::BTreeMap;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::record::path::RecordPath;
use steward_domain::time;

/// The ground truth of a simulated month.
#[derive(Debug, Serialize)]
pub(super) struct GroundTruth {
    days: u32,
    seed: u64,
    /// The end of the month.
    now: String,
    sources: Vec<GroundTruthSource>,
    principal: SimulatedPrincipal,
    /// Every proposal, by the id of its action.
    pub(super) actions: BTreeMap<ActionId, GroundTruthAction>,
    /// Signals on which no steward has decided; all of them are right.
    pub(super) undecided: Vec<RecordPath>,
}

#[derive(Debug, Serialize)]
struct GroundTruthSource {
    name: &'static str,
    /// The share of its messages that are right, 0 to 1.
    reliability: f64,
    /// On average.
    messages_per_day: f64,
}

/// The truth about one proposal.
#[derive(Debug, Serialize)]
pub(super) struct GroundTruthAction {
    source: &'static str,
    class: MutationClass,
    landed: Disposition,
    pub(super) right: bool,
    /// `None` if the month ended first.
    principal: Option<PrincipalReaction>,
    /// Whether the principal's reaction means the opposite of the truth.
    erred: bool,
}

impl GroundTruth {
    pub(super) fn new(options: &SimulationOptions) -> Self {
        let sources = SOURCES.iter().map(|source| GroundTruthSource {
            name: source.name,
            reliability: source.reliability,
            messages_per_day: source.per_day,
        });
        Self {
            days: options.days,
            seed: options.seed,
            now: time::format_millis(options.now),
            sources: sources.collect(),
            principal: PRINCIPAL,
            actions: BTreeMap::new(),
            undecided: Vec::new(),
        }
    }

    pub(super) fn record_proposal(&mut self, message: &SimulatedMessage, id: &ActionId, landed: Disposition) {
        let action = GroundTruthAction {
            source: message.source.name,
            class: message.class,
            landed,
            right: message.right,
            principal: None,
            erred: false,
        };
        self.actions.insert(id.clone(), action);
    }

    pub(super) fn record_reaction(&mut self, id: &ActionId, reaction: PrincipalReaction) {
        if let Some(action) = self.actions.get_mut(id) {
            action.principal = Some(reaction);
            action.erred = reaction.implied_label().is_some_and(|implied| implied != action.right);
        }
    }
}
