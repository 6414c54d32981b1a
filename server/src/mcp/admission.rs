//! How many calls may run at once, how much a caller may stage in a minute, and how many actions they may resolve in an hour.
//!
//! A call without room is refused at once and never waits. A permit is held until the work of a call has ended, also if the call was cancelled.

use super::error::{ToolError, ToolErrorCode};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most calls of all callers at once: as many threads read files.
const MAX_CALLS: usize = 64;
/// The most calls of one caller at once, so that one leaves room for others.
const MAX_CALLS_OF_CALLER: usize = 16;
/// The most calls at once of one caller that read many files or start a program.
const MAX_HEAVY: usize = 4;
/// The most stages of a caller in [`STAGE_WINDOW`]: each is written and synced.
const MAX_STAGES: usize = 120;
const STAGE_WINDOW: Duration = Duration::from_secs(60);
/// The most resolutions of a caller in [`RESOLUTION_WINDOW`]: a model that goes astray undoes no more.
const MAX_RESOLUTIONS: usize = 20;
const RESOLUTION_WINDOW: Duration = Duration::from_secs(3_600);

/// What a call takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallCost {
    #[default]
    Light,
    /// It reads many files, or starts a program.
    Heavy,
    /// It writes a staged file.
    Stage,
    /// It resolves an action.
    Resolve,
}

/// What a caller uses now.
#[derive(Debug, Default)]
struct CallerUse {
    calls: usize,
    heavy: usize,
    stages: VecDeque<Instant>,
    resolutions: VecDeque<Instant>,
}

/// The calls that are under way.
#[derive(Debug, Default)]
pub(crate) struct CallLimits(Mutex<BTreeMap<String, CallerUse>>);

/// The room of one call.
#[derive(Debug)]
pub(crate) struct CallPermit {
    limits: Arc<CallLimits>,
    caller: String,
    cost: CallCost,
}

impl CallLimits {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CallerUse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a call its room.
    ///
    /// # Errors
    /// [`ToolErrorCode::TooFast`] with the seconds to wait.
    pub(crate) fn admit(self: &Arc<Self>, caller: &str, cost: CallCost, now: Instant) -> Result<CallPermit, ToolError> {
        let mut uses = self.lock();
        uses.retain(|_, used| {
            used.stages.retain(|at| now.duration_since(*at) < STAGE_WINDOW);
            used.resolutions.retain(|at| now.duration_since(*at) < RESOLUTION_WINDOW);
            used.calls > 0 || !used.stages.is_empty() || !used.resolutions.is_empty()
        });
        let all: usize = uses.values().map(|used| used.calls).sum();
        let used = uses.entry(caller.to_owned()).or_default();
        let refused = match cost {
            _ if all >= MAX_CALLS => Some((format!("{MAX_CALLS} calls are under way"), 1)),
            _ if used.calls >= MAX_CALLS_OF_CALLER => {
                Some((format!("{MAX_CALLS_OF_CALLER} of your calls are under way"), 1))
            }
            CallCost::Heavy if used.heavy >= MAX_HEAVY => {
                Some((format!("{MAX_HEAVY} of your calls that search many files are under way"), 1))
            }
            CallCost::Stage if used.stages.len() >= MAX_STAGES => {
                let left = count_seconds_left(&used.stages, STAGE_WINDOW, now);
                Some((format!("you staged {MAX_STAGES} times within a minute"), left))
            }
            CallCost::Resolve if used.resolutions.len() >= MAX_RESOLUTIONS => {
                let left = count_seconds_left(&used.resolutions, RESOLUTION_WINDOW, now);
                Some((format!("you resolved {MAX_RESOLUTIONS} actions within an hour"), left))
            }
            CallCost::Light | CallCost::Heavy | CallCost::Stage | CallCost::Resolve => None,
        };
        if let Some((what, seconds)) = refused {
            return Err(ToolError::new(ToolErrorCode::TooFast, what, format!("Try again in {seconds} s")));
        }
        used.calls += 1;
        match cost {
            CallCost::Light => {}
            CallCost::Heavy => used.heavy += 1,
            CallCost::Stage => used.stages.push_back(now),
            CallCost::Resolve => used.resolutions.push_back(now),
        }
        drop(uses);
        Ok(CallPermit { limits: Arc::clone(self), caller: caller.to_owned(), cost })
    }
}

/// The seconds until the oldest of these moments has left its window.
fn count_seconds_left(moments: &VecDeque<Instant>, window: Duration, now: Instant) -> u64 {
    let oldest = moments.front().copied().unwrap_or(now);
    window.saturating_sub(now.duration_since(oldest)).as_secs() + 1
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if let Some(used) = self.limits.lock().get_mut(&self.caller) {
            used.calls -= 1;
            used.heavy -= usize::from(self.cost == CallCost::Heavy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_its_share_and_gets_it_back() {
        let (limits, now) = (Arc::new(CallLimits::default()), Instant::now());
        let admit = |caller: &str, cost| limits.admit(caller, cost, now);
        let heavy: Vec<CallPermit> = (0..MAX_HEAVY).map(|_| admit("a", CallCost::Heavy).unwrap()).collect();
        assert_eq!(admit("a", CallCost::Heavy).unwrap_err().code, ToolErrorCode::TooFast);
        let light: Vec<CallPermit> =
            (MAX_HEAVY..MAX_CALLS_OF_CALLER).map(|_| admit("a", CallCost::Light).unwrap()).collect();
        assert!(admit("a", CallCost::Light).is_err() && admit("b", CallCost::Heavy).is_ok());
        drop((heavy, light));
        assert!(admit("a", CallCost::Heavy).is_ok());
    }

    #[test]
    fn there_is_an_end_for_all_callers() {
        let (limits, now) = (Arc::new(CallLimits::default()), Instant::now());
        let permits: Vec<CallPermit> = (0..MAX_CALLS)
            .map(|number| limits.admit(&format!("c{}", number / 8), CallCost::Light, now).unwrap())
            .collect();
        assert!(limits.admit("new", CallCost::Light, now).is_err());
        drop(permits);
        assert!(limits.admit("new", CallCost::Light, now).is_ok());
    }

    #[test]
    fn a_caller_resolves_twenty_actions_in_an_hour() {
        let (limits, now) = (Arc::new(CallLimits::default()), Instant::now());
        let later = |minutes: u64| now + Duration::from_secs(60 * minutes);
        for number in 0..20 {
            drop(limits.admit("a", CallCost::Resolve, later(number)).unwrap());
        }
        let refused = limits.admit("a", CallCost::Resolve, later(59)).unwrap_err();
        assert!(refused.to_string().contains("Try again in 61 s"), "{refused}");
        assert!(limits.admit("b", CallCost::Resolve, later(59)).is_ok());
        assert!(limits.admit("a", CallCost::Resolve, later(60)).is_ok());
        assert!(limits.admit("a", CallCost::Resolve, later(60)).is_err(), "one has left the hour, and one has come");
    }

    #[test]
    fn stages_are_counted_by_the_minute() {
        let (limits, now) = (Arc::new(CallLimits::default()), Instant::now());
        for _ in 0..MAX_STAGES {
            drop(limits.admit("a", CallCost::Stage, now).unwrap());
        }
        let refused = limits.admit("a", CallCost::Stage, now + Duration::from_secs(20)).unwrap_err();
        assert!(refused.to_string().contains("Try again in 41 s"), "{refused}");
        assert!(limits.admit("a", CallCost::Light, now).is_ok());
        assert!(limits.admit("a", CallCost::Stage, now + STAGE_WINDOW).is_ok());
    }
}
