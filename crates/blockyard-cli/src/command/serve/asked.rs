//! The configuration of a server, from the options of `serve`, its configuration file, or an
//! operator.

use core::time::Duration;
use std::path::PathBuf;

use blockyard_btt::Container;
use blockyard_devices::profile::{Design, MmcFaults};
use blockyard_pmem::Durability;
use blockyard_serve::{
    Address, Admission, Behaviour, Config, DiskConfig, IoEngine, Layers, Source, TlsConfig,
};
use blockyard_trace::output::Files;
use serde_json::{Map, Value, json};

use super::super::serve_file::{self, Given};
use super::model::{Modelled, no_card};
use super::prefix;
use crate::cli::{
    DiskSource, FaultSource, IoChoice, Lanes, Parent, Serve, ServedDisk, Survives, TlsUse,
};
use crate::log;
use crate::message::Failure;

/// The depth if neither the design nor the command line has one.
const DEPTH: u16 = 128;
/// The maximum number of bytes in flight at a disk.
const DEPTH_BYTES: u64 = 64 << 20;

/// The processes that run along with the server.
pub(super) struct Companions {
    pub(super) pidfile: Option<PathBuf>,
    pub(super) run: Option<String>,
    pub(super) exit_with_parent: Option<Parent>,
}

/// The disks to serve and the traces to write.
pub(super) struct Asked {
    pub(super) config: Config,
    /// The path of the control socket.
    pub(super) control: Option<PathBuf>,
    pub(super) companions: Companions,
    /// The name of the design, or of the first of several.
    pub(super) design: String,
    pub(super) traces: Files,
    pub(super) drain_timeout: Duration,
    pub(super) log: log::Choice,
}

pub(super) fn asked(args: &Serve) -> Result<Asked, Failure> {
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

pub(super) fn has_client_authority(config: &Config) -> bool {
    config.tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some())
}

/// Refuses disks that admit clients by their certificates if nobody vouches for those.
pub(super) fn check_certificates(disks: &[DiskConfig], has_authority: bool) -> Result<(), Failure> {
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
        weights: args.weight.clone(),
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
    // The rest of the time is for flushes. A client has at least a second: none is cut off for the
    // pauses of a network.
    config.patience = config.patience.min((args.drain_timeout / 2).max(Duration::from_secs(1)));
    config.polls = args.poll;
    config.io = match args.io {
        IoChoice::Auto => IoEngine::Auto,
        IoChoice::Uring => IoEngine::Uring,
        IoChoice::Threads => IoEngine::Threads,
    };
    Ok(config)
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

/// Returns the disk that an operator describes by the keys of a `[[disk]]` of the configuration
/// file.
pub(super) fn added(described: &Map<String, Value>) -> Result<DiskConfig, String> {
    // Text, numbers and flags of JSON are those of TOML.
    let lines = described.iter().map(|(key, value)| format!("{} = {value}\n", json!(key)));
    let text = format!("[[disk]]\n{}", lines.collect::<String>());
    let given = serve_file::parse("disk", &text).map_err(|error| error.to_string())?;
    let [Given { name, args }] = &*given else { return Err("expected one disk".to_owned()) };
    let disk = disks(args).map_err(Failure::words)?.into_iter().next();
    Ok(DiskConfig { name: name.clone(), ..disk.expect("a disk has a source") })
}
