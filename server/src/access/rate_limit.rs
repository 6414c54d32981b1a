//! How often somebody may ask.
//!
//! For who is known by name, for who is not by address. What is remembered of either is forgotten once it no longer
//! limits anybody, so that many addresses are no way to fill the memory.

use governor::clock::Clock;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// Requests a second of one caller, and how many at once before that counts.
const CALLER: (u32, u32) = (50, 300);
/// Requests a second of one address from which nobody is known yet, and how many at once.
const STRANGER: (u32, u32) = (2, 60);
/// Requests a second of one address for what anybody may have, and how many at once: a page and all that it is made of,
/// for every person of a house, and whoever watches the process.
const OPEN: (u32, u32) = (20, 200);
/// After how many requests what no longer limits anybody is forgotten.
const SWEEP: u32 = 1_024;

/// The paces.
pub(crate) struct RequestRateLimiter {
    callers: DefaultKeyedRateLimiter<String>,
    strangers: DefaultKeyedRateLimiter<IpAddr>,
    open: DefaultKeyedRateLimiter<IpAddr>,
    asked: AtomicU32,
}

impl Default for RequestRateLimiter {
    fn default() -> Self {
        Self {
            callers: RateLimiter::keyed(build_quota(CALLER)),
            strangers: RateLimiter::keyed(build_quota(STRANGER)),
            open: RateLimiter::keyed(build_quota(OPEN)),
            asked: AtomicU32::new(0),
        }
    }
}

impl RequestRateLimiter {
    /// Seconds after which somebody may ask again, where that is not now.
    pub(crate) fn check_caller(&self, name: &str) -> Result<(), u32> {
        self.forget_idle_keys();
        self.callers.check_key(&name.to_owned()).map_err(|until| compute_retry_seconds(self.callers.clock(), &until))
    }

    /// As [`RequestRateLimiter::check_caller`], for an address from which nobody is known.
    pub(crate) fn check_unknown_address(&self, address: IpAddr) -> Result<(), u32> {
        self.forget_idle_keys();
        self.strangers
            .check_key(&group_address(address))
            .map_err(|until| compute_retry_seconds(self.strangers.clock(), &until))
    }

    /// As [`RequestRateLimiter::check_caller`], for an address that asks for what anybody may have.
    pub(crate) fn check_open_address(&self, address: IpAddr) -> Result<(), u32> {
        self.forget_idle_keys();
        self.open.check_key(&group_address(address)).map_err(|until| compute_retry_seconds(self.open.clock(), &until))
    }

    fn forget_idle_keys(&self) {
        if self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(SWEEP) {
            self.callers.retain_recent();
            self.strangers.retain_recent();
            self.open.retain_recent();
        }
    }
}

/// Who an address counts as: a machine has as many IPv6 addresses as it likes below one prefix.
pub(crate) fn group_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) & !u128::from(u64::MAX)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

fn build_quota((a_second, at_once): (u32, u32)) -> Quota {
    let whole = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
    Quota::per_second(whole(a_second)).allow_burst(whole(at_once))
}

fn compute_retry_seconds<C: Clock>(clock: &C, until: &governor::NotUntil<C::Instant>) -> u32 {
    u32::try_from(until.wait_time_from(clock.now()).as_secs()).unwrap_or(u32::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_burst_and_another_one_is_not_held_up_by_it() {
        let pace = RequestRateLimiter::default();
        let (one, two): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let refused = (0..2 * STRANGER.1).filter(|_| pace.check_unknown_address(one).is_err()).count();
        assert!(refused >= STRANGER.1 as usize - 10, "{refused}");
        assert_eq!(pace.check_unknown_address(one), Err(1));
        assert_eq!(pace.check_unknown_address(two), Ok(()));
        assert_eq!(pace.check_caller("ann"), Ok(()));
        assert_eq!(pace.check_open_address(one), Ok(()), "what anybody may have has a pace of its own");
        let refused = (0..2 * OPEN.1).filter(|_| pace.check_open_address(one).is_err()).count();
        assert!(refused >= OPEN.1 as usize - 50, "{refused}");
        assert_eq!(pace.check_open_address(two), Ok(()));
    }

    #[test]
    fn addresses_below_one_prefix_are_one_stranger() {
        let pace = RequestRateLimiter::default();
        let address = |n: u128| IpAddr::V6((0x2001_0db8_u128 << 96 | n).into());
        let refused =
            (0..2 * u128::from(STRANGER.1)).filter(|n| pace.check_unknown_address(address(*n)).is_err()).count();
        assert!(refused >= STRANGER.1 as usize - 10, "{refused}");
    }
}
