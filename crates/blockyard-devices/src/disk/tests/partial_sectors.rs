//! Writes of a part of a sector of the platters.
//!
//! A turn takes 8333 us, in which 3640 sectors of 512 bytes pass: 455 of 4 KiB, as a 456th does not
//! fit into the 3645 that the rate of the data sheet gives.

use super::*;

/// A disk with sectors of 4 KiB, and a write cache of `cache` bytes.
fn emulated(cache: u64) -> Rig {
    Rig::new(PlattersProfile { physical_sector: 4_096, ..write_cache(cache) })
}

/// Returns the nanoseconds of a write without a cache from `start` to `end`, and those of one of
/// the whole sectors of the platters from `first` to `last` on such a disk.
fn times([start, end]: [u64; 2], [first, last]: [u64; 2]) -> [u64; 2] {
    [(start, end), (first, last)].map(|(start, end)| {
        let sectors = u32::try_from(end - start).unwrap();
        emulated(0).run(access(Op::Write, start, sectors)).as_ns()
    })
}

#[test]
fn a_write_that_covers_a_part_of_a_sector_takes_a_turn_more() {
    for (part, whole) in [
        ([80, 81], [80, 88]),
        ([81, 88], [80, 88]),
        ([83, 91], [80, 96]),
        ([87, 1_000], [80, 1_000]),
        ([80, 1_001], [80, 1_008]),
        // Both ends are read in the same turn.
        ([87, 1_001], [80, 1_008]),
        // The first sector of one track and the last of the next: a turn at each.
        ([3_633, 3_648], [3_632, 3_648]),
    ] {
        let [part_ns, whole_ns] = times(part, whole);
        assert_eq!(part_ns - whole_ns, 8_333_333, "{part:?}");
    }
    let [part_ns, whole_ns] = times([3_633, 3_647], [3_632, 3_648]);
    assert_eq!(part_ns - whole_ns, 2 * 8_333_333, "the ends lie on two tracks");
    let [one, other] = times([80, 88], [80, 88]);
    assert_eq!(one, other);
}

#[test]
fn a_disk_without_emulation_and_a_read_of_a_part_lose_no_turn() {
    let whole = Rig::new(profile()).run(access(Op::Write, 80, 8)).as_ns();
    let part = Rig::new(profile()).run(access(Op::Write, 81, 7)).as_ns();
    // One sector comes round in 2.3 us.
    assert!(part.abs_diff(whole) < 5_000, "{part} and {whole} ns");
    let whole = emulated(0).run(access(Op::Read, 80, 8)).as_ns();
    let part = emulated(0).run(access(Op::Read, 81, 7)).as_ns();
    assert!(part.abs_diff(whole) < 5_000, "{part} and {whole} ns");
}

/// Returns the time for which the head waits for sectors when a cache with `writes`, of 4 sectors
/// each from there on, is flushed.
fn waits(writes: &[u64]) -> u64 {
    let mut rig = emulated(1 << 20);
    for &start in writes {
        assert_eq!(rig.run(access(Op::Write, start, 4)), Duration::ZERO);
    }
    rig.run(access(Op::Flush, 0, 0));
    assert_eq!(rig.disk.counts.destages, 1, "they are one piece");
    rig.disk.counts.rotation.as_ns()
}

/// Writes of 2 KiB each in sequence cover whole sectors together.
#[test]
fn parts_of_a_sector_that_meet_in_the_cache_lose_no_turn() {
    let [whole, half] = [waits(&[80, 84, 88, 92]), waits(&[80, 84, 88])];
    assert_eq!(half - whole, 8_333_333);
}
