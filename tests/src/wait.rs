//! Waiting until something becomes true, by polling with a deadline.

use std::time::{Duration, Instant};

/// The longest time of an expected event: 600 s. On a busy machine a call to the Temporal server may time out several
/// times in a row, after 30 s each. A passing test does not wait that long.
pub const PATIENCE: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(40);

/// Polls until there is a result. Panics with `what` if there is none in time.
pub async fn until<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(PATIENCE, what, ask).await
}

/// Like [`until`], with another deadline.
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

/// Checks that something stays true for a while. Panics with `what` if it changes.
pub async fn stays(so: Duration, what: &str, mut ask: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    let mut pause = tokio::time::interval(PAUSE);
    while begun.elapsed() < so {
        pause.tick().await;
        assert!(ask().await, "should have stayed so for {} s: {what}", so.as_secs());
    }
}

/// Lets a moment pass in which other processes do something; it waits for no condition.
pub async fn a_moment(so: Duration) {
    tokio::time::interval_at(tokio::time::Instant::now() + so, so).tick().await;
}
