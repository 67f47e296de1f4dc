//! The worker of a disk: a thread of its own, or its callers.
//!
//! # Rules (cited by name)
//!
//! - **[loans-end-unlocked]** A caller that has done its work ends its loans when it has released
//!   the queue: a loan that ends may wake a future or drop a buffer, and either may call the disk.

use crate::inbox::Request;
use crate::lane::Shared;
use crate::memory_queue::MemoryQueue;
use crate::report::Report;
use crate::stats::Counters;
use core::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Who does the work of a disk. See the [module](self).
#[derive(Debug)]
pub(crate) enum Worker {
    /// A thread.
    Thread(Arc<Shared>, Mutex<Work<JoinHandle<io::Result<Report>>>>),
    /// The callers.
    Callers(Counters, Mutex<Work<Box<MemoryQueue>>>),
}

/// What is needed for the work, and then its outcome. Neither is there after a panic in a caller.
pub(crate) struct Work<T> {
    by: Option<T>,
    outcome: Option<Result<Report, (io::ErrorKind, String)>>,
}

impl<T> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

impl Worker {
    pub(crate) fn thread(shared: Arc<Shared>, thread: JoinHandle<io::Result<Report>>) -> Self {
        Self::Thread(shared, Work::new(thread))
    }

    pub(crate) fn callers(queue: MemoryQueue) -> Self {
        Self::Callers(Counters::default(), Work::new(Box::new(queue)))
    }

    pub(crate) fn counters(&self) -> &Counters {
        match self {
            Self::Thread(shared, _) => &shared.counters,
            Self::Callers(counters, _) => counters,
        }
    }

    /// Begins a request. Drops it if the disk has been shut down.
    #[inline]
    pub(crate) fn put(&self, request: Request) {
        match self {
            Self::Thread(shared, _) => shared.inbox.put([request]),
            Self::Callers(counters, work) => {
                // [loans-end-unlocked]
                drop(with_queue(work, |queue| queue.serve_one(request, counters)));
            }
        }
    }

    /// As [`Self::put`], for all `requests`, which it removes from the list.
    pub(crate) fn put_all(&self, requests: &mut Vec<Request>) {
        match self {
            Self::Thread(shared, _) => shared.inbox.put(requests.drain(..)),
            Self::Callers(counters, work) => {
                with_queue(work, |queue| queue.serve(requests, counters));
                requests.clear(); // [loans-end-unlocked]
            }
        }
    }

    /// Ends every request that has begun, and the disk's work.
    ///
    /// # Errors
    ///
    /// Fails if the work has failed or panicked.
    pub(crate) fn shutdown(&self) -> io::Result<Report> {
        match self {
            Self::Thread(shared, work) => {
                shared.inbox.close();
                lock(work).end(|thread| thread.join().unwrap_or_else(|_| Err(panicked())))
            }
            Self::Callers(counters, work) => lock(work).end(|queue| Ok(queue.finish(counters))),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Self::Thread(shared, _) = self {
            shared.inbox.close();
        }
    }
}

impl<T> Work<T> {
    const fn new(by: T) -> Mutex<Self> {
        Mutex::new(Self { by: Some(by), outcome: None })
    }

    fn end(&mut self, end: impl FnOnce(T) -> io::Result<Report>) -> io::Result<Report> {
        if let Some(by) = self.by.take() {
            let outcome = end(by).map_err(|error| (error.kind(), error.to_string()));
            self.outcome = Some(outcome);
        }
        match &self.outcome {
            Some(Ok(report)) => Ok(report.clone()),
            Some(Err((kind, words))) => Err(io::Error::new(*kind, words.clone())),
            None => Err(panicked()),
        }
    }
}

/// Takes the queue for `serve`, and puts it back. Returns what `serve` returns, or drops `serve` if
/// the disk has been shut down.
#[inline]
fn with_queue<R>(
    work: &Mutex<Work<Box<MemoryQueue>>>,
    serve: impl FnOnce(&mut MemoryQueue) -> R,
) -> Option<R> {
    // Declared before the lock, and so dropped after its release: a panic drops the queue, and with
    // it loans ([loans-end-unlocked]). So is `serve`, which may have a request.
    let mut taken;
    let mut work = lock(work);
    taken = work.by.take();
    let Some(queue) = &mut taken else { return None };
    let served = serve(queue);
    work.by = taken;
    Some(served)
}

fn panicked() -> io::Error {
    io::Error::other("the disk's work has panicked")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner) // a panic has taken the work away
}
