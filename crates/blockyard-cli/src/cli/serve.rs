//! The options of `serve`.

use core::convert::Infallible;
use core::str::FromStr;
use core::time::Duration;
use std::path::PathBuf;

use blockyard::layer::delay::Extra;
use blockyard::layer::rate::Rates;
use blockyard_devices::profile;
use blockyard_serve::{Address, Place, ServerName, Weight};
use clap::{Args, ValueEnum};
use nix::unistd::Group;

use super::btt::ContainerName;
use super::fault::FaultSource;
use super::size::bytes;
use super::usage::short_help;
use crate::log::{Format, Level};

#[derive(Clone, Debug, Args)]
#[command(
    disable_help_flag = true,
    arg = short_help("serve"),
    after_help = format!("{SERVE_EXAMPLES}\n\n{SERVE_MORE}"),
    after_long_help = format!("{SERVE_EXAMPLES}\n\n{SERVE_HELP}")
)]
pub(crate) struct Serve {
    /// The disk of the default export: a file, a block device, memory:SIZE or null:SIZE
    #[arg(value_name = "DISK", required_unless_present_any = ["exports", "config"])]
    pub(crate) disk: Option<DiskSource>,

    /// A disk and the name of its export; may be repeated
    #[arg(long = "export", value_name = "NAME=DISK")]
    pub(crate) exports: Vec<ServedDisk>,

    /// A configuration file in place of options
    ///
    /// Its keys are the names of these options. [[disk]] begins a disk, with `source` and `name`.
    /// An example is examples/systemd/blockyard.toml.
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub(crate) config: Option<PathBuf>,

    /// Where to listen: unix:PATH, HOST:PORT or stdio; may be repeated
    ///
    /// `stdio` is one client at standard input. The option may be left out with --run, and if a
    /// client or service manager hands over sockets (LISTEN_FDS).
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nbd: Vec<Address>,

    /// A design: its name or the path of its file
    ///
    /// Only its [queue] applies: scheduler, dispatch, merging.
    #[arg(long, value_name = "DESIGN", default_value = "none")]
    pub(crate) design: String,

    /// The limit on requests in flight at a disk, over all lanes
    ///
    /// By default it is that of the design, else that of the --as device, else 128.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_240))]
    pub(crate) depth: Option<u16>,

    /// Give the disk the timing, depth and errors of a device, in real time
    ///
    /// A device: its name or the path of its file.
    #[arg(long = "as", value_name = "DEVICE")]
    pub(crate) behaves_as: Option<String>,

    /// Only a hint: values of the --as device come from its file.
    #[arg(long = "set", value_name = "KEY=VALUE", hide = true, value_parser = set_in_file)]
    _set: Option<Infallible>,

    /// Fault rules: a file, - for standard input, or a rule
    ///
    /// --faults is the same option. The file, also from standard input, is that of `run --faults`,
    /// and each rule in it begins with [[rule]]; `blockyard help faults` explains its keys. A rule
    /// on the command line has the keys between commas, and each of several rules is in braces: see
    /// the examples. Operations: read, write, flush (or fsync), discard (or trim), write-zeroes;
    /// without `op`, all. A path that contains `=` must begin with / or a dot. Rules that cannot
    /// fire on a disk, and rules for torn and misdirected writes, are refused. With `none`, there
    /// are no faults until `blockyard ctl` sets them.
    #[arg(long, alias = "faults", value_name = "RULES")]
    pub(crate) fault: Option<FaultSource>,

    /// Delay requests by a time or a time in a range: 500us, 1ms-3ms
    ///
    /// A time in a range is drawn at random for each request. With 0us, there is no delay until
    /// `blockyard ctl` sets one.
    #[arg(long, value_name = "TIME[-TIME]", value_parser = extra)]
    pub(crate) delay: Option<Extra>,

    /// Limit bytes and requests per second: 20m,500iops,burst=1s
    ///
    /// Unused capacity is kept for the time of `burst`. With `unlimited`, there are no limits
    /// until `blockyard ctl` sets them.
    #[arg(long, value_name = "LIMITS", value_parser = rates)]
    pub(crate) rate: Option<Rates>,

