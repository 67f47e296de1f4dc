//! Commands of an operator, over a unix socket that only the user of the server may open.
//!
//! Each line that the operator sends is a [`Request`], a JSON object. Each gets a line with an
//! [`Answer`]. A line that is not a request gets an error, and the next line is read; the
//! connection ends after a line that is too long.
//!
//! Each connection has a thread, which sends messages to the lanes. A lane answers a message
//! between two turns, so no request of a client waits for an operator.

mod answer;
mod disks;
mod request;

pub use answer::{
    Answer, BttHealth, Changed, Client, Delay, Disconnected, Draining, Export, Limits, Listing,
    Rates, Struck, Weighed,
};
pub use disks::DiskReader;
pub use request::{LINE_BYTES_MAX, Refusal, Request};

use crate::clients::callers::{Caller, Callers, Terms};
use crate::clients::listen::Listener;
use crate::clients::weight::Weight;
use crate::disk::Change;
use crate::disk::roster::Roster;
use crate::lane::entrance::{Entrance, Message, ask_lanes};
use crate::observation::event::Event;
use crate::observation::overview::Overview;
use blockyard::layer::delay::Extra;
use blockyard::layer::fault::FaultRule;
use blockyard::layer::rate as layer;
use blockyard::time;
use core::num::NonZeroU64;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The time within which a line must arrive.
const LINE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time within which an answer must be read.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// The time over which rates are measured.
const RATE_TIME: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The configuration of the control socket.
#[derive(Clone, Debug)]
pub struct ControlConfig {
    /// The path of the socket.
    pub path: PathBuf,
    /// The channel that receives a message for each command to drain. The receiver stops the
    /// server.
    pub drain: mpsc::Sender<()>,
    /// Reads fault rules, or says what is wrong with them.
    pub read_faults: ReadFaults,
    /// The reader of added disks. Without it, the server adds none.
    pub read_disk: Option<DiskReader>,
}

/// Reads fault rules from a text, or says what is wrong with it.
pub(crate) type ReadFaults = fn(&str) -> Result<Vec<FaultRule>, String>;

/// The controls of a server. See the [module](self).
pub(crate) struct Control {
    pub(crate) entrances: Vec<Entrance>,
    pub(crate) roster: Arc<Roster>,
    /// The bells of the lanes, and the channel for events: added disks need them.
    pub(crate) bells: Vec<Arc<OwnedFd>>,
    pub(crate) events: Option<mpsc::SyncSender<Event>>,
    /// The time after which an idle client of a removed disk is cut off.
    pub(crate) patience: Duration,
    pub(crate) drain: mpsc::Sender<()>,
    pub(crate) read_faults: ReadFaults,
    pub(crate) read_disk: Option<DiskReader>,
    /// The bell that ends the controls.
    pub(crate) stop: Arc<OwnedFd>,
}

impl Control {
    /// Obeys commands until the bell rings.
    pub(crate) fn run(&self, listener: Listener) {
        let callers = Callers::new(listener, Arc::clone(&self.stop), Terms::CONTROL);
        // After an error, the operator has hung up or is hung up on.
        callers.serve(|caller| drop(self.serve_caller(caller)));
    }

    fn serve_caller(&self, caller: &Caller) -> io::Result<()> {
        let mut received = Vec::new();
        loop {
            let (request, is_last) = match receive_request(caller, &mut received)? {
                Some(request) => (request, false),
                None if received.is_empty() => return Ok(()),
                None => (Err(Refusal::Unfinished), true),
            };
            let is_last = is_last || request == Err(Refusal::TooLong);
            let answer = match request {
                Ok(request) => self.answer(request),
                Err(refusal) => Err(refusal.to_string()),
            };
            caller.send(&Answer::from(answer).to_line(), Instant::now() + ANSWER_TIMEOUT)?;
            if is_last {
                return Ok(());
            }
        }
    }

