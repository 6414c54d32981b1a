//! How far a steward may go: shadow, live for high confidence only, live.
//!
//! The environment sets the ceiling; nothing at run time raises it. A stop is no mode: under it nothing is decided or
//! changed. A mode travels as data inside a plan, never as a flag beside it.

use crate::action::mutation::MutationClass;
use crate::gates::result::{GateName, GateResult};
use serde::{Deserialize, Serialize};

/// `live` needs at least this confidence (`STEWARD_CONFIDENCE_THRESHOLD`, 0 to 1).
pub const CONFIDENCE_THRESHOLD: f64 = 0.6;
/// `live_high_confidence_only` needs at least this (`STEWARD_HIGH_CONFIDENCE_THRESHOLD`, 0 to 1).
pub const HIGH_CONFIDENCE_THRESHOLD: f64 = 0.85;

/// What a steward is allowed to do; ordered from least to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Say what would be done.
    #[default]
    Shadow,
    /// Do it where confidence is high.
    LiveHighConfidenceOnly,
    /// Do it.
    Live,
}

impl Mode {
    /// Reads `STEWARD_LIVE_MODE`; `None` for a value that is not a mode (which means shadow).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "shadow" => Some(Self::Shadow),
            "live" => Some(Self::Live),
            "live_high_confidence_only" => Some(Self::LiveHighConfidenceOnly),
            _ => None,
        }
    }

    /// The word used in records and configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::LiveHighConfidenceOnly => "live_high_confidence_only",
            Self::Live => "live",
        }
    }
}

/// How far a human lets a source, matter or class go; ordered from least to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ceiling {
    /// The steward may only ask; the change is the human's to make.
    Ask,
    /// The steward may propose; a human confirms.
    Confirm,
    /// The steward may act.
    #[default]
    Act,
}

impl Ceiling {
    /// Reads a ceiling that a human set. One that is there but unreadable means `ask`.
    #[must_use]
    pub fn parse_or_ask(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "act" => Self::Act,
            "confirm" => Self::Confirm,
            _ => Self::Ask,
        }
    }

    /// The word used in records and configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Confirm => "confirm",
            Self::Act => "act",
        }
    }
}

/// The settings that decide, as they were when a task was looked at.
///
/// Travels with the observation so that workflow code sees no environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionPolicy {
    /// The ceiling from the environment.
    pub mode: Mode,
    /// Least confidence for `live`, 0 to 1.
    pub confidence_threshold: f64,
    /// Least confidence for `live_high_confidence_only`, 0 to 1.
    pub high_confidence_threshold: f64,
    /// Ceiling of the mutation class `state_change`.
    pub state_change_ceiling: Ceiling,
    /// Ceiling of the mutation class `context_edit`.
    #[serde(default)]
    pub context_edit_ceiling: Ceiling,
    /// Ceiling of the mutation class `parent_matter`.
    #[serde(default)]
    pub parent_matter_ceiling: Ceiling,
    /// Ceiling of the mutation class `related`.
    #[serde(default)]
    pub related_ceiling: Ceiling,
}

impl DecisionPolicy {
    /// How far the operator lets a class of changes go.
    #[must_use]
    pub fn class_ceiling(&self, class: MutationClass) -> Ceiling {
        match class {
            MutationClass::StateChange => self.state_change_ceiling,
            MutationClass::ContextEdit => self.context_edit_ceiling,
            MutationClass::ParentMatter => self.parent_matter_ceiling,
            MutationClass::Related => self.related_ceiling,
        }
    }
}

impl Default for DecisionPolicy {
    fn default() -> Self {
        Self {
            mode: Mode::Shadow,
            confidence_threshold: CONFIDENCE_THRESHOLD,
            high_confidence_threshold: HIGH_CONFIDENCE_THRESHOLD,
            state_change_ceiling: Ceiling::Act,
            context_edit_ceiling: Ceiling::Act,
            parent_matter_ceiling: Ceiling::Act,
            related_ceiling: Ceiling::Act,
        }
    }
}

/// Least `effect_confidence` that evidence of a source must reach, by how often it was right before.
///
/// Fewer than 5 observations 0.95, 5 to 9 0.90, 10 to 19 0.85, 20 to 49 0.80, from 50 on 0.75.
/// A source nobody knows has 0 observations.
#[must_use]
pub fn discretion_threshold(observations: u32) -> f64 {
    match observations {
        0..=4 => 0.95,
        5..=9 => 0.90,
        10..=19 => 0.85,
        20..=49 => 0.80,
        50.. => 0.75,
    }
}

/// Whether the mode lets anything happen at all.
pub(crate) fn can_act(policy: &DecisionPolicy) -> bool {
    policy.mode > Mode::Shadow
}

/// The least confidence that the mode needs, 0 to 1.
pub(crate) fn needed_confidence(policy: &DecisionPolicy) -> f64 {
    match policy.mode {
        Mode::LiveHighConfidenceOnly => policy.high_confidence_threshold,
        Mode::Live | Mode::Shadow => policy.confidence_threshold,
    }
}

pub(crate) fn mode_gate(policy: &DecisionPolicy) -> GateResult {
    GateResult::new(GateName::Mode, can_act(policy), policy.mode.as_str(), "live")
}

pub(crate) fn confidence_gate(policy: &DecisionPolicy, found: f64) -> GateResult {
    let needed = needed_confidence(policy);
    GateResult::new(GateName::Confidence, found >= needed, format_exact(found), format!(">= {}", format_exact(needed)))
}

pub(crate) fn ceiling_gate(ceiling: Ceiling) -> GateResult {
    GateResult::new(GateName::Ceiling, ceiling == Ceiling::Act, ceiling.as_str(), "act")
}

/// Two decimals where they are exact; otherwise all of them, so that a value just below its threshold does not look as
/// if it had reached it.
pub(crate) fn format_exact(value: f64) -> String {
    let short = format!("{value:.2}");
    if short.parse() == Ok(value) { short } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_three_words_are_modes() {
        assert_eq!(Mode::parse("live"), Some(Mode::Live));
        assert_eq!(Mode::parse(" shadow "), Some(Mode::Shadow));
        for text in ["", "Live", "LIVE", "true", "1", "live_mode", "full"] {
            assert_eq!(Mode::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_unreadable_ceiling_means_ask() {
        assert_eq!(Ceiling::parse_or_ask("Confirm"), Ceiling::Confirm);
        for text in ["", "acts", "yes", "null"] {
            assert_eq!(Ceiling::parse_or_ask(text), Ceiling::Ask, "{text}");
        }
    }

    #[test]
    fn a_policy_of_before_the_other_classes_still_reads() {
        let old = r#"{"mode":"live","confidence_threshold":0.6,"high_confidence_threshold":0.85,"state_change_ceiling":"ask"}"#;
        let policy: DecisionPolicy = serde_json::from_str(old).unwrap();
        let ceilings = MutationClass::ALL.map(|class| policy.class_ceiling(class));
        assert_eq!(ceilings, [Ceiling::Ask, Ceiling::Act, Ceiling::Act, Ceiling::Act]);
    }

    #[test]
    fn discretion_steps_where_the_table_says() {
        let table = [
            (0, 0.95),
            (4, 0.95),
            (5, 0.90),
            (9, 0.90),
            (10, 0.85),
            (19, 0.85),
            (20, 0.80),
            (49, 0.80),
            (50, 0.75),
            (u32::MAX, 0.75),
        ];
        for (seen, threshold) in table {
            assert!((discretion_threshold(seen) - threshold).abs() < f64::EPSILON, "{seen}");
        }
    }
}
