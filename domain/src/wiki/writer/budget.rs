//! What a run of a writer may take, and what it is likely to take by the runs before it.
//!
//! The limits grow with the parts of the source. The estimate is a proportion: calls and tokens for each character of the sources
//! that the same model read.

use super::transcript::{Transcript, TranscriptLine, WriterUsage};
use super::windows::MAX_WINDOWS;
use crate::steward::clerk::TokenUsage;
use serde::{Deserialize, Serialize};

/// The calls and tokens of a run, for each two windows of its source.
const BASE_CALLS: u64 = 40;
const BASE_INPUT_TOKENS: u64 = 200_000;
const BASE_OUTPUT_TOKENS: u64 = 50_000;

/// The limits of a run. No call begins once one of them is reached, and no answer gets more tokens than are left. So only what the last
/// call reads can exceed a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunBudget {
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// Limits that a person set for one run. Where one is absent, the limit follows from the parts of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The most parts of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<u64>,
}

impl RunLimits {
    /// Sets a limit from a text such as `calls=80`.
    ///
    /// # Errors
    /// Which names there are, or what is no number.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("`{text}` is not <limit>=<number>, such as calls=80"))?;
        let number = value.parse().ok().filter(|number| *number > 0);
        let number: u64 = number.ok_or_else(|| format!("{name}: `{value}` is not a number from 1 on"))?;
        let limit = match name {
            "calls" => &mut self.calls,
            "input_tokens" => &mut self.input_tokens,
            "output_tokens" => &mut self.output_tokens,
            "parts" => &mut self.parts,
            _ => return Err(format!("`{name}` is none of calls, input_tokens, output_tokens, parts")),
        };
        *limit = Some(number);
        Ok(())
    }

    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Why a source with so many parts is refused.
    ///
    /// # Errors
    /// The reason, with the fix.
    pub fn check_parts(&self, parts: usize) -> Result<(), String> {
        let most = self.parts.unwrap_or(MAX_WINDOWS as u64);
        if parts as u64 <= most {
            return Ok(());
        }
        Err(format!("too_large: it has {parts} parts, more than {most}: divide it, or use `--budget parts={parts}`"))
    }
}

/// What earlier runs took, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredUsage {
    pub runs: u64,
    /// The characters of the sources that the model received.
    pub characters: u64,
    pub usage: WriterUsage,
}

impl RunBudget {
    /// The limits for a source of so many windows, if a person set no others.
    #[must_use]
    pub fn new(windows: usize, set: &RunLimits) -> Self {
        let factor = windows.div_ceil(2).max(1) as u64;
        Self {
            calls: set.calls.unwrap_or(BASE_CALLS * factor),
            input_tokens: set.input_tokens.unwrap_or(BASE_INPUT_TOKENS * factor),
            output_tokens: set.output_tokens.unwrap_or(BASE_OUTPUT_TOKENS * factor),
        }
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_spent(&self, usage: &WriterUsage) -> bool {
        let WriterUsage { calls, tokens } = usage;
        *calls >= self.calls
            || tokens.prompt_tokens >= self.input_tokens
            || tokens.completion_tokens >= self.output_tokens
    }

    /// How many tokens the next answer may have: those that are left, and at most so many.
    #[must_use]
    pub fn limit_answer(&self, usage: &WriterUsage, most: u32) -> u32 {
        let left = self.output_tokens.saturating_sub(usage.tokens.completion_tokens);
        u32::try_from(left).unwrap_or(most).min(most)
    }
}

impl MeasuredUsage {
    /// Adds a run.
    pub fn add(&mut self, transcript: &Transcript) {
        let texts = transcript.lines.iter().filter_map(|line| match line {
            TranscriptLine::Window { data, .. } if data.get(super::prompt::FINDINGS).is_none() => {
                data["source"]["text"].as_str()
            }
            _ => None,
        });
        let characters: usize = texts.map(|text| text.chars().count()).sum();
        let WriterUsage { calls, tokens } = transcript.count_usage();
        self.runs += 1;
        self.characters += characters as u64;
        self.usage.calls += calls;
        self.usage.tokens.prompt_tokens += tokens.prompt_tokens;
        self.usage.tokens.completion_tokens += tokens.completion_tokens;
    }

