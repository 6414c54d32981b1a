//! What a writer said so far, line by line, and what comes next.
//!
//! A line is kept before anything follows from it, so a crash repeats no answer that was paid for.

use super::budget::{RunBudget, RunLimits};
use super::prompt::{FINDINGS, RELATED, SUMMARY_REMINDER, begin_conversation};
use super::tools::NOTE_RELATIONS;
use crate::steward::clerk::{ClerkMark, TokenUsage};
use crate::steward::conversation::{AnsweredTurn, Conversation, ModelTurn, ToolCall, ToolForm, ToolReply};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The most turns in one window.
const MAX_TURNS: usize = 24;
/// How often one call may be repeated in a window, and how many turns of errors may follow each other.
const MAX_REPEATS: usize = 3;
const MAX_ERROR_TURNS: usize = 3;

/// A line of a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TranscriptLine {
    /// A window of the source begins, counted from 0, with what the model receives about it.
    Window {
        window: usize,
        data: Value,
    },
    /// The server knows no tools: it is asked by the form from here on.
    Form,
    Turn {
        n: u32,
        turn: ModelTurn,
        clerk: ClerkMark,
    },
    /// What the tools replied to the turn before.
    Replies {
        replies: Vec<ToolReply>,
    },
    /// The model ended without a summary and was reminded.
    Reminder,
    /// A call without an answer, which counts all the same.
    Failed {
        n: u32,
        reason: String,
    },
    /// The provider refused a call for now. The next one is a call of its own, so that the wait holds.
    Limited,
}

/// The lines of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    pub lines: Vec<TranscriptLine>,
}

/// Why a run of a writer cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum WriterFailure {
    /// It repeats itself, makes nothing but errors, or does not end.
    WriterStuck,
    /// It ended without a summary of the source, also after it was reminded.
    WriterIncomplete,
    /// The calls or tokens of the run are used up.
    Budget,
}

/// What a run of a writer needs next.
#[derive(Clone, Debug, PartialEq)]
pub enum NextStep {
    /// The window with this number begins.
    Begin(usize),
    /// A turn with this number is sent.
    Send {
        n: u32,
        conversation: Conversation,
    },
    /// The model is reminded that there is no summary.
    Remind,
    /// Everything is written.
    Done,
    Failed(WriterFailure),
}

/// The calls and tokens that a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterUsage {
    pub calls: u64,
    pub tokens: TokenUsage,
}

impl WriterFailure {
    /// What is said to a person.
    #[must_use]
    pub fn explain(self) -> &'static str {
        match self {
            Self::WriterStuck => "the model repeats itself, makes nothing but errors, or does not end",
            Self::WriterIncomplete => "the model ended without a summary of the source",
            Self::Budget => "the calls or tokens of the run are used up",
        }
    }
}

impl Transcript {
    /// The turn whose calls were not carried out yet.
    #[must_use]
    pub fn open_turn(&self) -> Option<&ModelTurn> {
        match self.lines.last() {
            Some(TranscriptLine::Turn { turn, .. }) => Some(turn),
            _ => None,
        }
    }

    /// The number of the next turn, from 1.
    #[must_use]
    pub fn next_number(&self) -> u32 {
        let numbers = self.lines.iter().filter_map(|line| match line {
            TranscriptLine::Turn { n, .. } | TranscriptLine::Failed { n, .. } => Some(*n),
            _ => None,
        });
        numbers.max().unwrap_or(0).saturating_add(1)
    }

    /// The calls that were accepted, in their order.
    pub fn list_accepted(&self) -> impl Iterator<Item = &ToolCall> {
        let turns = self.lines.windows(2).filter_map(|pair| match pair {
            [TranscriptLine::Turn { turn, .. }, TranscriptLine::Replies { replies }] => Some((turn, replies)),
            _ => None,
        });
        turns.flat_map(|(turn, replies)| {
            turn.calls.iter().zip(replies).filter(|(_, reply)| !reply.is_error).map(|(call, _)| call)
        })
    }

    /// The slugs of all related pages that the writer was offered.
    #[must_use]
    pub fn list_offered(&self) -> BTreeSet<String> {
        let windows = self.lines.iter().filter_map(|line| match line {
            TranscriptLine::Window { data, .. } => data.get(RELATED)?.as_array(),
            _ => None,
        });
        windows.flatten().filter_map(|page| Some(page.get("slug")?.as_str()?.to_owned())).collect()
    }

    /// How often the writer received what a verifier had found.
    #[must_use]
    pub fn count_revisions(&self) -> u32 {
        let is_revision = |line: &&TranscriptLine| matches!(line, TranscriptLine::Window { data, .. } if data.get(FINDINGS).is_some());
        u32::try_from(self.lines.iter().filter(is_revision).count()).unwrap_or(u32::MAX)
    }

    /// What the model received last.
    #[must_use]
    pub fn last_window(&self) -> Option<(usize, &Value)> {
        self.lines.iter().rev().find_map(|line| match line {
            TranscriptLine::Window { window, data } => Some((*window, data)),
            _ => None,
        })
    }

