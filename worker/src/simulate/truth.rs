//! The truth of a simulated month: what the stewards must find out, and are never told.
//!
//! One JSON file beside the vault: the sources with their reliability, the habits of the principal, and of every
//! proposal, by its action's id, whether it was right and what the principal made of it. Checks read it; the simulation
//! only writes it, and no part of it goes into the vault.

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

/// All that is known of a simulated month.
#[derive(Debug, Serialize)]
pub(super) struct GroundTruth {
    days: u32,
    seed: u64,
    /// When it ends.
    now: String,
    sources: Vec<GroundTruthSource>,
    principal: SimulatedPrincipal,
    /// Every proposal, by the id of its action.
    pub(super) actions: BTreeMap<ActionId, GroundTruthAction>,
    /// Signals that nobody has decided upon; what they say is so.
    pub(super) undecided: Vec<RecordPath>,
}

#[derive(Debug, Serialize)]
struct GroundTruthSource {
    name: &'static str,
    /// The share of its messages that say what is so, 0 to 1.
    reliability: f64,
    /// On average.
    messages_per_day: f64,
}

/// What is true of one proposal.
#[derive(Debug, Serialize)]
pub(super) struct GroundTruthAction {
    source: &'static str,
    class: MutationClass,
    landed: Disposition,
    pub(super) right: bool,
    /// `None` where the month ended first.
    principal: Option<PrincipalReaction>,
    /// What the principal did says the opposite of what is so.
    erred: bool,
}

impl GroundTruth {
    pub(super) fn new(ask: &SimulationOptions) -> Self {
        let known = SOURCES.iter().map(|source| GroundTruthSource {
            name: source.name,
            reliability: source.reliability,
            messages_per_day: source.per_day,
        });
        Self {
            days: ask.days,
            seed: ask.seed,
            now: time::format_millis(ask.now),
            sources: known.collect(),
            principal: PRINCIPAL,
            actions: BTreeMap::new(),
            undecided: Vec::new(),
        }
    }

    pub(super) fn record_proposal(&mut self, case: &SimulatedMessage, (id, landed): (&ActionId, Disposition)) {
        let action = GroundTruthAction {
            source: case.source.name,
            class: case.class,
            landed,
            right: case.right,
            principal: None,
            erred: false,
        };
        self.actions.insert(id.clone(), action);
    }

    pub(super) fn record_reaction(&mut self, id: &ActionId, reaction: PrincipalReaction) {
        if let Some(action) = self.actions.get_mut(id) {
            action.principal = Some(reaction);
            action.erred = reaction.implied_label().is_some_and(|says| says != action.right);
        }
    }
}
