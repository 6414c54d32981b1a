//! Smooths bursts of clerk calls inside one process.
//!
//! This is courtesy towards the provider, not a cap: the caps are the rate guard's and hold over
//! all processes. Calls wait in the order in which they came, each a bounded while; what does not fit is told so and
//! not sent.

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::sync::Mutex;

/// Longest wait for a turn, in seconds; short against the five minutes of a run.
pub const MAX_WAIT_SECONDS: u64 = 10;

/// Lets so many calls a second begin.
#[derive(Debug)]
pub struct ClerkRateLimiter {
    limiter: DefaultDirectRateLimiter,
    /// Held by the first in the line; it is handed on in the order of asking.
    line: Mutex<()>,
    max_wait: Duration,
}

impl ClerkRateLimiter {
    /// A pace of `per_second` calls, and so many at once after a quiet second.
    #[must_use]
    pub fn new(per_second: NonZeroU32, max_wait: Duration) -> Self {
        Self { limiter: RateLimiter::direct(Quota::per_second(per_second)), line: Mutex::default(), max_wait }
    }

    /// Waits for a turn; `false` when none came within the longest wait.
    pub async fn wait_for_turn(&self) -> bool {
        let turn = async {
            let _first = self.line.lock().await;
            self.limiter.until_ready().await;
        };
        tokio::time::timeout(self.max_wait, turn).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_burst_beyond_the_pace_waits_and_the_wait_is_bounded() {
        let pace = ClerkRateLimiter::new(NonZeroU32::new(2).unwrap(), Duration::ZERO);
        assert!(pace.wait_for_turn().await);
        assert!(pace.wait_for_turn().await);
        assert!(!pace.wait_for_turn().await);

        let patient = ClerkRateLimiter::new(NonZeroU32::new(50).unwrap(), Duration::from_secs(MAX_WAIT_SECONDS));
        for _ in 0..60 {
            assert!(patient.wait_for_turn().await);
        }
    }

    #[tokio::test]
    async fn whoever_came_first_goes_first_and_nobody_jumps_the_line() {
        let pace = ClerkRateLimiter::new(NonZeroU32::new(100).unwrap(), Duration::from_secs(MAX_WAIT_SECONDS));
        for _ in 0..100 {
            assert!(pace.wait_for_turn().await);
        }
        let went = std::cell::RefCell::new(Vec::new());
        let turns = (0..40).map(|number| {
            let (pace, went) = (&pace, &went);
            async move {
                assert!(pace.wait_for_turn().await);
                went.borrow_mut().push(number);
            }
        });
        futures_util::future::join_all(turns).await;
        assert_eq!(went.into_inner(), (0..40).collect::<Vec<_>>());
    }
}
