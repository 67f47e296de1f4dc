//! Synchronisation of a file for many threads with one call.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Joins the fences of all threads. A thread that finds a synchronisation running waits for the
/// next one, together with all others that do. An error is permanent, because it is unknown from
/// then on what is durable.
#[derive(Debug, Default)]
pub(crate) struct Group {
    state: Mutex<State>,
    finished: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Synchronisations that were started, and that have ended.
    begun: u64,
    over: u64,
    failed: bool,
}

impl Group {
    /// Returns when a synchronisation that started after this call has ended. This thread, which
    /// then calls `sync`, or another one carries it out.
    ///
    /// # Errors
    ///
    /// A synchronisation failed, now or earlier.
    pub(crate) fn join(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.lock();
        debug_assert!(state.begun - state.over <= 1, "one synchronisation runs at a time");
        let wanted = state.begun + 1;
        while state.over < wanted && state.begun > state.over {
            state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.over < wanted && !state.failed {
            state.begun += 1;
            drop(state);
            let done = sync();
            state = self.lock();
            state.over += 1;
            state.failed |= done.is_err();
            self.finished.notify_all();
            done?;
        }
        if state.failed {
            return Err(io::Error::other("an earlier synchronisation of the file failed"));
        }
        debug_assert!(state.over >= wanted, "a synchronisation that started after this call");
        Ok(())
    }

    /// The number of synchronisations that have ended.
    pub(crate) fn over(&self) -> u64 {
        self.lock().over
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;

    #[test]
    fn threads_that_wait_for_one_synchronisation_share_the_next() {
        let group = &Group::default();
        let syncs = &AtomicU32::new(0);
        let (go, wait) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = scope.spawn(move || {
                group.join(|| {
                    syncs.fetch_add(1, Ordering::Relaxed);
                    wait.recv().expect("message to go on");
                    Ok(())
                })
            });
            while syncs.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            let later: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(move || {
                        group.join(|| {
                            syncs.fetch_add(1, Ordering::Relaxed);
                            Ok(())
                        })
                    })
                })
                .collect();
            go.send(()).expect("first synchronisation that waits");
            first.join().expect("no panic").expect("successful synchronisation");
            later
                .into_iter()
                .for_each(|one| one.join().expect("no panic").expect("successful synchronisation"));
        });
        let syncs = syncs.load(Ordering::Relaxed);
        assert!((2..=9).contains(&syncs), "one synchronisation ran when the others came: {syncs}");
    }

    #[test]
    fn a_failure_is_permanent() {
        let group = Group::default();
        assert!(group.join(|| Err(io::Error::other("no"))).is_err());
        assert!(group.join(|| Ok(())).is_err());
    }
}
