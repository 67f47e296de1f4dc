//! A server: lanes, and a thread that deals clients to them.
//!
//! # Rules (cited by name)
//!
//! - **[silent-client-makes-room]** If a client arrives and the server is full, or has as many clients that have not chosen an
//!   export as it may have, the oldest client of that kind in one lane is cut off.

use crate::bell;
use crate::clock;
use crate::disk::{Disk, DiskConfig, FaultCounts, OpenError, Timing};
use crate::door::nbd;
use crate::entrance::{Entrance, Message};
use crate::event::{ClientEvent, Event, Happened};
use crate::gauge::Gauge;
use crate::lane::{Lane, LaneParts, Shared};
use crate::listen::{ACCEPT_REST, Address, ListenError, Listener, client_at_stdin};
use crate::metrics::Metrics;
use crate::peer::Peer;
use crate::reloader::Reloader;
use crate::tls::{TlsConfig, TlsError};
use crate::watcher::Watcher;
use crate::words::error_words;
use blockyard_wire::nbd::ExportError;
use core::fmt;
use core::sync::atomic::Ordering;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the server waits for a lane to cut off a silent client.
const ROOM_WAIT: Duration = Duration::from_secs(1);
/// How often the server looks whether the lane has done so.
const ROOM_POLL: Duration = Duration::from_micros(100);

/// What is served, where, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// The disks.
    pub disks: Vec<DiskConfig>,
    /// Where clients come in.
    pub addresses: Vec<Address>,
    /// Sockets that listen already, unix or TCP, as a service manager hands them over.
    pub listeners: Vec<Arc<OwnedFd>>,
    /// Where metrics and health are told, as `HOST:PORT`; nothing is counted without.
    pub metrics: Option<String>,
    /// Where it is told what happens to clients and disks. An event of a client that finds no room there is lost: no
    /// lane waits for a log.
    pub events: Option<mpsc::SyncSender<Event>>,
    /// Who is told every step of every request.
    pub watcher: Option<Arc<dyn Watcher>>,
    /// TLS, where there is some.
    pub tls: Option<TlsConfig>,
    /// Threads; 1 at least.
    pub lanes: usize,
    /// Most clients at a time; more are cut off at once.
    pub connections_max: usize,
    /// How long a client may take to choose a disk.
    pub handshake_deadline: Duration,
    /// How long a client may move no byte of a reply or a WRITE while it holds memory that others wait for, or while
    /// the server waits to end: then it is cut off.
    pub patience: Duration,
    /// Bytes of data in flight that the clients of a lane share. In addition, each client has 128 KiB of its own, and one
    /// request at a time may use a reserve, which is as large as the longest request: 32 MiB.
    pub lane_bytes_max: usize,
    /// Never sleep: a processor for each lane, for the least latency.
    pub polls: bool,
}

impl Config {
    /// `disks` at `addresses` by one lane: 1024 clients, 10 s to shake hands, 256 MiB to share,
    /// 30 s of patience.
    #[must_use]
    pub fn new(disks: Vec<DiskConfig>, addresses: Vec<Address>) -> Self {
        Self {
            disks,
            addresses,
            listeners: Vec::new(),
            metrics: None,
            events: None,
            watcher: None,
            tls: None,
            lanes: 1,
            connections_max: 1024,
            handshake_deadline: Duration::from_secs(10),
            patience: Duration::from_secs(30),
            lane_bytes_max: 256 << 20,
            polls: false,
        }
    }
}

/// Why a server does not start.
#[derive(Debug)]
pub enum StartError {
    /// A disk.
    Open(OpenError),
    /// What is said of the disks to clients.
    Export(ExportError),
    /// A file that TLS needs.
    Tls(TlsError),
    /// A socket.
    Listen(ListenError),
    /// The system has no io_uring, thread or descriptor for it.
    System(&'static str, io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Export(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Listen(error) => error.fmt(f),
            Self::System(what, error) => write!(f, "{what}: {}", error_words(error)),
        }
    }
}

impl core::error::Error for StartError {}

