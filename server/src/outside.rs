//! What Temporal knows that needs mending, asked now and then for all who look.
//!
//! A page must not wait for a server that may be away, nor ask it about each of thousands of schedules: three times a
//! minute a few bounded questions are asked here, and whoever shows it takes the last answer. Nothing is changed.

pub(crate) mod registered;

use crate::facts::schedules::{self, EVERY_PREFIX};
use crate::temporal::{Away, Failed, Temporal};
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;
use steward_workflows::SCHEDULE_PREFIX;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often is asked: 20 s.
const EVERY: Duration = Duration::from_secs(20);
/// Pages of paused schedules that are read, 5,000 schedules: those of matters that are done are paused as well.
const PAGES: usize = 5;
/// How far back a run that failed is looked for: 24 h.
const LATELY: TimeDelta = TimeDelta::hours(24);
/// Schedules of which is asked whether a later run went well; the newest that failed.
const LOOKED_AT: usize = 20;

/// The last answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outside {
    /// Why there was none.
    pub(crate) away: Option<String>,
    pub(crate) paused: Vec<Paused>,
    /// Schedules whose last run failed, the newest first.
    pub(crate) failed: Vec<Failed>,
    /// More were not looked at.
    pub(crate) more: bool,
}

/// A schedule that a person paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paused {
    /// The matter as in `matter/house.md`, or the schedule's id.
    pub(crate) what: String,
    /// What they noted. Untrusted.
    pub(crate) note: String,
}

/// The matter that a schedule ticks, or its id.
pub(crate) fn named(schedule: &str) -> String {
    schedule.strip_prefix(SCHEDULE_PREFIX).map_or_else(|| schedule.to_owned(), |slug| format!("matter/{slug}.md"))
}

/// Asks until told to end; the receiver always has the newest answer.
pub(crate) fn start(temporal: Temporal, mut stop: watch::Receiver<bool>) -> watch::Receiver<Outside> {
    let (tell, told) = watch::channel(Outside::default());
    tokio::spawn(async move {
        let mut clock = tokio::time::interval(EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                _ = clock.tick() => {}
            }
            let now = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                now = ask(&temporal, Utc::now()) => now,
            };
            tell.send_replace(now.unwrap_or_else(|away| Outside { away: Some(away), ..Outside::default() }));
        }
    });
    told
}

async fn ask(temporal: &Temporal, now: DateTime<Utc>) -> Result<Outside, String> {
    let away = |away: Away| away.to_string();
    let paused = schedules::paused_by_hand(temporal.client(), (PAGES, now)).await;
    let (paused, more_paused) = paused.map_err(|e| e.to_string())?;
    let (newest, mut more) = temporal.failed(EVERY_PREFIX, now - LATELY).await.map_err(away)?;
    more |= newest.len() > LOOKED_AT;
    let mut failed = Vec::new();
    for run in newest.into_iter().take(LOOKED_AT) {
        if !temporal.went_well(&run.schedule, run.at).await.map_err(away)? {
            failed.push(run);
        }
    }
    let paused = paused.into_iter().map(|row| Paused { what: named(&row.id), note: row.note });
    Ok(Outside { away: None, paused: paused.collect(), more: more_paused || (more && !failed.is_empty()), failed })
}

#[cfg(test)]
mod tests;
