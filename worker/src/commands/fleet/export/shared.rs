//! One reading for all who ask at the same time, and for a moment longer.
//!
//! Whoever comes while a reading is under way waits for it and gets its value. So the number of callers does not change
//! how often the source is read.

use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The last reading, and when it ended.
pub(super) struct SharedReading<T> {
    reuse: Duration,
    last: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> SharedReading<T> {
    /// A reading is used again for this long.
    pub(super) fn new(reuse: Duration) -> Self {
        Self { reuse, last: Mutex::new(None) }
    }

    /// The last value, or that of `source`, which is not begun if the last one can be used.
    pub(super) async fn read(&self, source: impl Future<Output = T>) -> T {
        let mut last = self.last.lock().await;
        if let Some((at, value)) = last.as_ref()
            && at.elapsed() < self.reuse
        {
            return value.clone();
        }
        let value = source.await;
        *last = Some((Instant::now(), value.clone()));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The highest number that 20 callers got, of readings that count themselves.
    async fn read_at_once(reuse: Duration) -> u32 {
        let (shared, count) = (SharedReading::new(reuse), AtomicU32::new(0));
        let read = async || {
            tokio::task::yield_now().await;
            count.fetch_add(1, Ordering::Relaxed) + 1
        };
        let all = join_all((0..20).map(|_| shared.read(read()))).await;
        all.into_iter().max().unwrap()
    }

    #[tokio::test]
    async fn callers_share_a_reading_until_it_is_too_old() {
        assert_eq!(read_at_once(Duration::from_secs(600)).await, 1);
        assert_eq!(read_at_once(Duration::ZERO).await, 20, "nothing is used again without a time for it");
    }
}
