//! How many may stay at once, of each and of all: connections of an address, live streams of a caller.
//!
//! A pace says how often somebody may come ([`crate::access::rate_limit`]) and not how long they stay. A seat is given back when it is
//! dropped, however its holder ended; who has none is forgotten.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The seats of one kind. Cheap to clone.
pub(crate) struct ConnectionLimiter<K: Eq + Hash> {
    taken: Arc<Mutex<PermitCounts<K>>>,
    of_each: usize,
    of_all: usize,
}

struct PermitCounts<K> {
    by: HashMap<K, usize>,
    all: usize,
}

/// One seat, as long as it is held.
pub(crate) struct ConnectionPermit<K: Eq + Hash> {
    taken: Arc<Mutex<PermitCounts<K>>>,
    by: K,
}

impl<K: Eq + Hash> Clone for ConnectionLimiter<K> {
    fn clone(&self) -> Self {
        Self { taken: Arc::clone(&self.taken), of_each: self.of_each, of_all: self.of_all }
    }
}

impl<K: Eq + Hash + Clone> ConnectionLimiter<K> {
    /// So many for each, and for all together.
    pub(crate) fn new(of_each: usize, of_all: usize) -> Self {
        let taken = PermitCounts { by: HashMap::new(), all: 0 };
        Self { taken: Arc::new(Mutex::new(taken)), of_each, of_all }
    }

    /// One more, if there is one left for them; `is_trusted` only needs one of all.
    pub(crate) fn acquire(&self, by: K, is_trusted: bool) -> Option<ConnectionPermit<K>> {
        let mut taken = lock_counts(&self.taken);
        let theirs = taken.by.get(&by).copied().unwrap_or_default();
        if taken.all >= self.of_all || (theirs >= self.of_each && !is_trusted) {
            return None;
        }
        taken.all += 1;
        taken.by.insert(by.clone(), theirs + 1);
        Some(ConnectionPermit { taken: Arc::clone(&self.taken), by })
    }
}

impl<K: Eq + Hash> Drop for ConnectionPermit<K> {
    fn drop(&mut self) {
        let mut taken = lock_counts(&self.taken);
        taken.all = taken.all.saturating_sub(1);
        if let Some(theirs) = taken.by.get_mut(&self.by) {
            *theirs -= 1;
            if *theirs == 0 {
                taken.by.remove(&self.by);
            }
        }
    }
}

/// A count is whole whatever panicked beside it.
fn lock_counts<K>(taken: &Mutex<PermitCounts<K>>) -> MutexGuard<'_, PermitCounts<K>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_their_seats_holds_up_nobody_else_until_all_are_taken() {
        let seats = ConnectionLimiter::new(2, 3);
        let first = seats.acquire("ann", false);
        let _second = seats.acquire("ann", false).unwrap();
        assert!(first.is_some() && seats.acquire("ann", false).is_none());
        let bob = seats.acquire("bob", false).unwrap();
        assert!(seats.acquire("bob", false).is_none(), "all are taken");
        drop(first);
        assert!(seats.acquire("bob", false).is_some());
        drop(bob);
        let _trusted = seats.acquire("ann", false).unwrap();
        assert!(seats.acquire("ann", false).is_none());
        assert!(seats.acquire("ann", true).is_some());
    }

    #[test]
    fn who_has_left_is_forgotten() {
        let seats = ConnectionLimiter::new(1, 1);
        for name in 0..100 {
            drop(seats.acquire(name, false).unwrap());
        }
        assert!(lock_counts(&seats.taken).by.is_empty());
    }
}
