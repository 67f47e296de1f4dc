//! Synchronising a file for many threads at once.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Joins the fences of all threads: one that finds a synchronisation running waits for the next one, with
/// all others that do. An error stays: what became of the data is unknown from then on.
#[derive(Debug, Default)]
pub(crate) struct Group {
    state: Mutex<State>,
    finished: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Synchronisations that were begun, and that are over.
    begun: u64,
    over: u64,
    failed: bool,
}

impl Group {
    /// Returns when a synchronisation is over that began after this call: by this thread, which calls `sync`,
    /// or another one.
    ///
    /// # Errors
    ///
    /// One failed, now or earlier.
    pub(crate) fn join(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.lock();
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
            return Err(io::Error::other("the file could not be synchronised"));
        }
        Ok(())
    }

    /// How many there were.
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
    fn those_who_come_while_one_runs_share_the_next() {
        let (group, syncs) = (&Group::default(), &AtomicU32::new(0));
        let (go, wait) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = scope.spawn(move || {
                group.join(|| {
                    syncs.fetch_add(1, Ordering::Relaxed);
                    wait.recv().expect("it is sent");
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
            go.send(()).expect("it is waited for");
            first.join().expect("no panic").expect("it is done");
            later.into_iter().for_each(|one| one.join().expect("no panic").expect("it is done"));
        });
        let syncs = syncs.load(Ordering::Relaxed);
        assert!(
            (2..=9).contains(&syncs),
            "one ran when the others came, who needed another: {syncs}"
        );
    }

    #[test]
    fn a_failure_stays() {
        let group = Group::default();
        assert!(group.join(|| Err(io::Error::other("no"))).is_err());
        assert!(group.join(|| Ok(())).is_err());
    }
}