    fn answer(&self, request: Request) -> Result<Value, String> {
        match request {
            Request::List {} => self.build_listing().map(to_value),
            Request::Disconnect { client } => self.disconnect_client(client).map(to_value),
            Request::Weight { client, weight } => self.weigh_client(client, weight).map(to_value),
            Request::Rate { export, bytes_per_s, requests_per_s, burst_ms } => {
                let change = Change::Rates(layer::Rates {
                    bytes_per_s: bytes_per_s.map(NonZeroU64::get),
                    requests_per_s: requests_per_s.map(NonZeroU64::get),
                    burst: time::Duration::from_ms(burst_ms.into()),
                });
                self.change_layer(export, change, "rate").map(to_value)
            }
            Request::Delay { min_us, max_us, .. } if min_us > max_us => {
                Err("the shortest delay is longer than the longest".to_owned())
            }
            Request::Delay { export, min_us, max_us } => {
                let [min, max] = [min_us, max_us].map(|us| time::Duration::from_us(us.into()));
                let extra = Extra { min, max, op: None };
                self.change_layer(export, Change::Delay(extra), "delay").map(to_value)
            }
            Request::Fault { export, rules } => self.set_faults(export, &rules).map(to_value),
            Request::Add { disk } => self.add_export(&disk).map(to_value),
            Request::Remove { export, force } => self.remove_export(&export, force).map(to_value),
            Request::Resize { export, size_bytes, force } => {
                self.resize_export(&export, size_bytes, force).map(to_value)
            }
            Request::Drain {} => {
                let in_flight = in_flight(&self.overviews()?);
                self.drain.send(()).map_err(|_| "the server does not listen to this command")?;
                Ok(to_value(Draining { in_flight }))
            }
        }
    }

    fn set_faults(&self, export: String, text: &str) -> Result<Struck, String> {
        let rules = (self.read_faults)(text)?;
        if let Some((rule, why)) = self.find_export(&export)?.disk.impossible_fault(&rules) {
            return Err(format!("fault rule {rule:?} cannot strike export {export:?}: {why}"));
        }
        let names = rules.iter().map(|rule| rule.name.clone()).collect();
        let Changed { changed } = self.change_layer(export, Change::Faults(rules), "fault")?;
        Ok(Struck { changed, rules: names })
    }

    /// Makes `change` to the export called `name`, which needs the layer called `layer`.
    fn change_layer(&self, name: String, change: Change, layer: &str) -> Result<Changed, String> {
        let _change = self.roster.change(&name);
        let disk = self.find_export(&name)?.number;
        let found =
            ask_lanes(&self.entrances, |answer| Message::Change(disk, change.clone(), answer));
        if !found.map_err(silent_lane)?.contains(&true) {
            return Err(format!("export {name:?} was started without --{layer}"));
        }
        self.roster.change_config(disk, |config| config.layers.keep(change));
        Ok(Changed { changed: name })
    }

    fn overviews(&self) -> Result<Vec<Overview>, String> {
        ask_lanes(&self.entrances, Message::Overview).map_err(silent_lane)
    }

    /// Looks at the lanes twice, and returns what they say with the rates in between.
    fn build_listing(&self) -> Result<Listing, String> {
        let before = self.overviews()?;
        let start = Instant::now();
        // The bell ends the wait early.
        let _ = poll(&mut [PollFd::new(&self.stop, PollFlags::IN)], Some(&RATE_TIME));
        let now = self.overviews()?;
        Ok(Listing::new(&self.roster.all(), &before, &now, start.elapsed()))
    }

    fn disconnect_client(&self, client: u64) -> Result<Disconnected, String> {
        let found = ask_lanes(&self.entrances, |answer| Message::Disconnect(client, answer));
        match found.map_err(silent_lane)?.contains(&true) {
            true => Ok(Disconnected { disconnected: client }),
            false => Err(no_client(client)),
        }
    }

    fn weigh_client(&self, client: u64, weight: Weight) -> Result<Weighed, String> {
        let found = ask_lanes(&self.entrances, |answer| Message::Weigh(client, weight, answer));
        let found = found.map_err(silent_lane)?.into_iter().flatten().next();
        found.ok_or_else(|| no_client(client))??;
        Ok(Weighed { weighed: client, weight })
    }
}

fn no_client(client: u64) -> String {
    format!("no client has the number {client}")
}

fn in_flight(overviews: &[Overview]) -> usize {
    overviews.iter().flat_map(|lane| &lane.disks).map(|disk| disk.in_flight).sum()
}

fn silent_lane(lane: usize) -> String {
    format!("lane {lane} does not answer")
}

fn to_value(answer: impl serde::Serialize) -> Value {
    serde_json::to_value(answer).expect("an answer whose keys are words")
}

/// Receives up to the end of a line and takes the line out of `received`. Returns `None` at the end
/// of the stream.
///
/// # Errors
///
/// The line does not arrive in time, or the connection fails.
fn receive_request(
    caller: &Caller,
    received: &mut Vec<u8>,
) -> io::Result<Option<Result<Request, Refusal>>> {
    let until = Instant::now() + LINE_TIMEOUT;
    let mut bytes = [0; 4096];
    loop {
        if let Some((len, request)) = Request::read(received) {
            received.drain(..len);
            return Ok(Some(request));
        }
        match caller.receive(&mut bytes, until)? {
            0 => return Ok(None),
            len => received.extend(&bytes[..len]),
        }
    }
}
