//! The commands of `btt` and their options.

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
    /// Create a file with an empty BTT
    Create(Create),
    /// Show the contents of a file: arenas, sizes, offsets
    Info(Inspected),
    /// Check every rule of the format, without writing
    #[command(after_help = CHECK_HELP)]
    Check(Check),
    /// Repair what can be repaired with certainty
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

/// The container of a BTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContainerName {
    /// A Linux namespace without a label: version 1.1, after 4096 bytes
    Namespace,
    /// A namespace with a label of class BTT2: version 2.0, from the first byte
    Labelled,
    /// A libpmemblk pool: version 1.1, after its header
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

/// The versions of the format, by the container that uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VersionName {
    /// For a namespace without a label
    #[value(name = "1.1")]
    V1,
    /// For a namespace with a label of class BTT2
    #[value(name = "2.0")]
    V2,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The file, which must not exist
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The size of the file: 64m, 1g
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) size: u64,

    /// The size of a sector: 512, 520, 528, 4096 (or 4k), 4104, 4160 or 4224
    ///
    /// In a pool any size up to 1m is possible.
    #[arg(long, value_name = "SIZE", default_value = "512", value_parser = sector_bytes)]
    pub(crate) sector_size: u32,

    /// The version of the format, which determines the kind of namespace
    #[arg(long = "version", value_name = "VERSION", value_enum, default_value = "1.1")]
    pub(crate) format: VersionName,

    /// Create a libpmemblk pool
    #[arg(long, conflicts_with = "format")]
    pub(crate) pmemblk_pool: bool,
}

/// Parses a size of at most 32 bits.
fn sector_bytes(text: &str) -> Result<u32, String> {
    u32::try_from(bytes(text)?).map_err(|_| format!("{text:?} is too large for a sector"))
}

/// A file to inspect.
#[derive(Clone, Debug, Args)]
pub(crate) struct Inspected {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The container of the BTT, if it cannot be detected
    #[arg(long, value_name = "CONTAINER", value_enum)]
    pub(crate) container: Option<ContainerName>,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) inspected: Inspected,

    /// The number of findings of each severity to print; all are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) findings: usize,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("how").required(true).args(["dry_run", "yes"])))]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) inspected: Inspected,

    /// Print what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Repair the file
    #[arg(long)]
    pub(crate) yes: bool,

    /// Clear the error mark of arenas that have no other error
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

    /// The number of sectors; without it, all
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,

    /// Include sectors that were never written
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CopySectors {
    /// The source
    #[arg(value_name = "FROM")]
    pub(crate) from: PathBuf,

    /// The destination
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,

    /// Copy sectors that are lost or have no block as zeroes, instead of stopping there
    #[arg(long)]
    pub(crate) zero_lost: bool,

    /// Use the BTT even if `btt check` calls it broken
    #[arg(long)]
    pub(crate) force: bool,

    /// The container of the BTT, if it cannot be detected
    #[arg(long, value_name = "CONTAINER", value_enum)]
    pub(crate) container: Option<ContainerName>,
}

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// The file with the BTT, which is not changed
    #[arg(value_name = "FROM")]
    pub(crate) from: PathBuf,

    /// The new file, which must not exist
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,

    /// The container of the new file
    #[arg(long = "to", value_name = "CONTAINER", value_enum)]
    pub(crate) into: ContainerName,

    /// Use the BTT even if `btt check` calls it broken
    #[arg(long)]
    pub(crate) force: bool,

    /// The container of the source, if it cannot be detected
    #[arg(long, value_name = "CONTAINER", value_enum)]
    pub(crate) container: Option<ContainerName>,
}

const CHECK_HELP: &str = "\
Each finding has a severity: a note is not damage; repairable damage can be
repaired by `btt repair`; broken means that the image does not hold enough to
tell what is right. Writes that a loss of power interrupted are not damage: they
are completed when the BTT is opened. Data is not checked, because a BTT has no
checksums of its data.

An image in use is checked several times. Only damage that was found each time
is printed and counted, because writes in progress look like damage.

Exit codes: 0 clean, 3 repairable, 4 broken; 1 the check failed, 2 bad usage, a
file that cannot be opened, or one without a BTT. Without --container, a file in
which nothing looks like an info block has no BTT.";

const REPAIR_HELP: &str = "\
Only certain repairs are made: an info block is restored from its copy, or the
copy from the info block; interrupted writes are completed; logs that other
implementations misread are completed. If every other block has its owner,
blocks without an owner go to lanes without a block, or to sectors whose block
does not exist; these sectors are marked as lost. If a block has two owners,
nothing is guessed. A loss of power during the repair does no harm.

An arena that is marked as broken (its error flag forbids writes) needs a
decision, because nothing records the reason for the mark: --unmark clears it,
but only if a full check finds nothing else.

Exit codes: those of `btt check`, for the state after the repair.";

const COPY_HELP: &str = "\
If TO exists, it is the BTT, and FROM is a raw image of whole sectors that is no
larger; sectors beyond the end of the image are not changed. If TO does not
exist, FROM is the BTT, and TO becomes a raw image. Sectors of zeroes take no
space on either side; the holes of a file are skipped. If the power fails during
a copy into a BTT, check the BTT afterwards: its file is synchronised only at
the end.

A BTT that `btt check` calls broken is refused without --force.

Exit codes: 0 everything was copied; 1 something failed, or sectors were lost
(with --zero-lost they are zeroes in TO); 2 bad usage, or a file that cannot be
opened or is refused.";

const CONVERT_HELP: &str = "\
Sectors that are marked as lost in FROM are marked as lost in TO. So are sectors
that cannot be read because their map entry names no block or the medium lost
them; these are counted. A BTT that `btt check` calls broken is
refused without --force.

Exit codes: 0 everything was copied; 1 something failed, or sectors could not be
read; 2 bad usage, or a file that cannot be opened or is refused.";
