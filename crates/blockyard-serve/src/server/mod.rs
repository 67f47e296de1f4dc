//! A server: its configuration, its start and its end.
//!
//! A lane ends when the server ends. If it ends before, by an error, the server ends: no client
//! hangs at a lane that is gone, and [`Server::join`] returns the error.

mod acceptor;
pub(crate) mod gauge;
pub(crate) mod reloader;

use crate::clients::descriptors;
use crate::clients::listen::{Access, Address, ListenError, Listener, client_at_stdin};
use crate::clients::peer::Peer;
use crate::clients::tls::{TlsConfig, TlsError, Untimely};
use crate::control::{Control, ControlConfig};
use crate::disk::roster::Roster;
use crate::disk::{Disk, DiskConfig, FaultCounts, OpenError, Timing};
use crate::door::nbd;
use crate::lane::entrance::{Entrance, Message};
use crate::lane::{Lane, LaneParts, Shared};
use crate::metrics::Metrics;
use crate::observation::event::Event;
use crate::observation::watcher::Watcher;
use crate::server::acceptor::{Acceptor, Begun};
use crate::server::gauge::Gauge;
use crate::server::reloader::Reloader;
use blockyard_std::parts::bell;
use blockyard_std::parts::clock;
use blockyard_std::parts::ring::IoEngine;
use blockyard_std::parts::words::error_words;
use blockyard_wire::nbd::ExportError;
use core::fmt;
use core::num::NonZero;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The configuration of a [`Server`].
#[derive(Clone, Debug)]
pub struct Config {
    /// The disks to serve.
    pub disks: Vec<DiskConfig>,
    /// The addresses at which the server listens.
    pub addresses: Vec<Address>,
    /// Unix or TCP sockets that are already listening, such as those that a service manager passes.
    pub listeners: Vec<Arc<OwnedFd>>,
    /// The access mode of unix sockets at `addresses`, as for `chmod`. Without it, the umask
    /// decides.
    pub socket_mode: Option<u32>,
    /// The number of the group of these sockets. Without it, they have the group of the process.
    pub socket_group: Option<u32>,
    /// The `HOST:PORT` that serves metrics and health. Without it, nothing is counted.
    pub metrics: Option<String>,
    /// The socket for commands of an operator.
    pub control: Option<ControlConfig>,
    /// The channel for events of clients and disks. If it is full, a client's event is dropped: no
    /// lane waits for a log.
    pub events: Option<mpsc::SyncSender<Event>>,
    /// The channel for the reason why a lane fails. The server drains then, without a limit of
    /// time.
    pub failures: Option<mpsc::Sender<String>>,
    /// An observer of every trace event of every request.
    pub watcher: Option<Arc<dyn Watcher>>,
    /// The TLS configuration; `None` for a server without TLS.
    pub tls: Option<TlsConfig>,
    /// The number of lanes, which are threads; 0 counts as 1. Each client goes to the lane with the
    /// fewest clients. Requests of different lanes to a disk are not merged, and a scheduler does
    /// not order them among each other. So one lane, its home, serves all clients of a disk with
    /// layers, and of a file or block device under a scheduler or with a depth of less than the
    /// number of lanes.
    pub lanes: usize,
    /// The maximum number of clients at a time. A further client is disconnected immediately. The
    /// limit of descriptors may lower it: see [`Server::connections_max`].
    pub connections_max: usize,
    /// The time within which a client must choose an export.
    pub handshake_deadline: Duration,
    /// A client is cut off if no byte of its replies or WRITEs moves for this long while it holds
    /// memory, or has the turn for memory, that others wait for, or while the server drains.
    pub patience: Duration,
    /// The bytes of data in flight that the clients of a lane share. In addition, each client has
    /// 128 KiB of its own and up to 100 KiB of answers without data, and one request at a time may
    /// use a reserve as large as the longest request: 32 MiB.
    pub lane_bytes_max: usize,
    /// Lanes poll and never sleep. Each occupies a processor, for the lowest latency.
    pub polls: bool,
    /// What does the I/O of the lanes.
    pub io: IoEngine,
}

