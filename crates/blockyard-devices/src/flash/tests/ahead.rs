//! Reading ahead of reads in sequence.

use super::*;

/// A drive of four dies on a channel each: rows of four units, 60 us for a page, 5 us to carry a
/// unit, and 5 us for a read that finds its data. It reads four rows ahead.
fn ahead() -> FlashProfile {
    FlashProfile { channels: 4, dies: 1, read_ahead: 64 << 10, ..profile() }
}

/// Reads four units from each of `units` on, one read after another. Returns the times, in us.
fn rows(rig: &mut Rig, units: &[u64]) -> Vec<u64> {
    let reads = units.iter().map(|unit| Access { sectors: 32, ..at(Op::Read, *unit) });
    reads.map(|read| rig.run(1, 1, |_| read)[0].1.as_ns() / 1000).collect()
}

#[test]
fn a_read_that_continues_another_one_makes_the_drive_read_ahead() {
    let mut rig = Rig::new(ahead());
    // The second read takes as long as the first, a page and four transfers, and four rows are read
    // beside it, of which the last is on its die. The others are there when they are asked for.
    assert_eq!(rows(&mut rig, &[0, 4, 8]), [80, 80, 5]);
    assert_eq!((rig.count("pages_read"), rig.count("pages_read_ahead")), (2, 4));
    assert_eq!(rows(&mut rig, &[12]), [5]);
    assert_eq!((rig.count("pages_read"), rig.count("reads_ahead_used")), (2, 2));
    // With the fourth read, half of them have been asked for, and two more are read.
    assert_eq!(rig.count("pages_read_ahead"), 6);
    // Any other read begins a stream of its own.
    assert_eq!(rows(&mut rig, &[64, 16]), [80, 5]);
    let mut without = Rig::new(FlashProfile { read_ahead: 0, ..ahead() });
    assert_eq!(rows(&mut without, &[0, 4, 8, 12]), [80; 4]);
}

/// The second read asks for the third row at 80 us. A read of that row 30 us later waits until it
/// has been read and carried, at 160 us.
#[test]
fn a_read_waits_for_data_that_is_on_its_way() {
    let mut rig = Rig::new(ahead());
    rows(&mut rig, &[0]);
    rig.begin(0, Access { sectors: 32, ..at(Op::Read, 4) });
    rig.wait(110_000);
    rig.begin(1, Access { sectors: 32, ..at(Op::Read, 8) });
    let mut ends = Vec::new();
    while rig.step(u64::MAX) {
        ends.extend(
            core::iter::from_fn(|| rig.flash.next_ended()).map(|id| (id.0, rig.now.as_ns() / 1000)),
        );
    }
    assert_eq!(ends, [(0, 160), (1, 160)]);
}

#[test]
fn the_drive_follows_as_many_streams_as_it_has_room_for() {
    for (read_streams, times) in [(1, [80; 6]), (2, [80, 80, 80, 80, 5, 5])] {
        let mut rig = Rig::new(FlashProfile { read_streams, ..ahead() });
        assert_eq!(rows(&mut rig, &[0, 1000, 4, 1004, 8, 1008]), times);
    }
}

#[test]
fn data_that_was_written_since_is_not_what_was_read_ahead() {
    let mut rig = Rig::new(FlashProfile { fill: 10, ..ahead() });
    rows(&mut rig, &[0, 4]);
    let write = Access { sectors: 32, ..at(Op::Write, 8) };
    rig.run(1, 2, |nth| if nth == 0 { write } else { FLUSH });
    assert_eq!(rows(&mut rig, &[8, 12]), [80, 5]);
}

/// The drive ends where its addresses do.
#[test]
fn nothing_is_read_ahead_beyond_the_end() {
    let mut rig = Rig::new(ahead());
    let last = rig.flash.capacity - 8;
    assert_eq!(rows(&mut rig, &[last - 4, last]), [80, 80]);
    assert_eq!(rig.count("pages_read_ahead"), 1);
}
