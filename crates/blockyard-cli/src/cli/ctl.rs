//! The commands of `ctl`.

use core::num::NonZeroU64;
use std::path::PathBuf;

use blockyard::layer::delay::Extra;
use blockyard::layer::rate::Rates;
use blockyard::time::Duration;
use blockyard_serve::Weight;
use blockyard_serve::control::Request;
use clap::{Args, Command, Subcommand};
use serde_json::{Map, Value};

use super::fault::FaultSource;
use super::serve::{control_path, extra, rates, time};
use super::size::bytes;

#[derive(Debug, Args)]
#[command(after_help = CTL_HELP)]
pub(crate) struct Ctl {
    /// The control socket of the server: the path that `serve --control` got
    #[arg(value_name = "PATH", value_parser = control_path)]
    pub(crate) path: PathBuf,

    /// Print the server's answer as it is, a JSON object in one line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The time that the server may take to accept and answer the command
    #[arg(long, global = true, value_name = "TIME", default_value = "150s", value_parser = timeout)]
    pub(crate) timeout: core::time::Duration,

    #[command(subcommand)]
    pub(crate) command: CtlCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CtlCommand {
    /// List exports and clients with their rates
    ///
    /// The rates are measured for a second.
    List,
    /// Disconnect a client immediately
    ///
    /// Its requests in flight are not answered.
    Disconnect {
        /// The number of the client, as `list` shows it
        #[arg(value_name = "CLIENT")]
        client: u64,
    },
    /// Give a client a weight: its share of its export
    ///
    /// The export must be served under --design bfq.
    Weight {
        /// The number of the client, as `list` shows it
        #[arg(value_name = "CLIENT")]
        client: u64,
        /// The weight, 1 to 1000; a client without one counts as of weight 40
        #[arg(value_name = "N")]
        weight: Weight,
    },
    /// Limit bytes and requests per second of an export
    ///
    /// It must have been started with --rate.
    Rate {
        /// The name of the export; '' for the default one
        #[arg(value_name = "EXPORT")]
        export: String,
        /// As for `serve --rate`: 20m,500iops,burst=1s, or unlimited
        #[arg(value_name = "LIMITS", value_parser = rates)]
        limits: Rates,
    },
    /// Delay the requests of an export
    ///
    /// It must have been started with --delay.
    Delay {
        /// The name of the export; '' for the default one
        #[arg(value_name = "EXPORT")]
        export: String,
        /// As for `serve --delay`: 500us, 1ms-3ms, or 0us for none
        #[arg(value_name = "TIME[-TIME]", value_parser = extra)]
        delay: Extra,
    },
    /// Replace the fault rules of an export
    ///
    /// It must have been started with --fault. The times of the new rules begin now.
    Fault {
        /// The name of the export; '' for the default one
        #[arg(value_name = "EXPORT")]
        export: String,
        /// As for `serve --fault`: a file, - for standard input, a rule, or none
        ///
        /// A rule: 'op = "read", nth = 3, error = "io"'. In a file, also from standard input, each
        /// rule begins with [[rule]]. Operations: read, write, flush (or fsync), discard (or trim),
        /// write-zeroes.
        #[arg(value_name = "RULES")]
        rules: FaultSource,
    },
    /// Add an export
    Add {
        /// The name of the export; '' for the default one
        #[arg(value_name = "EXPORT")]
        export: String,
        /// As for `serve`: a path, memory:SIZE or null:SIZE
        #[arg(value_name = "DISK")]
        source: String,
        /// Keys of a disk, as in `serve --config`: readonly, depth=8
        #[arg(value_name = "KEY[=VALUE]")]
        keys: Vec<String>,
    },
    /// Remove an export without clients: flush its disk and close it
    Remove {
        /// The name of the export; '' for the default one
        #[arg(value_name = "EXPORT")]
        export: String,
        /// End its clients first; their requests end within --drain-timeout
        #[arg(long)]
        force: bool,
    },
    /// Change the size of an export without clients
    ///
    /// The export is a file, memory: or null:.
    Resize {
        /// The name of the export; '' for the default one
        #[arg(value_name = "EXPORT")]
        export: String,
        /// The size: 20g
        #[arg(value_name = "SIZE", value_parser = bytes)]
        size: u64,
        /// End its clients first; they may connect again
        #[arg(long)]
        force: bool,
    },
    /// End the server as SIGTERM does
    ///
    /// The server takes no more requests, and answers those in flight.
    Drain,
    /// Anything else.
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

impl CtlCommand {
    /// Returns the command as the server gets it.
    ///
    /// # Errors
    ///
    /// There is no such command, or a file cannot be read.
    pub(crate) fn request(self) -> Result<Request, String> {
        Ok(match self {
            Self::List => Request::List {},
            Self::Disconnect { client } => Request::Disconnect { client },
            Self::Weight { client, weight } => Request::Weight { client, weight },
            Self::Rate { export, limits } => Request::Rate {
                export,
                bytes_per_s: limits.bytes_per_s.and_then(NonZeroU64::new),
                requests_per_s: limits.requests_per_s.and_then(NonZeroU64::new),
                burst_ms: in_units(limits.burst, 1_000_000),
            },
            Self::Delay { export, delay } => Request::Delay {
                export,
                min_us: in_units(delay.min, 1000),
                max_us: in_units(delay.max, 1000),
            },
            Self::Fault { export, rules } => {
                let rules = rules.text().map_err(|error| error.to_string())?;
                Request::Fault { export, rules }
            }
            Self::Add { export, source, keys } => Request::Add { disk: disk(export, source, keys) },
            Self::Remove { export, force } => Request::Remove { export, force },
            Self::Resize { export, size, force } => {
                Request::Resize { export, size_bytes: size, force }
            }
            Self::Drain => Request::Drain {},
            Self::Unknown(words) => {
                let known = Self::augment_subcommands(Command::new("ctl"));
                let known: Vec<_> = known.get_subcommands().map(Command::get_name).collect();
                let word = words.first().map_or("", String::as_str);
                return Err(format!("unknown command `{word}`: one of {}", known.join(", ")));
            }
        })
    }
}

/// Reads a time that is not zero.
fn timeout(text: &str) -> Result<core::time::Duration, String> {
    let timeout = time(text)?;
    (!timeout.is_zero()).then_some(timeout).ok_or_else(|| "a time above 0".to_owned())
}

/// Returns the description of a disk for the server.
fn disk(export: String, source: String, keys: Vec<String>) -> Map<String, Value> {
    let keys = keys.into_iter().map(|key| match key.split_once('=') {
        Some((key, value)) => (key.to_owned(), value.into()),
        None => (key, true.into()),
    });
    let own = [("name".to_owned(), export.into()), ("source".to_owned(), source.into())];
    keys.chain(own).collect()
}

/// Returns the number of units of `unit_ns` in `time`, rounded up.
fn in_units(time: Duration, unit_ns: u64) -> u32 {
    u32::try_from(time.as_ns().div_ceil(unit_ns)).unwrap_or(u32::MAX)
}

const CTL_HELP: &str = "\
Examples:
  blockyard serve disk.img --nbd unix:/run/disk.sock --control /run/disk.ctl
  blockyard ctl /run/disk.ctl list
  blockyard ctl /run/disk.ctl disconnect 3
  blockyard ctl /run/disk.ctl weight 3 300
  blockyard ctl /run/disk.ctl rate '' 20m,burst=1s
  blockyard ctl /run/disk.ctl fault '' outage.toml
  blockyard ctl /run/disk.ctl fault '' 'op = \"flush\", nth = 1, error = \"io\"'
  blockyard ctl /run/disk.ctl add scratch memory:1g max-clients=1
  blockyard ctl /run/disk.ctl resize scratch 2g --force

Other programs may write to the socket themselves, a JSON object in each line:
  {\"command\":\"disconnect\",\"client\":3}
Each line is answered by one with \"ok\" and the result, or with \"error\" and the
reason.";
