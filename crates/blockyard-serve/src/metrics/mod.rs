//! Metrics for Prometheus and a health check, over HTTP.
//!
//! Each connection has a thread, so a silent peer delays no other one. The number of connections is limited: a further
//! one takes the place of the oldest that has not sent its question yet.
//!
//! For each answer, the thread queries every lane for its counts. A lane that does not answer in time makes `/healthz`
//! fail.

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

const OPEN_MAX: usize = 16;

/// A connection, which ends with its answer.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    has_asked: AtomicBool,
}

/// The open connections, the oldest first.
#[derive(Debug, Default)]
struct Open(Mutex<Vec<Arc<Connection>>>);

impl Open {
    /// Adds a connection, if there is room or the oldest silent one can make room.
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
    /// Closes the connection, which ends the wait of its thread.
    fn hang_up(&self) {
        // This fails if the peer has hung up.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The thread that accepts connections. See the [module](self).
pub(crate) struct Metrics {
    pub(crate) listener: Listener,
    /// The bell that ends the thread.
    pub(crate) stop: Arc<OwnedFd>,
    pub(crate) entrances: Vec<Entrance<Peer>>,
    pub(crate) disks: Vec<Arc<Disk>>,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Metrics {
    pub(crate) fn bind(address: &str) -> Result<Listener, ListenError> {
        Listener::bind(&Address::Tcp(address.to_owned()))
    }

    /// Answers questions until [`Self::stop`] rings.
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
        // After an error, the peer asks again.
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

    /// Returns the counts of each disk over all lanes, or the number of a lane that does not answer.
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
