//! Turns a checked extraction answer into signals.
//!
//! The signals must depend only on the event, the question and the answer, so that a second extraction of an event
//! gives the same files. If another candidate scores too close to the target, the signal gets no target. Such
//! a signal is shown with its candidates, and nothing applies it until a human names a target.

use super::AMBIGUOUS_WITHIN;
use super::ExtractAnswer;
use super::ExtractFinding;
use super::MAX_QUESTION_CHARS;
use crate::record::entity::SignalEffect;
use crate::record::path::{PathError, RecordPath};
use crate::signals::signal::{MAX_CANDIDATES, Signal, SignalStatus, TargetCandidate};
use crate::signals::stream::StreamEvent;

/// The highest confidence for a text that was not read to its end. At this value a signal changes nothing by itself.
const MAX_PARTIAL_CONFIDENCE: f64 = 0.5;
/// The rounding error within which two scores count as equal.
const ROUNDING_ERROR: f64 = 1e-9;

impl ExtractAnswer {
    /// The signals of this answer, each with its path.
    ///
    /// # Errors
    /// [`PathError`]. It cannot happen for a checked path.
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
    // The unread rest may say the opposite.
    let is_partial = event.cut || event.text.chars().count() > MAX_QUESTION_CHARS;
    let (max_confidence, remark) =
        if is_partial { (MAX_PARTIAL_CONFIDENCE, "Only the beginning was read. ") } else { (1.0, "") };
    let (status, reason) = match (doubt, finding.effect) {
        (Some(doubt), _) => (SignalStatus::Skipped, Some(doubt)),
        // Only a signal that changes a record starts as `unrouted`, so the router meets no other.
        (None, SignalEffect::Mutation) => (SignalStatus::Unrouted, None),
        (None, SignalEffect::Action) => {
            (SignalStatus::ActionPending, Some("it asks the principal to do something".to_owned()))
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
        target_kind: finding.target_kind,
        candidates,
        effect: finding.effect,
        proposal: finding.mutation.clone(),
        effect_confidence: finding.effect_confidence.min(max_confidence),
        reasoning: format!("{remark}{}", finding.reasoning),
        status,
        reason,
    }
}

/// The candidates, the likeliest first.
fn rank_candidates(finding: &ExtractFinding) -> Vec<TargetCandidate> {
    let mut all: Vec<TargetCandidate> =
        finding.scores.iter().map(|(path, score)| TargetCandidate { path: path.clone(), score: *score }).collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
    all.truncate(MAX_CANDIDATES);
    all
}

/// The target, or the reason why there is none.
fn choose_target(finding: &ExtractFinding, candidates: &[TargetCandidate]) -> (Option<RecordPath>, Option<String>) {
    let Some(target) = &finding.target else {
        return (None, Some("ambiguous: the clerk names no target; write `target_path` to choose one".to_owned()));
    };
    let score = finding.scores.get(target).copied().unwrap_or(0.0);
    let rival = candidates.iter().find(|c| &c.path != target);
    match rival.filter(|r| score - r.score <= AMBIGUOUS_WITHIN + ROUNDING_ERROR) {
        None => (Some(target.clone()), None),
        Some(rival) => {
            let reason = format!(
                "ambiguous: {target} ({score:.2}) and {} ({:.2}) are too close; write `target_path` to choose one",
                rival.path, rival.score
            );
            (None, Some(reason))
        }
    }
}
