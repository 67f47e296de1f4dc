//! `serve`: serves a real disk over NBD until a signal ends the server.

mod companion;
mod ending;
mod events;
mod lateness;
mod model;
mod operator;
mod parent;
mod ticker;
mod trace;

use core::time::Duration;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use blockyard::layer::fault::{Count, FaultRule};
use blockyard_btt::Container;
use blockyard_pmem::Durability;
use blockyard_serve::control::{ControlConfig, DiskReader};
use blockyard_serve::{
    Address, Admission, Behaviour, Config, DiskConfig, FaultCounts, Io, IoEngine, Layers, Server,
    Source, TlsConfig,
};
use blockyard_sim::device::stack::FaultCount;
use blockyard_sim::output::Files;
use blockyard_sim::profile::{Design, FaultRules, MmcFaults};
use listenfd::ListenFd;
use serde_json::{Map, Value, json};

use super::serve_file::{self, Given};
use crate::cli::{
    DiskSource, FaultSource, IoChoice, Lanes, Parent, Serve, ServedDisk, Survives, TlsUse,
};
use crate::log;
use crate::message::{Failure, note, warning};
use crate::render::faults;
use companion::{Descriptors, Manager, PidFile, PrivateFolder};
use ending::{Bell, Cause, Ending, Heard};
use events::start_log;
use lateness::Watch;
use model::{Modelled, no_card};
use operator::Operator;
use ticker::Ticker;
use trace::Traces;

/// The depth if neither the design nor the command line has one.
const DEPTH: u16 = 128;
/// The maximum number of bytes in flight at a disk.
const DEPTH_BYTES: u64 = 64 << 20;
/// The time for lanes to end after requests in flight are abandoned. Later, traces end without the events that
/// lanes have not handed over.
const LEAVING: Duration = Duration::from_secs(1);
/// The further time for closing the traces.
const CLOSING: Duration = Duration::from_secs(4);

pub(super) fn serve(args: &Serve) -> Result<(), Failure> {
    let Asked { mut config, control, companions, design, traces, drain_timeout, log } =
        asked(args)?;
    let (mut ending, bell) = Ending::listen()?;
    if let Some(parent) = companions.exit_with_parent {
        parent::watch(parent, bell.clone())?;
    }
    config.listeners = handed_over()?;
    let folder = private_socket(&mut config, companions.run.is_some())?;
    if config.addresses.is_empty() && config.listeners.is_empty() {
        let words = "missing --nbd ADDRESS (where to listen): unix:PATH, HOST:PORT or stdio";
        return Err(Failure::Input(words.to_owned()));
    }
    // This must happen before the first write to a file.
    let operator = Operator::listen()?;
    let traces = Traces::begin(&traces, &mut config, &design)
        .map_err(|error| Failure::Input(error.to_string()))?;
    log::begin(log);
    let events = start_log(&mut config);
    let has_authority = has_client_authority(&config);
    config.control = control.map(|path| controls(path, bell.clone(), has_authority));
    config.failures = Some(failures(bell.clone()));
    let descriptors = Descriptors::raise();
    let server = Server::start(&config)?;
    operator.obey(&server);
    let pidfile = companions.pidfile.as_deref().map(PidFile::write).transpose();
    let pidfile = pidfile.map_err(|error| Failure::Input(format!("--pidfile: {error}")))?;
    announce(&server, &config, descriptors);
    tell_io(server.io());
    let manager = Manager::find();
    manager.is_ready();
    let run = match (&companions.run, server.addresses().first()) {
        (Some(command), Some(at)) => {
            let export = main_export(&config);
            let has_tls = config.tls.is_some();
            Some(companion::run(command, at, export, has_tls, descriptors, bell.clone())?)
        }
        _ => None,
    };
    let stopper = server.stopper();
    let watch = Watch::begin(server.timing());
    let struck = server.faults();
    let ticker = Ticker::begin(server.gauge());
    // The bell ends each wait below when the server has drained or has ended by itself.
    let ended = {
        let traces = traces.clone();
        std::thread::spawn(move || {
            let ended = (server.join(), traces.finish());
            bell.ring();
            ended
        })
    };
    let cause = match ending.wait(None) {
        Heard::Asked(cause) => Some(cause),
        Heard::End | Heard::Nothing => None,
    };
    manager.is_stopping();
    let until = Instant::now() + drain_timeout;
    let cut_short = match cause {
        None => None,
        Some(cause) => {
            note(&format!("draining, for at most {}, after {cause}", seconds(drain_timeout)));
            stopper.stop();
            match ending.wait(Some(drain_timeout)) {
                Heard::End => None,
                Heard::Asked(_) => Some("stopped before all requests were done"),
                Heard::Nothing => Some("requests in flight did not end in time"),
            }
        }
    };
    let served = if let Some(words) = cut_short {
        stopper.stop_now();
        close_late(traces);
        // Otherwise a third signal arrived, or a lane or trace hangs.
        let traced = match ending.wait(Some(LEAVING + CLOSING)) {
            Heard::End => ended.join().expect("a thread of the server should not panic").1,
            Heard::Asked(_) | Heard::Nothing => Ok(()),
        };
        traced.map_err(Failure::from).and(Err(Failure::Run(words.to_owned())))
    } else {
        let (ended, traced) = ended.join().expect("a thread of the server should not panic");
        ticker.end();
        drop(config); // drops the last sender of events
        events.join().expect("the thread of the log should not panic");
        watch.end();
        tell_faults(&struck);
        if cause.is_none() && ended.is_ok() {
            note("ended, as the client at standard input has gone");
        }
        drop((pidfile, folder));
        let ended = ended.map_err(|error| Failure::Run(error.to_string()));
        ended.and(traced.map_err(Failure::from))
    };
    let verdict = match run {
        None => served,
        Some(run) => {
            let until = if cut_short.is_some() { Instant::now() } else { until };
            run.conclude(served, cause, &mut ending, until)
        }
    };
    manager.end();
    verdict
}

