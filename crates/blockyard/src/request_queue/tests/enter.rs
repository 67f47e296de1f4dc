use super::*;
use crate::bio::{Flags, Op};

#[test]
fn the_parts_of_a_split_bio_tile_it_and_it_ends_once() {
    let limits = Limits { max_sectors: 16, chunk_sectors: 24, ..Limits::new(CAPACITY_SECTORS) };
    // There are fewer tags than parts: the rest enters as tags come free ([split-bio-next-tag]).
    let mut rig = Rig::new(1, 4, Policies::NONE, limits);
    let bio = Bio::read(8, 100, 7);
    rig.submit(CPU, bio).unwrap();
    let mut next_sector = bio.sector;
    while next_sector < bio.end_sector() {
        assert_eq!(rig.queue.next_ended(), None, "sectors from {next_sector} on are left");
        rig.settle();
        for piece in rig.host.driver.sent.iter().take(1).flat_map(|sent| &sent.pieces) {
            assert_eq!(piece.sector, next_sector);
            assert_eq!(u64::from(piece.offset_sectors), next_sector - bio.sector);
            assert!(piece.sectors <= 16 && piece.sector % 24 + u64::from(piece.sectors) <= 24);
            assert_eq!(piece.cookie, 7);
            next_sector += u64::from(piece.sectors);
        }
        rig.complete();
    }
    assert_eq!(next_sector, bio.end_sector());
    assert_eq!(rig.queue.next_ended(), Some(Ended { bio, status: Status::Ok }));
    assert!(rig.queue.is_empty());
}

#[test]
fn a_refused_bio_changes_nothing() {
    let refused = |limits: Limits, cpu, bio, error| {
        let mut rig = Rig::new(1, 1, Policies::NONE, limits);
        // A request with which nothing here merges holds the only tag.
        rig.submit(CPU, Bio::read(4096, 8, 0)).unwrap();
        assert_eq!(rig.submit(cpu, bio), Err(error));
        assert_eq!((rig.queue.bios_in_use(), rig.host.tags().in_use(H0)), (1, 1), "{error:?}");
        assert_eq!((rig.queue.held, rig.queue.next_ended()), (1, None), "{error:?}");
        assert!(rig.queue.cursors.is_empty(), "{error:?}");
    };
    let plain = Limits::new(CAPACITY_SECTORS);
    let blocks = Limits { logical_block_sectors: 8, ..plain.clone() };
    let cached = Limits { write_cache: true, ..plain.clone() };
    let narrow = Limits { max_sectors: 8, ..plain.clone() };
    let read = Bio::read(0, 8, 1);
    let fua = Bio::write(0, 8, 1).with_flags(Flags::FUA);
    let nowait = read.with_flags(Flags::NOWAIT);
    refused(plain.clone(), CPU, Bio::read(CAPACITY_SECTORS - 7, 8, 1), SubmitError::OutOfRange);
    refused(plain.clone(), CPU, Bio::read(u64::MAX, 8, 1), SubmitError::OutOfRange);
    refused(plain.clone(), CPU, Bio::read(0, 0, 1), SubmitError::OutOfRange);
    refused(blocks.clone(), CPU, Bio::read(4, 8, 1), SubmitError::Misaligned);
    refused(blocks, CPU, Bio::read(0, 4, 1), SubmitError::Misaligned);
    refused(plain.clone(), CPU, Bio::new(Op::Discard, 0, 8, 1), SubmitError::NotSupported);
    refused(cached.clone(), CPU, Bio::new(Op::Flush, 0, 0, 1), SubmitError::NoTag);
    refused(cached.clone(), CPU, fua, SubmitError::NoTag);
    refused(cached, CPU, Bio::new(Op::Flush, 0, 8, 1), SubmitError::OutOfRange);
    let reserved = read.with_flags(Flags::RESERVED);
    refused(plain.clone(), CPU, reserved, SubmitError::NotSupported);
    refused(plain.clone(), CPU, Bio::new(Op::DriverIn, 0, 4096, 1), SubmitError::OutOfRange);
    refused(plain.clone(), CpuId(2), read, SubmitError::NoSuchCpu);
    refused(plain.clone(), CPU, read, SubmitError::NoTag);
    refused(narrow.clone(), CPU, Bio::read(0, 64, 1), SubmitError::NoTag);
    refused(narrow, CPU, nowait, SubmitError::WouldBlock);
    refused(plain, CPU, nowait, SubmitError::WouldBlock);
}

