//! The answers to an operator, one in each line.

use crate::clients::weight::Weight;
use crate::disk::roster::Listed;
use crate::disk::{Disk, Layers};
use crate::observation::overview::{ClientView, Overview};
use crate::observation::traffic::Traffic;
use blockyard::layer::delay::Extra;
use blockyard::layer::fault::FaultRule;
use blockyard::layer::rate as layer;
use blockyard_btt::Health;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The answer to a command: a JSON object with `ok`, whose value depends on the command, or with
/// `error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The command was obeyed.
    Ok(Value),
    /// The command was refused or failed, for this reason.
    Error(String),
}

/// The answer to [`Request::List`](super::Request::List).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Listing {
    /// The time in milliseconds over which rates were measured.
    pub(crate) measured_ms: u64,
    /// The exports, in the order of the command line.
    pub exports: Vec<Export>,
    /// The clients, in the order in which they came.
    pub clients: Vec<Client>,
}

/// An export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Export {
    /// The name; empty for the default export.
    pub name: String,
    /// `memory`, `null`, `file`, `device` or `btt`.
    pub kind: String,
    /// The size in bytes.
    pub size_bytes: u64,
    /// Writes are refused.
    pub read_only: bool,
    /// The number of clients that have chosen the export.
    pub clients: usize,
    /// The number of their requests in flight.
    pub in_flight: usize,
    /// What they read and write.
    pub rates: Rates,
    /// The number of requests that failed because the file of the disk is damaged.
    pub failed_requests: u64,
    /// The damage that was found last, in words.
    pub damage: Option<String>,
    /// The last flush failed: writes that were answered may be lost.
    #[serde(default)]
    pub flush_failed: bool,
    /// The health of a block translation table.
    pub btt: Option<BttHealth>,
    /// The limits on its bytes and requests; `None` if it was started without a rate.
    #[serde(default)]
    pub limits: Option<Limits>,
    /// The delay of its requests; `None` if it was started without a delay.
    #[serde(default)]
    pub delay: Option<Delay>,
    /// The names of its fault rules, in order; `None` if it was started without faults.
    #[serde(default)]
    pub faults: Option<Vec<String>>,
}

/// The limits on an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes read and written per second; `None`: no limit.
    pub bytes_per_s: Option<u64>,
    /// Requests per second; `None`: no limit.
    pub requests_per_s: Option<u64>,
    /// The time in nanoseconds for which unused capacity is kept.
    pub burst_ns: u64,
}

impl From<layer::Rates> for Limits {
    fn from(rates: layer::Rates) -> Self {
        let layer::Rates { bytes_per_s, requests_per_s, burst } = rates;
        Self { bytes_per_s, requests_per_s, burst_ns: burst.as_ns() }
    }
}

/// The delay of each request of an export, drawn evenly from a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Delay {
    /// The shortest delay in nanoseconds.
    pub min_ns: u64,
    /// The longest delay in nanoseconds.
    pub max_ns: u64,
}

impl From<Extra> for Delay {
    fn from(extra: Extra) -> Self {
        Self { min_ns: extra.min.as_ns(), max_ns: extra.max.as_ns() }
    }
}

/// The health of a served block translation table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BttHealth {
    /// The number of arenas.
    pub arenas: usize,
    /// The number of arenas that refuse writes.
    pub read_only_arenas: usize,
    /// The number of free blocks.
    pub free_blocks: u64,
    /// A write failed halfway, so all writes are refused until the table is opened again.
    pub broken: bool,
    /// The number of cut writes that wait for the table to be opened for writing.
    pub unfinished_writes: usize,
}

impl From<Health> for BttHealth {
    fn from(health: Health) -> Self {
        let Health { arenas, read_only_arenas, free_blocks, is_broken, unfinished } = health;
        Self {
            arenas,
            read_only_arenas,
            free_blocks,
            broken: is_broken,
            unfinished_writes: unfinished,
        }
    }
}