/// Returns the name of the export that `--run` tells its command: the default one, or else the first.
fn main_export(config: &Config) -> &str {
    let names = || config.disks.iter().map(|disk| disk.name.as_str());
    names().find(|name| name.is_empty()).or_else(|| names().next()).unwrap_or_default()
}

/// Logs what does the server's I/O, if it is not io_uring.
fn tell_io(Io { engine, refusal }: &Io) {
    match (engine, refusal) {
        (IoEngine::Threads, Some(why)) => note(&format!("I/O by threads: no io_uring: {why}")),
        (IoEngine::Threads, None) => note("I/O by threads"),
        _ => {}
    }
}

/// Logs where the server can be reached, and what its operator should know about its disks.
fn announce(server: &Server, config: &Config, descriptors: Descriptors) {
    if let (most, Some(limit)) = (server.connections_max(), descriptors.limit)
        && most < config.connections_max
    {
        warning(&format!(
            "--max-connections is {most} and not {}: the limit of open files is {limit} (ulimit -Hn)",
            config.connections_max
        ));
    }
    for address in server.addresses() {
        note(&format!("serving at {address}"));
    }
    if let Some(address) = server.metrics_address() {
        note(&format!("metrics at http://{address}/metrics"));
    }
    for certificate in server.untimely_certificates() {
        warning(&certificate.to_string());
    }
    for name in server.assumed_persistent() {
        note(&format!(
            "{}the kernel does not map this file as persistent memory (MAP_SYNC); --survives pmem \
             overrides that",
            prefix(&name)
        ));
    }
    for name in server.written_elsewhere() {
        warning(&format!(
            "{}another program can write this read-only disk: clients may see it change",
            prefix(&name)
        ));
    }
    for disk in config.disks.iter().filter(|disk| disk.layers.faults.is_some()) {
        note(&format!("{}the seed of the faults is {}", prefix(&disk.name), disk.layers.seed));
    }
}

/// Gives the server a socket that only this user can reach, if it `runs` a command and has no address.
fn private_socket(config: &mut Config, runs: bool) -> Result<Option<PrivateFolder>, Failure> {
    if !runs || !config.addresses.is_empty() || !config.listeners.is_empty() {
        return Ok(None);
    }
    let folder = PrivateFolder::new()?;
    config.addresses.push(folder.socket());
    Ok(Some(folder))
}

/// The control socket at `path`, whose command to drain asks `bell` to end the server. Disks may admit clients by certificates
/// if the server `has_authority` for those.
fn controls(path: PathBuf, bell: Bell, has_authority: bool) -> ControlConfig {
    let (drain, commands) = mpsc::channel();
    std::thread::spawn(move || {
        for () in commands {
            bell.ask(Cause::Drain);
        }
    });
    let read_disk = DiskReader::new(move |described| {
        let disk = added(described)?;
        check_certificates(core::slice::from_ref(&disk), has_authority).map_err(Failure::words)?;
        Ok(disk)
    });
    ControlConfig { path, drain, read_faults, read_disk: Some(read_disk) }
}

/// A channel for failures of lanes. Each is logged at once, and the rest of the server is drained for a limited time.
fn failures(bell: Bell) -> mpsc::Sender<String> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for why in told {
            warning(&format!("a lane has failed: {why}"));
            bell.ask(Cause::Failure);
        }
    });
    tell
}