impl Config {
    /// Returns a configuration that serves `disks` at `addresses` with
    /// [as many lanes as suit the processors](automatic_lanes), 1024 clients, a handshake deadline
    /// of 10 s, 64 MiB of shared data for each lane and 30 s of patience.
    #[must_use]
    pub fn new(disks: Vec<DiskConfig>, addresses: Vec<Address>) -> Self {
        Self {
            disks,
            addresses,
            listeners: Vec::new(),
            socket_mode: None,
            socket_group: None,
            metrics: None,
            control: None,
            events: None,
            failures: None,
            watcher: None,
            tls: None,
            lanes: automatic_lanes(thread::available_parallelism().map_or(1, NonZero::get)),
            connections_max: 1024,
            handshake_deadline: Duration::from_secs(10),
            patience: Duration::from_secs(30),
            lane_bytes_max: 64 << 20,
            polls: false,
            io: IoEngine::Auto,
        }
    }
}

/// Returns the number of lanes that suits a server with so many processors.
///
/// Clients that share a lane wait for each other in each of its turns, and the caches of a
/// processor hold the data of one turn at best. So there are four lanes for each processor, up to
/// 16, and one for each of more processors, up to 64. With one processor, lanes could only take
/// turns, so there is one.
#[must_use]
pub const fn automatic_lanes(processors: usize) -> usize {
    match processors {
        0 | 1 => 1,
        2..=4 => 4 * processors,
        5..=16 => 16,
        17..=64 => processors,
        _ => 64,
    }
}

/// The reason why a server cannot start.
#[derive(Debug)]
pub enum StartError {
    /// A disk cannot be opened.
    Open(OpenError),
    /// The description of a disk as an export is not valid.
    Export(ExportError),
    /// A file of the TLS configuration cannot be used.
    Tls(TlsError),
    /// The server cannot listen at an address.
    Listen(ListenError),
    /// The system provides no io_uring, thread or descriptor.
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

/// The thread of a lane, with the result of its last flushes.
type LaneThread = JoinHandle<io::Result<()>>;

/// A running server. If it is dropped without [`Server::join`], its threads continue.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<Address>,
    roster: Arc<Roster>,
    connections_max: usize,
    gauge: Gauge,
    reloader: Reloader,
    untimely: Vec<Untimely>,
    stop: Arc<OwnedFd>,
    metrics_address: Option<Address>,
    acceptor: JoinHandle<()>,
    /// The other threads than lanes, which end after them: the bell that ends each one.
    asides: Vec<(Arc<OwnedFd>, JoinHandle<()>)>,
    lanes: Vec<LaneThread>,
    io: Io,
}

/// What does the I/O of a [`Server`].
#[derive(Clone, Debug)]
pub struct Io {
    /// io_uring or threads.
    pub engine: IoEngine,
    /// The reason why it is not io_uring, if that was tried.
    pub refusal: Option<String>,
}

impl Io {
    fn of(wanted: IoEngine) -> Self {
        let (engine, refusal) = wanted.settle();
        Self { engine, refusal: refusal.as_ref().map(error_words) }
    }
}

/// A handle that stops a [`Server`].
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: Arc<OwnedFd>,
    entrances: Vec<Entrance>,
}

impl Stopper {
    /// Drains the server: it takes no new client and no new request, answers those in flight and
    /// flushes the disks. Then [`Server::join`] returns.
    pub fn stop(&self) {
        bell::ring(&self.stop);
    }