/// A server that runs. Dropping it without [`Server::join`] leaves its threads to themselves.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<Address>,
    timing: Vec<(String, Arc<Timing>)>,
    faults: Vec<(String, Arc<FaultCounts>)>,
    assumed_persistent: Vec<String>,
    gauge: Gauge,
    reloader: Reloader,
    stop: Arc<OwnedFd>,
    metrics_address: Option<Address>,
    acceptor: JoinHandle<()>,
    metrics: Option<(Arc<OwnedFd>, JoinHandle<()>)>,
    lanes: Vec<JoinHandle<io::Result<()>>>,
}

/// Tells a [`Server`] to end.
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: Arc<OwnedFd>,
    entrances: Vec<Entrance<Peer>>,
}

impl Stopper {
    /// No new client and no new request: what is under way is answered, disks are flushed, then
    /// [`Server::join`] returns.
    pub fn stop(&self) {
        bell::ring(&self.stop);
    }

    /// What is under way is neither waited for nor answered, and nothing is flushed: [`Server::join`]
    /// returns as soon as no lane is in a call of the system any more. Memory that the kernel may
    /// still use is never freed, so that this is for a process that ends.
    pub fn stop_now(&self) {
        self.stop();
        for entrance in &self.entrances {
            entrance.send(Message::Leave);
        }
    }
}

