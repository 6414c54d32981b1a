//! Waiting for something to become true: polling with a deadline.

use std::time::{Duration, Instant};

/// How long things that should happen may take on a busy machine: 120 s. A test that passes waits for none of it.
pub const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(40);

/// Asks until there is an answer; panics with `what` when there is none in time.
pub async fn until<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(PATIENCE, what, ask).await
}

/// As [`until`], with a deadline of its own.
pub async fn within<T>(deadline: Duration, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    let mut pause = tokio::time::interval(PAUSE);
    pause.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        pause.tick().await;
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < deadline, "waited {} s for: {what}", deadline.as_secs());
    }
}

/// Something that must stay so for a while; panics with `what` when it changes.
pub async fn stays(so: Duration, what: &str, mut ask: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    let mut pause = tokio::time::interval(PAUSE);
    while begun.elapsed() < so {
        pause.tick().await;
        assert!(ask().await, "should have stayed so for {} s: {what}", so.as_secs());
    }
}

/// Lets a moment pass at which something shall happen to others; waits for nothing.
pub async fn a_moment(so: Duration) {
    tokio::time::interval_at(tokio::time::Instant::now() + so, so).tick().await;
}
