//! The waits of reads behind what was accepted before them: for dies, for room in the buffer, and
//! for flushes.

use super::*;

/// A row of four units, at the `nth` place from unit 1000 on.
fn row(nth: u32) -> Access {
    Access { sectors: 32, ..at(Op::Write, 1000 + 4 * u64::from(nth)) }
}

/// A drive of one die, whose programs take 20 us on the channel and 700 us.
fn one_die() -> FlashProfile {
    FlashProfile { channels: 1, dies: 1, ..profile() }
}

/// Begins `accesses` together. Returns when each ends, in us, in their order.
fn ends(rig: &mut Rig, accesses: &[Access]) -> Vec<u64> {
    (0..).zip(accesses).for_each(|(id, access)| rig.begin(id, *access));
    let mut ends = vec![0; accesses.len()];
    loop {
        while let Some(CommandId(id)) = rig.flash.next_ended() {
            ends[id as usize] = rig.now.as_ns() / 1000;
        }
        if !rig.step(u64::MAX) {
            return ends;
        }
    }
}

/// Returns when the last of `accesses` ends, in us, and how many reads the full buffer held up.
fn last_end(profile: FlashProfile, accesses: &[Access]) -> (u64, u64) {
    let mut rig = Rig::new(profile);
    let ends = ends(&mut rig, accesses);
    (ends[accesses.len() - 1], rig.count("reads_held"))
}

/// Returns when a read ends that arrives behind so many rows and before two more, in us.
fn read_behind(rows: u32, profile: FlashProfile) -> u64 {
    let mut accesses: Vec<_> = (0..rows).map(row).collect();
    accesses.push(at(Op::Read, 0));
    accesses.extend((rows..rows + 2).map(row));
    ends(&mut Rig::new(profile), &accesses)[rows as usize]
}

#[test]
fn a_read_in_order_of_arrival_waits_for_all_programs_that_were_ready_before_it() {
    let arrival = FlashProfile { order: DieOrder::Arrival, ..one_die() };
    let suspend = Some(Duration::from_us(20));
    for rows in [1, 3, 10] {
        // 720 us for each row. The rows behind the read do not matter.
        assert_eq!(read_behind(rows, arrival), u64::from(rows) * 720 + 65);
        assert_eq!(
            read_behind(rows, FlashProfile { suspend, ..arrival }),
            u64::from(rows) * 720 + 65,
            "a read that waits its turn suspends nothing"
        );
        // Where reads go first, this one goes before the first program when its data is there.
        assert_eq!(read_behind(rows, one_die()), 20 + 65);
    }
}

/// With ten rows before it, the read waits for the first one, which has begun, and for as many as a
/// die is given.
#[test]
fn a_read_waits_for_no_more_programs_than_its_die_has_been_given() {
    for queued in [1, 4] {
        let arrival = FlashProfile { order: DieOrder::Arrival, queued, ..one_die() };
        assert_eq!(read_behind(10, arrival), (1 + u64::from(queued)) * 720 + 65);
    }
}

/// Two dies of a channel take four rows in turn. The first one loads from 0 and 720 us on, and ends
/// at 1440.
#[test]
fn dies_take_the_programs_before_a_read_in_turn() {
    let dies = 2;
    let arrival = FlashProfile { dies, order: DieOrder::Arrival, ..one_die() };
    assert_eq!(read_behind(4, arrival), 1440 + 65);
}

#[test]
fn reads_that_have_had_their_share_let_programs_pass() {
    let profile = FlashProfile { order: DieOrder::Shares, ..one_die() };
    let accesses = (0..10).map(row).chain((0..30).map(|nth| at(Op::Read, 4 * nth)));
    let ends = ends(&mut Rig::new(profile), &accesses.collect::<Vec<_>>());
    let reads = &ends[10..];
    // One read of 60 us goes before the first program, whose data is there after 20 us. Then reads
    // are ahead, so its 700 us follow. Eleven reads go before the second program, until they are
    // ahead again, and twelve before the third one. Data that was read leaves the channel 5 us
    // later.
    assert_eq!(reads[0], 20 + 65);
    let second = 20 + 60 + 700 + 20;
    assert_eq!((reads[1], reads[11]), (second + 65, second + 11 * 60 + 5));
    let third = second + 11 * 60 + 700 + 20;
    assert_eq!((reads[12], reads[23]), (third + 65, third + 12 * 60 + 5));
}

/// A program that nobody waited for leaves reads no share to make up for.
#[test]
fn a_read_that_is_ahead_suspends_no_program() {
    let suspend = Some(Duration::from_us(20));
    let profile = FlashProfile { suspend, order: DieOrder::Shares, ..profile() };
    let (reads, flush) = beside_a_program(3, profile);
    assert_eq!(flush, 705_000 + 80_000);
    assert_eq!(reads, [185_000, flush + 65_000, flush + 125_000]);
}

