//! What the process that extracts signals remembers between calls.
//!
//! It remembers which event is being read, which events got no answer and whether that counts against them, and the
//! names of the open records that an event may be about. Nothing here is written, and nothing outlives the process.
//! Losing it costs one try.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use steward_domain::record::path::RecordPath;
use steward_domain::signals::extract::candidates::CandidateMatcher;

/// How long the memory of an event without an answer lasts: 1 day. A second miss counts against the event if the clerk
/// answered another one in between. Otherwise the clerk is away, which is no event's fault.
const REMEMBERED: Duration = Duration::from_secs(86_400);
/// Time-outs in a row beside other calls that count as much as one time-out alone: 10.
///
/// A slow model then parks an event after thirty time-outs and not after three.
const CROWDED_TOO_OFTEN: u32 = 10;
/// How long an event without an answer is listed after all others: 10 min.
const REST: Duration = Duration::from_secs(600);

/// The memory of one process. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct ExtractionMemory(Arc<Mutex<ExtractionMemoryState>>);

#[derive(Default)]
struct ExtractionMemoryState {
    /// The matcher over the open records, with the revision of the index that it was built from.
    candidates: Option<(u64, Arc<CandidateMatcher>)>,
    answered: Option<Instant>,
    unanswered: BTreeMap<RecordPath, MissedAnswer>,
    /// The events that are being read. Runs overlap when a person starts one, but each event has one reader.
    being_read: BTreeSet<RecordPath>,
}

/// When and how an event got no answer.
#[derive(Clone, Copy)]
struct MissedAnswer {
    last: Instant,
    /// The last miss that counts. A miss beside other calls does not count.
    last_counted: Instant,
    /// How many misses in a row were beside other calls.
    crowded: u32,
}

/// The right to read an event; dropping it gives the right back.
pub(super) struct EventClaim<'a>(&'a ExtractionMemory, &'a RecordPath);

impl Drop for EventClaim<'_> {
    fn drop(&mut self) {
        self.0.access_state(|m| m.being_read.remove(self.1));
    }
}

impl ExtractionMemory {
    fn access_state<T>(&self, access: impl FnOnce(&mut ExtractionMemoryState) -> T) -> T {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Claims an event for reading; `None` while another run reads it.
    pub(super) fn claim_event<'a>(&'a self, path: &'a RecordPath) -> Option<EventClaim<'a>> {
        self.access_state(|m| m.being_read.insert(path.clone())).then(|| EventClaim(self, path))
    }

    /// Reports whether at most one event is being read.
    pub(super) fn is_alone(&self) -> bool {
        self.access_state(|m| m.being_read.len() <= 1)
    }

    pub(super) fn record_answer(&self, now: Instant) {
        self.access_state(|m| m.answered = Some(now));
    }

    /// Lists the events that got no answer within the last `REST`.
    pub(super) fn list_resting_events(&self) -> BTreeSet<RecordPath> {
        self.access_state(|m| {
            m.unanswered.retain(|_, missed| missed.last.elapsed() < REMEMBERED);
            let resting = m.unanswered.iter().filter(|(_, missed)| missed.last.elapsed() < REST);
            resting.map(|(path, _)| path.clone()).collect()
        })
    }

    /// Records that an event got no answer, and returns whether that counts against it.
    ///
    /// It counts if another event was answered since the last miss that counted, and this miss was not beside other
    /// calls, or was so too often in a row.
    pub(super) fn record_missed_answer(&self, path: &RecordPath, crowded: bool, now: Instant) -> bool {
        self.access_state(|m| {
            let before = m.unanswered.get(path).copied();
            let times = if crowded { before.map_or(0, |b| b.crowded) + 1 } else { 0 };
            let counts = times == 0 || times >= CROWDED_TOO_OFTEN;
            let last_counted = before.filter(|_| !counts).map_or(now, |b| b.last_counted);
            let crowded = if counts { 0 } else { times };
            m.unanswered.insert(path.clone(), MissedAnswer { last: now, last_counted, crowded });
            counts && before.is_some_and(|b| m.answered.is_some_and(|at| at > b.last_counted))
        })
    }

    /// The matcher over the open records, if it was built at this revision of the index.
    pub(super) fn cached_candidates(&self, revision: u64) -> Option<Arc<CandidateMatcher>> {
        let cached = self.access_state(|m| m.candidates.clone());
        cached.filter(|(built_at, _)| *built_at == revision).map(|(_, candidates)| candidates)
    }

    pub(super) fn cache_candidates(&self, revision: u64, candidates: &Arc<CandidateMatcher>) {
        self.access_state(|m| m.candidates = Some((revision, Arc::clone(candidates))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> RecordPath {
        RecordPath::parse("stream/mail/1.md").unwrap()
    }

    #[test]
    fn no_answer_counts_only_if_others_were_answered_since_and_did_not_hold_it_up() {
        let (memory, start) = (ExtractionMemory::default(), Instant::now());
        let at = |second| start + Duration::from_secs(second);
        assert!(!memory.record_missed_answer(&path(), false, at(0)), "the first time says nothing");
        assert!(!memory.record_missed_answer(&path(), false, at(1)), "the clerk is away");
        memory.record_answer(at(2));
        assert!(!memory.record_missed_answer(&path(), true, at(3)), "others held it up");
        assert!(memory.record_missed_answer(&path(), false, at(4)), "and now it was alone");
        assert!(!memory.record_missed_answer(&path(), false, at(5)), "nobody was answered since");
    }

    #[test]
    fn held_up_often_enough_it_is_to_blame_all_the_same() {
        let (memory, start) = (ExtractionMemory::default(), Instant::now());
        memory.record_missed_answer(&path(), false, start);
        memory.record_answer(start + Duration::from_secs(1));
        let blamed = |second| memory.record_missed_answer(&path(), true, start + Duration::from_secs(second));
        assert_eq!((2..=12).map(blamed).position(|blamed| blamed), Some(9), "the tenth time");
    }

    #[test]
    fn one_reads_an_event_at_a_time() {
        let (memory, path) = (ExtractionMemory::default(), path());
        let claim = memory.claim_event(&path);
        assert!(claim.is_some() && memory.claim_event(&path).is_none() && memory.is_alone());
        drop(claim);
        assert!(memory.claim_event(&path).is_some());
    }
}
