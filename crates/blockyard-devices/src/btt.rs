//! The table `[btt]` of a design: a block translation table over persistent memory.

use blockyard_btt::layout::NFREE;
use blockyard_btt::{LaneChoice, Policy, ReadTracking};

use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::Table;
use crate::reader::value::{Count, Flag, OneOf};

/// The way in which a design copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// By the processor's instruction for any bytes.
    Bytewise,
    /// By loads and stores past the caches, regardless of lines.
    Nt,
    /// By loads and stores past the caches, of whole lines.
    AlignedNt,
}

/// The values of `copy`, in the order of [`CopyProfile::page`](crate::profile::CopyProfile::page).
const COPY: &[(&str, Copying)] =
    &[("bytewise", Copying::Bytewise), ("nt", Copying::Nt), ("aligned-nt", Copying::AlignedNt)];
/// The block translation table of a design, which keeps sectors whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BttDesign {
    /// The way in which readers and writers of one block stay apart.
    pub tracking: ReadTracking,
    /// The lane that a thread takes; `None`: the library chooses by the number of processors.
    pub lanes: Option<LaneChoice>,
    /// The way in which data is copied.
    pub copy: Copying,
    /// The way in which a word of the table is loaded.
    pub words: Words,
    /// The points at which stores become durable.
    pub fences: Fences,
    /// Whether map entries are fetched while data is copied.
    pub(crate) prefetch: bool,
    /// Bytes of a sector: the disk's logical block.
    pub sector_bytes: u32,
}

impl BttDesign {
    /// Returns the policy of the table on a machine with this many processors.
    #[must_use]
    pub fn policy(&self, cpus: u16) -> Policy {
        debug_assert!(cpus > 0, "a machine without processors");
        let lanes = self.lanes.unwrap_or(LaneChoice::for_threads(cpus.into()));
        Policy { tracking: self.tracking, lanes }
    }
}

/// The way in which a word of the table is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Its bytes are copied one after another, like any data.
    Copied,
    /// By one load.
    Loaded,
}

/// The points at which stores become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fences {
    /// After the data, each half of the log entry and the map entry.
    EachStore,
    /// At the points that recovery needs: twice in a write.
    Two,
}

#[derive(Clone, Copy, PartialEq)]
enum Lane {
    Own,
    PerCpu,
    Mutex,
    Counter,
}

const KEYS: &[&str] =
    &["copy", "words", "rtt", "lane", "lane-sets", "fences", "prefetch", "sector-size"];
const WORDS: &[(&str, Words)] = &[("copied", Words::Copied), ("loaded", Words::Loaded)];
const RTT: &[(&str, ReadTracking)] = &[
    ("versions", ReadTracking::Versions),
    ("indexed", ReadTracking::Indexed),
    ("scan", ReadTracking::Scan),
    ("scan-padded", ReadTracking::ScanPadded),
];
const LANE: &[(&str, Lane)] = &[
    ("own", Lane::Own),
    ("per-cpu", Lane::PerCpu),
    ("mutex", Lane::Mutex),
    ("counter", Lane::Counter),
];
const FENCES: &[(&str, Fences)] = &[("each-store", Fences::EachStore), ("two", Fences::Two)];
const SECTOR: &[(&str, u32)] = &[("512B", 512), ("4KiB", 4096)];

/// Reads the table `[btt]` of `top`, if there is one.
pub(crate) fn btt(top: &Table<'_>) -> Result<Option<BttDesign>, ProfileError> {
    let table = top.table("btt", KEYS)?;
    if table.is_empty() {
        return Ok(None);
    }
    let lane = table.need("lane", OneOf(LANE))?;
    let sets = table.take("lane-sets", Count(1..=NFREE))?;
    if lane != Lane::Own && table.has("lane-sets") {
        let words = "`lane-sets` goes only with `lane = \"own\"`";
        return Err(table.wrong("lane-sets", Problem::Contradiction(words)));
    }
    let lanes = match lane {
        Lane::Own => sets.map(|sets| LaneChoice::Own { sets }),
        Lane::PerCpu => Some(LaneChoice::Own { sets: NFREE }),
        Lane::Mutex => Some(LaneChoice::Mutex),
        Lane::Counter => Some(LaneChoice::Counter),
    };
    Ok(Some(BttDesign {
        tracking: table.need("rtt", OneOf(RTT))?,
        lanes,
        copy: table.need("copy", OneOf(COPY))?,
        words: table.take_or("words", OneOf(WORDS), Words::Loaded)?,
        fences: table.need("fences", OneOf(FENCES))?,
        prefetch: table.take_or("prefetch", Flag, false)?,
        sector_bytes: table.take_or("sector-size", OneOf(SECTOR), 4096)?,
    }))
}