impl Server {
    /// Starts to serve.
    ///
    /// # Errors
    ///
    /// Each [`StartError`]; what had begun ends then.
    pub fn start(config: &Config) -> Result<Self, StartError> {
        let lanes_count = config.lanes.max(1);
        let bells =
            (0..lanes_count).map(|_| bell().map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        let disks =
            config.disks.iter().map(|disk| Disk::open(disk, &bells, config.events.as_ref()));
        let disks = disks.collect::<Result<Vec<_>, _>>().map_err(StartError::Open)?;
        let disks: Vec<_> = disks.into_iter().map(Arc::new).collect();
        let modelled = disks.iter().filter(|disk| disk.layers.model.is_some());
        let timing = modelled.map(|disk| (disk.name.clone(), Arc::clone(&disk.timing))).collect();
        let faulty = disks.iter().filter(|disk| !disk.layers.faults.is_empty());
        let faults = faulty.map(|disk| (disk.name.clone(), Arc::clone(&disk.faults))).collect();
        let assumed = disks.iter().filter(|disk| disk.is_assumed_persistent());
        let assumed_persistent = assumed.map(|disk| disk.name.clone()).collect();
        let exports = nbd::exports(&disks);
        let tls = config.tls.as_ref().map(|tls| {
            let is_required = tls.is_required;
            tls.load().map(|config| Arc::new(nbd::Tls::new(config, is_required)))
        });
        let tls = tls.transpose().map_err(StartError::Tls)?;
        let client = client_at_stdin(&config.addresses).map_err(StartError::Listen)?;
        let bound = config.addresses.iter().filter(|address| **address != Address::Stdio);
        let bound = bound.map(Listener::bind);
        let listeners = bound.chain(config.listeners.iter().map(|fd| Listener::inherit(fd)));
        let listeners = listeners.collect::<Result<Vec<_>, _>>().map_err(StartError::Listen)?;
        let addresses = listeners.iter().map(|listener| listener.address.clone()).collect();
        let metrics = config.metrics.as_deref().map(Metrics::bind);
        let metrics = metrics.transpose().map_err(StartError::Listen)?;
        let stop = Arc::new(bell()?);
        let ends_with_last = listeners.is_empty().then(|| Arc::clone(&stop));
        let shared = Arc::new(Shared {
            bells,
            disks,
            patience: config.patience,
            lane_bytes_max: config.lane_bytes_max,
            polls: config.polls,
            is_metered: metrics.is_some(),
            watcher: config.watcher.clone(),
            connections: Arc::default(),
            ends_with_last,
        });
        let doors = Arc::new(nbd::Shared {
            exports: exports.map_err(StartError::Export)?,
            tls,
            handshake_deadline: clock::duration(config.handshake_deadline),
            events: config.events.clone(),
        });
        let mut begun = Begun(Vec::new());
        let mut lanes = Vec::new();
        for number in 0..lanes_count {
            let (entrance, lane) = start_lane(number, &shared, &doors)?;
            begun.0.push(entrance);
            lanes.push(lane);
        }
        let metrics_address = metrics.as_ref().map(|listener| listener.address.clone());
        let connections = Arc::clone(&shared.connections);
        let gauge = Gauge { entrances: begun.0.clone(), connections };
        let reloader = Reloader { tls: doors.tls.clone().zip(config.tls.clone()) };
        let acceptor = Acceptor {
            listeners,
            client,
            lanes: begun,
            shared: Arc::clone(&shared),
            events: config.events.clone(),
            stop: Arc::clone(&stop),
            connections_max: config.connections_max,
            newcomers_max: newcomers_max(config.connections_max),
        };
        let acceptor = std::thread::Builder::new()
            .name("acceptor".to_owned())
            .spawn(move || acceptor.run())
            .map_err(|error| StartError::System("no thread", error))?;
        let metrics = metrics.map(|listener| start_metrics(listener, &gauge.entrances, &shared));
        let metrics = metrics.transpose().inspect_err(|_| bell::ring(&stop))?;
        Ok(Self {
            addresses,
            timing,
            faults,
            assumed_persistent,
            gauge,
            reloader,
            stop,
            metrics_address,
            acceptor,
            metrics,
            lanes,
        })
    }

    /// Where it listens; the port is the one that was found where 0 was asked for.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Where metrics are told; the port as in [`Self::addresses`].
    #[must_use]
    pub fn metrics_address(&self) -> Option<&Address> {
        self.metrics_address.as_ref()
    }

    /// How well the machine keeps up with disks that behave as models, by their names.
    #[must_use]
    pub fn timing(&self) -> Vec<(String, Arc<Timing>)> {
        self.timing.clone()
    }

    /// How often fault rules were met, by the names of the disks that have any.
    #[must_use]
    pub fn faults(&self) -> Vec<(String, Arc<FaultCounts>)> {
        self.faults.clone()
    }

    /// Names of the disks whose memory is taken for persistent because [`Source::Btt`](crate::Source::Btt) says so:
    /// the kernel does not map their files as persistent memory (`MAP_SYNC`).
    #[must_use]
    pub fn assumed_persistent(&self) -> &[String] {
        &self.assumed_persistent
    }

    /// What tells its traffic.
    #[must_use]
    pub fn gauge(&self) -> Gauge {
        self.gauge.clone()
    }

    /// Returns what reads the server's certificates again.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// What ends it.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { stop: Arc::clone(&self.stop), entrances: self.gauge.entrances.clone() }
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// The first error that ended a lane, or of its last flush.
    ///
    /// # Panics
    ///
    /// If a thread of it has.
    pub fn join(self) -> io::Result<()> {
        let ended =
            self.lanes.into_iter().map(|lane| lane.join().expect("lane that did not panic"));
        let ended: Vec<_> = ended.collect();
        bell::ring(&self.stop); // where a lane has ended by itself
        self.acceptor.join().expect("acceptor that did not panic");
        if let Some((stop, metrics)) = self.metrics {
            bell::ring(&stop);
            metrics.join().expect("metrics thread that did not panic");
        }
        ended.into_iter().collect()
    }
}

/// Deals clients to lanes.
struct Acceptor {
    listeners: Vec<Listener>,
    /// The one that is there from the begin, if there is.
    client: Option<Peer>,
    lanes: Begun,
    shared: Arc<Shared>,
    /// Whom to tell of clients that are cut off.
    events: Option<mpsc::SyncSender<Event>>,
    stop: Arc<OwnedFd>,
    connections_max: usize,
    /// The most of them that have not chosen an export.
    newcomers_max: usize,
}

/// Lanes that have begun. They drain when nobody is left to give them clients: at the end, or where the rest of
/// the server cannot begin.
struct Begun(Vec<Entrance<Peer>>);

impl Drop for Begun {
    fn drop(&mut self) {
        for entrance in &self.0 {
            entrance.send(Message::Drain);
        }
    }
}

impl Acceptor {
    fn run(mut self) {
        if let Some(client) = self.client.take() {
            self.deal(client);
        }
        loop {
            let sources = self.listeners.iter().map(AsFd::as_fd).chain([self.stop.as_fd()]);
            let mut sources: Vec<_> =
                sources.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            if poll(&mut sources, None).is_err() {
                continue; // a signal
            }
            let has_come = |at: usize| !sources[at].revents().is_empty();
            if has_come(self.listeners.len()) {
                break;
            }
            for (at, listener) in self.listeners.iter().enumerate() {
                if has_come(at) {
                    self.welcome(listener);
                }
            }
        }
        // Who knocks from now on finds nobody, before lanes drain.
        drop(self.listeners);
    }