#[test]
fn a_bio_that_finds_no_memory_changes_nothing() {
    let mut rig = Rig::none(128);
    for at in 0..64 {
        rig.submit(CPU, Bio::read(at * 16, 8, at)).unwrap();
    }
    assert_eq!(rig.submit(CPU, Bio::read(0, 8, 64)), Err(SubmitError::TooManyBios));
    assert_eq!((rig.queue.bios_in_use(), rig.host.tags().in_use(H0)), (64, 64));
}

#[test]
fn a_plug_is_released_by_the_request_after_the_32nd() {
    let mut rig = Rig::none(64);
    rig.queue.plug(CPU);
    for at in 0..32 {
        rig.submit(CPU, Bio::read(at * 16, 8, at)).unwrap();
    }
    assert_eq!(rig.host.driver.sent.len(), 0);
    rig.submit(CPU, Bio::read(1024, 8, 32)).unwrap();
    assert_eq!(rig.host.driver.sent.len(), 32);
    rig.queue.unplug(&mut rig.host, CPU, rig.now);
    assert_eq!(rig.host.driver.sent.len(), 33);
}

#[test]
fn a_plug_is_released_by_the_request_after_one_of_128_kib() {
    let mut rig = Rig::none(64);
    rig.queue.plug(CPU);
    for at in 0..32 {
        rig.submit(CPU, Bio::write(at * 8, 8, at)).unwrap();
    }
    assert_eq!(rig.host.driver.sent.len(), 0, "one request of 256 sectors waits");
    rig.submit(CPU, Bio::write(1024, 8, 32)).unwrap();
    let sizes: Vec<_> = rig.host.driver.sent.iter().map(|sent| sent.sectors).collect();
    assert_eq!(sizes, [256]);
}

#[test]
fn a_bio_that_fills_the_hole_between_two_requests_makes_them_one() {
    let mut rig = Rig::mq_deadline(8);
    rig.submit(CPU, Bio::write(16, 8, 1)).unwrap();
    rig.submit(CPU, Bio::write(0, 8, 0)).unwrap();
    rig.submit(CPU, Bio::write(8, 8, 2)).unwrap();
    assert_eq!((rig.queue.held, rig.queue.sched_tags[0].map().in_use()), (1, 1));
    rig.settle();
    let sent = &rig.host.driver.sent[0];
    assert_eq!((sent.sector, sent.sectors), (0, 24));
    let cookies: Vec<_> = sent.pieces.iter().map(|piece| piece.cookie).collect();
    assert_eq!(cookies, [0, 2, 1], "in the order of their sectors");
}

#[test]
fn a_full_request_is_marked_and_left_alone() {
    let limits = Limits { max_sectors: 16, ..Limits::new(CAPACITY_SECTORS) };
    let mut rig = Rig::new(1, 8, Policies::mq_deadline(), limits);
    for at in 0..3 {
        rig.submit(CPU, Bio::write(at * 8, 8, at)).unwrap();
    }
    let staged = |rq: &&Request| rq.state() == State::Staged;
    let requests: Vec<_> =
        (0..16).map(|id| &rig.queue.requests[RequestId(id)]).filter(staged).collect();
    let shapes: Vec<_> = requests
        .iter()
        .map(|rq| (rq.sector, rq.sectors, rq.flags.contains(Flags::NO_MERGE)))
        .collect();
    assert_eq!(shapes, [(0, 16, true), (16, 8, false)]);
}

/// A request joins a waiting one when it leaves the plug. What follows a gap in memory at the end of
/// the second must not merge with the two.
#[test]
fn a_request_that_leaves_the_plug_joins_its_neighbour_and_keeps_its_gap() {
    for (gap, sent) in [(Flags::NONE, &[24][..]), (Flags::GAP_TAIL, &[16, 8])] {
        let limits = Limits { virt_boundary: true, ..Limits::new(CAPACITY_SECTORS) };
        let mut rig = Rig::new(1, 8, Policies::mq_deadline(), limits);
        rig.queue.plug(CPU);
        rig.submit(CPU, Bio::write(8, 8, 0).with_flags(gap)).unwrap();
        rig.submit(OTHER_CPU, Bio::write(0, 8, 1)).unwrap();
        rig.queue.unplug(&mut rig.host, CPU, rig.now);
        rig.submit(OTHER_CPU, Bio::write(16, 8, 2)).unwrap();
        rig.settle();
        let sectors: Vec<_> = rig.host.driver.sent.iter().map(|sent| sent.sectors).collect();
        assert_eq!(sectors, sent, "{gap:?}");
    }
}