    /// What a source of so many characters is likely to take; `None` without an earlier run.
    #[must_use]
    pub fn estimate(&self, characters: usize) -> Option<WriterUsage> {
        if self.characters == 0 {
            return None;
        }
        let scale = |sum: u64| (sum as f64 * characters as f64 / self.characters as f64).ceil() as u64;
        Some(WriterUsage {
            calls: scale(self.usage.calls),
            tokens: TokenUsage {
                prompt_tokens: scale(self.usage.tokens.prompt_tokens),
                completion_tokens: scale(self.usage.tokens.completion_tokens),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steward::clerk::ClerkMark;
    use crate::steward::conversation::ModelTurn;
    use serde_json::{Value, json};

    #[test]
    fn the_budget_grows_with_each_two_parts() {
        for (windows, calls) in [(0, 40), (1, 40), (2, 40), (3, 80), (20, 400)] {
            assert_eq!(RunBudget::new(windows, &RunLimits::default()).calls, calls, "{windows}");
        }
    }

    #[test]
    fn no_answer_gets_more_tokens_than_are_left() {
        let usage = |completion_tokens| {
            let tokens = TokenUsage { completion_tokens, ..TokenUsage::default() };
            WriterUsage { calls: 1, tokens }
        };
        let budget = RunBudget { calls: 9, input_tokens: 9, output_tokens: 900 };
        let limits = [0, 899, 901].map(|used| budget.limit_answer(&usage(used), 500));
        assert_eq!((limits, budget.limit_answer(&usage(0), 16_000)), ([500, 1, 0], 900));
    }

    #[test]
    fn a_person_sets_limits_for_one_run() {
        let mut limits = RunLimits::default();
        assert!(limits.is_default() && limits.check_parts(20).is_ok());
        assert!(limits.check_parts(21).unwrap_err().contains("--budget parts=21"));
        for text in ["calls=80", "parts=21"] {
            limits.set(text).unwrap();
        }
        let budget = RunBudget::new(21, &limits);
        assert_eq!((budget.calls, budget.output_tokens), (80, 50_000 * 11));
        assert!(limits.check_parts(21).is_ok() && limits.check_parts(22).is_err());
        for wrong in ["calls", "calls=", "calls=0", "calls=-1", "pages=3"] {
            assert!(limits.set(wrong).is_err(), "{wrong}");
        }
        assert_eq!(serde_json::to_string(&limits).unwrap(), r#"{"calls":80,"parts":21}"#);
    }

    #[test]
    fn an_estimate_is_the_proportion_of_what_earlier_runs_took() {
        let tokens = TokenUsage { prompt_tokens: 1_000, completion_tokens: 100 };
        let turn = |n| TranscriptLine::Turn {
            n,
            turn: ModelTurn { message: Value::Null, calls: Vec::new() },
            clerk: ClerkMark { tokens, ..ClerkMark::default() },
        };
        let window = |data: Value| TranscriptLine::Window { window: 0, data };
        let text = json!({"source": {"text": "é".repeat(500)}});
        let again = json!({"source": {"text": "x"}, "findings": []});
        let lines = vec![window(text), turn(1), turn(2), window(again), turn(3)];
        let mut measured = MeasuredUsage::default();
        assert_eq!(measured.estimate(100), None);
        measured.add(&Transcript { lines });
        assert_eq!((measured.runs, measured.characters), (1, 500));
        let usage = measured.estimate(1_000).unwrap();
        assert_eq!((usage.calls, usage.tokens.prompt_tokens, usage.tokens.completion_tokens), (6, 6_000, 600));
    }
}
