//! How many may stay at once, of each and of all: connections of an address, live streams of a caller.
//!
//! A pace says how often somebody may come ([`super::pace`]) and not how long they stay. A seat is given back when it is
//! dropped, however its holder ended; who has none is forgotten.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The seats of one kind. Cheap to clone.
pub(crate) struct Seats<K: Eq + Hash> {
    taken: Arc<Mutex<Taken<K>>>,
    of_each: usize,
    of_all: usize,
}

struct Taken<K> {
    by: HashMap<K, usize>,
    all: usize,
}

/// One seat, as long as it is held.
pub(crate) struct Seat<K: Eq + Hash> {
    taken: Arc<Mutex<Taken<K>>>,
    by: K,
}

impl<K: Eq + Hash> Clone for Seats<K> {
    fn clone(&self) -> Self {
        Self { taken: Arc::clone(&self.taken), of_each: self.of_each, of_all: self.of_all }
    }
}

impl<K: Eq + Hash + Clone> Seats<K> {
    /// So many for each, and for all together.
    pub(crate) fn new(of_each: usize, of_all: usize) -> Self {
        let taken = Taken { by: HashMap::new(), all: 0 };
        Self { taken: Arc::new(Mutex::new(taken)), of_each, of_all }
    }

    /// One more, if there is one left for them; `is_trusted` only needs one of all.
    pub(crate) fn take(&self, by: K, is_trusted: bool) -> Option<Seat<K>> {
        let mut taken = lock(&self.taken);
        let theirs = taken.by.get(&by).copied().unwrap_or_default();
        if taken.all >= self.of_all || (theirs >= self.of_each && !is_trusted) {
            return None;
        }
        taken.all += 1;
        taken.by.insert(by.clone(), theirs + 1);
        Some(Seat { taken: Arc::clone(&self.taken), by })
    }
}

impl<K: Eq + Hash> Drop for Seat<K> {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
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
fn lock<K>(taken: &Mutex<Taken<K>>) -> MutexGuard<'_, Taken<K>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_their_seats_holds_up_nobody_else_until_all_are_taken() {
        let seats = Seats::new(2, 3);
        let first = seats.take("ann", false);
        let _second = seats.take("ann", false).unwrap();
        assert!(first.is_some() && seats.take("ann", false).is_none());
        let bob = seats.take("bob", false).unwrap();
        assert!(seats.take("bob", false).is_none(), "all are taken");
        drop(first);
        assert!(seats.take("bob", false).is_some());
        drop(bob);
        let _trusted = seats.take("ann", false).unwrap();
        assert!(seats.take("ann", false).is_none());
        assert!(seats.take("ann", true).is_some());
    }

    #[test]
    fn who_has_left_is_forgotten() {
        let seats = Seats::new(1, 1);
        for name in 0..100 {
            drop(seats.take(name, false).unwrap());
        }
        assert!(lock(&seats.taken).by.is_empty());
    }
}
