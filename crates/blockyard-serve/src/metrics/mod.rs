//! Metrics for Prometheus, and whether the server is well: over HTTP, by a thread of its own.
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
use http::{Answer, Asked};
use rustix::event::{PollFd, PollFlags, poll};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The thread that answers. See the [module](self).
pub(crate) struct Metrics {
    pub(crate) listener: Listener,
    /// Ends it.
    pub(crate) stop: Arc<OwnedFd>,
    pub(crate) entrances: Vec<Entrance<OwnedFd>>,
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
                    // Who could not be answered asks again.
                    drop(http::serve(&mut TcpStream::from(client), |asked| self.answer(asked)));
                }
                Ok(None) => {}
                Err(_) => std::thread::sleep(ACCEPT_REST),
            }
        }
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
