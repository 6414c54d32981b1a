//! Keeps track of which matters are being woken, and which back off for a while.
//!
//! At most [`WAKES_AT_ONCE`] matters hold a place. A matter gives its place to others and backs off if its trigger
//! failed, its schedule is missing, or no tick observes it. Pure: the time is an argument.

use super::WAKES_AT_ONCE;
use super::WakeOutcome;
use super::compute_back_off;
use std::collections::BTreeMap;
use std::time::Duration;
use steward_domain::record::path::RecordPath;
use steward_vault::index::WakeMark;
use tokio::time::Instant;

/// How long a matter keeps its place while no tick observes it: 5 s. A running tick can take minutes, and other matters
/// should not wait for it.
const OBSERVE_PATIENCE: Duration = Duration::from_secs(5);
/// How long a matter that no tick observed backs off: from 10 s to 5 min, the longest time that a run takes.
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(300);
/// How long all waking pauses after a failed call: from 1 s to 30 s, so that a server that is back is noticed soon.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A matter that is being woken.
struct WakePlace {
    /// When a tick last observed it before it got this place.
    observed: Option<i64>,
    /// `None` while the call is in progress.
    release_at: Option<Instant>,
    /// How often waking it failed before.
    tries: u32,
}

/// A matter that is not woken for a while.
struct WakeBackOff {
    until: Instant,
    /// It also waits until this round of registration has ended.
    round: u64,
    tries: u32,
}

/// The places and back-offs of all matters. Bounded by the number of matters.
#[derive(Default)]
pub(super) struct WakePlaces {
    held: BTreeMap<RecordPath, WakePlace>,
    backed_off: BTreeMap<RecordPath, WakeBackOff>,
    /// No matter is woken before this moment.
    paused_until: Option<Instant>,
    failures: u32,
}

impl WakeBackOff {
    fn is_active(&self, now: Instant, round: u64) -> bool {
        now < self.until || round < self.round
    }
}

impl WakePlaces {
    /// Frees the places of matters that no tick has observed in time.
    pub(super) fn release_unobserved(&mut self, now: Instant) {
        let is_over = |place: &WakePlace| place.release_at.is_some_and(|at| at <= now);
        let late: Vec<RecordPath> = self.held.iter().filter(|(_, p)| is_over(p)).map(|(m, _)| m.clone()).collect();
        for matter in late {
            let tries = self.held.remove(&matter).map_or(0, |place| place.tries);
            let until = now + compute_back_off(FIRST_BACK_OFF, tries, LONGEST_BACK_OFF);
            self.backed_off.insert(matter, WakeBackOff { until, round: 0, tries: tries.saturating_add(1) });
        }
    }

    /// Whether all waking is paused after a failed call.
    pub(super) fn is_paused(&self, now: Instant) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    /// The matters that back off now.
    pub(super) fn list_backed_off(&self, now: Instant, round: u64) -> Vec<&RecordPath> {
        let active = self.backed_off.iter().filter(|(_, back_off)| back_off.is_active(now, round));
        active.map(|(matter, _)| matter).collect()
    }

    /// How many marks to read: those of matters that hold a place, and those that could get one.
    pub(super) fn page_size(&self) -> usize {
        WAKES_AT_ONCE + self.held.len()
    }

    /// Frees the places of observed matters, and gives the free places to the first of these marks.
    pub(super) fn assign_places(&mut self, marks: Vec<WakeMark>, now: Instant, round: u64) -> Vec<WakeMark> {
        let observed = |matter: &RecordPath| marks.iter().find(|mark| mark.matter == *matter).map(|mark| mark.observed);
        self.held.retain(|matter, place| place.release_at.is_none() || observed(matter) == Some(place.observed));
        let free = WAKES_AT_ONCE.saturating_sub(self.held.len());
        let assigned: Vec<WakeMark> =
            marks.into_iter().filter(|mark| !self.held.contains_key(&mark.matter)).take(free).collect();
        for mark in &assigned {
            let tries = self.backed_off.remove(&mark.matter).map_or(0, |back_off| back_off.tries);
            self.held.insert(mark.matter.clone(), WakePlace { observed: mark.observed, release_at: None, tries });
        }
        // The other matters could have got a place but are no longer marked.
        if assigned.len() < free {
            self.backed_off.retain(|_, back_off| back_off.is_active(now, round));
        }
        assigned
    }

    /// Records the outcome of a call.
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
                // No extra wait the first time: the round itself is the wait.
                let wait =
                    tries.checked_sub(1).map_or(Duration::ZERO, |n| compute_back_off(FIRST_PAUSE, n, LONGEST_BACK_OFF));
                self.backed_off
                    .insert(matter.clone(), WakeBackOff { until: now + wait, round, tries: tries.saturating_add(1) });
            }
            WakeOutcome::Failed => {
                let until = now + compute_back_off(FIRST_PAUSE, tries, LONGEST_BACK_OFF);
                self.backed_off.insert(matter.clone(), WakeBackOff { until, round: 0, tries: tries.saturating_add(1) });
                self.pause_all(now);
            }
        }
        self.held.remove(matter);
    }

    /// Pauses all waking for a time that doubles; calls that fail at the same time count once.
    pub(super) fn pause_all(&mut self, now: Instant) {
        if !self.is_paused(now) {
            self.paused_until = Some(now + compute_back_off(FIRST_PAUSE, self.failures, LONGEST_PAUSE));
            self.failures = self.failures.saturating_add(1);
        }
    }

    /// The next moment at which something is due without a notification. `now` is when the places were last filled.
    pub(super) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let held = self.held.values().filter_map(|place| place.release_at);
        let backed_off = self.backed_off.values().map(|back_off| back_off.until);
        held.chain(backed_off).chain(self.paused_until).filter(|at| *at > now).min()
    }
}
