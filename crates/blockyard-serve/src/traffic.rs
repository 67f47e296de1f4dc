//! What a server does for its clients, for who watches it run.

use crate::lane::Message;
use crate::server::Entrance;
use blockyard::bio::Op;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How long a lane may take to answer.
const LANE_TIMEOUT: Duration = Duration::from_secs(1);

/// What was done for clients since the begin, and what there is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads that were answered, however they ended.
    pub reads: u64,
    /// Bytes of these.
    pub read_bytes: u64,
    /// Writes that were answered, however they ended.
    pub writes: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// Requests under way now.
    pub in_flight: usize,
    /// Clients there are now.
    pub clients: usize,
}

impl Traffic {
    /// A request with so many bytes is over.
    #[inline]
    pub(crate) const fn count(&mut self, op: Op, bytes: u64) {
        match op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Op::Write => {
                self.writes += 1;
                self.written_bytes += bytes;
            }
            _ => {}
        }
    }

    fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.writes += other.writes;
        self.written_bytes += other.written_bytes;
        self.in_flight += other.in_flight;
    }
}

/// Asks the lanes of a [`Server`](crate::Server) for their traffic.
#[derive(Clone, Debug)]
pub struct Gauge {
    pub(crate) entrances: Vec<Entrance>,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Gauge {
    /// The traffic of all lanes; `None` where one does not answer within a second, or has ended.
    #[must_use]
    pub fn read(&self) -> Option<Traffic> {
        let asked: Vec<_> = self
            .entrances
            .iter()
            .map(|entrance| {
                let (tell, told) = mpsc::channel();
                entrance.send(Message::Traffic(tell));
                told
            })
            .collect();
        let until = Instant::now() + LANE_TIMEOUT;
        let clients = self.connections.load(Ordering::Relaxed);
        let mut all = Traffic { clients, ..Traffic::default() };
        for answer in asked {
            let left = until.saturating_duration_since(Instant::now());
            all.add(&answer.recv_timeout(left).ok()?);
        }
        Some(all)
    }
}