/// Reads and writes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rates {
    /// Reads per second.
    pub reads_per_s: u64,
    /// Bytes read per second.
    pub read_bytes_per_s: u64,
    /// Writes per second.
    pub writes_per_s: u64,
    /// Bytes written per second.
    pub written_bytes_per_s: u64,
}

/// A client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Client {
    /// The number of the client, which no other client of the server ever has.
    pub id: u64,
    /// The address and port, or the process at the other end of a unix socket.
    pub peer: String,
    /// The export that the client has chosen, if any.
    pub export: Option<String>,
    /// The version of TLS; `None` without TLS.
    pub tls: Option<String>,
    /// The time in seconds since the client came.
    pub connected_s: u64,
    /// The number of its requests in flight.
    pub in_flight: usize,
    /// The number of requests that it has sent.
    pub requests: u64,
    /// The requests that it sent per second.
    pub requests_per_s: u64,
    /// The bytes that it read and wrote per second.
    #[serde(default)]
    pub bytes_per_s: u64,
    /// Its share of the bytes that all clients of the export read and wrote, in percent; `None` if
    /// they moved none.
    #[serde(default)]
    pub share_percent: Option<u64>,
    /// Its weight; `None` if it has none.
    #[serde(default)]
    pub weight: Option<Weight>,
}

/// The answer to [`Request::Disconnect`](super::Request::Disconnect).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disconnected {
    /// The number of the client.
    pub disconnected: u64,
}

/// The answer to [`Request::Weight`](super::Request::Weight).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weighed {
    /// The number of the client.
    pub weighed: u64,
    /// Its weight from now on.
    pub weight: Weight,
}

/// The answer to [`Request::Rate`](super::Request::Rate) and
/// [`Request::Delay`](super::Request::Delay).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The name of the export.
    pub changed: String,
}

/// The answer to [`Request::Fault`](super::Request::Fault).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Struck {
    /// The name of the export.
    pub changed: String,
    /// The names of the rules that it has now.
    pub rules: Vec<String>,
}

/// The answer to [`Request::Drain`](super::Request::Drain): the server drains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draining {
    /// The number of requests that were in flight when the command came.
    pub in_flight: usize,
}

impl From<Result<Value, String>> for Answer {
    fn from(result: Result<Value, String>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(why) => Self::Error(why),
        }
    }
}

impl Answer {
    /// Returns the answer as a line.
    pub(super) fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("an answer whose keys are words");
        line.push(b'\n');
        line
    }
}

impl Listing {
    /// Returns the listing of what the lanes said `now`, with the rates since they said `before`,
    /// for `passed`.
    pub(super) fn new(
        listed: &[Listed],
        before: &[Overview],
        now: &[Overview],
        passed: Duration,
    ) -> Self {
        let old = traffic_of(before);
        let new = traffic_of(now);
        let exports = listed.iter().map(|Listed { number, disk, config }| {
            let [old, new] = [&old, &new].map(|all| all.get(number).copied().unwrap_or_default());
            Export {
                rates: rates(&old, &new, passed),
                ..describe_export(disk, &config.layers, &new)
            }
        });
        Self {
            measured_ms: u64::try_from(passed.as_millis()).unwrap_or(u64::MAX),
            exports: exports.collect(),
            clients: list_clients(listed, before, now, passed),
        }
    }
}

/// Returns the clients of all lanes, by their numbers.
fn clients_of(lanes: &[Overview]) -> BTreeMap<u64, ClientView> {
    let all = lanes.iter().flat_map(|lane| &lane.clients);
    all.map(|view| (view.id, view.clone())).collect()
}

