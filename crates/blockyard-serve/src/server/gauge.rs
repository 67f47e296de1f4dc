//! The traffic of a running server, which other threads query from its lanes.

use crate::lane::entrance::{Entrance, Message, ask_lanes};
use crate::observation::traffic::Traffic;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Queries the lanes of a [`Server`](crate::Server) for their traffic.
#[derive(Clone, Debug)]
pub struct Gauge {
    pub(crate) entrances: Vec<Entrance>,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Gauge {
    /// Returns the traffic of all lanes, or `None` if a lane has ended or does not answer within a second.
    #[must_use]
    pub fn read(&self) -> Option<Traffic> {
        let clients = self.connections.load(Ordering::Relaxed);
        let mut all = Traffic { clients, ..Traffic::default() };
        for traffic in ask_lanes(&self.entrances, Message::Traffic).ok()? {
            all.add(&traffic);
        }
        Some(all)
    }
}