    /// What was used so far.
    #[must_use]
    pub fn count_usage(&self) -> WriterUsage {
        let mut used = WriterUsage::default();
        for line in &self.lines {
            match line {
                TranscriptLine::Turn { clerk, .. } => {
                    used.calls += 1;
                    used.tokens.prompt_tokens += clerk.tokens.prompt_tokens;
                    used.tokens.completion_tokens += clerk.tokens.completion_tokens;
                }
                TranscriptLine::Failed { .. } => used.calls += 1,
                _ => {}
            }
        }
        used
    }

    /// Who answered last, with the tokens of all turns; `None` before the first answer.
    #[must_use]
    pub fn describe_clerk(&self) -> Option<ClerkMark> {
        let last = self.lines.iter().rev().find_map(|line| match line {
            TranscriptLine::Turn { clerk, .. } => Some(clerk.clone()),
            _ => None,
        })?;
        Some(ClerkMark { tokens: self.count_usage().tokens, ..last })
    }

    /// What comes next, for a source of so many windows. Every turn must have its replies.
    #[must_use]
    pub fn find_next_step(&self, windows: usize, limits: &RunLimits, has_summary: bool) -> NextStep {
        let begin = self.lines.iter().rposition(|line| matches!(line, TranscriptLine::Window { .. }));
        let Some(begin) = begin else { return NextStep::Begin(0) };
        let TranscriptLine::Window { window, data } = &self.lines[begin] else { return NextStep::Begin(0) };
        let past = list_turns(&self.lines[begin + 1..]);
        let is_over = past.last().is_some_and(|last| last.turn.calls.is_empty() && last.reminder.is_none());
        if is_over {
            return match () {
                () if window + 1 < windows => NextStep::Begin(window + 1),
                () if has_summary => NextStep::Done,
                () if past.iter().any(|turn| turn.reminder.is_some()) => {
                    NextStep::Failed(WriterFailure::WriterIncomplete)
                }
                () => NextStep::Remind,
            };
        }
        if is_stuck(&past) {
            return NextStep::Failed(WriterFailure::WriterStuck);
        }
        let (budget, usage) = (RunBudget::new(windows, limits), self.count_usage());
        if budget.is_spent(&usage) {
            return NextStep::Failed(WriterFailure::Budget);
        }
        let form = match self.lines.contains(&TranscriptLine::Form) {
            true => ToolForm::Json,
            false => ToolForm::Native,
        };
        let begun = begin_conversation(data.clone(), form);
        let conversation = Conversation { past, max_tokens: budget.limit_answer(&usage, begun.max_tokens), ..begun };
        NextStep::Send { n: self.next_number(), conversation }
    }
}

/// The answered turns of a window.
fn list_turns(lines: &[TranscriptLine]) -> Vec<AnsweredTurn> {
    let mut turns: Vec<AnsweredTurn> = Vec::new();
    for line in lines {
        match (line, turns.last_mut()) {
            (TranscriptLine::Turn { turn, .. }, _) => {
                turns.push(AnsweredTurn { turn: turn.clone(), replies: Vec::new(), reminder: None });
            }
            (TranscriptLine::Replies { replies }, Some(last)) => last.replies.clone_from(replies),
            (TranscriptLine::Reminder, Some(last)) => last.reminder = Some(SUMMARY_REMINDER),
            _ => {}
        }
    }
    turns
}