    /// The seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// The number of lanes, 1 to 64
    ///
    /// A lane is a thread with clients and a queue of its own. `auto` is 1 on one processor or with
    /// --poll. Else it is four lanes for each processor, but no more than 16; with more than 16
    /// processors, it is one for each. All lanes serve a disk. Requests of different lanes are not
    /// merged, and a scheduler orders only those of its lane. One lane alone serves a disk with
    /// --as, --delay, --rate or --fault, a file or block device under a scheduler, and one whose
    /// --depth is less than the number of lanes.
    #[arg(long, value_name = "N", default_value = "auto", value_parser = lanes)]
    pub(crate) lanes: Lanes,

    /// Use the page cache even if direct I/O is possible
    #[arg(long)]
    pub(crate) buffered: bool,

    /// Serve the block translation table in the file (see `btt create`)
    #[arg(long, conflicts_with = "buffered")]
    pub(crate) btt: bool,

    /// The failure that a write to a block translation table survives
    ///
    /// A write counts once it is acknowledged. By default `process`.
    #[arg(long, value_name = "FAILURE", value_enum, requires = "btt")]
    pub(crate) survives: Option<Survives>,

    /// The same as --survives power
    #[arg(long, requires = "btt")]
    pub(crate) sync: bool,

    /// The container of the block translation table, if not detected
    #[arg(long, value_name = "CONTAINER", value_enum, requires = "btt")]
    pub(crate) container: Option<ContainerName>,

    /// Serve a block translation table even if `btt check` calls it broken
    #[arg(long, requires = "btt")]
    pub(crate) force: bool,

    /// Allocate disks in memory at start-up, in huge pages if possible
    #[arg(long)]
    pub(crate) huge_pages: bool,

    /// Refuse writes
    #[arg(long)]
    pub(crate) readonly: bool,

    /// Clients that may use a disk: addresses, networks, unix, unix:USER-ID
    ///
    /// Commas separate several of them. Others do not see the export.
    #[arg(long, value_name = "PLACE,...", value_delimiter = ',')]
    pub(crate) allow_from: Vec<Place>,

    /// Names in certificates (subjectAltName) that may use a disk
    ///
    /// Commas separate several of them. Others do not see the export. The server needs
    /// --tls-client-ca.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = certificate_name)]
    pub(crate) allow_certificate: Vec<ServerName<'static>>,

    /// Weights of clients by place, 1 to 1000: shares of a disk under --design bfq
    ///
    /// A place is as for --allow-from; the first one that a client comes from decides. Clients
    /// without a weight count as of weight 40 each. At most 15 clients of a disk have weights at a
    /// time. `blockyard ctl PATH weight` changes that of a client.
    #[arg(long, value_name = "PLACE=N,...", value_delimiter = ',', value_parser = place_and_weight)]
    pub(crate) weight: Vec<(Place, Weight)>,

    /// The most clients of a disk at a time; further clients are disconnected
    #[arg(long, value_name = "N", value_parser = connections)]
    pub(crate) max_clients: Option<usize>,

