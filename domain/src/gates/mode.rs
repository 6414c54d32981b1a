//! Modes and ceilings: how far a steward may go.
//!
//! The environment sets the mode. Nothing may raise it at run time. A stop is not a mode: under a stop nothing is
//! decided or changed. A plan carries its mode as data, so a mode must not be passed as a flag beside the plan.

use crate::action::mutation::MutationClass;
use crate::gates::result::{GateName, GateResult};
use serde::{Deserialize, Serialize};

/// `live` needs at least this confidence (`STEWARD_CONFIDENCE_THRESHOLD`, 0 to 1).
pub const CONFIDENCE_THRESHOLD: f64 = 0.6;
/// `live_high_confidence_only` needs at least this (`STEWARD_HIGH_CONFIDENCE_THRESHOLD`, 0 to 1).
pub const HIGH_CONFIDENCE_THRESHOLD: f64 = 0.85;

/// What a steward is allowed to do, ordered from least to most.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::EnumIter,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Mode {
    /// Only record what would be changed.
    #[default]
    Shadow,
    /// Make a change if the confidence is high.
    LiveHighConfidenceOnly,
    /// Make changes.
    Live,
}

impl Mode {
    /// Reads `STEWARD_LIVE_MODE`. Returns `None` if the value is not a mode, which the caller treats as shadow.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.trim().parse().ok()
    }

    /// The word used in records and configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a mode and the default ceiling together mean, in the words of the screens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeName {
    /// Nothing is changed; what would be changed is shown.
    Watch,
    /// Every change waits for a human, but for the sources that a human let act.
    Suggest,
    /// Changes are made where the confidence is high.
    ActWhenSure,
    /// Changes are made.
    Act,
}

impl ModeName {
    /// The name for these settings. A ceiling below `act` for all sources that have none of their own means
    /// [`ModeName::Suggest`].
    #[must_use]
    pub fn from_settings(mode: Mode, default_ceiling: Ceiling) -> Self {
        match (mode, default_ceiling) {
            (Mode::Shadow, _) => Self::Watch,
            (_, Ceiling::Ask | Ceiling::Confirm) => Self::Suggest,
            (Mode::LiveHighConfidenceOnly, Ceiling::Act) => Self::ActWhenSure,
            (Mode::Live, Ceiling::Act) => Self::Act,
        }
    }

    /// The name on screens.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Watch => "Watch",
            Self::Suggest => "Suggest",
            Self::ActWhenSure => "Act when sure",
            Self::Act => "Act",
        }
    }

    /// What it means, as one sentence.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Watch => "Steward changes nothing. It shows what it would change, and you say whether that is right.",
            Self::Suggest => "Every change waits for you or is left to you, except from senders that you let act.",
            Self::ActWhenSure => "Steward makes changes of which it is very sure. The others wait for you.",
            Self::Act => "Steward makes changes that pass all gates. The others wait for you.",
        }
    }
}

/// How far a human lets a source, matter or class go, ordered from least to most.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::EnumIter,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Ceiling {
    /// The steward may only ask. The human makes the change by hand.
    Ask,
    /// The steward may propose a change. A human confirms it.
    Confirm,
    /// The steward may act.
    #[default]
    Act,
}

impl Ceiling {
    /// Reads a ceiling that a human set. A malformed one means `ask`.
    #[must_use]
    pub fn parse_or_ask(text: &str) -> Self {
        text.trim().to_ascii_lowercase().parse().unwrap_or(Self::Ask)
    }

    /// The word used in records and configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The settings that a decision depends on, as they were when the task was observed.
///
/// The observation carries them, because workflow code must not read the environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionPolicy {
    /// The mode from the environment.
    pub mode: Mode,
    /// The least confidence for `live`, 0 to 1.
    pub confidence_threshold: f64,
    /// The least confidence for `live_high_confidence_only`, 0 to 1.
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

/// The least confidence that evidence of a source must reach, 0 to 1.
///
/// It depends on how often the source was right before: 0.95 below 5 observations, 0.90 for 5 to 9, 0.85 for 10 to 19,
/// 0.80 for 20 to 49, and 0.75 from 50 on. An unknown source has 0 observations.
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

/// Whether the mode allows any change at all.
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

/// Formats a value with two decimals if they are exact, otherwise with all of its decimals. A value just below its
/// threshold must not look as if it had reached it.
pub(crate) fn format_exact(value: f64) -> String {
    let short = format!("{value:.2}");
    if short.parse() == Ok(value) { short } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_mode_and_default_ceiling_has_its_name() {
        for (mode, ceiling, name) in [
            (Mode::Shadow, Ceiling::Act, "Watch"),
            (Mode::Shadow, Ceiling::Ask, "Watch"),
            (Mode::Live, Ceiling::Confirm, "Suggest"),
            (Mode::Live, Ceiling::Ask, "Suggest"),
            (Mode::LiveHighConfidenceOnly, Ceiling::Confirm, "Suggest"),
            (Mode::LiveHighConfidenceOnly, Ceiling::Act, "Act when sure"),
            (Mode::Live, Ceiling::Act, "Act"),
        ] {
            assert_eq!(ModeName::from_settings(mode, ceiling).as_str(), name, "{mode:?} {ceiling:?}");
        }
    }

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
