//! Watches Temporal for problems: failed runs, paused schedules, an unreachable server.
//!
//! A page must not wait for a server that may be unreachable, nor ask about each of thousands of schedules. So this
//! watcher makes a few bounded requests three times a minute, and every interface shows the last result. Nothing is
//! changed.

pub(crate) mod registered;

use crate::temporal::client::{FailedSchedule, TemporalQueryClient, TemporalQueryError};
use crate::views::schedules::{self, SCHEDULE_ID_PREFIX};
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;
use steward_workflows::SCHEDULE_PREFIX;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often Temporal is asked: 20 s.
const EVERY: Duration = Duration::from_secs(20);
/// Most pages of paused schedules that are read, which is 5,000 schedules. The schedules of done matters are paused as
/// well.
const PAGES: usize = 5;
/// How far back failed runs are searched: 24 h.
const FAILED_WITHIN: TimeDelta = TimeDelta::hours(24);
/// Most failed schedules that are checked for a later successful run; the newest ones.
const MAX_CHECKED: usize = 20;

/// The last result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TemporalHealth {
    /// Whether the server was asked yet.
    pub(crate) is_known: bool,
    /// Why Temporal gave no answer; `None` if it did.
    pub(crate) error: Option<String>,
    pub(crate) paused: Vec<PausedSchedule>,
    /// Schedules whose last run failed, the newest first.
    pub(crate) failed: Vec<FailedSchedule>,
    /// Whether there are more that were not checked.
    pub(crate) more: bool,
}

/// A schedule that a person paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PausedSchedule {
    /// The matter, such as `matter/house.md`, or the schedule's id.
    pub(crate) subject: String,
    /// The person's note. Untrusted.
    pub(crate) note: String,
}

/// The matter of a schedule, or its id if the id does not tell.
pub(crate) fn name_schedule(schedule: &str) -> String {
    let is_hashed = |name: &str| {
        name.rsplit('-').next().is_some_and(|end| end.len() == 8 && end.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let plain = schedule.strip_prefix(SCHEDULE_PREFIX).filter(|name| !is_hashed(name));
    plain.map_or_else(|| schedule.to_owned(), |slug| format!("matter/{slug}.md"))
}

/// Starts the watcher; it runs until `stop` becomes `true`. The receiver always has the newest result.
pub(crate) fn spawn_health_watcher(
    temporal: TemporalQueryClient,
    mut stop: watch::Receiver<bool>,
) -> watch::Receiver<TemporalHealth> {
    let (sender, receiver) = watch::channel(TemporalHealth::default());
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
            sender.send_replace(now.unwrap_or_else(|away| TemporalHealth {
                is_known: true,
                error: Some(away),
                ..TemporalHealth::default()
            }));
        }
    });
    receiver
}

async fn query_temporal_health(temporal: &TemporalQueryClient, now: DateTime<Utc>) -> Result<TemporalHealth, String> {
    let away = |e: TemporalQueryError| e.to_string();
    let paused = schedules::list_paused_by_hand(temporal.client(), temporal.names(), PAGES, now).await;
    let (paused, more_paused) = paused.map_err(|e| e.to_string())?;
    let (newest, mut more) =
        temporal.list_failed_schedules(SCHEDULE_ID_PREFIX, now - FAILED_WITHIN).await.map_err(away)?;
    more |= newest.len() > MAX_CHECKED;
    let mut failed = Vec::new();
    for run in newest.into_iter().take(MAX_CHECKED) {
        if !temporal.has_succeeded_since(&run.schedule, run.at).await.map_err(away)? {
            failed.push(run);
        }
    }
    let paused = paused
        .into_iter()
        .map(|row| PausedSchedule { subject: row.matter.unwrap_or_else(|| name_schedule(&row.id)), note: row.note });
    Ok(TemporalHealth {
        is_known: true,
        error: None,
        paused: paused.collect(),
        more: more_paused || (more && !failed.is_empty()),
        failed,
    })
}

#[cfg(test)]
mod tests;
