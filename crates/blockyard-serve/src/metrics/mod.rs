//! Metrics for Prometheus and a health check, over HTTP.
//!
//! For each answer, the thread queries every lane. A lane that does not answer in time makes
//! `/healthz` fail, with the status 503; so does a disk whose last flush failed.
//!
//! A lane copies the counts of at most [`DISKS_PER_REPORT`] disks in a turn, some 5 KiB each, so
//! that a query of many exports does not stop it.

mod http;
pub mod question;
mod text;

use crate::clients::callers::{Callers, Terms};
use crate::clients::listen::{Access, Address, ListenError, Listener};
use crate::disk::roster::{Listed, Roster};
use crate::lane::entrance::{Entrance, Message, ask_lanes};
use crate::observation::meter::{Counts, DISKS_PER_REPORT};
use crate::observation::overview::ClientView;
use http::{Answer, Asked};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The metrics of a server. See the [module](self).
pub(crate) struct Metrics {
    pub(crate) entrances: Vec<Entrance>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Metrics {
    pub(crate) fn bind(address: &str) -> Result<Listener, ListenError> {
        Listener::bind(&Address::Tcp(address.to_owned()), Access::default())
    }

    /// Answers questions until `stop` rings.
    pub(crate) fn run(&self, listener: Listener, stop: Arc<OwnedFd>) {
        Callers::new(listener, stop, Terms::METRICS).serve(|caller| {
            // After an error, the peer asks again.
            drop(http::serve(caller, |asked| self.answer(asked)));
        });
    }

    fn answer(&self, asked: Asked) -> Answer {
        match asked {
            Asked::Health => match ask_lanes(&self.entrances, Message::Traffic) {
                Ok(_) => match self.describe_degraded() {
                    None => Answer::ok("ok\n".to_owned()),
                    Some(why) => Answer::unavailable(why),
                },
                Err(lane) => silent_lane(lane),
            },
            Asked::Metrics => {
                let disks = self.roster.all();
                match self.collect_counts(disks.last().map_or(0, |last| last.number + 1)) {
                    Ok(counts) => {
                        let clients = self.clients_of_shared_disks(&disks);
                        let connections = self.connections.load(Ordering::Relaxed);
                        Answer::ok(text::write_metrics(
                            &disks,
                            &counts,
                            &clients,
                            self.entrances.len(),
                            connections,
                        ))
                    }
                    Err(lane) => silent_lane(lane),
                }
            }
        }
    }

    /// Returns the clients of disks that are shared by weights. A lane that does not answer in time
    /// has none.
    fn clients_of_shared_disks(&self, disks: &[Listed]) -> Vec<ClientView> {
        let shared = disks.iter().filter(|listed| listed.disk.has_no_weights().is_none());
        let shared: Vec<_> = shared.map(|listed| Some(listed.number)).collect();
        if shared.is_empty() {
            return Vec::new();
        }
        let lanes = ask_lanes(&self.entrances, Message::Overview).unwrap_or_default();
        let clients = lanes.into_iter().flat_map(|lane| lane.clients);
        clients.filter(|client| shared.contains(&client.disk)).collect()
    }

    /// Returns why the server is not healthy although its lanes answer, if it is not: the last
    /// flush of a disk failed.
    fn describe_degraded(&self) -> Option<String> {
        let disks = self.roster.all();
        let failed = disks.iter().filter(|listed| listed.disk.damage.has_failed_flush());
        let lines: String = failed
            .map(|listed| {
                format!("degraded: the last flush of export {:?} failed\n", listed.disk.name)
            })
            .collect();
        (!lines.is_empty()).then_some(lines)
    }

    /// Returns the counts over all lanes of each disk whose number is below `end`, by its number,
    /// or the number of a lane that does not answer.
    fn collect_counts(&self, end: usize) -> Result<BTreeMap<usize, Counts>, usize> {
        let mut all = BTreeMap::new();
        // Each message asks for the counts of a few disks, so that no turn of a lane is long.
        for start in (0..end).step_by(DISKS_PER_REPORT) {
            let numbers = start..start + DISKS_PER_REPORT;
            let told =
                ask_lanes(&self.entrances, |answer| Message::Report(numbers.clone(), answer))?;
            for (disk, counts) in told.into_iter().flatten() {
                all.entry(disk).or_insert_with(Counts::new).merge(&counts);
            }
        }
        Ok(all)
    }
}

fn silent_lane(lane: usize) -> Answer {
    Answer::unavailable(format!("lane {lane} does not answer\n"))
}
