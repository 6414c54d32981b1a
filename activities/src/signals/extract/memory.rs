//! What the reading process remembers of events; losing it costs a try.
//!
//! Who reads which event, which got no answer and whether that is to be held against them, and the names of what
//! may be meant. Nothing here outlives the process or writes anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use steward_domain::record::path::RecordPath;
use steward_domain::signals::extract::candidates::CandidateMatcher;

/// For so long it is remembered that an event got no answer: 1 day. The next time, that is held against it if
/// the clerk has answered another one in between; else the clerk is away, which is no event's fault.
const REMEMBERED: Duration = Duration::from_secs(86_400);
/// So many time-outs in a row beside others weigh as much as one alone.
const CROWDED_TOO_OFTEN: u32 = 10;
/// How long an event that got no answer lets others go first: 10 min.
const REST: Duration = Duration::from_secs(600);

/// Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct ExtractionMemory(Arc<Mutex<ExtractionMemoryState>>);

#[derive(Default)]
struct ExtractionMemoryState {
    /// The open records, as they stood at this edition of the index.
    candidates: Option<(u64, Arc<CandidateMatcher>)>,
    answered: Option<Instant>,
    unanswered: BTreeMap<RecordPath, MissedAnswer>,
    /// Runs overlap when one is begun by hand: each event is read by one at a time.
    being_read: BTreeSet<RecordPath>,
}

/// How an event got no answer.
#[derive(Clone, Copy)]
struct MissedAnswer {
    last: Instant,
    /// The last time that says something of it; one beside others does not.
    told: Instant,
    /// How often in a row it was beside others.
    crowded: u32,
}

/// Held while an event is read.
pub(super) struct EventClaim<'a>(&'a ExtractionMemory, &'a RecordPath);

impl Drop for EventClaim<'_> {
    fn drop(&mut self) {
        self.0.access_state(|m| m.being_read.remove(self.1));
    }
}

impl ExtractionMemory {
    fn access_state<T>(&self, look: impl FnOnce(&mut ExtractionMemoryState) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The right to read an event; `None` while somebody else reads it.
    pub(super) fn claim_event<'a>(&'a self, path: &'a RecordPath) -> Option<EventClaim<'a>> {
        self.access_state(|m| m.being_read.insert(path.clone())).then(|| EventClaim(self, path))
    }

    /// Whether at most one event is being read.
    pub(super) fn is_alone(&self) -> bool {
        self.access_state(|m| m.being_read.len() <= 1)
    }

    pub(super) fn record_answer(&self, now: Instant) {
        self.access_state(|m| m.answered = Some(now));
    }

    /// Those that got no answer a moment ago.
    pub(super) fn list_resting_events(&self) -> BTreeSet<RecordPath> {
        self.access_state(|m| {
            m.unanswered.retain(|_, missed| missed.last.elapsed() < REMEMBERED);
            let resting = m.unanswered.iter().filter(|(_, missed)| missed.last.elapsed() < REST);
            resting.map(|(path, _)| path.clone()).collect()
        })
    }

    /// Notes that an event got no answer. Whether that is held against it: others were answered since its last
    /// time, and it was not they who held it up, or they did so too often.
    pub(super) fn record_missed_answer(&self, path: &RecordPath, crowded: bool, now: Instant) -> bool {
        self.access_state(|m| {
            let before = m.unanswered.get(path).copied();
            let times = if crowded { before.map_or(0, |b| b.crowded) + 1 } else { 0 };
            let tells = times == 0 || times >= CROWDED_TOO_OFTEN;
            let told = before.filter(|_| !tells).map_or(now, |b| b.told);
            m.unanswered.insert(path.clone(), MissedAnswer { last: now, told, crowded: if tells { 0 } else { times } });
            tells && before.is_some_and(|b| m.answered.is_some_and(|at| at > b.told))
        })
    }

    /// What may be meant, if nothing was written of it since.
    pub(super) fn cached_candidates(&self, edition: u64) -> Option<Arc<CandidateMatcher>> {
        self.access_state(|m| m.candidates.clone()).filter(|(of, _)| *of == edition).map(|(_, candidates)| candidates)
    }

    pub(super) fn cache_candidates(&self, edition: u64, candidates: &Arc<CandidateMatcher>) {
        self.access_state(|m| m.candidates = Some((edition, Arc::clone(candidates))));
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
