//! Divides work on many pages among the processors.
//!
//! The results are in the order of the items, whatever ended first. The caller waits for them, so it must not run on a thread of the
//! async runtime.

use std::num::NonZero;
use std::sync::LazyLock;

/// The fewest items for which a thread is started: that takes as long as some of them.
const LEAST_SHARE: usize = 32;

/// How many threads run at once. Asking the system takes longer than some work.
static THREADS: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, NonZero::get));

/// What `work` makes of each item.
pub(crate) fn map_in_threads<'i, T: Sync, R: Send>(items: &'i [T], work: impl Fn(&'i T) -> R + Sync) -> Vec<R> {
    let share = items.len().div_ceil(*THREADS).max(LEAST_SHARE);
    if items.len() <= share {
        return items.iter().map(work).collect();
    }
    std::thread::scope(|scope| {
        let work = &work;
        let parts: Vec<_> =
            items.chunks(share).map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<R>>())).collect();
        // A part that panicked would leave items out without a word.
        let join = |part: std::thread::ScopedJoinHandle<'_, Vec<R>>| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        parts.into_iter().flat_map(join).collect()
    })
}
