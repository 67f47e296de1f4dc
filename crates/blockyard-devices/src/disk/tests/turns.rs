//! The turns of cached writes with commands.

use super::*;

/// A disk with room for 64 writes of 4 KiB, whose batches have 16 and take `turns`.
fn disk(turns: Turns) -> Rig {
    let cache = DiskCacheProfile { batch: 16, turns, ..write_cache(256 << 10).cache };
    Rig::new(PlattersProfile { cache, ..profile() })
}

/// Lets writes wait for room and `reads` random reads for the arm. Returns, for each read in the
/// order of its end, how many pieces had gone to the platters by then.
fn destages_before_reads(turns: Turns, reads: usize) -> Vec<u64> {
    let mut rig = disk(turns);
    let mut write = random(Op::Write, 11);
    let mut read = random(Op::Read, 12);
    (0..200).for_each(|nth| assert!(rig.begin(write(nth)) < 200));
    let ids: Vec<_> = (0..reads).map(|nth| rig.begin(read(nth)) as usize).collect();
    let mut before = Vec::new();
    while before.len() < reads {
        assert!(rig.step(), "the disk stands still");
        let ended = rig.ended_of(&ids);
        before.extend((before.len()..ended).map(|_| rig.disk.counts.destages));
    }
    before
}

/// The first piece is under way when the reads come. They have turns of one and one, or 16 and 16.
/// The piece that begins as the last read of a turn ends counts too, and so does one that begins as
/// the last of all reads ends.
#[test]
fn a_batch_that_has_begun_ends_before_commands() {
    assert_eq!(destages_before_reads(Turns::OneEach, 4), [2, 3, 4, 5]);
    let batches = destages_before_reads(Turns::Batch, 18);
    assert_eq!(batches, [[16; 15].as_slice(), &[17, 32, 33]].concat());
}

/// Returns how many pieces had begun when a read of `sector` ended, while 200 writes in the middle
/// of the disk wait, from an arm at the start of the disk.
fn destages_before(turns: Turns, sector: u64) -> u64 {
    let mut rig = disk(turns);
    rig.begin(access(Op::Read, 0, 8));
    for nth in 0..200 {
        rig.begin(access(Op::Write, CAPACITY / 2 + nth * 4_000, 8));
    }
    let read = rig.begin(access(Op::Read, sector, 8)) as usize;
    while rig.ended[read].is_none() {
        assert!(rig.step(), "the disk stands still");
    }
    rig.disk.counts.destages
}

/// A read 0.2 ms behind the head goes before writes that are a seek of 10 ms away, and the first of
/// these begins as it ends. One at the end of the disk, as far from them, waits until it is 1 s
/// old: writes that are on the next track each take at most a step and a turn, 9.3 ms. In turns, a
/// write goes before each.
#[test]
fn by_position_the_nearest_goes_be_it_a_command_or_a_write() {
    assert_eq!(destages_before(Turns::Position, 100), 1);
    let far = destages_before(Turns::Position, CAPACITY - 8);
    assert!(far > 90, "{far} before a read that is far away");
    assert_eq!(destages_before(Turns::OneEach, 100), 2);
    assert_eq!(destages_before(Turns::OneEach, CAPACITY - 8), 2);
}
