//! Who does the work of a disk: a thread of its own, or its callers.

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

    /// Begins requests. Drops them if the disk has been shut down.
    pub(crate) fn put(&self, requests: impl IntoIterator<Item = Request>) {
        match self {
            Self::Thread(shared, _) => shared.inbox.put(requests),
            Self::Callers(counters, work) => {
                let mut work = lock(work);
                // A panic drops the queue, and with it the loans of all requests.
                let Some(mut queue) = work.by.take() else { return };
                queue.serve(requests, counters);
                work.by = Some(queue);
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

fn panicked() -> io::Error {
    io::Error::other("the disk's work has panicked")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner) // a panic has taken the work away
}