    /// Stops without a drain: requests in flight are neither awaited nor answered, and no disk is
    /// flushed. [`Server::join`] returns as soon as no lane is in a system call. Memory that the
    /// kernel may still use is never freed, so this call suits only a process that exits.
    pub fn stop_now(&self) {
        self.stop();
        for entrance in &self.entrances {
            entrance.send(Message::Leave);
        }
    }
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// Any [`StartError`]. The parts that have started end then.
    pub fn start(config: &Config) -> Result<Self, StartError> {
        let lanes_count = config.lanes.max(1);
        let bells =
            (0..lanes_count).map(|_| new_bell().map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        let io = Io::of(config.io);
        let roster = Arc::new(open_disks(config, &bells)?);
        let (tls, untimely) = load_tls(config)?;
        let Bound { client, listeners, metrics, control } =
            Bound::new(config).map_err(StartError::Listen)?;
        let addresses = listeners.iter().map(|listener| listener.address.clone()).collect();
        let stop = Arc::new(new_bell()?);
        let ends_with_last = listeners.is_empty().then(|| Arc::clone(&stop));
        let shared = Arc::new(Shared {
            bells,
            roster: Arc::clone(&roster),
            patience: config.patience,
            lane_bytes_max: config.lane_bytes_max,
            polls: config.polls,
            io: io.engine,
            is_metered: metrics.is_some(),
            failures: config.failures.clone(),
            watcher: config.watcher.clone(),
            connections: Arc::default(),
            ends_with_last,
        });
        let doors = share_doors(config, &roster, tls)?;
        let (begun, lanes) = start_lanes(&shared, &stop)?;
        let metrics_address = metrics.as_ref().map(|listener| listener.address.clone());
        let connections = Arc::clone(&shared.connections);
        let gauge = Gauge { entrances: begun.0.clone(), connections };
        let reloader = Reloader { tls: doors.tls.clone().zip(config.tls.clone()) };
        let connections_max = descriptors::clients_max(config.connections_max);
        let acceptor = Acceptor {
            listeners,
            client,
            lanes: begun,
            connections: Arc::clone(&shared.connections),
            doors,
            stop: Arc::clone(&stop),
            connections_max,
        };
        let acceptor = start_thread("acceptor".to_owned(), move || acceptor.run())?;
        let metrics = metrics.map(|listener| start_metrics(listener, &gauge.entrances, &shared));
        let control = control.map(|(listener, control)| {
            start_control(listener, control, config, &gauge.entrances, &shared)
        });
        let asides = metrics.into_iter().chain(control).collect::<Result<_, _>>();
        // The acceptor runs already, and drains the lanes when the bell rings.
        let asides = asides.inspect_err(|_| bell::ring(&stop))?;
        Ok(Self {
            addresses,
            roster,
            connections_max,
            gauge,
            reloader,
            untimely,
            stop,
            metrics_address,
            acceptor,
            asides,
            lanes,
            io,
        })
    }

    /// Returns the addresses at which the server listens. Port 0 is replaced by the port that the
    /// system chose.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns the maximum number of clients at a time: [`Config::connections_max`], or less if the
    /// process may not have as many descriptors and at least 80, or a quarter of the limit, for its
    /// operator.
    #[must_use]
    pub const fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// Returns the address that serves metrics, with the port as in [`Self::addresses`].
    #[must_use]
    pub fn metrics_address(&self) -> Option<&Address> {
        self.metrics_address.as_ref()
    }

    /// Returns what does the server's I/O.
    #[must_use]
    pub const fn io(&self) -> &Io {
        &self.io
    }

    /// Returns the name of each disk that behaves like a model, and how well the machine keeps up
    /// with it.
    #[must_use]
    pub fn timing(&self) -> Vec<(String, Arc<Timing>)> {
        let all = self.roster.all();
        let modelled = all.iter().filter(|listed| listed.disk.layers.model.is_some());
        modelled.map(|it| (it.disk.name.clone(), Arc::clone(&it.disk.timing))).collect()
    }

    /// Returns the name of each disk that has fault rules, with the counts of its rules.
    #[must_use]
    pub fn faults(&self) -> Vec<(String, Arc<FaultCounts>)> {
        let all = self.roster.all();
        let faulty = all.iter().filter(|listed| listed.disk.layers.faults.is_some());
        faulty.map(|it| (it.disk.name.clone(), Arc::clone(&it.disk.faults))).collect()
    }

    /// Returns the names of the disks whose memory counts as persistent only because
    /// [`Source::Btt`](crate::Source::Btt) says so: the kernel does not map their files with
    /// `MAP_SYNC`.
    #[must_use]
    pub fn assumed_persistent(&self) -> Vec<String> {
        self.names_of(Disk::is_assumed_persistent)
    }

    /// Returns the names of the read-only disks whose files another program could write when they
    /// were opened. Their contents may change, and need not be consistent.
    #[must_use]
    pub fn written_elsewhere(&self) -> Vec<String> {
        self.names_of(|disk| disk.is_written_elsewhere)
    }

    /// Returns the names of some disks.
    fn names_of(&self, which: fn(&Disk) -> bool) -> Vec<String> {
        let all = self.roster.all();
        all.iter().filter(|it| which(&it.disk)).map(|it| it.disk.name.clone()).collect()
    }

    /// Returns the certificates that were outside their time of validity at the start. They are
    /// used all the same.
    #[must_use]
    pub fn untimely_certificates(&self) -> &[Untimely] {
        &self.untimely
    }

    /// Returns a handle that queries the server's traffic.
    #[must_use]
    pub fn gauge(&self) -> Gauge {
        self.gauge.clone()
    }

    /// Returns a handle that reads the server's certificates again.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// Returns a handle that stops the server.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { stop: Arc::clone(&self.stop), entrances: self.gauge.entrances.clone() }
    }

