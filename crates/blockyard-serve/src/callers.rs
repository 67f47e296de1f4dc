//! Callers of a service beside the disks, such as the metrics: a thread for each connection, and few connections.
//!
//! A silent caller delays no other one. If the maximum number of connections is open, a further one takes the place of
//! the oldest that has no question under way.

use crate::listen::{ACCEPT_REST, Listener};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{Shutdown, shutdown};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

/// One connection.
#[derive(Debug)]
pub(crate) struct Caller<S> {
    pub(crate) stream: S,
    /// A question has come whose answer has not been sent: the connection makes room for no other one.
    is_busy: AtomicBool,
}

impl<S: AsFd> Caller<S> {
    pub(crate) fn set_busy(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Ordering::Relaxed);
    }

    /// Closes the connection, which ends the wait of its thread.
    fn hang_up(&self) {
        // This fails if the peer has hung up.
        let _ = shutdown(&self.stream, Shutdown::Both);
    }
}

/// The callers of one service. See the [module](self).
#[derive(Debug)]
pub(crate) struct Callers<S> {
    pub(crate) listener: Listener,
    /// The bell that ends the service.
    pub(crate) stop: Arc<OwnedFd>,
    /// The name of the threads.
    name: &'static str,
    /// The maximum number of connections at a time.
    open_max: usize,
    /// The open connections, the oldest first.
    open: Mutex<Vec<Arc<Caller<S>>>>,
}

impl<S: AsFd + From<OwnedFd> + Send + Sync> Callers<S> {
    pub(crate) fn new(
        listener: Listener,
        stop: Arc<OwnedFd>,
        name: &'static str,
        open_max: usize,
    ) -> Self {
        Self { listener, stop, name, open_max, open: Mutex::default() }
    }

    /// Calls `converse` in a thread for each caller, until the bell rings and all callers have gone.
    pub(crate) fn serve(&self, converse: impl Fn(&Caller<S>) + Sync) {
        std::thread::scope(|threads| {
            self.accept(threads, &converse);
            self.open().iter().for_each(|caller| caller.hang_up());
        });
    }

    fn accept<'scope, F: Fn(&Caller<S>) + Sync>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        converse: &'scope F,
    ) {
        loop {
            let sources = [self.listener.as_fd(), self.stop.as_fd()];
            let mut sources = sources.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            if poll(&mut sources, None).is_err() {
                continue; // a signal
            }
            if !sources[1].revents().is_empty() {
                return;
            }
            match self.listener.accept() {
                Ok(Some(peer)) => {
                    let Some(caller) = self.enter(peer.fd.into()) else { continue };
                    let of_thread = Arc::clone(&caller);
                    let body = move || {
                        converse(&of_thread);
                        self.leave(&of_thread);
                    };
                    let thread = std::thread::Builder::new().name(self.name.to_owned());
                    if thread.spawn_scoped(threads, body).is_err() {
                        self.leave(&caller);
                    }
                }
                Ok(None) => {}
                Err(_) => std::thread::sleep(ACCEPT_REST),
            }
        }
    }

    /// Adds a connection, if there is room or the oldest idle one can make room.
    fn enter(&self, stream: S) -> Option<Arc<Caller<S>>> {
        let mut open = self.open();
        if open.len() == self.open_max {
            let idle = open.iter().position(|open| !open.is_busy.load(Ordering::Relaxed))?;
            open.remove(idle).hang_up();
        }
        let caller = Arc::new(Caller { stream, is_busy: AtomicBool::new(false) });
        open.push(Arc::clone(&caller));
        Some(caller)
    }

    fn leave(&self, caller: &Arc<Caller<S>>) {
        self.open().retain(|open| !Arc::ptr_eq(open, caller));
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<Caller<S>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