/// A program of 700 us goes when reads of 60 us have had more than their share, and no later. With
/// 20 % for programs, each gives reads 2800 us: 46.7, 93.3 and 140 reads, and the next one makes it
/// more. So 47, 94 and 141 reads go before the second, third and fourth program. With 80 %, each
/// gives them 175 us: 2.9, 5.8 and 8.75 reads.
#[test]
fn programs_get_no_less_and_no_more_than_their_share() {
    for (share, before) in [(20, [1, 47, 94, 141]), (50, [1, 12, 24, 36]), (80, [1, 3, 6, 9])] {
        let profile = FlashProfile { order: DieOrder::Shares, share, ..one_die() };
        let accesses = (0..10).map(row).chain((0..200).map(|nth| at(Op::Read, 4 * nth)));
        let ends = ends(&mut Rig::new(profile), &accesses.collect::<Vec<_>>());
        // The first read begins after 20 us, and its data leaves the channel 5 us after its 60.
        for (programs, reads) in (0..).zip(before) {
            let end = 20 + reads * 60 + programs * 720 + 5;
            let last = 10 + usize::try_from(reads).unwrap() - 1;
            let after = end + 720 + 60;
            assert_eq!(ends[last..=last + 1], [end, after], "{share} %: reads around a program");
        }
    }
}

/// A buffer of two rows, which has room for a third when the first program has ended, and for a
/// fourth 720 us later.
#[test]
fn a_read_waits_behind_writes_that_find_the_buffer_full_where_the_drive_takes_all_in_order() {
    let small = FlashProfile { buffer: 32 << 10, ..one_die() };
    let in_line = FlashProfile { full_buffer: FullBuffer::Commands, ..small };
    for (rows, ready) in [(2, 0), (3, 720), (4, 1440), (6, 2880)] {
        let mut accesses: Vec<_> = (0..rows).map(row).collect();
        accesses.push(at(Op::Read, 0));
        // From then on it waits until the data of the next program is there.
        assert_eq!(last_end(in_line, &accesses), (ready + 20 + 65, u64::from(rows > 2)));
        // A drive that puts the writes aside lets it begin before them.
        assert_eq!(last_end(small, &accesses), (20 + 65, 0));
    }
}

#[test]
fn everything_behind_a_write_that_waits_begins_in_order() {
    let full_buffer = FullBuffer::Commands;
    let profile = FlashProfile { buffer: 32 << 10, full_buffer, ..one_die() };
    let discard = Access { op: Op::Discard, ..row(0) };
    let ends = ends(&mut Rig::new(profile), &[row(0), row(1), row(2), discard, FLUSH]);
    // The third row has room at 720 us; the discard takes 60 us and 0.08 us for 16 KiB; the flush
    // waits for all three programs.
    assert_eq!(ends, [5, 5, 725, 780, 3 * 720]);
}

/// Begins four rows and three reads on a die with a buffer of two rows: rows 0 to 2 and a read of
/// the first hardware queue, row 3 and a read of the second, a read of the third. Returns when the
/// reads end, in us, and how many the full buffer held up.
fn reads_of_three_queues(full_buffer: FullBuffer) -> ([u64; 3], u64) {
    let accesses = [
        (0, row(0)),
        (0, row(1)),
        (0, row(2)),
        (1, row(3)),
        (0, at(Op::Read, 0)),
        (1, at(Op::Read, 4)),
        (2, at(Op::Read, 8)),
    ];
    let accesses = accesses.map(|(queue, access)| Access { queue: HctxId(queue), ..access });
    let mut rig = Rig::new(FlashProfile { buffer: 32 << 10, full_buffer, ..one_die() });
    let ends = ends(&mut rig, &accesses);
    ([ends[4], ends[5], ends[6]], rig.count("reads_held"))
}

/// The third row of the first queue has room when the first program has ended, after 720 us, as
/// does the fourth row, of the second queue, 720 us later. A read waits for the die until the data
/// of the next program is there, 20 us later, takes 65 us, and delays that program by 60 us.
#[test]
fn a_read_waits_behind_the_writes_of_its_queue_where_a_full_buffer_stops_that() {
    // The third queue has no write, and its read delays the first program. The first queue does not
    // wait for the row of the second.
    let ends = [60 + 720 + 85, 2 * 60 + 1440 + 85, 85];
    assert_eq!(reads_of_three_queues(FullBuffer::Queue), (ends, 2));
    // A read begins when the one before it leaves the die for the channel.
    assert_eq!(reads_of_three_queues(FullBuffer::Writes), ([85, 85 + 60, 85 + 120], 0));
    assert_eq!(
        reads_of_three_queues(FullBuffer::Commands),
        ([1440 + 85, 1440 + 145, 1440 + 205], 3)
    );
}

/// Returns how long a flush after one write of 4 KiB takes, in us, with what it wrote of the map.
fn flush_after_a_write(profile: FlashProfile) -> (u64, u64) {
    let mut rig = Rig::new(profile);
    let times = rig.run(1, 2, |nth| if nth == 0 { at(Op::Write, 0) } else { FLUSH });
    (times[1].1.as_ns() / 1000, rig.count("map_pages_written"))
}

