//! What `serve` can be asked.

use core::str::FromStr;
use core::time::Duration;
use std::path::PathBuf;

use blockyard::layer::delay::Extra;
use blockyard::layer::rate::Rates;
use blockyard_serve::Address;
use blockyard_sim::profile;
use clap::{Args, ValueEnum};

use super::btt::ContainerName;
use super::size::bytes;

#[derive(Clone, Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct Serve {
    /// The disk of the default export: a file, a block device, memory:SIZE or null:SIZE
    #[arg(value_name = "DISK", required_unless_present_any = ["exports", "config"])]
    pub(crate) disk: Option<DiskSource>,

    /// A disk under a name, as many as there are
    #[arg(long = "export", value_name = "NAME=DISK")]
    pub(crate) exports: Vec<ServedDisk>,

    /// A file that says what to serve, and how: keys are these options, [[disk]] begins a disk with
    /// `source` and `name`; see examples/systemd/blockyard.toml
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub(crate) config: Option<PathBuf>,

    /// Where clients come in: unix:PATH, HOST:PORT, or stdio for one at standard input; may be said
    /// more than once, and need not be where a service manager hands over sockets (LISTEN_FDS)
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nbd: Vec<Address>,

    /// A design, by name or by path of its file: its [queue]; `none` is mq-none
    #[arg(long, value_name = "DESIGN", default_value = "none")]
    pub(crate) design: String,

    /// Requests given to a disk at once, by all lanes; where the design does not say, 128
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_240))]
    pub(crate) depth: Option<u16>,

    /// A device, by name or by path of its file: the disk has its timing, depth and errors, in real time
    #[arg(long = "as", value_name = "DEVICE")]
    pub(crate) behaves_as: Option<String>,

    /// Fault rules, as `run` takes them; a disk that is served tears and misdirects no writes
    #[arg(long, value_name = "RULES.toml")]
    pub(crate) fault: Option<String>,

    /// How much longer requests take: a time, or two of them to draw between, as 1ms-3ms
    #[arg(long, value_name = "TIME[-TIME]", value_parser = extra)]
    pub(crate) delay: Option<Extra>,

    /// Bytes a second, requests a second, and for how long these may be saved up: 20m,500iops,burst=1s
    #[arg(long, value_name = "LIMITS", value_parser = rates)]
    pub(crate) rate: Option<Rates>,

    /// Draws what varies: of a model, of delays, of faults by chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Threads, each with connections of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = lanes)]
    pub(crate) lanes: usize,

    /// Use the page cache, where direct I/O would be possible
    #[arg(long)]
    pub(crate) buffered: bool,

    /// The file holds a block translation table, as of `btt create`: sectors stay whole
    #[arg(long, conflicts_with = "buffered")]
    pub(crate) btt: bool,

    /// What a write to a block translation table survives when it is answered; `process` where nothing is said
    #[arg(long, value_name = "WHAT", value_enum, requires = "btt")]
    pub(crate) survives: Option<Survives>,

    /// The same as --survives power
    #[arg(long, requires = "btt")]
    pub(crate) sync: bool,

    /// What a block translation table lies in, where that is not to be found out
    #[arg(long, value_name = "CONTAINER", value_enum, requires = "btt")]
    pub(crate) container: Option<ContainerName>,

    /// Take the memory of disks in memory at once, in huge pages where there are some
    #[arg(long)]
    pub(crate) huge_pages: bool,

    /// Refuse to write
    #[arg(long)]
    pub(crate) readonly: bool,

    /// Where metrics are told to Prometheus (/metrics), and health (/healthz)
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) metrics: Option<String>,

    /// Write a trace for ui.perfetto.dev (Chrome's JSON): the stages of each request, holds and merges
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Write what blktrace would to PREFIX.blktrace.N for each lane N, for blkparse, btt and `replay`
    #[arg(long, value_name = "PREFIX")]
    pub(crate) blktrace: Option<PathBuf>,

    /// The server's certificate, and those above it, in PEM: clients can use TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Certificates, in PEM, of which one must have signed a client's: clients without are refused
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_client_ca: Option<PathBuf>,

    /// Whether clients have to use TLS where there is a certificate
    #[arg(long, value_name = "WHETHER", value_enum, default_value_t, requires = "tls_cert")]
    pub(crate) tls: TlsUse,

    /// Never sleep: takes a processor for each lane
    #[arg(long)]
    pub(crate) poll: bool,

    /// Clients at a time; those beyond are cut off
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) max_connections: usize,

    /// How long a client may take to choose an export
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(crate) handshake_timeout: Duration,

    /// How long what is under way may take to end when the server is told to
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) drain_timeout: Duration,
}

/// Whether clients have to use TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TlsUse {
    /// Without it they are refused.
    #[default]
    Require,
    /// They may.
    Offer,
}

/// What a write to a BTT survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Survives {
    /// The end of this server; the loss of power after a flush, which may tear sectors.
    Process,
    /// The loss of power: the file is synchronised twice for all writes that come together, of all lanes.
    Power,
    /// The loss of power, on persistent memory that is mapped directly (DAX): cache lines are written back.
    Pmem,
}

