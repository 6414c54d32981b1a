//! Runs the streams independently, so that a failure of one does not affect another.
//!
//! Each polled stream has a loop here; webhooks share a listener ([`crate::runtime::webhooks`]). A failed round appears
//! in the log and in `steward streams list`, and is repeated after a wait that doubles. The intake stores the events of
//! a round in the vault, where the engine's listener finds them. A stream must not write into the vault any other way.

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

/// The longest error that is stored, in characters: 300.
const MAX_ERROR_CHARS: usize = 300;
/// The wait after the first failure of a stream: 5 s. It doubles with every further failure.
const FIRST_BACK_OFF: Duration = Duration::from_secs(5);
/// The longest wait after a failure: 15 min, so that a server that is back is noticed within that time.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(15 * 60);
/// How often a stream checks whether it was paused or resumed: 2 s.
const PAUSE_CHECK: Duration = Duration::from_secs(2);
/// How often a round without news is recorded: 1 min.
const QUIET_RECORD: Duration = Duration::from_secs(60);

/// What all streams of a vault share.
#[derive(Clone)]
pub(crate) struct StreamContext {
    pub(crate) writer: Arc<VaultWriter>,
    pub(crate) index: Arc<Index>,
    /// Notified when a file is put into the drop folder.
    pub(crate) inbox_changed: Arc<Notify>,
}

/// The loop of one polled stream.
struct StreamLoop {
    shared: StreamContext,
    config: StreamConfig,
    /// Stays open between rounds. After a failed round it is opened again.
    adapter: Option<Box<dyn StreamAdapter>>,
    failures: u32,
    recorded_at: Option<Instant>,
    /// Why the last good round left events behind; `None` if it left none.
    left_reason: Option<String>,
}

/// The outcome of a round that did not fail.
struct RoundOutcome {
    tally: IntakeTally,
    next: NextRound,
    /// Why the round left events behind; `None` if it left none.
    left_reason: Option<String>,
}

impl StreamContext {
    /// Starts every configured stream.
    pub(crate) fn spawn_streams(&self, config: &StewardConfig, stop: &flag::Receiver<bool>) -> Vec<JoinHandle<()>> {
        let (pushed, polled): (Vec<_>, Vec<_>) = config.streams.iter().cloned().partition(|s| s.kind == "webhook");
        let mut loops: Vec<_> = polled
            .into_iter()
            .map(|config| {
                let stream = StreamLoop {
                    shared: self.clone(),
                    config,
                    adapter: None,
                    failures: 0,
                    recorded_at: None,
                    left_reason: None,
                };
                tokio::spawn(stream.run(stop.clone()))
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

    /// Records the outcome of a round. A failure to do so is only logged.
    pub(crate) async fn record_round(&self, stream: &str, error: Option<&str>) {
        if let Err(e) = self.index.signals().record_stream_run(stream, Utc::now(), error).await {
            tracing::error!(stream, error = %e, "failed to record the status of a stream");
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

    /// Runs one round and waits until the next one is due.
    async fn run_and_wait(&mut self) {
        let (index, name) = (Arc::clone(&self.shared.index), self.config.name.clone());
        if is_stream_paused(&index, &name).await {
            self.adapter = None;
            return tokio::time::sleep(PAUSE_CHECK).await;
        }
        let result = tokio::select! {
            // A panic in one adapter must not affect other streams.
            outcome = AssertUnwindSafe(self.run_round()).catch_unwind() => match outcome {
                Ok(outcome) => outcome.map_err(|e| e.to_string()),
                Err(_) => Err("the adapter panicked; its message is in the log".to_owned()),
            },
            // A half-read message is read again later; stored events are recognised.
            () = wait_for_pause(&index, &name) => {
                self.adapter = None;
                return;
            }
        };
        match result {
            Ok(round) => {
                self.record_success(round.tally, round.left_reason).await;
                let wait = match round.next {
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
                tracing::warn!(stream = %name, failures = self.failures, "failed to read the stream: {text}");
                self.shared.record_round(&name, Some(&text)).await;
                tokio::time::sleep(compute_back_off(self.failures)).await;
            }
        }
    }

    async fn run_round(&mut self) -> Result<RoundOutcome, StreamError> {
        let mut adapter = match self.adapter.take() {
            Some(adapter) => adapter,
            None => match self.config.open(self.shared.writer.root())? {
                StreamSource::Polled(adapter) => adapter,
                StreamSource::Pushed(_) => {
                    let (tally, next) = (IntakeTally::default(), NextRound::Usual);
                    return Ok(RoundOutcome { tally, next, left_reason: None });
                }
            },
        };
        let shared = &self.shared;
        let mut intake = Intake::new(&self.config.name, Arc::clone(&shared.writer), Arc::clone(&shared.index));
        let next = adapter.read_round(&mut intake).await?;
        self.adapter = Some(adapter);
        let left_reason = intake.first_left_reason().map(|why| why.escape_debug().take(MAX_ERROR_CHARS).collect());
        Ok(RoundOutcome { tally: intake.current_tally(), next, left_reason })
    }

    /// Waits until the time is over, the source has news, or a file is in the drop folder.
    async fn wait_for_next_round(&mut self, wait: Duration) {
        let is_inbox = self.config.kind == "inbox";
        let dropped = Arc::clone(&self.shared.inbox_changed);
        let Some(adapter) = &mut self.adapter else { return tokio::time::sleep(wait).await };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = adapter.wait_for_news() => {}
            () = dropped.notified(), if is_inbox => {}
        }
    }

    async fn record_success(&mut self, tally: IntakeTally, left_reason: Option<String>) {
        let name = &self.config.name;
        if tally.stored + tally.refused > 0 {
            let (stored, known, refused) = (tally.stored, tally.known, tally.refused);
            tracing::info!(stream = %name, stored, known, refused, "events ingested");
        }
        let is_news = tally.stored + tally.refused > 0 || self.failures > 0 || left_reason != self.left_reason;
        self.failures = 0;
        if is_news || self.recorded_at.is_none_or(|at| at.elapsed() >= QUIET_RECORD) {
            self.recorded_at = Some(Instant::now());
            self.shared.record_round(name, None).await;
            if left_reason.is_some() {
                self.shared.record_round(name, left_reason.as_deref()).await;
            }
            self.left_reason = left_reason;
        }
    }
}

/// Whether a human paused a stream. If the index cannot be read, the stream goes on.
pub(crate) async fn is_stream_paused(index: &Index, name: &str) -> bool {
    index.signals().is_stream_paused(name).await.unwrap_or(false)
}

async fn wait_for_pause(index: &Index, name: &str) {
    while !is_stream_paused(index, name).await {
        tokio::time::sleep(PAUSE_CHECK).await;
    }
}

fn compute_back_off(failures: u32) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    FIRST_BACK_OFF.saturating_mul(factor).min(LONGEST_BACK_OFF)
}

#[cfg(test)]
mod tests;
