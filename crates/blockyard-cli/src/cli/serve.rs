//! What `serve` can be asked.

use core::str::FromStr;
use core::time::Duration;

use blockyard_serve::Address;
use blockyard_sim::profile;
use clap::Args;

#[derive(Clone, Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct Serve {
    /// The disk of the default export: a file, a block device, memory:SIZE or null:SIZE
    #[arg(value_name = "DISK", required_unless_present = "exports")]
    pub(crate) disk: Option<DiskSource>,

    /// A disk under a name, as many as there are
    #[arg(long = "export", value_name = "NAME=DISK")]
    pub(crate) exports: Vec<ServedDisk>,

    /// Where clients come in: unix:PATH or HOST:PORT; may be said more than once
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub(crate) nbd: Vec<Address>,

    /// A design, by name or by path of its file: its [queue]; `none` is mq-none
    #[arg(long, value_name = "DESIGN", default_value = "none")]
    pub(crate) design: String,

    /// Requests given to a disk at once, by all lanes; where the design does not say, 128
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_240))]
    pub(crate) depth: Option<u16>,

    /// Threads, each with connections of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = lanes)]
    pub(crate) lanes: usize,

    /// Use the page cache, where direct I/O would be possible
    #[arg(long)]
    pub(crate) buffered: bool,

    /// Take the memory of disks in memory at once, in huge pages where there are some
    #[arg(long)]
    pub(crate) huge_pages: bool,

    /// Refuse to write
    #[arg(long)]
    pub(crate) readonly: bool,

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

/// A number of bytes: with k, m, g or t in powers of 1024, as fio has it.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size: 512, 64k, 10m, 1g, 1GiB");
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let power = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(1 << (10 * power)).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("{text:?} is no size a disk can have"))
}

const SERVE_HELP: &str = "\
  blockyard serve disk.img --nbd unix:/run/disk.sock --design mq-deadline --depth 32
  blockyard serve memory:1g --nbd 127.0.0.1:10809
  blockyard serve --export root=root.img --export scratch=memory:4g --nbd unix:/run/disks.sock

Of a design its [queue] is used: elevator, dispatch, merging. Each lane has a hardware queue of its own.

Files are read and written by direct I/O where file system and size allow it. Requests need not be
aligned to anything. Sizes: 1k is 1024 bytes.

SIGTERM or SIGINT ends the server: no new request is taken, what is under way is answered, disks are
flushed. A second one ends it at once. What was flushed, or written with FUA, is durable in any case.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(bytes("1g"), Ok(1 << 30));
        assert_eq!(bytes("3KiB"), Ok(3072));
        assert_eq!(bytes("77"), Ok(77));
        for wrong in ["", "g", "1x", "-1", "0", "99999999t", "1.5g", "1g1"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
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
