//! What Temporal knows that needs mending, asked now and then for all who look.
//!
//! A page must not wait for a server that may be away, nor ask it about each of thousands of schedules: three times a
//! minute a few bounded questions are asked here, and whoever shows it takes the last answer. Nothing is changed.

pub(crate) mod registered;

use crate::temporal::client::{FailedSchedule, TemporalQueryClient, TemporalQueryError};
use crate::views::schedules::{self, EVERY_PREFIX};
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
pub(crate) struct TemporalHealth {
    /// Why there was none.
    pub(crate) away: Option<String>,
    pub(crate) paused: Vec<PausedSchedule>,
    /// Schedules whose last run failed, the newest first.
    pub(crate) failed: Vec<FailedSchedule>,
    /// More were not looked at.
    pub(crate) more: bool,
}

/// A schedule that a person paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PausedSchedule {
    /// The matter as in `matter/house.md`, or the schedule's id.
    pub(crate) what: String,
    /// What they noted. Untrusted.
    pub(crate) note: String,
}

/// The matter that a schedule ticks, or its id.
pub(crate) fn name_schedule(schedule: &str) -> String {
    schedule.strip_prefix(SCHEDULE_PREFIX).map_or_else(|| schedule.to_owned(), |slug| format!("matter/{slug}.md"))
}

/// Asks until told to end; the receiver always has the newest answer.
pub(crate) fn spawn_health_watcher(
    temporal: TemporalQueryClient,
    mut stop: watch::Receiver<bool>,
) -> watch::Receiver<TemporalHealth> {
    let (tell, told) = watch::channel(TemporalHealth::default());
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
                now = query_temporal_health(&temporal, Utc::now()) => now,
            };
            tell.send_replace(
                now.unwrap_or_else(|away| TemporalHealth { away: Some(away), ..TemporalHealth::default() }),
            );
        }
    });
    told
}

async fn query_temporal_health(temporal: &TemporalQueryClient, now: DateTime<Utc>) -> Result<TemporalHealth, String> {
    let away = |away: TemporalQueryError| away.to_string();
    let paused = schedules::list_paused_by_hand(temporal.client(), (PAGES, now)).await;
    let (paused, more_paused) = paused.map_err(|e| e.to_string())?;
    let (newest, mut more) = temporal.list_failed_schedules(EVERY_PREFIX, now - LATELY).await.map_err(away)?;
    more |= newest.len() > LOOKED_AT;
    let mut failed = Vec::new();
    for run in newest.into_iter().take(LOOKED_AT) {
        if !temporal.has_succeeded_since(&run.schedule, run.at).await.map_err(away)? {
            failed.push(run);
        }
    }
    let paused = paused.into_iter().map(|row| PausedSchedule { what: name_schedule(&row.id), note: row.note });
    Ok(TemporalHealth {
        away: None,
        paused: paused.collect(),
        more: more_paused || (more && !failed.is_empty()),
        failed,
    })
}

#[cfg(test)]
mod tests;