    /// Serve metrics for Prometheus (/metrics) and health (/healthz) there
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) metrics: Option<String>,

    /// The unix socket for `blockyard ctl`; only the same user may open it
    #[arg(long, value_name = "PATH", value_parser = control_path)]
    pub(crate) control: Option<PathBuf>,

    /// Write a trace for ui.perfetto.dev (Chrome's JSON)
    ///
    /// It shows the stages of each request, holds and merges.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Write a trace in blktrace's format, for blkparse and `replay`
    ///
    /// The file of lane N is PREFIX.blktrace.N.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) blktrace: Option<PathBuf>,

    /// The server's certificate chain in PEM: lets clients use TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Certificate authorities in PEM: clients need a certificate that one of them has signed
    ///
    /// It cannot be used with --tls offer.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_client_ca: Option<PathBuf>,

    /// The use of TLS if there is a certificate
    #[arg(long, value_name = "USE", value_enum, default_value_t, requires = "tls_cert")]
    pub(crate) tls: TlsUse,

    /// The engine for the I/O of files and sockets
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t)]
    pub(crate) io: IoChoice,

    /// Never sleep; this occupies a CPU for each lane
    #[arg(long)]
    pub(crate) poll: bool,

    /// The most clients at a time; others are disconnected
    ///
    /// There are fewer if the limit of open files (ulimit -Hn) is too low.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = connections)]
    pub(crate) max_connections: usize,

    /// The time for a client to choose an export; not zero
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time_not_zero)]
    pub(crate) handshake_timeout: Duration,

    /// The access mode of unix sockets, in octal: 0660
    ///
    /// By default the umask decides.
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) socket_mode: Option<u32>,

    /// The group of unix sockets: its name or number
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub(crate) socket_group: Option<u32>,

    /// Write the number of the process to a file when clients can connect
    ///
    /// The server removes the file when it ends.
    #[arg(long, value_name = "FILE")]
    pub(crate) pidfile: Option<PathBuf>,

    /// Run a shell command; the server ends when it ends, with its exit code
    ///
    /// The command finds the server by $uri, and by $unixsocket or $port. $uri names the default
    /// export, or else the first one. Without --nbd, the server listens at a unix socket
    /// that only this user can reach. If the server ends first, the command gets SIGTERM
    /// (not after Ctrl-C, which the terminal sends to both) and has the rest of --drain-timeout
    /// to end. If the server fails, as in its last flush, the log has the error, and the exit code
    /// is still the command's.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) run: Option<String>,

    /// End, as after SIGTERM, when the process that started the server ends
    ///
    /// If that process has ended already, the server does not start. PID is its number ($$ in a
    /// shell). Without PID, a process that ended immediately can be missed if it was in the session
    /// and the process group of process 1, as in a container. Before Linux 5.3, the server ends
    /// with the thread that started it.
    #[arg(
        long, value_name = "PID", num_args = 0..=1, require_equals = true,
        default_missing_value = "any"
    )]
    pub(crate) exit_with_parent: Option<Parent>,

    /// The least severe lines of the log on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Level::Note)]
    pub(crate) log_level: Level,

    /// The form of the log
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log_format: Format,

    /// The time for requests in flight after a signal to end
    ///
    /// With 0s the first signal acts as the second one: no request is awaited, and no disk
    /// is flushed.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) drain_timeout: Duration,
}

/// The engine for the I/O of files and sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum IoChoice {
    /// io_uring where the kernel has it and permits it, otherwise threads
    #[default]
    Auto,
    /// io_uring; it needs Linux 5.17
    Uring,
    /// epoll for sockets, and for files up to 32 threads for each lane
    Threads,
}

/// The use of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TlsUse {
    /// Clients without TLS are refused
    #[default]
    Require,
    /// Clients may use TLS
    Offer,
}

/// The failure that an acknowledged write to a BTT survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Survives {
    /// The end of this server; a loss of power may damage any sector and the table, flushed or not
    Process,
    /// A loss of power: the file is synchronised twice for each batch of writes
    Power,
    /// A loss of power on directly mapped persistent memory (DAX)
    Pmem,
}

/// The process that a server does not outlive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// The parent, whatever its number.
    Any,
    /// The parent, which has this number.
    Number(u32),
}

impl FromStr for Parent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "any" => Ok(Self::Any),
            number => {
                number.parse().map(Self::Number).map_err(|_| "expected the number of a process")
            }
        }
    }
}

/// Where the data of a disk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiskSource {
    /// `memory:SIZE`.
    Memory(u64),
    /// `null:SIZE`.
    Null(u64),
    /// A path.
    File(String),
}

/// A disk and the name it is served under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedDisk {
    pub(crate) name: String,
    pub(crate) source: DiskSource,
}

impl FromStr for DiskSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("memory", size)) => bytes(size).map(Self::Memory),
            Some(("null", size)) => bytes(size).map(Self::Null),
            _ if text.is_empty() => Err("a path cannot be empty".to_owned()),
            _ => Ok(Self::File(text.to_owned())),
        }
    }
}

impl FromStr for ServedDisk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, disk) = text.split_once('=').ok_or("expected NAME=DISK")?;
        Ok(Self { name: name.to_owned(), source: disk.parse()? })
    }
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    let time = profile::read_time(text, "500ms, 10s")?;
    Ok(Duration::from_nanos(time.as_ns()))
}