/// Returns the clients that the lanes know `now`, with their rates and shares since `before`.
fn list_clients(
    listed: &[Listed],
    before: &[Overview],
    now: &[Overview],
    passed: Duration,
) -> Vec<Client> {
    let known = clients_of(before);
    let views = clients_of(now);
    let mut disk_bytes = BTreeMap::<Option<usize>, u64>::new();
    for view in views.values() {
        let (_, bytes) = progress_of(view, &known);
        *disk_bytes.entry(view.disk).or_default() += bytes;
    }
    let described = views.into_values().map(|view| {
        let (requests, bytes) = progress_of(&view, &known);
        let share_percent = (bytes * 100).checked_div(disk_bytes[&view.disk]);
        Client {
            requests_per_s: per_second(0, requests, passed),
            bytes_per_s: per_second(0, bytes, passed),
            share_percent,
            ..describe_client(view, listed)
        }
    });
    described.collect()
}

/// Returns the requests that the client in `view` has sent, and the bytes that it has moved, since
/// it was `known`. A client that came since then had sent nothing.
fn progress_of(view: &ClientView, known: &BTreeMap<u64, ClientView>) -> (u64, u64) {
    let before = known.get(&view.id);
    let requests = before.map_or(0, |before| before.requests);
    let bytes = before.map_or(0, |before| before.moved_bytes);
    (view.requests - requests, view.moved_bytes - bytes)
}

/// Returns what an operator learns of the client in `view`, apart from its rates.
fn describe_client(view: ClientView, listed: &[Listed]) -> Client {
    let export = listed.iter().find(|it| Some(it.number) == view.disk);
    Client {
        id: view.id,
        export: export.map(|it| it.disk.name.clone()),
        tls: view.tls.map(str::to_owned),
        connected_s: view.age.as_ns() / 1_000_000_000,
        in_flight: view.in_flight,
        requests: view.requests,
        weight: view.weight,
        peer: view.peer,
        ..Client::default()
    }
}

/// Returns the rates of a disk whose traffic was `old` some time before.
fn rates(old: &Traffic, new: &Traffic, passed: Duration) -> Rates {
    Rates {
        reads_per_s: per_second(old.reads, new.reads, passed),
        read_bytes_per_s: per_second(old.read_bytes, new.read_bytes, passed),
        writes_per_s: per_second(old.writes, new.writes, passed),
        written_bytes_per_s: per_second(old.written_bytes, new.written_bytes, passed),
    }
}

/// Returns what an operator learns of `disk`, apart from its rates. `layers` are those of its
/// configuration, which has the last change of an operator.
fn describe_export(disk: &Disk, layers: &Layers, traffic: &Traffic) -> Export {
    Export {
        name: disk.name.clone(),
        kind: disk.kind().to_owned(),
        size_bytes: disk.size_bytes,
        read_only: disk.read_only,
        clients: traffic.clients,
        in_flight: traffic.in_flight,
        rates: Rates::default(),
        failed_requests: disk.damage.failed_requests(),
        damage: disk.damage.harm().map(|harm| harm.to_string()),
        flush_failed: disk.damage.has_failed_flush(),
        btt: disk.btt_health().map(BttHealth::from),
        limits: layers.rates.map(Limits::from),
        delay: layers.delay.map(Delay::from),
        faults: layers.faults.as_deref().map(names_of),
    }
}

fn names_of(rules: &[FaultRule]) -> Vec<String> {
    rules.iter().map(|rule| rule.name.clone()).collect()
}

/// Returns the traffic of each disk over all lanes, by its number.
fn traffic_of(lanes: &[Overview]) -> BTreeMap<usize, Traffic> {
    let mut all = BTreeMap::<usize, Traffic>::new();
    for (number, from) in lanes.iter().flat_map(|lane| lane.disks.iter().enumerate()) {
        let to = all.entry(number).or_default();
        to.add(from);
        to.clients += from.clients;
    }
    all
}

fn per_second(before: u64, now: u64, passed: Duration) -> u64 {
    let ns = passed.as_nanos().max(1);
    let rate = u128::from(now.saturating_sub(before)) * 1_000_000_000 / ns;
    u64::try_from(rate).unwrap_or(u64::MAX)
}