/// Reads the rules of a fault file that an operator sends.
fn read_faults(text: &str) -> Result<Vec<FaultRule>, String> {
    let FaultRules { rules, mmc, .. } =
        FaultRules::parse("rules", text).map_err(|error| error.to_string())?;
    match mmc == MmcFaults::default() {
        true => Ok(rules),
        false => Err("faults of a card and its host can only be set at the start".to_owned()),
    }
}

/// Returns the disk that an operator describes by the keys of a `[[disk]]` of the configuration file.
fn added(described: &Map<String, Value>) -> Result<DiskConfig, String> {
    // Text, numbers and flags of JSON are those of TOML.
    let lines = described.iter().map(|(key, value)| format!("{} = {value}\n", json!(key)));
    let text = format!("[[disk]]\n{}", lines.collect::<String>());
    let given = serve_file::parse("disk", &text).map_err(|error| error.to_string())?;
    let [Given { name, args }] = &*given else { return Err("expected one disk".to_owned()) };
    let disk = disks(args).map_err(Failure::words)?.into_iter().next();
    Ok(DiskConfig { name: name.clone(), ..disk.expect("a disk has a source") })
}

/// Returns a time in seconds, or in milliseconds if it is shorter than a second.
fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        secs => format!("{secs} s"),
    }
}

/// Returns the prefix of a message about the disk called `name`.
fn prefix(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{name}: ") }
}

/// Closes `traces` in time even if a lane hangs in a system call.
fn close_late(traces: Traces) {
    std::thread::spawn(move || {
        std::thread::sleep(LEAVING);
        if let Err(error) = traces.finish() {
            note(&error.to_string());
        }
    });
}

/// Notes how often fault rules matched and fired, if there are rules.
fn tell_faults(disks: &[(String, Arc<FaultCounts>)]) {
    let is_named = disks.len() > 1;
    let count = |(name, Count { matched, fired })| FaultCount { name, matched, fired };
    let rows = disks
        .iter()
        .map(|(name, counts)| (name, counts.read().into_iter().map(count).collect::<Vec<_>>()));
    let rows: Vec<_> = rows.collect();
    let of = rows.iter().map(|(name, rows)| (is_named.then_some(name.as_str()), &rows[..]));
    if let Some(table) = faults::table("disk", of) {
        note(format!("faults, of requests offered to the device:\n{table}").trim_end());
    }
}

/// The processes beside the server.
struct Companions {
    pidfile: Option<PathBuf>,
    run: Option<String>,
    exit_with_parent: Option<Parent>,
}

/// The disks to serve and the traces to write.
struct Asked {
    config: Config,
    /// The path of the control socket.
    control: Option<PathBuf>,
    companions: Companions,
    /// The name of the design, or of the first of several.
    design: String,
    traces: Files,
    drain_timeout: Duration,
    log: log::Choice,
}

fn asked(args: &Serve) -> Result<Asked, Failure> {
    let (args, disks) = match &args.config {
        None => (args.clone(), disks(args)?),
        Some(file) => {
            let given = serve_file::read(file)?;
            let mut all = Vec::new();
            for Given { name, args } in &given {
                let named = |disk| DiskConfig { name: name.clone(), ..disk };
                all.extend(disks(args)?.into_iter().map(named));
            }
            (given.into_iter().next().expect("a file should have a disk").args, all)
        }
    };
    let config = server(&args, disks)?;
    check_certificates(&config.disks, has_client_authority(&config))?;
    Ok(Asked {
        config,
        control: args.control,
        companions: Companions {
            pidfile: args.pidfile,
            run: args.run,
            exit_with_parent: args.exit_with_parent,
        },
        traces: Files { perfetto: args.trace, blktrace: args.blktrace },
        design: args.design,
        drain_timeout: args.drain_timeout,
        log: log::Choice { level: args.log_level, format: args.log_format },
    })
}

fn has_client_authority(config: &Config) -> bool {
    config.tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some())
}

/// Refuses disks that admit clients by their certificates if nobody vouches for those.
fn check_certificates(disks: &[DiskConfig], has_authority: bool) -> Result<(), Failure> {
    match disks.iter().find(|disk| !has_authority && !disk.admission.names.is_empty()) {
        None => Ok(()),
        Some(disk) => {
            let words = "--allow-certificate needs a server with --tls-client-ca";
            Err(Failure::Input(format!("{}{words}", prefix(&disk.name))))
        }
    }
}

