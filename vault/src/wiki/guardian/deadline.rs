//! How long a run of an assistant stays open, and what ends it after that.
//!
//! A run has a day to be submitted, and an hour after each finding. A stop stops that clock. The log says when stops began and ended.
//! A stop that was made by hand has no beginning there, so the run has its whole time after it; one that was ended by hand has no end,
//! and does not count once it is over.

use super::lines::{GuardianLine, is_submitted};
use crate::action::writer::VaultWriter;
use crate::files::root::VaultRoot;
use crate::gates::stop::{self, StopEvent};
use crate::wiki::staged::{RunState, RunStatus, StagedRun, StagedRunError, StagedRuns};
use chrono::{DateTime, TimeDelta, Utc};
use steward_domain::time;
use steward_domain::wiki::run::RunId;

/// How long a run stays open that is not submitted.
const OPEN_LIMIT: TimeDelta = TimeDelta::hours(24);
/// How long it stays open after something was found.
const REVISION_LIMIT: TimeDelta = TimeDelta::minutes(60);
/// How many stops and releases are looked at: far more than a day has.
const MAX_STOP_EVENTS: usize = 1_000;
/// Why a run is abandoned.
pub(super) const NOT_IN_TIME: &str = "nobody submitted it in time";

impl VaultWriter {
    /// Abandons the open runs of assistants that nobody submitted in time. While a stop is in force, none is.
    ///
    /// # Errors
    /// [`StagedRunError`] if the staged runs cannot be listed. A run that cannot be read is left alone.
    pub fn abandon_late_runs(&self, now: DateTime<Utc>) -> Result<(), StagedRunError> {
        if stop::is_stopped(self.root()) {
            return Ok(());
        }
        let runs = StagedRuns::new(self.root());
        for listed in runs.list()?.into_iter().filter(|run| run.meta.is_by_assistant() && is_open(&run.status)) {
            let run = listed.meta.run;
            match self.abandon_if_late(&runs, &run, now) {
                // A call about the run is under way, or removed it.
                Ok(()) | Err(StagedRunError::Busy(_) | StagedRunError::Unknown(_)) => {}
                Err(error) => tracing::warn!(%run, %error, "cannot see whether a run was submitted in time"),
            }
        }
        Ok(())
    }

    fn abandon_if_late(&self, runs: &StagedRuns, run: &RunId, now: DateTime<Utc>) -> Result<(), StagedRunError> {
        // A run that has time left is not locked: its assistant would have to wait.
        if !is_overdue(self.root(), &runs.peek(run)?, now)? {
            return Ok(());
        }
        let run = runs.open(run)?;
        if is_overdue(self.root(), &run, now)? { self.abandon_run(&run, now, NOT_IN_TIME) } else { Ok(()) }
    }
}

/// Whether a run neither has ended nor is checked nor waits for a person.
fn is_open(status: &RunStatus) -> bool {
    status.state == RunState::Pending && !status.waits
}

fn is_overdue(root: &VaultRoot, run: &StagedRun, now: DateTime<Utc>) -> Result<bool, StagedRunError> {
    if run.read_status()?.is_some_and(|status| !is_open(&status)) {
        return Ok(false);
    }
    let lines = run.read_changes()?;
    Ok(!is_submitted(&lines) && is_late(root, run.meta.began, &lines, now))
}

/// Whether the time of an open run is over.
pub(super) fn is_late(root: &VaultRoot, began: DateTime<Utc>, lines: &[GuardianLine], now: DateTime<Utc>) -> bool {
    let (start, limit) = find_limit(began, lines);
    // Most runs have time left without any stop, and then no log is read.
    if now - start < limit || stop::is_stopped(root) {
        return false;
    }
    now - start >= limit + measure_stops(&stop::list_stop_events(root, MAX_STOP_EVENTS), start, now)
}

/// Since when a run is open, and for how long. A submission that reached nobody changes neither.
fn find_limit(began: DateTime<Utc>, lines: &[GuardianLine]) -> (DateTime<Utc>, TimeDelta) {
    let revised = lines.iter().rev().find_map(|line| match line {
        GuardianLine::Reopened { at, unsent: false } => Some(*at),
        GuardianLine::Change { .. } | GuardianLine::Submitted { .. } | GuardianLine::Reopened { .. } => None,
    });
    revised.map_or((began, OPEN_LIMIT), |at| (at, REVISION_LIMIT))
}

/// For how long the vault was stopped between two moments. The events are the newest first.
fn measure_stops(events: &[StopEvent], since: DateTime<Utc>, until: DateTime<Utc>) -> TimeDelta {
    let (mut stopped, mut counted, mut total) = (None, since, TimeDelta::zero());
    for event in events.iter().rev() {
        // The log can be edited.
        let Some(at) = time::parse(&event.stop.at) else { continue };
        if event.stopped {
            stopped = Some(at);
            continue;
        }
        let from = stopped.take().unwrap_or(counted).max(counted);
        let to = at.min(until);
        if to > from {
            total += to - from;
            counted = to;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gates::stop::VaultStop;

    fn at(minutes: i64) -> DateTime<Utc> {
        "2026-11-24T09:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::minutes(minutes)
    }

    fn event(stopped: bool, at: &str) -> StopEvent {
        StopEvent { stopped, stop: VaultStop { at: at.to_owned(), by: "ann".to_owned(), reason: None } }
    }

    #[test]
    fn a_run_has_a_day_and_an_hour_after_a_finding() {
        let reopened = |minutes, unsent| GuardianLine::Reopened { at: at(minutes), unsent };
        assert_eq!(find_limit(at(0), &[]), (at(0), OPEN_LIMIT));
        assert_eq!(find_limit(at(0), &[reopened(10, true)]), (at(0), OPEN_LIMIT), "it reached nobody");
        assert_eq!(find_limit(at(0), &[reopened(10, false), reopened(20, true)]), (at(10), REVISION_LIMIT));
    }

    #[test]
    fn the_time_of_a_stop_does_not_count() {
        let measure = |events: &[(bool, i64)]| {
            let events: Vec<_> = events
                .iter()
                .rev()
                .map(|(stopped, minutes)| event(*stopped, &time::format_millis(at(*minutes))))
                .collect();
            measure_stops(&events, at(0), at(100)).num_minutes()
        };
        assert_eq!(measure(&[]), 0);
        assert_eq!(measure(&[(true, 10), (false, 30), (true, 40), (false, 45)]), 25);
        assert_eq!(measure(&[(true, -60), (false, 5), (true, 95), (false, 200)]), 10, "of each, what lies between");
        assert_eq!(measure(&[(true, -60), (false, -50)]), 0);
        assert_eq!(measure(&[(false, 20)]), 20, "a stop by hand, of which the end alone is known");
        assert_eq!(measure(&[(true, 10), (true, 50), (false, 60)]), 10, "the first stop was ended by hand");
        assert_eq!(measure_stops(&[event(false, "later"), event(true, "now")], at(0), at(100)), TimeDelta::zero());
    }
}