/// Whether a window leads nowhere: too many turns, turns of nothing but errors, or one call again and again.
fn is_stuck(past: &[AnsweredTurn]) -> bool {
    let failed = |turn: &&AnsweredTurn| !turn.replies.is_empty() && turn.replies.iter().all(|reply| reply.is_error);
    let errors = past.iter().rev().take_while(failed).count();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let calls = past.iter().flat_map(|turn| &turn.turn.calls);
    // Relations that are noted again with each page are no reason to end a run.
    for call in calls.filter(|call| call.name != NOTE_RELATIONS) {
        *counts.entry(json!([call.name, call.arguments]).to_string()).or_default() += 1;
    }
    past.len() >= MAX_TURNS || errors >= MAX_ERROR_TURNS || counts.values().any(|count| *count >= MAX_REPEATS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(n: u32, calls: &[&str]) -> TranscriptLine {
        let call = |slug: &&str| ToolCall {
            id: String::new(),
            name: "read_page".to_owned(),
            arguments: json!({"slug": slug}).as_object().cloned(),
        };
        let turn = ModelTurn { message: Value::Null, calls: calls.iter().map(call).collect() };
        let tokens = TokenUsage { prompt_tokens: 1_000, completion_tokens: 100 };
        TranscriptLine::Turn { n, turn, clerk: ClerkMark { tokens, ..ClerkMark::default() } }
    }

    fn replies(are_errors: &[bool]) -> TranscriptLine {
        let replies =
            are_errors.iter().map(|is_error| ToolReply { text: String::new(), is_error: *is_error }).collect();
        TranscriptLine::Replies { replies }
    }

    fn window(window: usize) -> TranscriptLine {
        TranscriptLine::Window { window, data: json!({"part": window}) }
    }

    fn next(lines: &[TranscriptLine], has_summary: bool) -> NextStep {
        Transcript { lines: lines.to_vec() }.find_next_step(2, &RunLimits::default(), has_summary)
    }

    #[test]
    fn windows_follow_each_other_until_everything_is_written() {
        assert_eq!(next(&[], false), NextStep::Begin(0));
        let mut lines = vec![window(0)];
        assert!(matches!(next(&lines, false), NextStep::Send { n: 1, .. }));
        lines.extend([turn(1, &["a"]), replies(&[false])]);
        let NextStep::Send { n: 2, conversation } = next(&lines, false) else { panic!() };
        assert_eq!((conversation.past.len(), &conversation.data), (1, &json!({"part": 0})));
        lines.extend([turn(2, &[]), replies(&[])]);
        assert_eq!(next(&lines, false), NextStep::Begin(1));
        lines.push(window(1));
        let NextStep::Send { n: 3, conversation } = next(&lines, false) else { panic!() };
        assert_eq!(conversation.past, []);
        lines.extend([turn(3, &[]), replies(&[])]);
        assert_eq!(next(&lines, true), NextStep::Done);
        assert_eq!(next(&lines, false), NextStep::Remind);
        lines.push(TranscriptLine::Reminder);
        let NextStep::Send { n: 4, conversation } = next(&lines, false) else { panic!() };
        assert_eq!(conversation.past[0].reminder, Some(SUMMARY_REMINDER));
        lines.extend([turn(4, &[]), replies(&[])]);
        assert_eq!(next(&lines, false), NextStep::Failed(WriterFailure::WriterIncomplete));
        assert_eq!(next(&lines, true), NextStep::Done);
    }

    #[test]
    fn a_writer_that_leads_nowhere_is_ended() {
        let stuck = NextStep::Failed(WriterFailure::WriterStuck);
        let run = |turns: &[(&str, bool)]| {
            let mut lines = vec![window(0)];
            for (n, (slug, is_error)) in (1..).zip(turns) {
                lines.extend([turn(n, &[slug]), replies(&[*is_error])]);
            }
            next(&lines, false)
        };
        assert_eq!(run(&[("a", false), ("b", false), ("a", false), ("a", false)]), stuck, "one call three times");
        assert_eq!(run(&[("a", true), ("b", true), ("c", true)]), stuck, "three turns of errors");
        assert!(matches!(run(&[("a", true), ("b", true), ("c", false), ("d", true)]), NextStep::Send { .. }));
        let many: Vec<String> = (0..MAX_TURNS).map(|n| format!("p{n}")).collect();
        let many: Vec<(&str, bool)> = many.iter().map(|slug| (slug.as_str(), false)).collect();
        assert_eq!(run(&many), stuck, "too many turns");
        assert!(matches!(run(&many[1..]), NextStep::Send { .. }));
    }

    #[test]
    fn relations_that_are_noted_again_do_not_end_a_run() {
        let mut lines = vec![window(0)];
        for n in 1..=4 {
            let mut answered = turn(n, &[format!("p{n}").as_str(), "a"]);
            if let TranscriptLine::Turn { turn, .. } = &mut answered {
                turn.calls[1].name = NOTE_RELATIONS.to_owned();
            }
            lines.extend([answered, replies(&[false, false])]);
        }
        assert!(matches!(next(&lines, false), NextStep::Send { n: 5, .. }));
    }

    #[test]
    fn calls_without_an_answer_and_tokens_count() {
        let mut lines: Vec<TranscriptLine> =
            (1..=39).map(|n| TranscriptLine::Failed { n, reason: String::new() }).collect();
        lines.push(window(0));
        assert!(matches!(next(&lines, false), NextStep::Send { n: 40, .. }));
        lines.extend([turn(40, &["a"]), replies(&[false])]);
        assert_eq!(next(&lines, false), NextStep::Failed(WriterFailure::Budget));
        let transcript = Transcript { lines };
        assert_eq!(
            transcript.find_next_step(3, &RunLimits::default(), false),
            next(&[window(0)], false).with(41, &transcript)
        );
        assert_eq!(transcript.describe_clerk().unwrap().tokens.prompt_tokens, 1_000);
    }

    impl NextStep {
        /// The same step with the number and the turns of a transcript.
        fn with(self, n: u32, transcript: &Transcript) -> Self {
            match (self, transcript.find_next_step(3, &RunLimits::default(), false)) {
                (Self::Send { .. }, Self::Send { n: found, conversation }) if found == n => {
                    Self::Send { n, conversation }
                }
                (other, _) => other,
            }
        }
    }

    #[test]
    fn only_accepted_calls_are_replayed_and_an_open_turn_is_known() {
        let mut transcript =
            Transcript { lines: vec![window(0), turn(1, &["a", "b"]), replies(&[true, false]), turn(2, &["c"])] };
        let slugs: Vec<&Value> =
            transcript.list_accepted().map(|call| &call.arguments.as_ref().unwrap()["slug"]).collect();
        assert_eq!(slugs, [&json!("b")]);
        assert_eq!(transcript.open_turn().unwrap().calls.len(), 1);
        transcript.lines.push(replies(&[false]));
        assert_eq!(transcript.open_turn(), None);
    }
}
