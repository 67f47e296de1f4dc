//! Readers in sequence, for whom the head reads on before it leaves for other commands.

use super::*;

/// A disk with a segment of 2 MiB for each of four readers, whose head leaves them as `leaving`
/// says, after `least` bytes.
fn leaving(leaving: Leaving, least: u64) -> PlattersProfile {
    let cache = DiskCacheProfile { leaving, ahead_least: least, ..read_cache(8 << 20).cache };
    PlattersProfile { cache, ..profile() }
}

/// Reads two times 128 sectors in sequence, and one of 8 at `far`, which waits at the end of the
/// second. Returns the disk and the time of that end.
fn reader_left(profile: PlattersProfile, far: u64) -> (Rig, Instant) {
    let mut rig = Rig::new(profile);
    rig.run(access(Op::Read, 0, 128));
    let second = rig.begin(access(Op::Read, 128, 128)) as usize;
    rig.begin(access(Op::Read, far, 8));
    while rig.ended[second].is_none() {
        assert!(rig.step(), "the disk stands still");
    }
    let end = rig.now;
    (rig, end)
}

/// 256 sectors of 512 bytes, of the 3645 that pass in a turn of 8333 us, pass in 585 us.
#[test]
fn a_head_reads_a_least_amount_for_a_reader_before_it_leaves() {
    let (mut rig, end) = reader_left(leaving(Leaving::AtOnce, 131_072), CAPACITY / 2);
    // A reader that asks for what is about to pass has it when it has passed.
    let first = rig.begin(access(Op::Read, 256, 128)) as usize;
    let later = rig.begin(access(Op::Read, 512, 8)) as usize;
    while rig.ended[2].is_none() {
        assert!(rig.step(), "the disk stands still");
    }
    let passed = rig.ended[first].expect("it had passed before the head left").since(end);
    assert!(passed.as_ns().abs_diff(292_600) < 3_000, "{passed:?}");
    assert_eq!(rig.ended[later], None, "the head left before it passed");
    assert_eq!(rig.run(access(Op::Read, 384, 128)), Duration::ZERO);
    // One read is no sequence, and the head leaves at once.
    let mut rig = Rig::new(leaving(Leaving::AtOnce, 131_072));
    rig.begin(access(Op::Read, 0, 128));
    rig.run(access(Op::Read, CAPACITY / 2, 8));
    assert!(rig.run(access(Op::Read, 128, 8)) > Duration::ZERO);
}

/// The head reads for as long as it would wait where it goes, and is there as early. In a turn it
/// reads 3645 sectors.
#[test]
fn a_head_that_leaves_in_time_reads_while_it_would_wait() {
    let mut seen = 0;
    for far in (0..40).map(|nth| CAPACITY / 2 + nth * 1_000) {
        let [at_once, mut in_time] = [Leaving::AtOnce, Leaving::InTime].map(|of| {
            let (mut rig, end) = reader_left(leaving(of, 0), far);
            while rig.ended[2].is_none() {
                assert!(rig.step(), "the disk stands still");
            }
            (rig, end)
        });
        let (rig, _) = &mut in_time;
        assert_eq!(at_once.0.ended[2], rig.ended[2], "it arrives as early");
        let end = 256 + sectors_of_wait(&at_once.0, at_once.1, far);
        if end < 3_600 {
            let held = rig.disk.reads.held(256, CAPACITY);
            assert!(held.abs_diff(end) <= 1, "{far}: up to {held}, not {end}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} of 40");
}

/// Returns the sectors that pass while the head waits for sector `far`, which it has read now after
/// it left sector 255 at `end`.
fn sectors_of_wait(rig: &Rig, end: Instant, far: u64) -> u64 {
    let geometry = &rig.disk.geometry;
    let seek = rig.disk.seek(geometry.spot(255), &geometry.spot(far), false);
    let moves = seek + geometry.transfer(far, far + 8);
    (rig.now.since(end).as_ns() - moves.as_ns()) * 3_645 / 8_333_333
}

/// Returns the MB/s of two readers in sequence of 64 KiB each, one at the start and one in the
/// middle of a disk by `profile`.
fn two_readers(profile: PlattersProfile) -> u64 {
    let mut rig = Rig::new(profile);
    let mut readers = [0, CAPACITY / 2].map(|start| (start, None::<usize>));
    let end = Instant::ZERO + Duration::from_secs(4);
    let mut read = 0;
    while rig.now < end {
        for (next, waits) in &mut readers {
            if waits.is_none_or(|id| rig.ended[id].is_some()) {
                *waits = Some(rig.begin(access(Op::Read, *next, 128)) as usize);
                *next += 128;
                read += 65_536;
            }
        }
        // A reader asks again 50 us after it got its data at the latest.
        rig.pass(Duration::from_us(50));
    }
    read / 4_000_000
}

/// A seek from the start to the middle takes 9.8 ms, as its cylinder is at 42 % of the way, and the
/// wait half a turn, 4.2 ms. A head that leaves at once brings 64 KiB in that time: 4.6 MB/s.
#[test]
fn two_readers_in_sequence_get_what_the_head_reads_before_it_leaves() {
    let at_once = two_readers(leaving(Leaving::AtOnce, 0));
    assert!((4..=5).contains(&at_once), "{at_once} MB/s");
    // 1 MiB more takes 4.7 ms and half a step of 1 ms: 1.1 MB in 19.5 ms.
    let least = two_readers(leaving(Leaving::AtOnce, 1 << 20));
    assert!((52..=62).contains(&least), "{least} MB/s");
    // 4.2 ms more without any time lost: 1.0 MB in 14.3 ms, and less at steps between tracks.
    let in_time = two_readers(leaving(Leaving::InTime, 0));
    assert!((58..=72).contains(&in_time), "{in_time} MB/s");
}
