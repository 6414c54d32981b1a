//! The settings that the gates use: mode, thresholds and ceilings.
//!
//! An invalid value is reported and replaced by the most careful one, because a typo must never widen what a steward may
//! do.

use super::RawConfig;
use steward_domain::gates::mode::{CONFIDENCE_THRESHOLD, Ceiling, DecisionPolicy, HIGH_CONFIDENCE_THRESHOLD, Mode};
use steward_domain::wiki::run::WikiMode;
use toml::Value;

/// Reads the settings that the gates use.
pub(super) fn read_policy(raw: &RawConfig, warnings: &mut Vec<String>) -> DecisionPolicy {
    let mut class = |name, text: &Option<String>| read_ceiling(name, text.as_deref(), warnings);
    let state_change_ceiling = class("STEWARD_STATE_CHANGE_CEILING", &raw.state_change_ceiling);
    let context_edit_ceiling = class("STEWARD_CONTEXT_EDIT_CEILING", &raw.context_edit_ceiling);
    let parent_matter_ceiling = class("STEWARD_PARENT_MATTER_CEILING", &raw.parent_matter_ceiling);
    let related_ceiling = class("STEWARD_RELATED_CEILING", &raw.related_ceiling);
    DecisionPolicy {
        mode: read_mode(raw.live_mode.as_deref(), warnings),
        confidence_threshold: read_threshold(
            "STEWARD_CONFIDENCE_THRESHOLD",
            raw.confidence_threshold.as_ref(),
            CONFIDENCE_THRESHOLD,
            warnings,
        ),
        high_confidence_threshold: read_threshold(
            "STEWARD_HIGH_CONFIDENCE_THRESHOLD",
            raw.high_confidence_threshold.as_ref(),
            HIGH_CONFIDENCE_THRESHOLD,
            warnings,
        ),
        state_change_ceiling,
        context_edit_ceiling,
        parent_matter_ceiling,
        related_ceiling,
    }
}

fn read_mode(text: Option<&str>, warnings: &mut Vec<String>) -> Mode {
    let Some(text) = text else { return Mode::Shadow };
    Mode::parse(text).unwrap_or_else(|| {
        warnings.push(format!(
            "STEWARD_LIVE_MODE is `{}`, expected shadow, live_high_confidence_only or live; using shadow",
            text.escape_debug()
        ));
        Mode::Shadow
    })
}

pub(super) fn read_ceiling(name: &str, text: Option<&str>, warnings: &mut Vec<String>) -> Ceiling {
    let Some(text) = text else { return Ceiling::default() };
    let read = Ceiling::parse_or_ask(text);
    if !text.trim().eq_ignore_ascii_case(read.as_str()) {
        warnings.push(format!("{name} is `{}`, expected act, confirm or ask; using ask", text.escape_debug()));
    }
    read
}

/// Reads what happens to a run of a wiki. A malformed value makes it wait.
pub(super) fn read_wiki_mode(text: Option<&str>, warnings: &mut Vec<String>) -> WikiMode {
    let Some(text) = text else { return WikiMode::default() };
    text.trim().parse().unwrap_or_else(|_| {
        warnings.push(format!(
            "STEWARD_WIKI_MODE is `{}`, expected live, pending or shadow; using pending",
            text.escape_debug()
        ));
        WikiMode::Pending
    })
}

/// Reads the prices of a million tokens, in and out. Only both together are of use.
pub(super) fn read_prices(name: &str, values: [Option<&Value>; 2], warnings: &mut Vec<String>) -> Option<(f64, f64)> {
    let [input, output] = values.map(|value| {
        let number = value?.as_float().or_else(|| value?.as_integer().map(|n| n as f64));
        number.filter(|number| number.is_finite() && *number >= 0.0)
    });
    if values.iter().any(Option::is_some) && (input.is_none() || output.is_none()) {
        warnings.push(format!("{name}_INPUT and {name}_OUTPUT are two numbers from 0 on; not used"));
    }
    input.zip(output)
}

pub(super) fn read_threshold(name: &str, value: Option<&Value>, default: f64, warnings: &mut Vec<String>) -> f64 {
    let Some(value) = value else { return default };
    let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    number.filter(|n| (0.0..=1.0).contains(n)).unwrap_or_else(|| {
        warnings.push(format!("{name} is {value}, expected a number from 0 to 1; using {default}"));
        default
    })
}