/// 5 us on a channel and 700 us for the data. Then each step takes 5 us for 4 KiB and 200 us at the
/// speed of single-level cells.
#[test]
fn a_flush_programs_the_map_in_steps_after_the_data() {
    for (flush_steps, took) in [(0, 705), (1, 910), (2, 1115), (12, 3165)] {
        let profile = FlashProfile { flush_steps, ..profile() };
        assert_eq!(flush_after_a_write(profile), (took, flush_steps.into()));
        let protected = FlashProfile { protected: true, ..profile };
        assert_eq!(flush_after_a_write(protected), (0, 0));
    }
    // 64 KiB are four programs, on as many dies. Two dies share a channel, which takes 20 us for
    // each.
    let wide = FlashProfile { flush_steps: 1, flush_map: 64 << 10, ..profile() };
    assert_eq!(flush_after_a_write(wide), (705 + 40 + 200, 16));
}

/// A write that must be durable when it ends waits for the same.
#[test]
fn a_durable_write_waits_for_the_map_too() {
    let mut rig = Rig::new(FlashProfile { flush_steps: 2, ..profile() });
    let write = Access { fua: true, ..at(Op::Write, 0) };
    assert_eq!(rig.run(1, 1, |_| write)[0].1.as_ns(), 705_000 + 2 * 205_000);
}

/// The buffer survives a loss of power, and the drive tells of a cache all the same: a flush takes
/// a time of its own, and leaves the buffer alone.
#[test]
fn a_protected_flush_takes_a_time_and_programs_nothing() {
    let protected_flush = Duration::from_us(30);
    let profile =
        FlashProfile { protected: true, write_cache: Some(true), protected_flush, ..profile() };
    let mut rig = Rig::new(profile);
    let times = rig.run(1, 2, |nth| if nth == 0 { at(Op::Write, 0) } else { FLUSH });
    assert_eq!((times[1].1.as_ns(), rig.count("programs")), (30_000, 0));
}

/// `hdparm -W 0` on a drive without capacitors: 5 us on the channel and 700 us for each write.
#[test]
fn a_drive_without_a_cache_ends_writes_in_flash() {
    for (write_cache, took) in [(None, 5), (Some(true), 5), (Some(false), 705)] {
        let mut rig = Rig::new(FlashProfile { write_cache, ..profile() });
        assert_eq!(rig.run(1, 1, |_| at(Op::Write, 0))[0].1.as_ns(), took * 1000);
        let protected = FlashProfile { protected: true, write_cache, ..profile() };
        assert_eq!(Rig::new(protected).run(1, 1, |_| at(Op::Write, 0))[0].1.as_ns(), 5_000);
    }
}

/// Reads of all four dies come 45 us after the map began to be programmed on each.
#[test]
fn reads_wait_behind_the_map_that_a_flush_programs() {
    let reads = |flush_steps| {
        let mut rig = Rig::new(FlashProfile { flush_steps, flush_map: 64 << 10, ..profile() });
        rig.begin(0, at(Op::Write, 1000));
        rig.begin(1, FLUSH);
        rig.wait(750_000);
        while rig.flash.next_ended().is_some() {}
        (2..6).for_each(|id| rig.begin(id, at(Op::Read, 4 * u64::from(id))));
        let mut ends = Vec::new();
        while rig.step(1_300_000) {
            let ended = core::iter::from_fn(|| rig.flash.next_ended());
            let reads = ended.filter(|id| id.0 > 1).count();
            ends.extend(vec![rig.now.as_ns() / 1000; reads]);
        }
        ends
    };
    // Two dies share a channel, which carries a page in 5 us.
    assert_eq!(reads(0), [815, 815, 820, 820]);
    // The programs of the map end at 705 us + 20 or 40 + 200.
    assert_eq!(reads(1), [990, 990, 1010, 1010]);
}

/// Three writers sync together.
#[test]
fn flushes_that_wait_share_a_round_of_the_map() {
    let mut rig = Rig::new(FlashProfile { flush_steps: 1, ..one_die() });
    let [first, second, third] = [1000, 1001, 1002].map(|unit| at(Op::Write, unit));
    let accesses = [first, FLUSH, second, FLUSH, third, FLUSH];
    // Data ends at 705, 1410 and 2115 us. The first round begins at 705 us, and its program of
    // 205 us is behind the other data. The other flushes share the second round.
    let ends = ends(&mut rig, &accesses);
    assert_eq!([ends[1], ends[3], ends[5]], [2320, 2525, 2525]);
    assert_eq!(rig.count("map_pages_written"), 2);
    // Nothing was written since.
    let before = rig.now;
    assert_eq!(rig.run(1, 1, |_| FLUSH)[0].1, Duration::ZERO);
    assert_eq!((rig.now, rig.count("map_pages_written")), (before, 2));
}
