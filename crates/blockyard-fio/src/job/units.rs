//! The units in which random offsets are drawn, and whether a pass may visit a block twice.

use super::model::{Distribution, Job, RandomGenerator};
use super::op::PerOp;

/// How a job visits the blocks of a region at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visits {
    /// Any block, as often as it is drawn.
    Any,
    /// Each block once in a pass, in an order without memory. fio's `lfsr` is such an order.
    InOrder,
    /// Each block once in a pass. As in fio, a map has the blocks that were used, and one that is
    /// drawn again stands for the next free one. All I/Os have the length of a block.
    Once,
    /// The same for I/Os of several lengths.
    Mapped,
}

/// The random offsets of a job in one region.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    /// Offsets of each kind of I/O are multiples of this number of bytes.
    pub(crate) align_bytes: PerOp<u64>,
    /// The distance between two blocks in bytes.
    pub(crate) unit_bytes: u64,
    /// The number of blocks, at least one. The last one has room for the shortest I/O.
    pub(crate) blocks: u64,
    /// How often a pass visits a block.
    pub(crate) visits: Visits,
}

impl Units {
    /// Returns the units of `job` in a region of `region_bytes`.
    pub(crate) fn of(job: &Job, region_bytes: u64) -> Self {
        let align_bytes = PerOp::from_fn(|op| {
            job.block_align_bytes.of(op).unwrap_or(job.block.of(op).min_bytes().into())
        });
        let mut mix = job.pattern.mix.ops().iter();
        let unit_bytes = mix.clone().map(|op| *align_bytes.of(*op)).min().unwrap_or(1).max(1);
        let room = region_bytes.saturating_sub(job.min_block_bytes().into());
        let aligned = job.block_align_bytes.each().iter().any(|align| align.is_some());
        let mapped = job.distribution == Distribution::Uniform && !job.norandommap && !aligned;
        let has_one_unit = mix.clone().all(|op| *align_bytes.of(*op) == unit_bytes);
        let has_one_length = mix.all(|op| {
            let blocks = job.block.of(*op);
            blocks.min_bytes() == blocks.max_bytes()
        });
        let visits = match mapped {
            true if job.random_generator == RandomGenerator::Lfsr => Visits::InOrder,
            // fio looks up the blocks of one kind of I/O by the numbers of another one here.
            true if !has_one_unit => Visits::InOrder,
            true if has_one_length => Visits::Once,
            true => Visits::Mapped,
            false => Visits::Any,
        };
        Self { align_bytes, unit_bytes, blocks: room / unit_bytes + 1, visits }
    }
}
