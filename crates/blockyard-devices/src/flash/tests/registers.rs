//! The registers of dies: reading ahead of the channel, and reads of a row that is in one.

use super::*;

/// A drive of one die, without preparation: rows of four units, 60 us for a page, and 5 us to carry
/// a unit.
fn one_die() -> FlashProfile {
    FlashProfile { channels: 1, dies: 1, ..profile() }
}

/// Begins reads of `units` together. Returns when each ends, in us.
fn together(profile: FlashProfile, units: &[u64]) -> Vec<u64> {
    let mut rig = Rig::new(profile);
    (0..).zip(units).for_each(|(id, unit)| rig.begin(id, at(Op::Read, *unit)));
    let mut ends = vec![0; units.len()];
    while rig.step(u64::MAX) {
        while let Some(CommandId(id)) = rig.flash.next_ended() {
            ends[id as usize] = rig.now.as_ns() / 1000;
        }
    }
    ends
}

/// Reads `units` one after another. Returns the time of each, in us.
fn in_turn(rig: &mut Rig, units: &[u64]) -> Vec<u64> {
    units.iter().map(|unit| rig.run(1, 1, |_| at(Op::Read, *unit))[0].1.as_ns() / 1000).collect()
}

#[test]
fn neighbours_of_a_read_take_a_transfer_until_the_die_reads_another_row() {
    let mut rig = Rig::new(one_die());
    assert_eq!(in_turn(&mut rig, &[0, 1, 2, 3, 4, 5, 0]), [65, 5, 5, 5, 65, 5, 65]);
    assert_eq!((rig.count("pages_read"), rig.count("reads_joined")), (3, 4));
}

#[test]
fn a_die_that_programs_or_erases_forgets_the_row() {
    let mut rig = Rig::new(FlashProfile { fill: 10, ..one_die() });
    assert_eq!(in_turn(&mut rig, &[0, 1]), [65, 5]);
    rig.run(1, 2, |nth| if nth == 0 { at(Op::Write, 1000) } else { FLUSH });
    assert_eq!(in_turn(&mut rig, &[0, 1]), [65, 5]);
}

/// Rows of other dies are in registers of their own.
#[test]
fn each_die_keeps_a_row() {
    let mut rig = Rig::new(FlashProfile { dies: 2, ..one_die() });
    assert_eq!(in_turn(&mut rig, &[0, 4, 1, 5, 2, 6]), [65, 65, 5, 5, 5, 5]);
}

/// The row is there after 60 us. A read that came behind another row joins it all the same.
#[test]
fn reads_that_wait_for_a_row_are_carried_when_it_has_been_read() {
    // The fifth read begins when the row has been read, and is carried after the four before it
    // only with a second register. With one, it begins when they have left, at 80 us.
    let two = FlashProfile { registers: 2, ..one_die() };
    assert_eq!(together(two, &[0, 1, 2, 3, 4]), [65, 70, 75, 80, 125]);
    assert_eq!(together(two, &[0, 4, 1]), [65, 125, 70]);
    let one = FlashProfile { registers: 1, ..one_die() };
    assert_eq!(together(one, &[0, 1, 2, 3, 4]), [65, 70, 75, 80, 145]);
}

/// Pages that take longer to carry than to read fill both registers: the third row waits for all
/// reads of the first.
#[test]
fn a_register_is_full_until_all_reads_of_its_row_have_left() {
    let transfer = Duration::from_us(100);
    let profile = FlashProfile { transfer, ..one_die() };
    // Two reads of the first row leave by 260 us, and two of the second, read by 120, by 460. The
    // third row is read from 260 to 320 us, and leaves after them.
    assert_eq!(together(profile, &[0, 1, 4, 5, 8]), [160, 260, 360, 460, 560]);
    // With one register each row waits for the one before: 60 us more.
    let one = FlashProfile { registers: 1, ..profile };
    assert_eq!(together(one, &[0, 1, 4, 5, 8]), [160, 260, 420, 520, 680]);
}

/// Each page must be read once more.
#[test]
fn a_row_whose_errors_are_not_corrected_serves_no_other_read() {
    let retries = Spread::new(&[(0, 1), (100_000_000, 1)]);
    let mut rig = Rig::new(FlashProfile { retries, ..one_die() });
    assert_eq!(in_turn(&mut rig, &[0, 1, 2]), [130, 5, 5]);
    // The die reads the row from 0, 60 and 120 us on. The last of these times it succeeds, and the
    // other read takes what it has.
    assert_eq!(together(rig.flash.profile, &[0, 1]), [185, 190]);
}

#[test]
fn a_die_reads_ahead_of_its_channel_by_its_registers() {
    // Four units on the first die of one channel, 60 us for a page and 100 us to carry it.
    let ends = |registers| {
        let transfer = Duration::from_us(100);
        let profile = FlashProfile { channels: 1, registers, transfer, ..profile() };
        let mut rig = Rig::new(profile);
        (0..4).for_each(|nth| rig.begin(nth, at(Op::Read, 8 * u64::from(nth))));
        rig.wait(150_000);
        let begun = rig.count("pages_read");
        let mut ends = Vec::new();
        while rig.step(u64::MAX) {
            ends.extend(rig.flash.next_ended().map(|_| rig.now.as_ns() / 1000));
        }
        (begun, ends)
    };
    assert_eq!(ends(1), (1, vec![160, 320, 480, 640]));
    // The second page is in a register, and the third one waits for the first to leave.
    assert_eq!(ends(2), (2, vec![160, 260, 360, 460]));
}

/// Lets two jobs read one row for 10 ms, each again as soon as its read has ended. Begins `others`
/// after 67 us. Returns when the last of them ends, in us.
fn beside_two_readers(others: &[Access]) -> Option<u64> {
    let mut rig = Rig::new(FlashProfile { registers: 1, fill: 10, ..one_die() });
    (0..2).for_each(|id| rig.begin(id, at(Op::Read, id.into())));
    let mut left = others.len();
    let mut has_begun = false;
    while rig.step(10_000_000) {
        while let Some(CommandId(id)) = rig.flash.next_ended() {
            match id {
                0 | 1 => rig.begin(id, at(Op::Read, id.into())),
                _ => left -= 1,
            }
        }
        if left == 0 {
            return Some(rig.now.as_ns() / 1000);
        }
        if rig.now.as_ns() == 65_000 && !has_begun {
            has_begun = true;
            rig.now = Instant::from_ns(67_000);
            (2..).zip(others).for_each(|(id, access)| rig.begin(id, *access));
        }
    }
    None
}

/// A transfer of the row is under way whenever one of its readers asks again.
#[test]
fn reads_of_one_row_do_not_keep_other_work_from_the_only_register() {
    // The first job asks again at 65 us and joins: that is carried from 70 to 75. The second one
    // asks again at 70, and waits behind the read of another row. That is read by 135.
    assert_eq!(beside_two_readers(&[at(Op::Read, 4)]), Some(140));
    // A flush programs the data in 705 us and the map in 205. At most 16 reads of 70 us, with the
    // transfers of both jobs, pass each of the two, and one is on its way.
    let flushed = beside_two_readers(&[at(Op::Write, 1000), FLUSH]);
    assert!(flushed.is_some_and(|at| at < 67 + 70 + 705 + 205 + 2 * 16 * 70), "{flushed:?}");
}
