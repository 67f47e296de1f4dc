//! Metrics for Prometheus and a health check, over HTTP.
//!
//! For each answer, the thread queries every lane for its counts. A lane that does not answer in time makes `/healthz`
//! fail.

mod http;
pub mod question;
mod text;

use crate::callers::{Caller, Callers};
use crate::door::nbd;
use crate::entrance::{Entrance, Message, ask};
use crate::listen::{Access, Address, ListenError, Listener};
use crate::meter::Counts;
use crate::roster::Roster;
use http::{Answer, Asked};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const OPEN_MAX: usize = 16;

/// The metrics of a server. See the [module](self).
pub(crate) struct Metrics {
    pub(crate) entrances: Vec<Entrance<nbd::Arrival>>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Metrics {
    pub(crate) fn bind(address: &str) -> Result<Listener, ListenError> {
        Listener::bind(&Address::Tcp(address.to_owned()), Access::default())
    }

    /// Answers questions until `stop` rings.
    pub(crate) fn run(&self, listener: Listener, stop: Arc<OwnedFd>) {
        Callers::new(listener, stop, "metrics", OPEN_MAX).serve(|caller| self.converse(caller));
    }

    fn converse(&self, caller: &Caller<TcpStream>) {
        // After an error, the peer asks again.
        drop(http::serve(&caller.stream, |asked| {
            caller.set_busy(true);
            self.answer(asked)
        }));
    }

    fn answer(&self, asked: Asked) -> Answer {
        let counts = self.counts();
        match (asked, counts) {
            (Asked::Health, Ok(_)) => Answer::ok("ok\n".to_owned()),
            (Asked::Metrics, Ok(counts)) => {
                let connections = self.connections.load(Ordering::Relaxed);
                let disks = self.roster.all();
                Answer::ok(text::write(&disks, &counts, self.entrances.len(), connections))
            }
            (_, Err(lane)) => Answer::unavailable(format!("lane {lane} does not answer\n")),
        }
    }

    /// Returns the counts of each disk over all lanes, by its number, or the number of a lane that does not answer.
    fn counts(&self) -> Result<BTreeMap<usize, Counts>, usize> {
        let mut all = BTreeMap::new();
        for (disk, counts) in ask(&self.entrances, Message::Report)?.into_iter().flatten() {
            all.entry(disk).or_insert_with(Counts::new).merge(&counts);
        }
        Ok(all)
    }
}
