//! Wakes the matters that the index marks, by triggering a few of their schedules at once.
//!
//! The index is the queue. A mark stays until a tick has observed its matter, so a failed call loses nothing, and
//! nothing grows here. A matter holds one of [`WAKES_AT_ONCE`] places from its trigger until a tick has observed it. So
//! a burst passes at the speed of the server's ticks. Under a stop no matter is woken. This module must not read the
//! vault.

mod places;

use super::create_interval;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use places::WakePlaces;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::record::path::RecordPath;
use steward_vault::index::{Index, IndexError, WakeMark};
use tokio::sync::watch as flag;
use tokio::time::{Instant, timeout_at};

/// The most matters that are woken and not observed yet: 8.
///
/// More triggers at once do not make the development server faster. It refuses to describe 16 schedules at once, and
/// the repeated calls made everything five times slower. A run that waits there for 300 s is cancelled.
pub(super) const WAKES_AT_ONCE: usize = 8;

/// The outcome of a request for one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeOutcome {
    /// A tick follows, now or after the current one.
    Triggered,
    /// The schedule is paused, so no tick follows.
    Paused,
    /// There is no schedule; this round of registration creates it.
    Missing { round: u64 },
    /// The server refused or did not answer.
    Failed,
}

/// Wakes the matters of one vault.
pub(super) struct WakeDispatcher<T, S> {
    pub(super) index: Arc<Index>,
    /// Triggers the schedule of a matter.
    pub(super) trigger: T,
    /// Whether a stop is in force.
    pub(super) is_stopped: S,
    /// The number of the round of registration that ended last.
    pub(super) rounds: flag::Receiver<u64>,
}

impl<T, F, S> WakeDispatcher<T, S>
where
    T: Fn(RecordPath) -> F,
    F: Future<Output = WakeOutcome>,
    S: Fn() -> bool,
{
    /// Wakes matters until the process ends.
    pub(super) async fn run(mut self) {
        let mut places = WakePlaces::default();
        let mut calls = FuturesUnordered::new();
        let mut stop_checks = create_interval(1);
        loop {
            if (self.is_stopped)() {
                // Matters that were not observed before the stop are still marked, and are woken after it.
                calls.clear();
                places = WakePlaces::default();
                stop_checks.tick().await;
                continue;
            }
            let now = Instant::now();
            match self.fill_places(&mut places, now).await {
                Ok(marks) => {
                    calls.extend(marks.into_iter().map(|mark| {
                        let outcome = (self.trigger)(mark.matter.clone());
                        async move { (mark, outcome.await) }
                    }));
                }
                Err(e) => {
                    tracing::error!(error = %e, "failed to read which matters to wake; trying again");
                    places.pause_all(now);
                }
            }
            let next = async {
                tokio::select! {
                    Some(ended) = calls.next(), if !calls.is_empty() => Some(ended),
                    () = self.index.cursors().wait_for_wakes() => None,
                    Ok(()) = self.rounds.changed() => None,
                }
            };
            let ended = match places.next_deadline(now) {
                Some(deadline) => timeout_at(deadline, next).await.unwrap_or(None),
                None => next.await,
            };
            if let Some((mark, outcome)) = ended {
                self.end_call(&mut places, &mark, outcome).await;
            }
        }
    }

    /// Gives the free places to the matters that have waited longest; returns those to trigger.
    async fn fill_places(&self, places: &mut WakePlaces, now: Instant) -> Result<Vec<WakeMark>, IndexError> {
        let round = *self.rounds.borrow();
        places.release_unobserved(now);
        if places.is_paused(now) {
            return Ok(Vec::new());
        }
        let marks = self
            .index
            .cursors()
            .list_oldest_wake_marks(&places.list_backed_off(now, round), places.page_size())
            .await?;
        let (marks, closed): (Vec<_>, Vec<_>) = marks.into_iter().partition(|mark| mark.may_tick);
        for mark in closed {
            self.index.cursors().clear_wake_mark(&mark.matter, mark.at).await?;
        }
        Ok(places.assign_places(marks, now, round))
    }

    async fn end_call(&self, places: &mut WakePlaces, mark: &WakeMark, outcome: WakeOutcome) {
        places.end_call(&mark.matter, outcome, Instant::now());
        if outcome == WakeOutcome::Paused
            && let Err(e) = self.index.cursors().clear_wake_mark(&mark.matter, mark.at).await
        {
            tracing::error!(matter = %mark.matter, error = %e, "failed to clear the wake mark of a paused matter");
        }
    }
}

/// The wait before the next try: `first`, doubled with every try, at most `longest`.
fn compute_back_off(first: Duration, tries: u32, longest: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(tries.min(16))).min(longest)
}

#[cfg(test)]
mod tests;