    /// Waits until the server has ended.
    ///
    /// # Errors
    ///
    /// Returns the first error that ended a lane or failed its last flush.
    ///
    /// # Panics
    ///
    /// Panics if a thread of the server has panicked.
    pub fn join(self) -> io::Result<()> {
        let ended =
            self.lanes.into_iter().map(|lane| lane.join().expect("lane that did not panic"));
        let ended: Vec<_> = ended.collect();
        bell::ring(&self.stop); // a lane may have ended by itself
        self.acceptor.join().expect("acceptor that did not panic");
        for (stop, aside) in self.asides {
            bell::ring(&stop);
            aside.join().expect("metrics or control thread that did not panic");
        }
        ended.into_iter().collect()
    }
}

fn open_disks(config: &Config, bells: &[Arc<OwnedFd>]) -> Result<Roster, StartError> {
    let open =
        |disk: &DiskConfig| Ok((Disk::open(disk, bells, config.events.as_ref())?, disk.clone()));
    let disks = config.disks.iter().map(open).collect::<Result<Vec<_>, _>>();
    Ok(Roster::new(disks.map_err(StartError::Open)?))
}

fn load_tls(config: &Config) -> Result<(Option<Arc<nbd::Tls>>, Vec<Untimely>), StartError> {
    let Some(tls) = &config.tls else { return Ok((None, Vec::new())) };
    let loaded = tls.load().map_err(StartError::Tls)?;
    Ok((Some(Arc::new(nbd::Tls::new(loaded.config, tls.is_required))), loaded.untimely))
}

/// The sockets of a server.
struct Bound<'a> {
    /// The client at standard input.
    client: Option<Peer>,
    listeners: Vec<Listener>,
    metrics: Option<Listener>,
    control: Option<(Listener, &'a ControlConfig)>,
}

impl<'a> Bound<'a> {
    fn new(config: &'a Config) -> Result<Self, ListenError> {
        let client = client_at_stdin(&config.addresses)?;
        let addresses = config.addresses.iter().filter(|at| **at != Address::Stdio);
        let access = Access { mode: config.socket_mode, group: config.socket_group };
        let bound = addresses.map(|address| Listener::bind(address, access));
        let listeners = bound.chain(config.listeners.iter().map(|fd| Listener::inherit(fd)));
        let listeners = listeners.collect::<Result<_, _>>()?;
        let metrics = config.metrics.as_deref().map(Metrics::bind).transpose()?;
        let control = config.control.as_ref().map(|control| {
            let address = Address::Unix(control.path.clone());
            Ok((Listener::bind(&address, Access::PRIVATE)?, control))
        });
        Ok(Self { client, listeners, metrics, control: control.transpose()? })
    }
}

/// Ends the server when the lane that holds it ends, even by an error or a panic.
struct EndsServer(Arc<OwnedFd>);

impl Drop for EndsServer {
    fn drop(&mut self) {
        bell::ring(&self.0);
    }
}

/// Returns what the clients of a server share.
fn share_doors(
    config: &Config,
    roster: &Arc<Roster>,
    tls: Option<Arc<nbd::Tls>>,
) -> Result<Arc<nbd::Shared>, StartError> {
    let mut doors = nbd::Shared::new(roster).map_err(StartError::Export)?;
    doors.tls = tls;
    doors.handshake_deadline = clock::duration(config.handshake_deadline);
    doors.events.clone_from(&config.events);
    Ok(Arc::new(doors))
}

