//! Limits on what is open at the same time: connections of an address, live streams of a caller.
//!
//! There is one limit per key and one for all keys. A rate limit ([`crate::access::rate_limit`]) bounds how often
//! somebody connects, not how long a connection lasts. A permit is returned when it is dropped. A key without permits
//! is removed.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hands out permits for one kind of connection. Cheap to clone.
pub(crate) struct ConnectionLimiter<K: Eq + Hash> {
    taken: Arc<Mutex<PermitCounts<K>>>,
    per_key: usize,
    in_total: usize,
}

struct PermitCounts<K> {
    by_key: HashMap<K, usize>,
    total: usize,
}

/// The right to one connection; dropping it returns the right.
pub(crate) struct ConnectionPermit<K: Eq + Hash> {
    taken: Arc<Mutex<PermitCounts<K>>>,
    key: K,
}

impl<K: Eq + Hash> Clone for ConnectionLimiter<K> {
    fn clone(&self) -> Self {
        Self { taken: Arc::clone(&self.taken), per_key: self.per_key, in_total: self.in_total }
    }
}

impl<K: Eq + Hash + Clone> ConnectionLimiter<K> {
    /// Creates a limiter with this many permits per key and in total.
    pub(crate) fn new(per_key: usize, in_total: usize) -> Self {
        let taken = PermitCounts { by_key: HashMap::new(), total: 0 };
        Self { taken: Arc::new(Mutex::new(taken)), per_key, in_total }
    }

    /// Takes a permit; `None` if the key's or all permits are taken. Only the total limits a key that `is_trusted`.
    pub(crate) fn acquire(&self, key: K, is_trusted: bool) -> Option<ConnectionPermit<K>> {
        let mut taken = lock_counts(&self.taken);
        let of_key = taken.by_key.get(&key).copied().unwrap_or_default();
        if taken.total >= self.in_total || (of_key >= self.per_key && !is_trusted) {
            return None;
        }
        taken.total += 1;
        taken.by_key.insert(key.clone(), of_key + 1);
        Some(ConnectionPermit { taken: Arc::clone(&self.taken), key })
    }
}

impl<K: Eq + Hash> Drop for ConnectionPermit<K> {
    fn drop(&mut self) {
        let mut taken = lock_counts(&self.taken);
        taken.total = taken.total.saturating_sub(1);
        if let Some(of_key) = taken.by_key.get_mut(&self.key) {
            *of_key -= 1;
            if *of_key == 0 {
                taken.by_key.remove(&self.key);
            }
        }
    }
}

/// Locks the counts. They are consistent even if a thread panicked while it held the lock.
fn lock_counts<K>(taken: &Mutex<PermitCounts<K>>) -> MutexGuard<'_, PermitCounts<K>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_permits_left_holds_up_no_other_until_all_are_taken() {
        let limiter = ConnectionLimiter::new(2, 3);
        let first = limiter.acquire("ann", false);
        let _second = limiter.acquire("ann", false).unwrap();
        assert!(first.is_some() && limiter.acquire("ann", false).is_none());
        let bob = limiter.acquire("bob", false).unwrap();
        assert!(limiter.acquire("bob", false).is_none(), "all are taken");
        drop(first);
        assert!(limiter.acquire("bob", false).is_some());
        drop(bob);
        let _trusted = limiter.acquire("ann", false).unwrap();
        assert!(limiter.acquire("ann", false).is_none());
        assert!(limiter.acquire("ann", true).is_some());
    }

    #[test]
    fn a_key_without_permits_is_removed() {
        let limiter = ConnectionLimiter::new(1, 1);
        for name in 0..100 {
            drop(limiter.acquire(name, false).unwrap());
        }
        assert!(lock_counts(&limiter.taken).by_key.is_empty());
    }
}
