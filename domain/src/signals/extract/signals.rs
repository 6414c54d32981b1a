//! From a checked answer to signals.
//!
//! What is written depends on the event, the question and the answer alone, so that the same event read
//! twice gives the same files. A target that another one comes too close to is none: such a signal is
//! shown, with its candidates, and acted upon by nobody until a human names one.

use super::AMBIGUOUS_WITHIN;
use super::ExtractAnswer;
use super::ExtractFinding;
use super::MAX_ASKED_CHARS;
use crate::record::entity::SignalEffect;
use crate::record::path::{PathError, RecordPath};
use crate::signals::signal::{MAX_CANDIDATES, Signal, SignalStatus, TargetCandidate};
use crate::signals::stream::StreamEvent;

/// Most confidence in a text that was not read to its end: it is shown, and does nothing by itself.
const READ_IN_PART: f64 = 0.5;
/// Two numbers that were meant to be equal.
const SLACK: f64 = 1e-9;

impl ExtractAnswer {
    /// The signals of this answer and where each is filed.
    ///
    /// # Errors
    /// [`PathError`]; cannot happen for a checked path.
    pub fn to_signals(&self, path: &RecordPath, event: &StreamEvent) -> Result<Vec<(RecordPath, Signal)>, PathError> {
        let one = |finding: &ExtractFinding| {
            let signal = build_signal(finding, path, event);
            Ok((Signal::record_path(path, &signal.raw_quote, signal.created)?, signal))
        };
        self.findings.iter().map(one).collect()
    }
}

fn build_signal(finding: &ExtractFinding, path: &RecordPath, event: &StreamEvent) -> Signal {
    let candidates = rank_candidates(finding);
    let (target, doubt) = choose_target(finding, &candidates);
    // What was not read may say the opposite.
    let in_part = event.cut || event.text.chars().count() > MAX_ASKED_CHARS;
    let (most, note) = if in_part { (READ_IN_PART, "Only the beginning was read. ") } else { (1.0, "") };
    let (status, reason) = match (doubt, finding.effect) {
        (Some(doubt), _) => (SignalStatus::Skipped, Some(doubt)),
        (None, SignalEffect::Mutation) => (SignalStatus::Unrouted, None),
        (None, SignalEffect::Action) => {
            (SignalStatus::ActionPending, Some("it asks something of the principal".to_owned()))
        }
        (None, SignalEffect::None) => (SignalStatus::Skipped, Some("no effect: it changes nothing".to_owned())),
    };
    Signal {
        created: event.received_at,
        source_event: Some(path.clone()),
        origin_at: event.origin_at,
        source_type: event.pattern.clone(),
        raw_quote: finding.quote.clone(),
        target_confidence: target.as_ref().and_then(|t| finding.scores.get(t)).copied().unwrap_or(0.0),
        target,
        candidates,
        effect: finding.effect,
        proposal: finding.mutation.clone(),
        effect_confidence: finding.effect_confidence.min(most),
        reasoning: format!("{note}{}", finding.reasoning),
        status,
        reason,
    }
}

/// The likeliest first.
fn rank_candidates(finding: &ExtractFinding) -> Vec<TargetCandidate> {
    let mut all: Vec<TargetCandidate> =
        finding.scores.iter().map(|(path, score)| TargetCandidate { path: path.clone(), score: *score }).collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
    all.truncate(MAX_CANDIDATES);
    all
}

/// The target, or why there is none.
fn choose_target(finding: &ExtractFinding, candidates: &[TargetCandidate]) -> (Option<RecordPath>, Option<String>) {
    let Some(target) = &finding.target else {
        return (None, Some("ambiguous: the clerk names no target; write `target_path` to choose one".to_owned()));
    };
    let score = finding.scores.get(target).copied().unwrap_or(0.0);
    let rival = candidates.iter().find(|c| &c.path != target);
    match rival.filter(|r| score - r.score <= AMBIGUOUS_WITHIN + SLACK) {
        None => (Some(target.clone()), None),
        Some(rival) => {
            let said = format!(
                "ambiguous: {target} ({score:.2}) and {} ({:.2}) are too close; write `target_path` to choose one",
                rival.path, rival.score
            );
            (None, Some(said))
        }
    }
}