/// Where a disk's data is.
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
            _ if text.is_empty() => Err("a path has a letter at least".to_owned()),
            _ => Ok(Self::File(text.to_owned())),
        }
    }
}

impl FromStr for ServedDisk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, disk) = text.split_once('=').ok_or("an export is NAME=DISK")?;
        Ok(Self { name: name.to_owned(), source: disk.parse()? })
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let time = profile::time(text).ok_or("a time has a unit: 500ms, 10s")?;
    Ok(Duration::from_nanos(time.as_ns()))
}

fn lanes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(lanes @ 1..=64) => Ok(lanes),
        _ => Err("a server has 1 to 64 lanes".to_owned()),
    }
}

/// `TIME` or `TIME-TIME`.
fn extra(text: &str) -> Result<Extra, String> {
    let time =
        |text| profile::time(text).ok_or("a delay is a time with its unit, or two: 500us, 1ms-3ms");
    let (least, most) = match text.split_once('-') {
        None => (time(text)?, time(text)?),
        Some((least, most)) => (time(least)?, time(most)?),
    };
    if least > most {
        return Err("the longer of both comes second".to_owned());
    }
    Ok(Extra { min: least, max: most, op: None })
}

/// Of `SIZE`, `Niops` and `burst=TIME`, what there is, between commas.
fn rates(text: &str) -> Result<Rates, String> {
    let mut rates = Rates::NONE;
    for part in text.split(',') {
        if let Some(time) = part.strip_prefix("burst=") {
            rates.burst = profile::time(time).ok_or("a burst is a time with its unit: 100ms")?;
        } else if let Some(count) = part.strip_suffix("iops") {
            let count = count.parse().ok().filter(|count| *count > 0);
            rates.requests_per_s = Some(count.ok_or("a rate of requests is a number: 500iops")?);
        } else {
            rates.bytes_per_s = Some(bytes(part)?);
        }
    }
    if (rates.bytes_per_s, rates.requests_per_s) == (None, None) {
        return Err("a burst is of a rate: 20m,burst=1s".to_owned());
    }
    Ok(rates)
}

const SERVE_HELP: &str = "\
  blockyard serve disk.img --nbd unix:/run/disk.sock --design mq-deadline --depth 32
  blockyard serve memory:1g --nbd 127.0.0.1:10809
  blockyard serve disk.img --nbd 0.0.0.0:10809 --tls-cert server-cert.pem --tls-key server-key.pem
  blockyard serve disk.img --nbd unix:/run/slow.sock --as emmc-hs400-sprd
  blockyard serve --export root=root.img --export scratch=memory:4g --nbd unix:/run/disks.sock

Of a design its [queue] is used: elevator, dispatch, merging. Each lane has a hardware queue of its own.

Started by its client, it takes the socket that the client made:
  nbdinfo [ blockyard serve disk.img ]
So it does under systemd: examples/systemd has units, and a file for --config.

With --tls-client-ca only clients come in whose certificate was signed by one of the file. Metrics of
disks have node_exporter's names, with the export for the device.

With --as the data is where DISK says; when requests are done is the model's to say, whose processors are
used for what the driver of a card does, and for nothing else. Where the machine is too slow for it, that
is said once a second and at the end. Disks with --as, --fault, --delay or --rate have one lane.

With --btt, --sync (or --survives power, which means the same) synchronises the file twice for all writes
that come together. Without, the file is mapped, and takes all its room; with it, it is read and written by
calls, and one with holes keeps them. --survives pmem says so where the kernel does not know the memory as
persistent.

Files are read and written by direct I/O where file system and size allow it. Requests need not be
aligned to anything. Sizes: 1k is 1024 bytes.

Traces are complete when the server has ended by the first signal. After a second one they are whole, and
what did not end has no end in them. kill -9, or a crash, leaves what was written so far; a lane hands over
some thousand requests at a time, so that it may be nothing. blkparse reads that, and Perfetto once the last
line is gone and the list is closed:
  (sed '$d' trace.json | sed '$s/,$//'; echo ']}') > whole.json
They tell every request: some 100 to 300 bytes of --blktrace, and up to 1100 of --trace. Where a file is slower than clients, these wait for it;
one that cannot be written any more does not end the server, which says so at its end.

SIGTERM or SIGINT ends the server: no new request is taken, what is under way is answered, disks are
flushed, traces are closed. Who leaves a reply unread is not waited for: after 30 s, or half of
--drain-timeout, it is cut off. A second signal, or the end of --drain-timeout, lets the server wait for
nothing more than traces to be closed, five seconds at most; a third one not for that either. Signals within
half a second are one. What was flushed, or written with FUA, is durable in any case.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_delays_are_what_they_say() {
        let ms = blockyard::time::Duration::from_ms;
        let all = Rates { bytes_per_s: Some(20 << 20), requests_per_s: Some(500), burst: ms(1000) };
        assert_eq!(rates("20m,500iops,burst=1s"), Ok(all));
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
