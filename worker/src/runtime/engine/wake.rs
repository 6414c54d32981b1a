//! Wakes the matters that the index marks: has their schedules triggered, a few side by side.
//!
//! The index is the queue. A mark stays until a tick has observed its matter, so nothing is lost when a
//! call fails, and nothing grows here. A matter holds one of [`WAKES_AT_ONCE`] places from its trigger
//! until a tick has observed it, so a burst is passed on as fast as the server ticks and no faster.
//! Under a stop nobody is woken. It never reads the vault.

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

/// Most matters that are woken and not observed yet: 8. The development server takes no more triggers in a
/// second however many are under way. It refuses to describe schedules when 16 are asked for at once, and the
/// repeats made the whole five times slower. A run that waits there for 300 s is given up.
pub(super) const WAKES_AT_ONCE: usize = 8;

/// What became of the request for one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeOutcome {
    /// A tick follows, now or after the one that runs.
    Triggered,
    /// The schedule is paused, so no tick follows.
    Paused,
    /// There is no schedule; this round of registration makes it.
    Missing { round: u64 },
    /// The server refused or gave no answer.
    Failed,
}

/// Wakes the matters of one vault.
pub(super) struct WakeDispatcher<T, S> {
    pub(super) index: Arc<Index>,
    /// Triggers the schedule of a matter.
    pub(super) trigger: T,
    /// Whether the fleet is stopped.
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
    /// Wakes until the process ends.
    pub(super) async fn run(mut self) {
        let mut places = WakePlaces::default();
        let mut calls = FuturesUnordered::new();
        let mut stop_checks = create_interval(1);
        loop {
            if (self.is_stopped)() {
                // What was not observed before the stop is marked still, and woken after it.
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
                    () = self.index.wait_for_wakes() => None,
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

    /// Gives the free places to the matters that have waited longest; returns those to be triggered.
    async fn fill_places(&self, places: &mut WakePlaces, now: Instant) -> Result<Vec<WakeMark>, IndexError> {
        let round = *self.rounds.borrow();
        places.release_unobserved(now);
        if places.is_paused(now) {
            return Ok(Vec::new());
        }
        let marks = self.index.list_oldest_wake_marks(&places.list_backed_off(now, round), places.page_size()).await?;
        let (marks, closed): (Vec<_>, Vec<_>) = marks.into_iter().partition(|mark| mark.ticks);
        for mark in closed {
            self.index.clear_wake_mark(&mark.matter, mark.at).await?;
        }
        Ok(places.assign_places(marks, now, round))
    }

    async fn end_call(&self, places: &mut WakePlaces, mark: &WakeMark, outcome: WakeOutcome) {
        places.end_call(&mark.matter, outcome, Instant::now());
        if outcome == WakeOutcome::Paused
            && let Err(e) = self.index.clear_wake_mark(&mark.matter, mark.at).await
        {
            tracing::error!(matter = %mark.matter, error = %e, "failed to note that a matter is paused");
        }
    }
}

/// Doubles with every try, from `first` to `longest`.
fn compute_back_off(first: Duration, tries: u32, longest: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(tries.min(16))).min(longest)
}

#[cfg(test)]
mod tests;