fn disks(args: &Serve) -> Result<Vec<DiskConfig>, Failure> {
    let design = match args.design.as_str() {
        "none" => Design::lookup("mq-none")?,
        name => Design::lookup(name)?,
    };
    if args.fault == Some(FaultSource::Stdin) && args.nbd.contains(&Address::Stdio) {
        let words = "--fault - and --nbd stdio both take standard input";
        return Err(Failure::Input(words.to_owned()));
    }
    let faults = args.fault.as_ref().map(FaultSource::read).transpose()?;
    let modelled = |device| Modelled::new(device, &design, faults.as_ref(), args.seed);
    let model = args.behaves_as.as_deref().map(modelled).transpose()?;
    if let (None, Some(faults)) = (&model, &faults)
        && faults.mmc != MmcFaults::default()
    {
        return Err(no_card(faults));
    }
    let own_depth = model.as_ref().map(|model| model.depth());
    let depth = args.depth.or(design.depth).or(own_depth).unwrap_or(DEPTH);
    let layers = Layers {
        model: model.map(|model| model as _),
        delay: args.delay,
        rates: args.rate,
        faults: faults.map(|faults| faults.rules),
        seed: args.seed,
    };
    let default = args.disk.clone().map(|source| ServedDisk { name: String::new(), source });
    let durability = durability(args)?;
    let disks = default.iter().chain(&args.exports).map(|disk| DiskConfig {
        name: disk.name.clone(),
        source: match &disk.source {
            DiskSource::Memory(bytes) => {
                Source::Memory { bytes: *bytes, huge_pages: args.huge_pages }
            }
            DiskSource::Null(bytes) => Source::Null { bytes: *bytes },
            DiskSource::File(path) if args.btt => {
                let container = args.container.map(Container::from);
                let force = args.force;
                Source::Btt { path: PathBuf::from(path), durability, container, force }
            }
            DiskSource::File(path) => {
                Source::File { path: PathBuf::from(path), buffered: args.buffered }
            }
        },
        read_only: args.readonly,
        policies: design.policies,
        depth,
        depth_bytes: DEPTH_BYTES,
        layers: layers.clone(),
        admission: Admission {
            places: args.allow_from.clone(),
            names: args.allow_certificate.clone(),
            clients_max: args.max_clients,
        },
    });
    Ok(disks.collect())
}

fn durability(args: &Serve) -> Result<Durability, Failure> {
    match (args.survives, args.sync) {
        (Some(Survives::Process | Survives::Pmem), true) => {
            let words = "--sync means --survives power: it cannot be used with another --survives";
            Err(Failure::Input(words.to_owned()))
        }
        (Some(Survives::Power), _) | (None, true) => Ok(Durability::Disk),
        (Some(Survives::Process) | None, false) => Ok(Durability::Process),
        (Some(Survives::Pmem), false) => Ok(Durability::Memory),
    }
}

fn server(args: &Serve, disks: Vec<DiskConfig>) -> Result<Config, Failure> {
    let mut config = Config::new(disks, args.nbd.clone());
    config.metrics.clone_from(&args.metrics);
    config.tls = tls(args)?;
    config.socket_mode = args.socket_mode;
    config.socket_group = args.socket_group;
    match args.lanes {
        Lanes::Exactly(lanes) => config.lanes = lanes,
        Lanes::Auto if args.poll => config.lanes = 1, // each lane occupies a processor
        Lanes::Auto => {}
    }
    config.connections_max = args.max_connections;
    config.handshake_deadline = args.handshake_timeout;
    // The rest of the time is for flushes. A client has at least a second: none is cut off for the pauses of a network.
    config.patience = config.patience.min((args.drain_timeout / 2).max(Duration::from_secs(1)));
    config.polls = args.poll;
    config.io = match args.io {
        IoChoice::Auto => IoEngine::Auto,
        IoChoice::Uring => IoEngine::Uring,
        IoChoice::Threads => IoEngine::Threads,
    };
    Ok(config)
}

/// Returns the sockets that the parent process handed over.
fn handed_over() -> Result<Vec<Arc<OwnedFd>>, Failure> {
    let mut given = ListenFd::from_env();
    let sockets = (0..given.len()).map(|at| {
        let socket = match given.take_unix_listener(at) {
            Ok(socket) => socket.map(OwnedFd::from),
            Err(_) => given.take_tcp_listener(at)?.map(OwnedFd::from),
        };
        socket.map(Arc::new).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    });
    let sockets: std::io::Result<_> = sockets.collect();
    sockets.map_err(|error| Failure::Input(format!("LISTEN_FDS: {error}")))
}

fn tls(args: &Serve) -> Result<Option<TlsConfig>, Failure> {
    let files = args.tls_cert.clone().zip(args.tls_key.clone());
    let Some((certificate, key)) = files else { return Ok(None) };
    let client_authorities = args.tls_client_ca.clone();
    let is_required = args.tls == TlsUse::Require;
    if client_authorities.is_some() && !is_required {
        let words = "--tls offer lets clients in without the certificate that --tls-client-ca asks for: \
                     use --tls require";
        return Err(Failure::Input(words.to_owned()));
    }
    Ok(Some(TlsConfig { certificate, key, client_authorities, is_required }))
}
