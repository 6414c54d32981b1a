//! Which matters are being woken, and which are left alone for a while.
//!
//! At most [`WAKES_AT_ONCE`] hold a place. One whose trigger failed, whose schedule is missing, or that no tick
//! observes gives its place to others and rests. Pure: the time is an argument.

use super::WAKES_AT_ONCE;
use super::WakeOutcome;
use super::compute_back_off;
use std::collections::BTreeMap;
use std::time::Duration;
use steward_domain::record::path::RecordPath;
use steward_vault::index::WakeMark;
use tokio::time::Instant;

/// How long a matter keeps its place while no tick observes it: 5 s. A tick that is still running can
/// take minutes, and others should not wait for it.
const OBSERVE_PATIENCE: Duration = Duration::from_secs(5);
/// How long a matter that no tick observed is left alone: from 10 s to 5 min, the longest that a run takes.
const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(300);
/// How long nobody is woken after a failed call: from 1 s to 30 s, so that a server that is back is found soon.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A matter that is being woken.
struct WakePlace {
    /// When a tick last observed it before its turn came.
    observed: Option<i64>,
    /// `None` while the call is under way.
    release_at: Option<Instant>,
    /// How often it was woken in vain before.
    tries: u32,
}

/// A matter that is left alone.
struct WakeBackOff {
    until: Instant,
    /// Until this round of registration has ended, too.
    round: u64,
    tries: u32,
}

/// All of them. Bounded by the number of matters.
#[derive(Default)]
pub(super) struct WakePlaces {
    held: BTreeMap<RecordPath, WakePlace>,
    resting: BTreeMap<RecordPath, WakeBackOff>,
    /// Nobody is woken before this moment.
    paused_until: Option<Instant>,
    failures: u32,
}

impl WakeBackOff {
    fn is_active(&self, now: Instant, round: u64) -> bool {
        now < self.until || round < self.round
    }
}

impl WakePlaces {
    /// Takes the places of matters that no tick has observed in time.
    pub(super) fn release_unobserved(&mut self, now: Instant) {
        let over = |place: &WakePlace| place.release_at.is_some_and(|at| at <= now);
        let late: Vec<RecordPath> = self.held.iter().filter(|(_, p)| over(p)).map(|(m, _)| m.clone()).collect();
        for matter in late {
            let tries = self.held.remove(&matter).map_or(0, |place| place.tries);
            let until = now + compute_back_off(FIRST_REST, tries, LONGEST_REST);
            self.resting.insert(matter, WakeBackOff { until, round: 0, tries: tries.saturating_add(1) });
        }
    }

    /// Whether nobody is woken for now, after a failed call.
    pub(super) fn is_paused(&self, now: Instant) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    /// The matters that are left alone.
    pub(super) fn list_backed_off(&self, now: Instant, round: u64) -> Vec<&RecordPath> {
        self.resting.iter().filter(|(_, rest)| rest.is_active(now, round)).map(|(matter, _)| matter).collect()
    }

    /// How many marks say enough: of those that hold a place, and of those that could.
    pub(super) fn page_size(&self) -> usize {
        WAKES_AT_ONCE + self.held.len()
    }

    /// Ends the places of matters that were observed, and gives those that are free to the first of these marks.
    pub(super) fn assign_places(&mut self, marks: Vec<WakeMark>, now: Instant, round: u64) -> Vec<WakeMark> {
        let observed = |matter: &RecordPath| marks.iter().find(|mark| mark.matter == *matter).map(|mark| mark.observed);
        self.held.retain(|matter, place| place.release_at.is_none() || observed(matter) == Some(place.observed));
        let free = WAKES_AT_ONCE.saturating_sub(self.held.len());
        let taken: Vec<WakeMark> =
            marks.into_iter().filter(|mark| !self.held.contains_key(&mark.matter)).take(free).collect();
        for mark in &taken {
            let tries = self.resting.remove(&mark.matter).map_or(0, |rest| rest.tries);
            self.held.insert(mark.matter.clone(), WakePlace { observed: mark.observed, release_at: None, tries });
        }
        // Those that could have been taken and are not marked any more.
        if taken.len() < free {
            self.resting.retain(|_, rest| rest.is_active(now, round));
        }
        taken
    }

    /// Notes what became of a call.
    pub(super) fn end_call(&mut self, matter: &RecordPath, outcome: WakeOutcome, now: Instant) {
        let Some(place) = self.held.get_mut(matter) else { return };
        let tries = place.tries;
        match outcome {
            WakeOutcome::Triggered => {
                place.release_at = Some(now + OBSERVE_PATIENCE);
                self.failures = 0;
                return;
            }
            WakeOutcome::Paused => {}
            WakeOutcome::Missing { round } => {
                // The first time at once: the round is what it waits for.
                let wait =
                    tries.checked_sub(1).map_or(Duration::ZERO, |n| compute_back_off(FIRST_PAUSE, n, LONGEST_REST));
                self.resting
                    .insert(matter.clone(), WakeBackOff { until: now + wait, round, tries: tries.saturating_add(1) });
            }
            WakeOutcome::Failed => {
                let until = now + compute_back_off(FIRST_PAUSE, tries, LONGEST_REST);
                self.resting.insert(matter.clone(), WakeBackOff { until, round: 0, tries: tries.saturating_add(1) });
                self.pause_all(now);
            }
        }
        self.held.remove(matter);
    }

    /// Wakes nobody for a while that doubles; calls that fail together count once.
    pub(super) fn pause_all(&mut self, now: Instant) {
        if !self.is_paused(now) {
            self.paused_until = Some(now + compute_back_off(FIRST_PAUSE, self.failures, LONGEST_PAUSE));
            self.failures = self.failures.saturating_add(1);
        }
    }

    /// When there is something to do although nothing was heard; `now` is when the places were last filled.
    pub(super) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let held = self.held.values().filter_map(|place| place.release_at);
        let resting = self.resting.values().map(|rest| rest.until);
        held.chain(resting).chain(self.paused_until).filter(|at| *at > now).min()
    }
}
