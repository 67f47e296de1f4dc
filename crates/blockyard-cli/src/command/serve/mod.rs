//! `serve`: serves a real disk over NBD until a signal ends the server.

mod asked;
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
use blockyard_devices::profile::{FaultRules, MmcFaults};
use blockyard_devices::stack::FaultCount;
use blockyard_serve::control::{ControlConfig, DiskReader};
use blockyard_serve::{Config, FaultCounts, Io, IoEngine, Server};
use listenfd::ListenFd;

use crate::cli::Serve;
use crate::log;
use crate::message::{Failure, note, warning};
use crate::render::faults;
use asked::{Asked, added, asked, check_certificates, has_client_authority};
use companion::{Descriptors, Manager, PidFile, PrivateFolder};
use ending::{Bell, Cause, Ending, Heard};
use events::start_log;
use lateness::Watch;
use operator::Operator;
use ticker::Ticker;
use trace::Traces;

/// The time for lanes to end after requests in flight are abandoned. Later, traces end without the
/// events that lanes have not handed over.
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

/// Returns the name of the export that `--run` tells its command: the default one, or else the
/// first.
fn main_export(config: &Config) -> &str {
    let mut names = config.disks.iter().map(|disk| disk.name.as_str());
    let first = names.next().unwrap_or_default();
    names.find(|name| name.is_empty()).unwrap_or(first)
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

/// Gives the server a socket that only this user can reach, if it `runs` a command and has no
/// address.
fn private_socket(config: &mut Config, runs: bool) -> Result<Option<PrivateFolder>, Failure> {
    if !runs || !config.addresses.is_empty() || !config.listeners.is_empty() {
        return Ok(None);
    }
    let folder = PrivateFolder::new()?;
    config.addresses.push(folder.socket());
    Ok(Some(folder))
}

/// The control socket at `path`, whose command to drain asks `bell` to end the server. Disks may
/// admit clients by certificates if the server `has_authority` for those.
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

/// A channel for failures of lanes. Each is logged immediately, and the rest of the server is
/// drained for a limited time.
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
