//! What `btt` can be asked.

use std::path::PathBuf;

use blockyard_btt::Container;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::size::bytes;

#[derive(Debug, Args)]
pub(crate) struct Btt {
    #[command(subcommand)]
    pub(crate) command: BttCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BttCommand {
    /// Make a file with an empty BTT
    Create(Create),
    /// Say what is in a file: arenas, sizes, places
    Info(Inspected),
    /// Check every rule of the format; nothing is written
    #[command(after_help = CHECK_HELP)]
    Check(Check),
    /// Mend what is certain
    #[command(after_help = REPAIR_HELP)]
    Repair(Repair),
    /// Print the map: sector, state, block
    DumpMap(DumpMap),
    /// Copy all sectors to or from a raw image
    #[command(after_help = COPY_HELP)]
    Copy(CopySectors),
    /// Copy a BTT into a new file, in another container
    #[command(after_help = CONVERT_HELP)]
    Convert(Convert),
}

/// What a BTT lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContainerName {
    /// A namespace of Linux without label: version 1.1, behind 4096 bytes
    Namespace,
    /// A namespace with a label of class BTT2: version 2.0, from the first byte
    Labelled,
    /// A pool of libpmemblk: version 1.1, behind its header
    Pool,
}

impl From<ContainerName> for Container {
    fn from(name: ContainerName) -> Self {
        match name {
            ContainerName::Namespace => Self::Namespace,
            ContainerName::Labelled => Self::LabelledNamespace,
            ContainerName::Pool => Self::Pool,
        }
    }
}

/// Versions of the format, by the container that wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VersionName {
    /// For a namespace without label
    #[value(name = "1.1")]
    V1,
    /// For a namespace with a label of class BTT2
    #[value(name = "2.0")]
    V2,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The file, which must not be there yet
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Bytes of the file: 64m, 1g
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) size: u64,

    /// Bytes of a sector: 512, 520, 528, 4096, 4104, 4160 or 4224; in a pool any up to 4224
    #[arg(long, value_name = "BYTES", default_value_t = 512)]
    pub(crate) sector_size: u32,

    /// The version of the format, which says what kind of namespace this is
    #[arg(long = "version", value_name = "VERSION", value_enum, default_value = "1.1")]
    pub(crate) format: VersionName,

    /// Make a pool of libpmemblk
    #[arg(long, conflicts_with = "format")]
    pub(crate) pmemblk_pool: bool,
}

/// A file that is looked at.
#[derive(Debug, Args)]
pub(crate) struct Inspected {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// What the BTT lies in, where that is not to be found out
    #[arg(long, value_name = "CONTAINER", value_enum)]
    pub(crate) container: Option<ContainerName>,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) inspected: Inspected,

    /// Findings of each severity that are printed; all are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) findings: usize,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("how").required(true).args(["dry_run", "yes"])))]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) inspected: Inspected,

    /// Print what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,

    /// Let arenas that are marked as broken be written again, where nothing else is wrong with them
    #[arg(long)]
    pub(crate) unmark: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DumpMap {
    #[command(flatten)]
    pub(crate) inspected: Inspected,

    /// The first sector
    #[arg(long, value_name = "SECTOR", default_value_t = 0)]
    pub(crate) first: u64,

    /// How many sectors; all where it is not said
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,

    /// Sectors that were never written, too
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CopySectors {
    /// What is copied
    #[arg(value_name = "FROM")]
    pub(crate) from: PathBuf,

    /// Where it goes
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,

    /// Take sectors that are lost, or have no block, for zeroes, instead of ending at the first
    #[arg(long)]
    pub(crate) zero_lost: bool,

    /// What the BTT lies in, where that is not to be found out
    #[arg(long, value_name = "CONTAINER", value_enum)]
    pub(crate) container: Option<ContainerName>,
}

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// The file with the BTT, which stays as it is
    #[arg(value_name = "FROM")]
    pub(crate) from: PathBuf,

    /// The new file, which must not be there yet
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,

    /// What the new one is to lie in
    #[arg(long = "to", value_name = "CONTAINER", value_enum)]
    pub(crate) into: ContainerName,

    /// What the one that is there lies in, where that is not to be found out
    #[arg(long, value_name = "CONTAINER", value_enum)]
    pub(crate) container: Option<ContainerName>,
}

const CHECK_HELP: &str = "\
Each finding says how bad it is: a note is no damage; repairable damage is mended by `btt repair`; of what
is broken the image does not tell what is right. Writes that were cut by a loss of power are no damage:
whoever opens the BTT finishes them. Data are not looked at: a BTT keeps no checksums of them.

Exit codes: 0 clean, 3 repairable, 4 broken; 1 the check failed, 2 bad usage or a file that cannot be opened.";

const REPAIR_HELP: &str = "\
Only what is certain is done: an info block from its copy and the other way round; writes that were cut are
finished; logs that others misread are completed; blocks that nobody has go to the lanes that have none, or
to sectors whose block does not exist, which are marked as lost, if all others have theirs. Where a block
has two owners, nothing is guessed. The power may go at any time.

That an arena is marked as broken (its error flag: nothing may write to it) is for somebody to judge, as
nothing says why: --unmark takes the mark away, but only where a check of all of it finds nothing else.

Exit codes: those of `btt check`, for what is there in the end.";

const COPY_HELP: &str = "\
Where TO is there already, it is the BTT, and FROM is a raw image, of whole sectors and no larger; sectors
behind its end stay as they are. Where TO is not there, FROM is the BTT, and TO becomes a raw image.
Sectors of zeroes take no room on either side. After a loss of power in the middle of copying into a BTT, check
it: its file is synchronised at the end only.

Exit codes: 0 all is copied; 1 something failed, or sectors were lost, and with --zero-lost are zeroes in TO;
2 bad usage or a file that cannot be opened.";

const CONVERT_HELP: &str = "\
Sectors that are marked as lost are so in TO. Those that cannot be read, as their map entry names no block or
the medium lost them, become so, and are counted.

Exit codes: 0 all is as it was; 1 something failed, or sectors could not be read; 2 bad usage or a file that
cannot be opened.";
