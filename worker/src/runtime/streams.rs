//! Runs the streams: each on its own, so that the trouble of one is no other's.
//!
//! A stream that is read has a loop here; webhooks share a listener ([`crate::runtime::webhooks`]). A round that
//! fails is told in the log and in `steward streams list`, and tried again after a while that doubles.
//! What a round finds goes through the intake into the vault, where the listener of the engine meets it.

use crate::config::StewardConfig;
use crate::runtime::engine::wait_for_stop;
use crate::runtime::webhooks;
use chrono::Utc;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steward_activities::signals::streams::{
    Intake, IntakeTally, NextRound, StreamAdapter, StreamConfig, StreamError, StreamSource,
};
use steward_vault::action::writer::VaultWriter;
use steward_vault::index::Index;
use tokio::sync::{Notify, watch as flag};
use tokio::task::JoinHandle;

/// Longest error that is noted, in characters.
const MAX_ERROR_CHARS: usize = 300;
/// How long after its first failure a stream is tried again: 5 s, doubled with every further one.
const FIRST_BACK_OFF: Duration = Duration::from_secs(5);
/// At most: 15 min, so that a server that is back is found the same quarter of an hour.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(15 * 60);
/// How often a stream looks whether it was paused or resumed: 2 s.
const PAUSE_LOOK: Duration = Duration::from_secs(2);
/// How often a round that found nothing is written down: 1 min.
const QUIET_NOTE: Duration = Duration::from_secs(60);

/// What all streams of a vault share.
#[derive(Clone)]
pub(crate) struct StreamContext {
    pub(crate) keeper: Arc<VaultWriter>,
    pub(crate) index: Arc<Index>,
    /// Something was put into the drop folder.
    pub(crate) dropped: Arc<Notify>,
}

/// One stream under way.
struct StreamLoop {
    shared: StreamContext,
    config: StreamConfig,
    /// Open from one round to the next; a round that fails begins anew.
    adapter: Option<Box<dyn StreamAdapter>>,
    failures: u32,
    noted: Option<Instant>,
    /// What the last good round left, and why.
    left: Option<String>,
}

impl StreamContext {
    /// Starts every stream that is configured.
    pub(crate) fn spawn_streams(&self, config: &StewardConfig, stop: &flag::Receiver<bool>) -> Vec<JoinHandle<()>> {
        let (pushed, polled): (Vec<_>, Vec<_>) = config.streams.iter().cloned().partition(|s| s.kind == "webhook");
        let mut loops: Vec<_> = polled
            .into_iter()
            .map(|config| {
                let running =
                    StreamLoop { shared: self.clone(), config, adapter: None, failures: 0, noted: None, left: None };
                tokio::spawn(running.run(stop.clone()))
            })
            .collect();
        if !pushed.is_empty() {
            loops.push(tokio::spawn(webhooks::serve_webhooks(
                self.clone(),
                pushed,
                config.webhook_listen,
                stop.clone(),
            )));
        }
        loops
    }

    /// Writes down how a round ended; that this fails is told and no more.
    pub(crate) async fn record_round(&self, stream: &str, error: Option<&str>) {
        if let Err(e) = self.index.record_stream_run(stream, Utc::now(), error).await {
            tracing::error!(stream, error = %e, "failed to note how a stream stands");
        }
    }
}

impl StreamLoop {
    async fn run(mut self, mut stop: flag::Receiver<bool>) {
        loop {
            tokio::select! {
                () = wait_for_stop(&mut stop) => return,
                () = self.run_and_wait() => {}
            }
        }
    }

