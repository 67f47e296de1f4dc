//! Work on all processors.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

/// Calls `work` for each of `items` on all processors, and returns the results in the order of the items.
///
/// # Panics
///
/// Panics if `work` does.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item);
            *results[at].lock().expect("no worker panics while it stores a result") = Some(result);
        }
    };
    thread::scope(|scope| {
        let others = thread::available_parallelism().map_or(1, usize::from).min(items.len());
        (1..others).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
    let result = |cell: Mutex<Option<R>>| {
        cell.into_inner().expect("no worker panicked").expect("every item should have a result")
    };
    results.into_iter().map(result).collect()
}
