use super::*;
use crate::bio::{Flags, Op, Submitter};
use crate::driver::Busy;
use crate::policy::{BfqTunables, ElevatorKind, Merges, Model};
use crate::trace::{Action, Event, Sink};

#[test]
fn the_parts_of_a_split_bio_tile_it_and_it_ends_once() {
    let limits = Limits { max_sectors: 16, chunk_sectors: 24, ..Limits::new(CAPACITY_SECTORS) };
    // There are fewer tags than parts: the rest enters as tags come free.
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

/// Only reads and writes are cut for their segments, in proportion. A bio at the limit is not
/// split.
#[test]
fn a_bio_is_cut_into_as_many_parts_as_its_segments_need() {
    let limits = Limits {
        max_segments: 4,
        max_discard_sectors: 64,
        max_write_zeroes_sectors: 64,
        ..Limits::new(CAPACITY_SECTORS)
    };
    for (op, segments, parts) in [
        (Op::Read, 0, &[32][..]),
        (Op::Read, 4, &[32]),
        (Op::Read, 5, &[25, 7]),
        (Op::Write, 8, &[16, 16]),
        (Op::Write, 32, &[4; 8]),
        (Op::Discard, 4, &[32]),
        (Op::Discard, 32, &[32]),
        (Op::WriteZeroes, 8, &[32]),
        (Op::DriverOut, 4, &[32]),
    ] {
        let mut rig = Rig::new(1, 16, Policies::NONE, limits.clone());
        let bio = Bio { segments, ..Bio::new(op, 0, 32, 0) };
        let nowait = bio.with_flags(Flags::NOWAIT);
        let whole = if parts.len() == 1 { Ok(()) } else { Err(SubmitError::WouldBlock) };
        assert_eq!(rig.submit(CPU, nowait), whole, "{op:?} of {segments} segments");
        if whole.is_err() {
            rig.submit(CPU, bio).unwrap();
        }
        rig.settle();
        let sent: Vec<_> = rig.host.driver.sent.iter().map(|sent| sent.sectors).collect();
        assert_eq!(sent, parts, "{op:?} of {segments} segments");
    }
    let mut rig = Rig::new(1, 16, Policies::NONE, limits);
    let command = Bio { segments: 5, ..Bio::new(Op::DriverOut, 0, 32, 0) };
    assert_eq!(rig.submit(CPU, command), Err(SubmitError::OutOfRange));
}

fn refused(limits: Limits, cpu: CpuId, bio: Bio, error: SubmitError) {
    let mut rig = Rig::new(1, 1, Policies::NONE, limits);
    // A request with which nothing here merges holds the only tag.
    rig.submit(CPU, Bio::read(4096, 8, 0)).unwrap();
    assert_eq!(rig.submit(cpu, bio), Err(error));
    assert_eq!((rig.queue.bios_in_use(), rig.host.tags().in_use(H0)), (1, 1), "{error:?}");
    assert_eq!((rig.queue.held, rig.queue.next_ended()), (1, None), "{error:?}");
    assert!(rig.queue.cursors.is_empty(), "{error:?}");
}

#[test]
fn a_refused_bio_changes_nothing() {
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

/// A split bio that waits for memory continues when the caller has taken a bio that ended.
#[test]
fn a_split_bio_that_lacks_memory_goes_on_when_an_ended_bio_is_taken() {
    let limits = Limits { max_sectors: 8, ..Limits::new(CAPACITY_SECTORS) };
    let usual = QueueConfig::new(2, 1, limits, Policies::NONE);
    let config = QueueConfig { max_bios: 3, ..usual };
    let host = host(tags(1, 8, 0, 1), &config);
    let queue = RequestQueue::new(QueueId(0), config, &host);
    let mut rig = Rig { host, queue, now: Instant::ZERO };
    rig.submit(CPU, Bio::read(100, 8, 0)).unwrap();
    rig.submit(CPU, Bio::read(0, 16, 1)).unwrap();
    assert_eq!(rig.sent_sectors(), [100, 0], "no memory for the second part");
    rig.complete();
    rig.settle();
    assert_eq!(rig.sent_sectors(), [0], "the bio has ended, but is not taken");
    assert_eq!(rig.ended(), [(0, Status::Ok)]);
    assert_eq!((rig.settle(), rig.sent_sectors()), (1, alloc::vec![0, 8]));
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

/// A request joins a waiting one when it leaves the plug. What follows a gap in memory at the end
/// of the second must not merge with the two.
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

/// Two clients of one thread write blocks that touch, in one batch. Bfq charges a request to the
/// client who began it, so each keeps its own; mq-deadline tells nobody apart. The second write of
/// client 1 joins its first one.
#[test]
fn a_plug_joins_bios_of_one_submitter_under_bfq() {
    let bfq = ElevatorKind::Bfq(BfqTunables::default());
    for (elevator, plugged) in [(bfq, &[16, 8][..]), (Policies::mq_deadline().elevator, &[24])] {
        let policies = Policies { elevator, ..Policies::mq_deadline() };
        let mut rig = Rig::new(1, 8, policies, Limits::new(CAPACITY_SECTORS));
        rig.queue.plug(CPU);
        for (process, sector) in [(1, 0), (1, 8), (2, 16)] {
            let submitter = Submitter { process, ..Submitter::NONE };
            rig.submit(CPU, Bio::write(sector, 8, sector).with_submitter(submitter)).unwrap();
        }
        let plug = &rig.queue.plugs[CPU.index()].list;
        let mut sectors: Vec<_> =
            plug.iter_back(&rig.queue.requests).map(|id| rig.queue.requests[id].sectors).collect();
        sectors.reverse();
        assert_eq!(sectors, plugged);
    }
}

/// Notes the actions of which it is told.
#[derive(Default)]
struct Actions {
    listens: bool,
    seen: Vec<Action>,
}

impl Sink for Actions {
    fn listens(&self) -> bool {
        self.listens
    }

    fn event(&mut self, event: &Event<'_>) {
        self.seen.push(event.action);
    }
}

type Listened = (Host<Watched, Actions>, RequestQueue);

/// A queue with mq-deadline whose device has no budget yet.
fn listened(listens: bool) -> Listened {
    let limits = Limits {
        max_discard_sectors: 64,
        max_discard_segments: 4,
        max_sectors: 64,
        ..Limits::new(CAPACITY_SECTORS)
    };
    let tags = tags(1, 4, 0, 1);
    let policies = Policies::mq_deadline();
    let config = QueueConfig { max_bios: 64, ..QueueConfig::new(2, 1, limits, policies) };
    let driver = host(tags, &config).driver;
    let mut host = Host::new(driver, Actions { listens, seen: Vec::new() }, tags);
    host.driver.budget = 0;
    let queue = RequestQueue::new(QueueId(0), config, &host);
    (host, queue)
}

/// Gives the device budget, and returns the requests that it gets.
fn sent((host, queue): &mut Listened, now: Instant) -> Vec<(u64, u32, u16, u16, u64)> {
    host.driver.budget = 8;
    for _ in 0..8 {
        let _ = queue.run(host, H0, now);
    }
    queue.self_check(host);
    let tags: Vec<_> = host.driver.sent.iter().map(|sent| sent.tag).collect();
    let request = |tag| queue.in_flight_request(host, H0, tag).expect("in flight");
    tags.into_iter()
        .map(request)
        .map(|rq| (rq.sector, rq.sectors, rq.segments, rq.ranges, rq.times.queued.as_ns()))
        .collect()
}

/// Each bio comes a nanosecond after the one before: first those of the plug, then those that
/// another processor stages, and those that come after the plug is released.
fn joined(plugged: &[Bio], staged: &[Bio], later: &[Bio]) -> (Listened, Instant) {
    let (mut host, mut queue) = listened(true);
    let mut ns = 0;
    let mut submit = |host: &mut _, queue: &mut RequestQueue, cpu, bios: &[Bio]| {
        for bio in bios {
            ns += 1;
            queue.submit(host, cpu, *bio, Instant::from_ns(ns)).unwrap();
        }
        Instant::from_ns(ns)
    };
    queue.plug(CPU);
    submit(&mut host, &mut queue, CPU, plugged);
    let now = submit(&mut host, &mut queue, OTHER_CPU, staged);
    queue.unplug(&mut host, CPU, now);
    let now = submit(&mut host, &mut queue, OTHER_CPU, later);
    ((host, queue), now)
}

fn joins((host, _): &Listened) -> usize {
    host.sink.seen.iter().filter(|action| **action == Action::Join).count()
}

fn discard(sector: u64, cookie: u64) -> Bio {
    Bio::new(Op::Discard, sector, 8, cookie)
}

#[test]
fn a_request_from_the_plug_joins_what_was_staged_meanwhile() {
    // It closes the gap between two, and the end of all three is found again.
    let middle = Bio { segments: 2, ..Bio::read(8, 8, 0) };
    let staged = [Bio::read(0, 8, 1), Bio::read(16, 8, 2)];
    let (mut system, now) =
        joined(&[middle], &staged, &[Bio::read(500, 8, 3), Bio::read(24, 8, 4)]);
    assert_eq!(joins(&system), 2);
    assert_eq!(sent(&mut system, now), [(0, 32, 5, 1, 1), (500, 8, 1, 1, 4)]);
    // Without a neighbour behind it, its own end is found.
    let later = [Bio::read(500, 8, 3), Bio::read(16, 8, 4)];
    let (mut system, now) = joined(&[middle], &staged[..1], &later);
    assert_eq!(joins(&system), 1);
    assert_eq!(sent(&mut system, now), [(0, 24, 4, 1, 1), (500, 8, 1, 1, 3)]);
    // It touches nothing.
    let (mut system, now) = joined(&[middle], &[Bio::read(100, 8, 1)], &[]);
    assert_eq!(joins(&system), 0);
    assert_eq!(sent(&mut system, now), [(8, 8, 2, 1, 1), (100, 8, 1, 1, 2)]);
    // Discards join as ranges.
    let (mut system, now) = joined(&[discard(100, 0), discard(300, 1)], &[discard(0, 2)], &[]);
    assert_eq!(joins(&system), 1);
    assert_eq!(sent(&mut system, now), [(0, 24, 3, 3, 1)]);
}

#[test]
fn a_sink_that_does_not_listen_gets_no_event() {
    let (mut host, mut queue) = listened(false);
    let now = Instant::ZERO;
    queue.submit(&mut host, CPU, Bio::read(0, 100, 0), now).unwrap();
    queue.submit(&mut host, CPU, Bio::read(100, 8, 1), now).unwrap();
    queue.wait(&mut host, CPU, &Bio::read(0, 8, 2), 7, now).unwrap();
    let mut system = (host, queue);
    assert!(!sent(&mut system, now).is_empty());
    assert_eq!(system.0.sink.seen, []);
}

/// Requests are found by their new ends after they have grown, also when another came last.
#[test]
fn a_hash_finds_a_request_that_has_grown() {
    let policies = Policies { swq_merge: SwqMerge::Hash, ..Policies::NONE };
    let mut rig = Rig::new(1, 8, policies, Limits::new(CAPACITY_SECTORS));
    rig.host.driver.budget = 0;
    for (sector, cookie) in [0, 100, 8, 200, 16].into_iter().zip(0..) {
        rig.submit(CPU, Bio::read(sector, 8, cookie)).unwrap();
    }
    rig.host.driver.budget = 8;
    let _ = rig.queue.run(&mut rig.host, H0, rig.now);
    rig.check();
    assert_eq!(rig.sent_sectors(), [0, 100, 200]);
}

/// A batch whose requests are for two hardware queues is two runs ([last-or-commit]).
#[test]
fn a_batch_ends_the_run_of_each_hardware_queue() {
    let limits = Limits::new(CAPACITY_SECTORS);
    let usual = QueueConfig::new(2, 2, limits, Policies::NONE);
    let config = QueueConfig { map: QueueMap::with_kinds(2, 1, 1, 0), max_bios: 64, ..usual };
    let host = host(tags(2, 4, 0, 1), &config);
    let queue = RequestQueue::new(QueueId(0), config, &host);
    let mut rig = Rig { host, queue, now: Instant::ZERO };
    rig.queue.plug(CPU);
    rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
    rig.submit(CPU, Bio::write(64, 8, 1)).unwrap();
    rig.queue.unplug(&mut rig.host, CPU, rig.now);
    rig.check();
    assert_eq!((rig.sent_ops().as_str(), rig.host.driver.commits), ("rw", 1));
}

/// The requests behind a refused one are staged, and the run before it ends ([last-or-commit]).
#[test]
fn a_refusal_within_a_batch_ends_the_run() {
    let mut rig = Rig::none(8);
    rig.host.driver.answers.extend([Accept::Queued, Accept::Busy(Busy::Device)]);
    rig.queue.plug(CPU);
    for at in 0..3 {
        rig.submit(CPU, Bio::read(64 * at, 8, at)).unwrap();
    }
    rig.queue.unplug(&mut rig.host, CPU, rig.now);
    rig.check();
    assert_eq!((rig.sent_sectors(), rig.host.driver.commits), (alloc::vec![0], 1));
}

fn requests_of_four(policies: Policies, plugs: bool, merges: Merges) -> usize {
    let policies = Policies { merges, ..policies };
    let mut rig = Rig::new(1, 8, policies, Limits::new(CAPACITY_SECTORS));
    rig.host.driver.budget = 0; // so that all wait where they are
    if plugs {
        rig.queue.plug(CPU);
    }
    for at in 0..4 {
        rig.submit(CPU, Bio::write(8 * at, 8, at)).unwrap();
    }
    if plugs {
        rig.queue.unplug(&mut rig.host, CPU, rig.now);
    }
    rig.host.driver.budget = 100;
    rig.settle();
    while rig.host.driver.sent.is_empty() {
        rig.now = rig.queue.poll_at().expect("a run to come");
        rig.settle();
    }
    rig.host.driver.sent.len()
}

/// Contiguous bios, in a plug and without one, in every design that merges them.
#[test]
fn without_merges_each_bio_is_a_request_of_its_own() {
    let designs = [
        Policies::NONE,
        Policies::mq_deadline(),
        Policies::mq_kyber(),
        Policies { swq_merge: SwqMerge::Hash, ..Policies::NONE },
        Policies { model: Model::SingleLock, ..Policies::mq_deadline() },
    ];
    for policies in designs {
        for plugs in [true, false] {
            assert_eq!(requests_of_four(policies, plugs, Merges::Off), 4, "{policies:?}");
            assert!(requests_of_four(policies, plugs, Merges::All) < 4, "{policies:?}");
        }
    }
}

/// `nomerges` of 1 reaches the elevator: a bio behind an older request does not join it.
#[test]
fn a_bio_joins_an_older_request_only_if_all_are_searched() {
    for (merges, requests) in [(Merges::All, 2), (Merges::Last, 3), (Merges::Off, 3)] {
        let policies = Policies { merges, ..Policies::mq_deadline() };
        let mut rig = Rig::new(1, 8, policies, Limits::new(CAPACITY_SECTORS));
        rig.host.driver.budget = 0; // so that all wait where they are
        for (sector, cookie) in [(0, 0), (100, 1), (8, 2)] {
            rig.submit(CPU, Bio::write(sector, 8, cookie)).unwrap();
        }
        rig.host.driver.budget = 100;
        rig.settle();
        while rig.host.driver.sent.is_empty() {
            rig.now = rig.queue.poll_at().expect("a run to come");
            rig.settle();
        }
        assert_eq!(rig.host.driver.sent.len(), requests, "{merges:?}");
    }
}
