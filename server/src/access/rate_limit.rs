//! Rate limits of requests.
//!
//! A known caller is limited by name, an unknown one by address. An entry is removed as soon as it no longer limits
//! anybody, so that requests from many addresses cannot fill the memory.

use governor::clock::Clock;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// One rate limit.
#[derive(Clone, Copy)]
struct RateLimit {
    /// Requests per second in the long run.
    per_second: u32,
    /// Requests at once before the rate counts.
    burst: u32,
}

/// The limit of one known caller.
const CALLER: RateLimit = RateLimit { per_second: 50, burst: 300 };
/// The limit of one address for requests of unknown callers.
const UNKNOWN: RateLimit = RateLimit { per_second: 2, burst: 60 };
/// The limit of one address on routes that need no login. It suffices for a page with all its assets for every person
/// behind one address, and for a monitor.
const OPEN: RateLimit = RateLimit { per_second: 20, burst: 200 };
/// The number of requests after which entries that no longer limit anybody are removed.
const SWEEP: u32 = 1_024;

/// The rate limits of known callers, unknown addresses and open routes.
pub(crate) struct RequestRateLimiter {
    callers: DefaultKeyedRateLimiter<String>,
    unknown: DefaultKeyedRateLimiter<IpAddr>,
    open: DefaultKeyedRateLimiter<IpAddr>,
    requests: AtomicU32,
}

impl Default for RequestRateLimiter {
    fn default() -> Self {
        Self {
            callers: RateLimiter::keyed(build_quota(CALLER)),
            unknown: RateLimiter::keyed(build_quota(UNKNOWN)),
            open: RateLimiter::keyed(build_quota(OPEN)),
            requests: AtomicU32::new(0),
        }
    }
}

impl RequestRateLimiter {
    /// Counts a request of a known caller.
    ///
    /// # Errors
    /// The seconds to wait, if the caller is over the limit.
    pub(crate) fn check_caller(&self, name: &str) -> Result<(), u32> {
        self.forget_idle_keys();
        self.callers.check_key(&name.to_owned()).map_err(|until| compute_retry_seconds(self.callers.clock(), &until))
    }

    /// As [`RequestRateLimiter::check_caller`], for a request of an unknown caller.
    pub(crate) fn check_unknown_address(&self, address: IpAddr) -> Result<(), u32> {
        self.forget_idle_keys();
        self.unknown
            .check_key(&group_address(address))
            .map_err(|until| compute_retry_seconds(self.unknown.clock(), &until))
    }

    /// As [`RequestRateLimiter::check_caller`], for a request to a route that needs no login.
    pub(crate) fn check_open_address(&self, address: IpAddr) -> Result<(), u32> {
        self.forget_idle_keys();
        self.open.check_key(&group_address(address)).map_err(|until| compute_retry_seconds(self.open.clock(), &until))
    }

    fn forget_idle_keys(&self) {
        if self.requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(SWEEP) {
            self.callers.retain_recent();
            self.unknown.retain_recent();
            self.open.retain_recent();
        }
    }
}

/// The address that a limit counts. An IPv6 address counts as its /64 network, because one machine can use every
/// address of it.
pub(crate) fn group_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) & !u128::from(u64::MAX)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

fn build_quota(limit: RateLimit) -> Quota {
    let non_zero = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
    Quota::per_second(non_zero(limit.per_second)).allow_burst(non_zero(limit.burst))
}

fn compute_retry_seconds<C: Clock>(clock: &C, until: &governor::NotUntil<C::Instant>) -> u32 {
    u32::try_from(until.wait_time_from(clock.now()).as_secs()).unwrap_or(u32::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_burst_and_does_not_hold_up_another_one() {
        let rates = RequestRateLimiter::default();
        let (one, two): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let refused = (0..2 * UNKNOWN.burst).filter(|_| rates.check_unknown_address(one).is_err()).count();
        assert!(refused >= UNKNOWN.burst as usize - 10, "{refused}");
        assert_eq!(rates.check_unknown_address(one), Err(1));
        assert_eq!(rates.check_unknown_address(two), Ok(()));
        assert_eq!(rates.check_caller("ann"), Ok(()));
        assert_eq!(rates.check_open_address(one), Ok(()), "open routes have a limit of their own");
        let refused = (0..2 * OPEN.burst).filter(|_| rates.check_open_address(one).is_err()).count();
        assert!(refused >= OPEN.burst as usize - 50, "{refused}");
        assert_eq!(rates.check_open_address(two), Ok(()));
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_one_limit() {
        let rates = RequestRateLimiter::default();
        let address = |n: u128| IpAddr::V6((0x2001_0db8_u128 << 96 | n).into());
        let refused =
            (0..2 * u128::from(UNKNOWN.burst)).filter(|n| rates.check_unknown_address(address(*n)).is_err()).count();
        assert!(refused >= UNKNOWN.burst as usize - 10, "{refused}");
    }
}