/// A time limit that leaves some time.
fn time_not_zero(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("the time must be longer than zero: 500ms, 10s".to_owned()),
        time => Ok(time),
    }
}

/// The path of a control socket, which is no address.
pub(super) fn control_path(text: &str) -> Result<PathBuf, String> {
    match text.strip_prefix("unix:") {
        Some(path) => Err(format!("expected a path without `unix:`: {path}")),
        None => Ok(text.into()),
    }
}

/// A place and the weight of clients that come from it.
fn place_and_weight(text: &str) -> Result<(Place, Weight), String> {
    // The place may have colons and slashes, but no `=`.
    let (place, given) = text.split_once('=').ok_or_else(|| format!("{text}: not PLACE=N"))?;
    Ok((place.parse()?, given.parse()?))
}

fn set_in_file(_: &str) -> Result<Infallible, &'static str> {
    Err(
        "`serve` takes the values of a device from a file: write `base = \"DEVICE\"` and the values to one, and give its path to --as",
    )
}

/// The number of lanes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// As many as suit the processors.
    Auto,
    Exactly(usize),
}

fn lanes(text: &str) -> Result<Lanes, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Lanes::Auto),
        Ok(lanes @ 1..=64) => Ok(Lanes::Exactly(lanes)),
        _ => Err("a server has 1 to 64 lanes, or as many as `auto` chooses".to_owned()),
    }
}

fn connections(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "expected a number of clients: at least 1".to_owned())
}

fn certificate_name(text: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(text.to_owned())
        .map_err(|_| "expected a DNS name or an IP address".to_owned())
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "expected an octal mode: 0 to 777".to_owned())
}

