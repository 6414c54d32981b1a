//! Limits how fast one process begins clerk calls.
//!
//! This smooths bursts for the provider's sake. It is no cap: the rate guard holds the caps, over all processes. Calls
//! wait in the order in which they came, each for a limited time. A call that does not fit in that time is refused and
//! must not be sent.

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::sync::Mutex;

/// Longest wait of one call, in seconds: 10, short against the five minutes of a run.
pub const MAX_WAIT_SECONDS: u64 = 10;

/// Limits how many calls begin in a second.
#[derive(Debug)]
pub struct ClerkRateLimiter {
    limiter: DefaultDirectRateLimiter,
    /// Held by the first waiting call. It is handed on in the order of the calls.
    queue: Mutex<()>,
    max_wait: Duration,
}

impl ClerkRateLimiter {
    /// Allows `per_second` calls a second, and as many at once after a quiet second.
    #[must_use]
    pub fn new(per_second: NonZeroU32, max_wait: Duration) -> Self {
        Self { limiter: RateLimiter::direct(Quota::per_second(per_second)), queue: Mutex::default(), max_wait }
    }

    /// Waits until a call may begin; `false` if the longest wait is over first.
    pub async fn wait_for_turn(&self) -> bool {
        let wait = async {
            let _first = self.queue.lock().await;
            self.limiter.until_ready().await;
        };
        tokio::time::timeout(self.max_wait, wait).await.is_ok()
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