/// Starts a lane for each bell. An error drops the entrances, and the lanes that have started
/// drain.
fn start_lanes(
    shared: &Arc<Shared>,
    stop: &Arc<OwnedFd>,
) -> Result<(Begun, Vec<LaneThread>), StartError> {
    let channels = shared.bells.iter().map(|bell| Entrance::new(Arc::clone(bell)));
    let (entrances, messages): (Vec<_>, Vec<_>) = channels.unzip();
    let begun = Begun(entrances.clone());
    let entrances = entrances.into();
    let lanes = messages
        .into_iter()
        .enumerate()
        .map(|(number, messages)| start_lane(number, messages, &entrances, shared, stop));
    Ok((begun, lanes.collect::<Result<_, _>>()?))
}

fn start_lane(
    number: usize,
    messages: mpsc::Receiver<Message>,
    entrances: &Arc<[Entrance]>,
    shared: &Arc<Shared>,
    stop: &Arc<OwnedFd>,
) -> Result<LaneThread, StartError> {
    let parts = LaneParts {
        number: u32::try_from(number).expect("number of lanes within 32 bits"),
        shared: Arc::clone(shared),
        messages,
        entrances: Arc::clone(entrances),
        bell: Arc::clone(&shared.bells[number]),
        load: Arc::clone(&entrances[number].load),
    };
    let (tell, told) = mpsc::channel();
    let end = EndsServer(Arc::clone(stop));
    let thread = start_thread(format!("lane-{number}"), move || {
        // Only the thread that creates the ring may use it.
        let lane = match Lane::new(parts) {
            Ok(lane) => lane,
            Err(error) => {
                drop(tell.send(Err(error)));
                return Ok(());
            }
        };
        drop(tell.send(Ok(())));
        let _end = end;
        lane.serve()
    })?;
    let no_ring = match shared.io {
        IoEngine::Threads => "no descriptor",
        IoEngine::Auto | IoEngine::Uring => "no io_uring",
    };
    told.recv()
        .expect("report of a lane that starts")
        .map_err(|error| StartError::System(no_ring, error))?;
    Ok(thread)
}

fn start_metrics(
    listener: Listener,
    entrances: &[Entrance],
    shared: &Shared,
) -> Result<(Arc<OwnedFd>, JoinHandle<()>), StartError> {
    let metrics = Metrics {
        entrances: entrances.to_vec(),
        roster: Arc::clone(&shared.roster),
        connections: Arc::clone(&shared.connections),
    };
    start_aside("metrics", |stop| move || metrics.run(listener, stop))
}

fn start_control(
    listener: Listener,
    control: &ControlConfig,
    config: &Config,
    entrances: &[Entrance],
    shared: &Shared,
) -> Result<(Arc<OwnedFd>, JoinHandle<()>), StartError> {
    start_aside("control", |stop| {
        let control = Control {
            entrances: entrances.to_vec(),
            roster: Arc::clone(&shared.roster),
            bells: shared.bells.clone(),
            events: config.events.clone(),
            patience: config.patience,
            drain: control.drain.clone(),
            read_faults: control.read_faults,
            read_disk: control.read_disk.clone(),
            stop,
        };
        move || control.run(listener)
    })
}

/// Starts a thread other than a lane, which ends when its bell rings.
fn start_aside<F: FnOnce() + Send + 'static>(
    name: &str,
    body: impl FnOnce(Arc<OwnedFd>) -> F,
) -> Result<(Arc<OwnedFd>, JoinHandle<()>), StartError> {
    let stop = Arc::new(new_bell()?);
    let thread = start_thread(name.to_owned(), body(Arc::clone(&stop)))?;
    Ok((stop, thread))
}

fn start_thread<T: Send + 'static>(
    name: String,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, StartError> {
    let thread = std::thread::Builder::new().name(name).spawn(body);
    thread.map_err(|error| StartError::System("no thread", error))
}

fn new_bell() -> Result<OwnedFd, StartError> {
    bell::bell().map_err(|error| StartError::System("no descriptor", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_lanes_follows_from_the_processors() {
        let chosen = [1, 2, 3, 4, 5, 16, 17, 64, 65, 1000].map(automatic_lanes);
        assert_eq!(chosen, [1, 8, 12, 16, 16, 16, 17, 64, 64, 64]);
    }
}