    /// One round and the wait after it.
    async fn run_and_wait(&mut self) {
        let (index, name) = (Arc::clone(&self.shared.index), self.config.name.clone());
        if is_stream_paused(&index, &name).await {
            self.adapter = None;
            return tokio::time::sleep(PAUSE_LOOK).await;
        }
        let ended = tokio::select! {
            // A bug in one adapter is one stream's trouble.
            ended = AssertUnwindSafe(self.run_round()).catch_unwind() => match ended {
                Ok(ended) => ended.map_err(|e| e.to_string()),
                Err(_) => Err("the adapter panicked; what it said is above".to_owned()),
            },
            // What is half read is read again; what is stored is known.
            () = wait_for_pause(&index, &name) => {
                self.adapter = None;
                return;
            }
        };
        match ended {
            Ok((tally, next, left)) => {
                self.record_success(tally, left).await;
                let wait = match next {
                    NextRound::Usual => self.config.interval,
                    NextRound::Within(soon) => soon,
                };
                tokio::select! {
                    () = wait_for_pause(&index, &name) => {}
                    () = self.wait_for_next_round(wait) => {}
                }
            }
            Err(e) => {
                self.adapter = None;
                self.failures = self.failures.saturating_add(1);
                let text: String = e.escape_debug().take(MAX_ERROR_CHARS).collect();
                tracing::warn!(stream = %name, failures = self.failures, "not read: {text}");
                self.shared.record_round(&name, Some(&text)).await;
                tokio::time::sleep(compute_back_off(self.failures)).await;
            }
        }
    }

    /// What was taken in, when to come again, and what was left and why.
    async fn run_round(&mut self) -> Result<(IntakeTally, NextRound, Option<String>), StreamError> {
        let mut adapter = match self.adapter.take() {
            Some(adapter) => adapter,
            None => match self.config.open(self.shared.keeper.root())? {
                StreamSource::Polled(adapter) => adapter,
                StreamSource::Pushed(_) => return Ok((IntakeTally::default(), NextRound::Usual, None)),
            },
        };
        let shared = &self.shared;
        let mut intake = Intake::new(&self.config.name, Arc::clone(&shared.keeper), Arc::clone(&shared.index));
        let next = adapter.read_round(&mut intake).await?;
        self.adapter = Some(adapter);
        Ok((
            intake.current_tally(),
            next,
            intake.first_left_reason().map(|why| why.escape_debug().take(MAX_ERROR_CHARS).collect()),
        ))
    }

    /// Until the time has come, the source has news, or something was dropped.
    async fn wait_for_next_round(&mut self, wait: Duration) {
        let is_inbox = self.config.kind == "inbox";
        let dropped = Arc::clone(&self.shared.dropped);
        let Some(adapter) = &mut self.adapter else { return tokio::time::sleep(wait).await };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = adapter.wait_for_news() => {}
            () = dropped.notified(), if is_inbox => {}
        }
    }

    async fn record_success(&mut self, tally: IntakeTally, left: Option<String>) {
        let name = &self.config.name;
        if tally.stored + tally.refused > 0 {
            tracing::info!(stream = %name, stored = tally.stored, known = tally.known, refused = tally.refused, "events taken in");
        }
        let is_news = tally.stored + tally.refused > 0 || self.failures > 0 || left != self.left;
        self.failures = 0;
        if is_news || self.noted.is_none_or(|at| at.elapsed() >= QUIET_NOTE) {
            self.noted = Some(Instant::now());
            self.shared.record_round(name, None).await;
            if left.is_some() {
                self.shared.record_round(name, left.as_deref()).await;
            }
            self.left = left;
        }
    }
}

/// Whether a human paused a stream; where that cannot be told, it goes on.
pub(crate) async fn is_stream_paused(index: &Index, name: &str) -> bool {
    index.is_stream_paused(name).await.unwrap_or(false)
}

async fn wait_for_pause(index: &Index, name: &str) {
    while !is_stream_paused(index, name).await {
        tokio::time::sleep(PAUSE_LOOK).await;
    }
}

fn compute_back_off(failures: u32) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    FIRST_BACK_OFF.saturating_mul(factor).min(LONGEST_BACK_OFF)
}

#[cfg(test)]
mod tests;
