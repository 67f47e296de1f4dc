//! `serve`: a real disk over NBD, until a signal says stop.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use blockyard_serve::{Config, DiskConfig, Server, Source, StartError};
use blockyard_sim::profile::Design;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::cli::{DiskSource, Serve, ServedDisk};
use crate::message::{Failure, note};

/// Depth where neither the design nor the command line says.
const DEPTH: u16 = 128;
/// Most bytes of data given to a disk at once.
const DEPTH_BYTES: u64 = 64 << 20;

pub(super) fn serve(args: &Serve) -> Result<(), Failure> {
    let config = config(args)?;
    // Before the first client comes.
    let (mut signals, wake) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        pipe::register(signal, wake.try_clone()?)?;
    }
    let server = Server::start(&config)?;
    for address in server.addresses() {
        note(&format!("serving at {address}"));
    }
    let stopper = server.stopper();
    // Ends the wait below where the server ends by itself, and where it has drained.
    let ended = std::thread::spawn(move || {
        let ended = server.join();
        drop(wake.shutdown(std::net::Shutdown::Both));
        ended
    });
    if is_told_to_stop(&mut signals)? {
        note(&format!("draining, for {} s at most", args.drain_timeout.as_secs()));
        stopper.stop();
        signals.set_read_timeout(Some(args.drain_timeout))?;
        match is_told_to_stop(&mut signals) {
            Ok(false) => {}
            Ok(true) => return Err(Failure::Run("stopped before everything was done".to_owned())),
            Err(_) => {
                let words = "what was under way did not end in time".to_owned();
                return Err(Failure::Run(words));
            }
        }
    }
    let ended = ended.join().expect("no thread of the server panics");
    ended.map_err(|error| Failure::Run(error.to_string()))
}

/// Waits for a signal; `false` if the server ended before.
fn is_told_to_stop(signals: &mut UnixStream) -> Result<bool, Failure> {
    let mut byte = [0];
    loop {
        match signals.read(&mut byte) {
            Ok(bytes) => return Ok(bytes > 0),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn config(args: &Serve) -> Result<Config, Failure> {
    let design = match args.design.as_str() {
        "none" => Design::lookup("mq-none")?,
        name => Design::lookup(name)?,
    };
    let depth = args.depth.or(design.depth).unwrap_or(DEPTH);
    let default = args.disk.clone().map(|source| ServedDisk { name: String::new(), source });
    let disks = default.iter().chain(&args.exports).map(|disk| DiskConfig {
        name: disk.name.clone(),
        source: match &disk.source {
            DiskSource::Memory(bytes) => {
                Source::Memory { bytes: *bytes, huge_pages: args.huge_pages }
            }
            DiskSource::Null(bytes) => Source::Null { bytes: *bytes },
            DiskSource::File(path) => {
                Source::File { path: PathBuf::from(path), buffered: args.buffered }
            }
        },
        read_only: args.readonly,
        policies: design.policies,
        depth,
        depth_bytes: DEPTH_BYTES,
    });
    let mut config = Config::new(disks.collect(), args.nbd.clone());
    config.lanes = args.lanes;
    config.connections_max = args.max_connections;
    config.handshake_deadline = args.handshake_timeout;
    config.polls = args.poll;
    Ok(config)
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::Input(error.to_string())
    }
}
