//! The units in which random offsets are drawn, and whether a pass may visit a block twice.

use super::model::{Distribution, Job, RandomGenerator};
use super::op::{Op, PerOp};

/// How a job visits the blocks of a region at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visits {
    /// Any block, as often as it is drawn.
    Any,
    /// Each block once in a pass, in an order without memory. fio's `lfsr` is such an order.
    InOrder,
    /// Each block once in a pass. As in fio, a map has the blocks that were used, and one that is
    /// drawn again stands for the next free one. All I/Os of a kind have one length.
    ///
    /// One map serves reads, writes and trims, and has a block for each of the shortest of their
    /// I/Os; but each kind counts in its own. With `bs=4k,64k` and 64 MiB, there are 16,384 blocks,
    /// a write in the 64 KiB from 1 MiB on uses number 16, and so does a read at 64 KiB. A pass
    /// ends when the next free block is none of its kind: 1024 for a write.
    Once,
    /// The same for I/Os of several lengths.
    Mapped,
}

/// Returns whether the numbers of blocks count shorter ones than some that the job reads or writes:
/// `rw=randwrite bs=4k,64k` is such a job, although it does not read.
pub(super) fn numbers_shorter_blocks(job: &Job) -> bool {
    let unit_bytes = shortest_bytes(job);
    job.pattern.mix.ops().iter().any(|op| u64::from(job.block.of(*op).min_bytes()) > unit_bytes)
}

/// Returns whether fio counts the blocks of a skewed distribution in other units than those in
/// which the job places its I/Os. fio counts the shorter of the blocks for reads and for writes, be
/// they used or not, and multiplies by the block of the I/O: with `rw=randread bs=64k,4k`, rank
/// 1024 of 64 MiB is the end of the file, and 15 of 16 ranks lie behind it.
pub(super) fn skews_in_other_units(job: &Job) -> bool {
    let counted = job.block.read.min_bytes().min(job.block.write.min_bytes());
    let differs = |op: &Op| job.block.of(*op).min_bytes() != counted;
    job.pattern.random && job.distribution.is_skewed() && job.pattern.mix.ops().iter().any(differs)
}

/// Returns whether a pass of the job ends before it has covered its region.
pub(super) fn ends_early(job: &Job) -> bool {
    let mapped = matches!(Units::visits(job), Visits::Once | Visits::Mapped);
    job.pattern.random && mapped && numbers_shorter_blocks(job)
}

/// Returns the bytes of the shortest I/O of any kind, be it one that the job does not do.
fn shortest_bytes(job: &Job) -> u64 {
    let lengths = job.block.each();
    lengths.iter().map(|block| u64::from(block.min_bytes())).min().unwrap_or(1)
}

/// Returns in how many blocks of `unit_bytes` an I/O of `len_bytes` may begin, at least one.
const fn blocks_in(region_bytes: u64, len_bytes: u64, unit_bytes: u64) -> u64 {
    region_bytes.saturating_sub(len_bytes) / unit_bytes + 1
}

/// The random offsets of a job in one region.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    /// Offsets of each kind of I/O are multiples of this number of bytes.
    pub(crate) align_bytes: PerOp<u64>,
    /// The distance in bytes between two blocks that are not in a map.
    pub(crate) unit_bytes: u64,
    /// The number of blocks, at least one. The last one has room for the shortest I/O.
    pub(crate) blocks: u64,
    /// The blocks in which a mapped I/O of each kind may begin, at least one.
    pub(crate) blocks_of: PerOp<u64>,
    /// How often a pass visits a block.
    pub(crate) visits: Visits,
}

impl Units {
    /// Returns the units of `job` in a region of `region_bytes`.
    pub(crate) fn of(job: &Job, region_bytes: u64) -> Self {
        let align_bytes = PerOp::from_fn(|op| {
            job.block_align_bytes.of(op).unwrap_or(job.block.of(op).min_bytes().into())
        });
        let visits = Self::visits(job);
        let mapped = matches!(visits, Visits::Once | Visits::Mapped);
        let mix = job.pattern.mix.ops();
        let unit_bytes = match mapped {
            true => shortest_bytes(job),
            false => mix.iter().map(|op| *align_bytes.of(*op)).min().unwrap_or(1).max(1),
        };
        let shortest = if mapped { unit_bytes } else { job.min_block_bytes().into() };
        let blocks_of = PerOp::from_fn(|op| {
            let unit_bytes = (*align_bytes.of(op)).max(1);
            blocks_in(region_bytes, job.block.of(op).min_bytes().into(), unit_bytes)
        });
        let blocks = blocks_in(region_bytes, shortest, unit_bytes);
        Self { align_bytes, unit_bytes, blocks, blocks_of, visits }
    }

    fn visits(job: &Job) -> Visits {
        // As in fio, an alignment to the block is none.
        let aligned = Op::ALL.iter().any(|op| {
            let block_bytes = u64::from(job.block.of(*op).min_bytes());
            job.block_align_bytes.of(*op).is_some_and(|align| align != block_bytes)
        });
        if job.distribution != Distribution::Uniform || job.norandommap || aligned {
            return Visits::Any;
        }
        if job.random_generator == RandomGenerator::Lfsr {
            return Visits::InOrder;
        }
        let has_one_length = job.pattern.mix.ops().iter().all(|op| {
            let blocks = job.block.of(*op);
            blocks.min_bytes() == blocks.max_bytes()
        });
        if has_one_length { Visits::Once } else { Visits::Mapped }
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::parse_bytes;
    use super::super::error::Remark;
    use super::super::source::NoSource;
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn reads_and_writes_share_a_map_of_the_shortest_blocks() {
        // 64 MiB are 16,384 blocks of 4 KiB, or 1024 of 64 KiB. The kinds that a job does not do
        // count too.
        for (options, blocks, reads, writes, early) in [
            ("rw=randwrite\nbs=64k", 1024, 1024, 1024, false),
            ("rw=randwrite\nbs=4k,64k", 16_384, 16_384, 1024, true),
            ("rw=randread\nbs=4k,64k", 16_384, 16_384, 1024, false),
            ("rw=randrw\nbs=64k,4k", 16_384, 1024, 16_384, true),
            ("rw=randwrite\nbs=64k,64k,4k", 16_384, 1024, 1024, true),
            ("rw=randwrite\nbsrange=4k-64k", 16_384, 16_384, 16_384, false),
        ] {
            let file = parse_bytes("f", format!("[a]\ndirect=1\n{options}").as_bytes(), &NoSource);
            let file = file.unwrap();
            let units = Units::of(&file.jobs[0], 64 * MIB);
            let counts =
                (units.blocks, *units.blocks_of.of(Op::Read), *units.blocks_of.of(Op::Write));
            assert_eq!(counts, (blocks, reads, writes), "{options}");
            let noted = file.notes.iter().any(|note| matches!(note.remark, Remark::EndsEarly));
            assert_eq!(noted, early, "{options}");
        }
    }
}
