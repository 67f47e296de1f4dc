//! Work on all processors.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::{panic, thread};

/// Calls `work` for each of `items` on all processors, and returns the results in the order of the
/// items.
///
/// # Panics
///
/// Panics if `work` does, with the same payload.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    each_on(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN), items, work)
}

/// Like [`each`], but on at most so many `threads`, of which the caller's is one.
///
/// # Panics
///
/// Panics if `work` does, with the same payload.
pub fn each_on<T: Sync, R: Send>(
    threads: NonZeroUsize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
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
        let others = 1..threads.get().min(items.len());
        let others: Vec<_> = others.map(|_| scope.spawn(worker)).collect();
        worker();
        for other in others {
            other.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
        }
    });
    let result = |cell: Mutex<Option<R>>| {
        cell.into_inner().expect("no worker panicked").expect("every item should have a result")
    };
    results.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn results_have_the_order_of_the_items_on_any_number_of_threads() {
        let items: Vec<u32> = (0..1000).collect();
        for threads in [1, 2, 7, 5000] {
            let threads = NonZeroUsize::new(threads).unwrap();
            assert_eq!(each_on(threads, &items, |item| item * 2)[999], 1998);
            assert!(each_on(threads, &items, |item| *item).is_sorted());
        }
        assert!(each(&[] as &[u32], |item| *item).is_empty());
    }

    #[test]
    fn so_many_threads_work_at_once() {
        let three = Barrier::new(3);
        let leads = each_on(NonZeroUsize::new(3).unwrap(), &[(); 3], |()| three.wait().is_leader());
        assert_eq!(leads.into_iter().filter(|leads| *leads).count(), 1);
    }

    #[test]
    fn a_panic_of_any_thread_keeps_its_words() {
        let both = Barrier::new(2);
        for culprit in [0, 1] {
            let result = panic::catch_unwind(|| {
                each_on(NonZeroUsize::new(2).unwrap(), &[0, 1], |item| {
                    both.wait();
                    assert!(*item != culprit, "the culprit is {culprit}");
                })
            });
            let payload = result.unwrap_err();
            assert_eq!(
                payload.downcast_ref::<String>().unwrap(),
                &format!("the culprit is {culprit}")
            );
        }
    }
}