fn group(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err("there is no such group".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// `TIME` or `TIME-TIME`.
pub(super) fn extra(text: &str) -> Result<Extra, String> {
    const EXAMPLES: &str = "500us, or two: 1ms-3ms";
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let least = profile::read_time(least, EXAMPLES)?;
    let most = profile::read_time(most, EXAMPLES)?;
    if least > most {
        return Err("the first time must not be longer than the second".to_owned());
    }
    Ok(Extra { min: least, max: most, op: None })
}

/// Parses any of `SIZE`, `Niops` and `burst=TIME`, separated by commas.
pub(super) fn rates(text: &str) -> Result<Rates, String> {
    if text == "unlimited" {
        return Ok(Rates::NONE);
    }
    let mut rates = Rates::NONE;
    for part in text.split(',') {
        if let Some(time) = part.strip_prefix("burst=") {
            rates.burst = profile::read_time(time, "burst=100ms")?;
        } else if let Some(count) = part.strip_suffix("iops") {
            let count = count.parse().ok().filter(|count| *count > 0);
            rates.requests_per_s =
                Some(count.ok_or("expected a number of requests per second: 500iops")?);
        } else {
            rates.bytes_per_s = Some(bytes(part)?);
        }
    }
    if (rates.bytes_per_s, rates.requests_per_s) == (None, None) {
        return Err("burst needs a rate: 20m,burst=1s".to_owned());
    }
    Ok(rates)
}

const SERVE_EXAMPLES: &str = "\
Examples:
  blockyard serve disk.img --nbd unix:/run/disk.sock --design mq-deadline
  blockyard serve memory:1g --nbd 127.0.0.1:10809
  blockyard serve disk.img --nbd 0.0.0.0:10809 --tls-cert server-cert.pem \\
      --tls-key server-key.pem
  blockyard serve disk.img --nbd unix:/run/slow.sock --as emmc-hs400-sprd
  blockyard serve memory:1g --nbd unix:/run/bad.sock \\
      --fault '{op = \"read\", nth = 3, error = \"io\"}, {delay = \"5ms\"}'
  blockyard serve --export root=root.img --export scratch=memory:4g \\
      --nbd unix:/run/disks.sock";

const SERVE_MORE: &str = "\
More help:
  blockyard help serve    each option in full, signals, metrics and traces;
                          also `blockyard man serve`
  blockyard help faults   rules of faults";

const SERVE_HELP: &str = "\
If a client starts the server, the server takes over the client's socket:
  nbdinfo [ blockyard serve disk.img ]
The same works under systemd: examples/systemd has units, and a file for
--config.

Metrics of disks have the names that node_exporter uses, with the export in
place of the device.

With --as the data is still in DISK, but the model decides when requests
complete. Of the model's CPU time, only that of a card's driver takes real time.
The log has a note if the machine is too slow for the model: if, of the
completions in the last 10 s, at least 100 and more than 1 % were late by 100 us
or more. A disk has at most one such note a minute. A note at the end has the
totals.

With --btt, --survives power synchronises the file twice for each batch of
writes. The file is then read and written by system calls, and keeps its holes.
With --survives process or pmem the file is mapped, and takes its full space.
With --survives process a flush synchronises the file, but that helps only until
the next write: a loss of power may then leave sectors that are torn or have the
contents of others, even flushed ones, and a table that this command refuses.
--survives pmem is for persistent memory, even if the kernel does not know that
the memory is persistent.

Files are read and written by direct I/O where the file system and the size
allow it. Requests need no alignment. Sizes: 1k is 1024 bytes.

Traces are complete if the first signal ended the server. After a second signal
they are valid, but requests that did not end have no end in them. After kill -9
or a crash a trace has only the part that was written so far, perhaps nothing: a
lane hands over some thousand requests at a time. blkparse can read such a file.
For Perfetto, first remove the last line and close the list:
  (sed '$d' trace.json | sed '$s/,$//'; echo ']}') > whole.json
A request takes 100 to 300 bytes with --blktrace, and up to 1100 with --trace.
If a trace file is slower than the clients, the clients wait for it. If it can
no longer be written, a line of the log says so, the traces end, and the server
continues. Its exit code is 1 then.

SIGTERM, SIGINT or SIGQUIT ends the server: it takes no new requests, answers
those in flight, flushes its disks and closes its traces. A TRIM or WRITE_ZEROES
that takes longer than a quarter of --drain-timeout (at least 0.5 s, at most
15 s) fails. A client that does not read its replies is disconnected after half
of --drain-timeout (at least 1 s, at most 30 s). After a second signal, or the
end of --drain-timeout, the server only waits for traces to be closed, at most
five seconds; after a third signal it exits immediately. Signals within half a
second count as one. Everything that was flushed or written with FUA survives
each of these ends.

SIGXCPU (RLIMIT_CPU) drains too, and its repetition changes nothing. SIGHUP
reads the certificates again. SIGUSR1 logs the load. SIGUSR2, SIGALRM,
SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGXFSZ and real-time signals are
ignored, with a line in the log, at most one a minute for each. A write beyond
the limit on the size of files (RLIMIT_FSIZE) fails with ENOSPC.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_delays_are_what_they_say() {
        let ms = blockyard::time::Duration::from_ms;
        let all = Rates { bytes_per_s: Some(20 << 20), requests_per_s: Some(500), burst: ms(1000) };
        assert_eq!(rates("20m,500iops,burst=1s"), Ok(all));
        assert_eq!(rates("unlimited"), Ok(Rates::NONE));
        assert_eq!(rates("7iops"), Ok(Rates { requests_per_s: Some(7), ..Rates::NONE }));
        for wrong in ["", "0iops", "iops", "burst=1s", "1m,burst=1", "5mips"] {
            assert!(rates(wrong).is_err(), "{wrong}");
        }
        assert_eq!(extra("1ms-3ms"), Ok(Extra { min: ms(1), max: ms(3), op: None }));
        assert_eq!(extra("2ms"), Ok(Extra::fixed(ms(2))));
        for wrong in ["", "5", "3ms-1ms", "1ms-", "1ms-2ms-3ms"] {
            assert!(extra(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_disk_is_a_path_unless_it_says_otherwise() {
        assert_eq!("memory:1k".parse(), Ok(DiskSource::Memory(1024)));
        assert_eq!("a:b".parse(), Ok(DiskSource::File("a:b".to_owned())));
        let root = ServedDisk { name: "root".to_owned(), source: DiskSource::Null(512) };
        assert_eq!("root=null:512".parse(), Ok(root));
    }
}