    fn welcome(&self, listener: &Listener) {
        match listener.accept() {
            Ok(Some(client)) => self.deal(client),
            Ok(None) => {}
            Err(_) => std::thread::sleep(ACCEPT_REST),
        }
    }

    /// Sends a client to the lane with the fewest clients, if there is room ([silent-client-makes-room]).
    fn deal(&self, client: Peer) {
        let connections = || self.shared.connections.load(Ordering::Relaxed);
        let newcomers = |entrance: &Entrance<Peer>| entrance.newcomers.load(Ordering::Relaxed);
        let has_room = || {
            let newcomers: usize = self.lanes.0.iter().map(newcomers).sum();
            newcomers < self.newcomers_max && connections() < self.connections_max
        };
        let silent = self.lanes.0.iter().max_by_key(|entrance| newcomers(entrance));
        if let Some(silent) = silent.filter(|entrance| !has_room() && newcomers(entrance) > 0) {
            silent.send(Message::MakeRoom);
            let until = Instant::now() + ROOM_WAIT;
            while !has_room() && Instant::now() < until {
                std::thread::sleep(ROOM_POLL);
            }
        }
        if connections() >= self.connections_max {
            if let Some(events) = &self.events {
                let event = ClientEvent { client: client.name, happened: Happened::CutOff };
                drop(events.try_send(Event::Client(event)));
            }
            return; // closed
        }
        let load = |entrance: &&Entrance<Peer>| entrance.load.load(Ordering::Relaxed);
        let entrance = self.lanes.0.iter().min_by_key(load).expect("at least one lane");
        self.shared.connections.fetch_add(1, Ordering::Relaxed);
        entrance.load.fetch_add(1, Ordering::Relaxed);
        entrance.newcomers.fetch_add(1, Ordering::Relaxed);
        entrance.send(Message::Arrival(client));
    }
}

/// Returns the most clients that may have chosen no export yet: a quarter of all, but up to sixteen in any case, so that a client can
/// open several connections at once.
fn newcomers_max(connections_max: usize) -> usize {
    (connections_max / 4).max(connections_max.min(16))
}

fn start_lane(
    number: usize,
    shared: &Arc<Shared>,
    doors: &Arc<nbd::Shared>,
) -> Result<(Entrance<Peer>, JoinHandle<io::Result<()>>), StartError> {
    let bell = Arc::clone(&shared.bells[number]);
    let (entrance, messages) = Entrance::new(Arc::clone(&bell));
    let parts = LaneParts {
        number: u32::try_from(number).expect("number of lanes within 32 bits"),
        shared: Arc::clone(shared),
        doors: Arc::clone(doors),
        messages,
        bell,
        load: Arc::clone(&entrance.load),
        newcomers: Arc::clone(&entrance.newcomers),
    };
    let (tell, told) = mpsc::channel();
    // The ring belongs to the thread that makes it.
    let body = move || match Lane::<nbd::Client>::new(parts) {
        Ok(lane) => {
            drop(tell.send(Ok(())));
            lane.serve()
        }
        Err(error) => {
            drop(tell.send(Err(error)));
            Ok(())
        }
    };
    let thread = std::thread::Builder::new()
        .name(format!("lane-{number}"))
        .spawn(body)
        .map_err(|error| StartError::System("no thread", error))?;
    told.recv()
        .expect("report of a lane that starts")
        .map_err(|error| StartError::System("no io_uring", error))?;
    Ok((entrance, thread))
}

fn start_metrics(
    listener: Listener,
    entrances: &[Entrance<Peer>],
    shared: &Shared,
) -> Result<(Arc<OwnedFd>, JoinHandle<()>), StartError> {
    let stop = Arc::new(bell()?);
    let metrics = Metrics {
        listener,
        stop: Arc::clone(&stop),
        entrances: entrances.to_vec(),
        disks: shared.disks.clone(),
        connections: Arc::clone(&shared.connections),
    };
    let thread = std::thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || metrics.run())
        .map_err(|error| StartError::System("no thread", error))?;
    Ok((stop, thread))
}

fn bell() -> Result<OwnedFd, StartError> {
    bell::bell().map_err(|error| StartError::System("no descriptor", error))
}
