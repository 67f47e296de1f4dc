//! Callers of a service other than the disks, such as the metrics: few, each with a thread.
//!
//! If the maximum number of connections is open, a further caller waits until one closes. Of the
//! open ones, the one that has kept its thread waiting longest is closed, if that is longer than
//! the service's patience: it has sent no question, or does not read its answer. So a silent caller
//! delays others by no more than that, and a caller that is quick is never closed.

use crate::clients::listen::{ACCEPT_REST, Listener};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// The longest time between two looks for room.
const ROOM_POLL: Duration = Duration::from_millis(10);

/// The terms that a service grants its callers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The name of the service and of its threads.
    pub(crate) name: &'static str,
    /// The maximum number of connections at a time.
    pub(crate) open_max: usize,
    /// The time for which a connection may keep its thread waiting while others want its place.
    pub(crate) patience: Duration,
}

impl Terms {
    /// The terms of an operator, whose command follows immediately.
    pub(crate) const CONTROL: Self =
        Self { name: "control", open_max: 4, patience: Duration::from_secs(1) };
    /// The terms of Prometheus and of health checks, which must not wait for silent strangers.
    pub(crate) const METRICS: Self =
        Self { name: "metrics", open_max: 16, patience: Duration::from_millis(10) };
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Caller {
    stream: OwnedFd,
    /// The instant since which its thread waits for the peer; `None` while it works on an answer.
    waits_since: Mutex<Option<Instant>>,
}

impl Caller {
    fn new(stream: OwnedFd) -> Self {
        Self { stream, waits_since: Mutex::new(Some(Instant::now())) }
    }

    /// Receives bytes of the peer until `until`. Returns 0 at the end of the stream.
    ///
    /// # Errors
    ///
    /// None come in time, or the connection fails.
    pub(crate) fn receive(&self, bytes: &mut [u8], until: Instant) -> io::Result<usize> {
        self.wait_for_peer(Timeout::Recv, until, || {
            recv(&self.stream, &mut *bytes, RecvFlags::empty()).map(|(len, _)| len)
        })
    }

    /// Sends all `bytes` to the peer until `until`.
    ///
    /// # Errors
    ///
    /// The peer does not read in time, or the connection fails.
    pub(crate) fn send(&self, mut bytes: &[u8], until: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = self.wait_for_peer(Timeout::Send, until, || {
                send(&self.stream, bytes, SendFlags::NOSIGNAL)
            })?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// Ends the sending side. A close with unread input would discard what was sent.
    pub(crate) fn end_sending(&self) -> io::Result<()> {
        Ok(shutdown(&self.stream, Shutdown::Write)?)
    }

    /// Transfers bytes with the peer, which is waited for until `until`.
    fn wait_for_peer(
        &self,
        way: Timeout,
        until: Instant,
        mut transfer: impl FnMut() -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        // It has waited since it came if its thread has just started.
        self.waits_since().get_or_insert_with(Instant::now);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            set_socket_timeout(&self.stream, way, Some(left))?;
            match transfer() {
                Err(Errno::INTR) => {}
                ended => {
                    *self.waits_since() = None;
                    return Ok(ended?);
                }
            }
        }
    }

    /// Closes the connection, which ends the wait of its thread.
    fn hang_up(&self) {
        // This fails if the peer has hung up.
        let _ = shutdown(&self.stream, Shutdown::Both);
    }

    fn waits_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.waits_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The callers of one service. See the [module](self).
#[derive(Debug)]
pub(crate) struct Callers {
    listener: Listener,
    /// The bell that ends the service.
    stop: Arc<OwnedFd>,
    terms: Terms,
    open: Mutex<Vec<Arc<Caller>>>,
    /// Signals that a connection has closed.
    left: Condvar,
}

impl Callers {
    pub(crate) fn new(listener: Listener, stop: Arc<OwnedFd>, terms: Terms) -> Self {
        Self { listener, stop, terms, open: Mutex::default(), left: Condvar::new() }
    }

    /// Calls `converse` in a thread for each caller, until the bell rings and all callers have
    /// gone.
    pub(crate) fn serve(&self, converse: impl Fn(&Caller) + Sync) {
        std::thread::scope(|threads| {
            self.accept(threads, &converse);
            self.lock_open().iter().for_each(|caller| caller.hang_up());
        });
    }

    fn accept<'scope, F: Fn(&Caller) + Sync>(
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
            if !self.make_room() {
                continue;
            }
            match self.listener.accept() {
                Ok(Some(peer)) => {
                    let caller = Arc::new(Caller::new(peer.fd));
                    self.lock_open().push(Arc::clone(&caller));
                    let of_thread = Arc::clone(&caller);
                    let thread = std::thread::Builder::new().name(self.terms.name.to_owned());
                    let spawned = thread.spawn_scoped(threads, move || {
                        converse(&of_thread);
                        self.remove_caller(&of_thread);
                    });
                    if spawned.is_err() {
                        self.remove_caller(&caller);
                    }
                }
                Ok(None) => {}
                Err(_) => std::thread::sleep(ACCEPT_REST),
            }
        }
    }

    /// Returns whether there is room for another connection. Closes the one that has kept its
    /// thread waiting longest, if the patience is over, or waits for a short time until one closes.
    fn make_room(&self) -> bool {
        let mut open = self.lock_open();
        if open.len() < self.terms.open_max {
            return true;
        }
        let waits = open.iter().enumerate().filter_map(|(at, caller)| {
            let since = (*caller.waits_since())?;
            Some((since, at))
        });
        if let Some((since, at)) = waits.min()
            && since.elapsed() >= self.terms.patience
        {
            open.remove(at).hang_up();
            return true;
        }
        drop(self.left.wait_timeout(open, ROOM_POLL));
        false
    }

    fn remove_caller(&self, caller: &Arc<Caller>) {
        self.lock_open().retain(|open| !Arc::ptr_eq(open, caller));
        self.left.notify_one();
    }

    fn lock_open(&self) -> MutexGuard<'_, Vec<Arc<Caller>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
