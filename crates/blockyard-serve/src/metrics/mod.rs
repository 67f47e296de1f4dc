//! Metrics for Prometheus, and whether the server is well: over HTTP, by threads of its own.
//!
//! Each connection has a thread, so that a silent peer keeps nobody waiting. There are few at a time: one more takes
//! the place of the oldest that has not asked yet.
//!
//! For each answer every lane is asked for a copy of what it counted. One that does not answer in
//! time is not well, which `/healthz` says.

mod http;
pub mod question;
mod text;

use crate::disk::Disk;
use crate::entrance::{Entrance, Message, ask};
use crate::listen::{ACCEPT_REST, Address, ListenError, Listener};
use crate::meter::Counts;
use crate::peer::Peer;
use http::{Answer, Asked};
use rustix::event::{PollFd, PollFlags, poll};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

/// The most connections at a time.
const OPEN_MAX: usize = 16;

/// One connection, which ends with its answer.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    has_asked: AtomicBool,
}

/// The connections there are, the oldest first.
#[derive(Debug, Default)]
struct Open(Mutex<Vec<Arc<Connection>>>);

impl Open {
    /// Enters a connection, if there is room or the oldest silent one can make some.
    fn enter(&self, stream: TcpStream) -> Option<Arc<Connection>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() == OPEN_MAX {
            let silent = open.iter().position(|open| !open.has_asked.load(Ordering::Relaxed))?;
            open.remove(silent).hang_up();
        }
        let connection = Arc::new(Connection { stream, has_asked: AtomicBool::new(false) });
        open.push(Arc::clone(&connection));
        Some(connection)
    }

    fn leave(&self, connection: &Arc<Connection>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|open| !Arc::ptr_eq(open, connection));
    }

    fn hang_up(&self) {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().for_each(|connection| connection.hang_up());
    }
}

impl Connection {
    /// Ends what its thread waits for.
    fn hang_up(&self) {
        // It fails where the peer has gone.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The thread that accepts connections. See the [module](self).
pub(crate) struct Metrics {
    pub(crate) listener: Listener,
    /// Ends it.
    pub(crate) stop: Arc<OwnedFd>,
    pub(crate) entrances: Vec<Entrance<Peer>>,
    pub(crate) disks: Vec<Arc<Disk>>,
    /// Clients there are.
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Metrics {
    /// Where it will answer.
    pub(crate) fn bind(address: &str) -> Result<Listener, ListenError> {
        Listener::bind(&Address::Tcp(address.to_owned()))
    }

    /// Answers until it is told to stop.
    pub(crate) fn run(self) {
        let open = Open::default();
        std::thread::scope(|threads| {
            self.accept(threads, &open);
            open.hang_up();
        });
    }

    fn accept<'scope>(&'scope self, threads: &'scope Scope<'scope, '_>, open: &'scope Open) {
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
                Ok(Some(client)) => {
                    let Some(connection) = open.enter(client.fd.into()) else { continue };
                    let of_thread = Arc::clone(&connection);
                    let body = move || self.converse(&of_thread, open);
                    let thread = std::thread::Builder::new().name("metrics".to_owned());
                    if thread.spawn_scoped(threads, body).is_err() {
                        open.leave(&connection);
                    }
                }
                Ok(None) => {}
                Err(_) => std::thread::sleep(ACCEPT_REST),
            }
        }
    }

    fn converse(&self, connection: &Arc<Connection>, open: &Open) {
        // Who could not be answered asks again.
        drop(http::serve(&connection.stream, |asked| {
            connection.has_asked.store(true, Ordering::Relaxed);
            self.answer(asked)
        }));
        open.leave(connection);
    }

    fn answer(&self, asked: Asked) -> Answer {
        let counts = self.counts();
        match (asked, counts) {
            (Asked::Health, Ok(_)) => Answer::ok("ok\n".to_owned()),
            (Asked::Metrics, Ok(counts)) => {
                let connections = self.connections.load(Ordering::Relaxed);
                Answer::ok(text::write(&self.disks, &counts, self.entrances.len(), connections))
            }
            (_, Err(lane)) => Answer::unavailable(format!("lane {lane} does not answer\n")),
        }
    }

    /// What all lanes counted together, by the number of the disk; else which lane does not answer.
    fn counts(&self) -> Result<Vec<Counts>, usize> {
        let mut all: Vec<_> = self.disks.iter().map(|_| Counts::new()).collect();
        for counts in ask(&self.entrances, Message::Report)? {
            for (to, from) in all.iter_mut().zip(&counts) {
                to.merge(from);
            }
        }
        Ok(all)
    }
}
