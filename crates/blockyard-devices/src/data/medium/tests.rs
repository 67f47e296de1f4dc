use super::*;
use crate::data::history::Cache;
use crate::data::verify::{Found, Verified, Verifier};
use blockyard::bio::Bio;
use blockyard::host::Host;
use blockyard::policy::Policies;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::unit::CpuId;
use proptest::prelude::*;

const SECTORS: u64 = 24;
const BLOCK: u64 = 4;

fn disk() -> Disk {
    let limits = Limits {
        write_cache: true,
        logical_block_sectors: u32::try_from(BLOCK).unwrap(),
        ..Limits::new(SECTORS)
    };
    Disk::new(&limits)
}

#[derive(Clone, Debug)]
enum Step {
    /// A write of these blocks; durable at once or not.
    Write(Range<u64>, bool),
    Flush,
    /// A flush that was accepted this many writes ago.
    OldFlush(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let blocks = (0..SECTORS / BLOCK, 1..4_u64)
        .prop_map(|(at, count)| at * BLOCK..((at + count) * BLOCK).min(SECTORS));
    prop_oneof![
        6 => (blocks, prop::bool::weighted(0.2)).prop_map(|(at, fua)| Step::Write(at, fua)),
        1 => Just(Step::Flush),
        1 => (0..4_u64).prop_map(Step::OldFlush),
    ]
}

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

proptest! {
    /// Compares the disk with a list of all versions of each sector and the oldest that may be left
    /// ([completed-write-is-read], [flush-empties-cache], [power-loss-keeps-durable-data],
    /// [block-is-never-torn]).
    #[test]
    fn flushed_data_stays_and_cached_data_may_be_lost(
        steps in proptest::collection::vec(step(), 1..60),
        seed in any::<u64>(),
    ) {
        let draws = &mut Prng::new(seed);
        let mut disk = disk();
        let mut versions = vec![vec![(0, Content::default())]; index(SECTORS)];
        let mut oldest = vec![0; index(SECTORS)];
        for step in steps {
            match step {
                Step::Write(range, durable) => {
                    disk.done += 1;
                    let content = Content::of(Stamp(disk.done));
                    disk.write(range.clone(), content, durable, draws);
                    for at in range {
                        let at = index(at);
                        versions[at].push((disk.done, content));
                        if durable {
                            oldest[at] = versions[at].len() - 1;
                        }
                    }
                }
                Step::Flush | Step::OldFlush(_) => {
                    let ago = if let Step::OldFlush(ago) = step { ago } else { 0 };
                    let up_to = disk.done.saturating_sub(ago);
                    disk.flush(up_to, || true);
                    for (versions, oldest) in versions.iter().zip(&mut oldest) {
                        let flushed = versions.partition_point(|(done, _)| *done <= up_to);
                        *oldest = (*oldest).max(flushed - 1);
                    }
                }
            }
            let left = disk.survivors(draws);
            for at in 0..SECTORS {
                let all = &versions[index(at)];
                let live = disk.live.pieces(at..at + 1).next().map(|(_, held)| *held);
                prop_assert_eq!(live, all.last().map(|(_, content)| *content));
                let held = left.pieces(at..at + 1).next().map(|(_, held)| *held);
                let mut may = all[oldest[index(at)]..].iter().map(|(_, content)| Some(*content));
                prop_assert!(may.any(|may| may == held), "sector {} holds {:?}", at, held);
                let first = at - at % BLOCK;
                let of_block = left.pieces(first..first + 1).next().map(|(_, held)| *held);
                prop_assert_eq!(held, of_block, "a block was torn");
            }
        }
    }
}

fn stamp_at(image: &Image, at: u64) -> Option<u64> {
    image.pieces(at..at + 1).next().map(|(_, held)| held.stamp.0)
}

#[test]
fn after_a_loss_of_power_a_block_holds_any_of_its_versions() {
    let draws = &mut Prng::new(1);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let mut disk = disk();
        for number in 1..=2 {
            disk.done = number;
            disk.write(0..2 * BLOCK, Content::of(Stamp(number)), false, draws);
        }
        let left = disk.survivors(draws);
        seen.insert((stamp_at(&left, 0), stamp_at(&left, BLOCK)));
    }
    assert_eq!(seen.len(), 9, "two blocks with three versions each: {seen:?}");
}

#[test]
fn a_long_range_is_drawn_in_pieces_of_several_blocks() {
    let far = 1 << 20;
    for (range, most) in
        [(4..8, 1), (2..9, 3), (0..4096, 256), (0..far, 256), (far..far + 1024, 256)]
    {
        let pieces: Vec<_> = blocks_of(range.clone(), 4).collect();
        assert_eq!(pieces.len(), most, "{range:?}");
        assert!(pieces.windows(2).all(|two| two[0].end == two[1].start));
        assert!(pieces.iter().skip(1).all(|piece| piece.start.is_multiple_of(4)));
        assert_eq!(pieces[0].start..pieces[pieces.len() - 1].end, range);
    }
}

#[test]
fn a_block_that_left_the_cache_early_is_durable() {
    let draws = &mut Prng::new(1);
    let mut early = 0;
    for _ in 0..400 {
        let mut disk = disk();
        disk.write(0..BLOCK, Content::of(Stamp(1)), false, draws);
        if disk.cache.is_empty() {
            early += 1;
            assert_eq!(disk.survivors(draws), disk.live);
        }
    }
    assert!((10..60).contains(&early), "one write in 8, and every second block of it: {early}");
}

const QUEUE: QueueId = QueueId(0);

/// A device that keeps its own data, with a request in flight under tag 1.
fn card(work: Work, erases: bool) -> Media {
    let limits = Limits { write_cache: true, ..Limits::new(SECTORS) };
    let mut media = Media::new([&limits], &TagSetConfig::single(4), Prng::new(1));
    let sent = Spans::new();
    media.in_flight[1] = Some(InFlight { queue: QUEUE, work, by_device: true, erases, sent });
    media
}

fn writes(parts: &[(Range<u64>, Stamp)]) -> Work {
    let parts = parts.iter().map(|(range, stamp)| (range.clone(), Content::of(*stamp)));
    Work::Write { parts: parts.collect(), durable: false, optional: false }
}

fn received(from: u32, sectors: Range<u64>, page: u64) -> DataEvent<Place> {
    DataEvent::Received { place: Place { tag: DriverTag(1), from }, sectors, page }
}

fn held(image: &Image) -> Vec<(Range<u64>, u64, i64)> {
    image.iter().map(|(range, held)| (range, held.stamp.0, held.shift)).collect()
}

fn stamp_of(image: &Image) -> u64 {
    image.pieces(0..1).next().map_or(0, |(_, held)| held.stamp.0)
}

/// The stamps that a loss of power may leave at the first sector.
fn may_be_left(media: &Media) -> Vec<u64> {
    let draws = &mut Prng::new(1);
    let mut left: Vec<_> = (0..400).map(|_| stamp_of(&media.survivors(QUEUE, draws))).collect();
    left.sort_unstable();
    left.dedup();
    left
}

fn two_writes() -> Work {
    writes(&[(8..12, Stamp(1)), (12..20, Stamp(2))])
}

#[test]
fn a_device_receives_parts_of_a_write_wherever_it_puts_them() {
    let mut media = card(two_writes(), false);
    media.apply(received(2, 10..16, 1));
    assert_eq!(held(media.live(QUEUE)), [(10..12, 1, 0), (12..16, 2, 0)]);
    assert_eq!(media.cached_sectors(QUEUE), 6);
    let mut media = card(two_writes(), false);
    media.apply(received(3, 17..22, 1));
    assert_eq!(held(media.live(QUEUE)), [(17..18, 1, -6), (18..22, 2, -6)]);
}

const fn piece(cookie: u64, sector: u64, sectors: u32) -> Piece {
    Piece { cookie, sector, sectors, offset_sectors: 0 }
}

const fn partial(sectors: u32) -> Outcome {
    Outcome::Partial { sectors, status: Status::IoError }
}

#[test]
fn a_read_finds_what_the_device_sent_of_its_whole_pieces() {
    let pieces = [(piece(1, 6, 4), 6), (piece(2, 10, 6), 10)];
    for (outcome, samples) in [
        (Outcome::Done(Status::Ok), 2),
        (Outcome::Done(Status::IoError), 0),
        (partial(3), 0),
        (partial(4), 1),
        (partial(6), 1),
        (partial(9), 1),
        (partial(10), 2),
    ] {
        let mut media = card(writes(&[(11..14, Stamp(1))]), false);
        media.apply(received(0, 11..14, 1));
        media.in_flight[1].as_mut().expect("in flight").work = Work::Read(pieces.to_vec());
        let place = Place { tag: DriverTag(1), from: 4 };
        media.apply(DataEvent::Sent { place, sectors: 10..16 });
        media.end(HctxId(0), DriverTag(1), outcome);
        let found = media.take_samples();
        assert_eq!(found.len(), samples, "{outcome:?}");
        if let Some(sample) = found.first() {
            assert_eq!((sample.cookie, &sample.range), (1, &(6..10)));
            assert_eq!(sample.found, [], "not sent");
        }
        if let Some(sample) = found.get(1) {
            let nothing = Content::default();
            let data = Content::of(Stamp(1));
            let right = [(10..11, nothing), (11..14, data), (14..16, nothing)];
            assert_eq!((sample.cookie, &sample.range), (2, &(10..16)));
            assert_eq!(sample.found, right);
        }
    }
}

// [power-loss-keeps-durable-data]
#[test]
fn pages_that_are_certain_or_flushed_survive() {
    let mut media = card(Work::Nothing, false);
    for page in 1..=3 {
        media.in_flight[1].as_mut().expect("in flight").work = writes(&[(0..4, Stamp(page))]);
        media.apply(received(0, 0..4, page));
    }
    assert_eq!(may_be_left(&media), [0, 1, 2, 3]);
    media.apply(DataEvent::Certain { page: 2, sectors: 0..4 });
    assert_eq!(may_be_left(&media), [2, 3]);
    media.apply(DataEvent::Flushed { page: 3 });
    assert_eq!((may_be_left(&media), media.cached_sectors(QUEUE)), (vec![3], 0));
    for page in 4..=14 {
        media.in_flight[1].as_mut().expect("in flight").work = writes(&[(0..4, Stamp(page))]);
        media.apply(received(0, 0..4, page));
    }
    let left: Vec<_> = (6..=14).collect();
    assert_eq!(may_be_left(&media), left, "the oldest goes first");
    assert!(!media.take_loss());
    media.apply(DataEvent::Lost);
    assert!(media.take_loss() && !media.take_loss());
    assert_eq!(may_be_left(&media).len(), 1);
    assert_eq!(held(media.live(QUEUE)), held(&media.disks[0].durable));
    assert_eq!(media.cached_sectors(QUEUE), 0);
}

#[test]
fn an_erase_leaves_its_stamp_within_its_request_and_anything_beyond() {
    for certain in [false, true] {
        let mut media = card(writes(&[(2..8, Stamp(1))]), true);
        media.apply(DataEvent::Erased { sectors: 0..12, certain });
        let wiped = WIPED.stamp.0;
        let all = [(0..2, wiped, 0), (2..8, 1, 0), (8..12, wiped, 0)];
        assert_eq!(held(media.live(QUEUE)), all);
        let (left, cached) = if certain { (vec![wiped], 0) } else { (vec![0, wiped], 12) };
        assert_eq!((may_be_left(&media), media.cached_sectors(QUEUE)), (left, cached));
    }
}

/// A device that sends the data of a read just before the read finishes.
struct SendsLate(Option<DataEvent<Place>>);

impl Driver for SendsLate {
    blockyard::leaf_calls!(take_budget, return_budget, prepare, unprepare, commit, finish);

    fn queue_rq(&mut self, _: &Issue<'_>) -> Accept {
        Accept::Queued
    }

    fn timed_out(
        &mut self,
        _: QueueId,
        _: HctxId,
        _: DriverTag,
        _: &Request,
        _: Instant,
    ) -> TimedOut {
        TimedOut::Reset
    }
}

impl Device for SendsLate {
    fn next_finished(&mut self, _: Instant) -> Option<Finished> {
        let outcome = Outcome::Done(Status::Ok);
        Some(Finished { queue: QUEUE, hctx: HctxId(0), tag: DriverTag(1), outcome })
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }
}

impl ReportsData for SendsLate {
    fn next_data_event(&mut self) -> Option<DataEvent<Place>> {
        self.0.take()
    }
}

#[test]
fn data_that_comes_with_the_end_of_a_read_is_found() {
    let piece = Piece { cookie: 1, sector: 0, sectors: 4, offset_sectors: 0 };
    let media = card(Work::Read(vec![(piece, 0)]), false);
    let place = Place { tag: DriverTag(1), from: 0 };
    let below = SendsLate(Some(DataEvent::Sent { place, sectors: 0..4 }));
    let mut medium = Medium { below, media };
    assert!(medium.next_finished(Instant::ZERO).is_some());
    let samples = medium.media.take_samples();
    assert_eq!(samples[0].found, [(0..4, Content::default())]);
}

#[test]
fn only_erases_of_the_device_leave_their_stamp() {
    for (erases, by_device) in [(false, true), (true, false), (false, false)] {
        let mut media = card(writes(&[(2..8, Stamp(1))]), erases);
        media.in_flight[1].as_mut().expect("in flight").by_device = by_device;
        media.apply(DataEvent::Erased { sectors: 0..12, certain: true });
        assert_eq!(held(media.live(QUEUE)), [(0..12, WIPED.stamp.0, 0)]);
    }
}

#[test]
fn a_read_finds_no_more_than_the_device_sent_or_ended_well() {
    let piece = Piece { cookie: 1, sector: 10, sectors: 6, offset_sectors: 0 };
    let mut media = card(Work::Read(vec![(piece, 10)]), false);
    let place = Place { tag: DriverTag(1), from: 1 };
    media.apply(DataEvent::Sent { place, sectors: 11..13 });
    media.end(HctxId(0), DriverTag(1), Outcome::Done(Status::Ok));
    assert_eq!(media.take_samples()[0].found, [(11..13, Content::default())]);
    let short = Piece { sectors: 1, ..piece };
    let mut media = card(Work::Read(vec![(short, 10)]), false);
    media.end(HctxId(0), DriverTag(1), Outcome::Done(Status::IoError));
    assert_eq!(media.take_samples(), []);
    // What a device that keeps its data made of a write, its events have said.
    let mut media = card(writes(&[(0..4, Stamp(1))]), false);
    media.end(HctxId(0), DriverTag(1), Outcome::Done(Status::Ok));
    assert_eq!(held(media.live(QUEUE)), []);
}

#[test]
fn a_loss_of_power_may_keep_cached_data() {
    let kept = (0..100).filter(|&seed| {
        let mut disk = disk();
        disk.write(0..BLOCK, Content::of(Stamp(1)), false, &mut Prng::new(seed));
        disk.lose(&mut Prng::new(seed));
        assert_eq!((&disk.live, disk.cache.is_empty()), (&disk.durable, true));
        !disk.live.is_empty()
    });
    assert!((30..=80).contains(&kept.count()));
}

/// [power-loss-keeps-durable-data].
#[test]
fn a_full_cache_makes_its_oldest_version_durable() {
    let full = (0..100).filter(|&seed| {
        let draws = &mut Prng::new(seed);
        let mut disk = disk();
        for number in 1..=11 {
            disk.done += 1;
            disk.write(0..BLOCK, Content::of(Stamp(number)), false, draws);
        }
        let cached = disk.cache.iter().next().map_or(0, |(_, versions)| versions.len());
        let durable = disk.durable.iter().next().map(|(_, held)| held.stamp.0);
        assert!(cached < VERSIONS_MAX || durable == Some(3), "{durable:?}");
        cached == VERSIONS_MAX
    });
    assert!(full.count() > 20);
}

/// A model that ends requests when it is told to.
#[derive(Default)]
struct Toy {
    accepted: Vec<(QueueId, HctxId, DriverTag)>,
    last: Option<Request>,
    finished: Option<Finished>,
    reports: Vec<DataEvent<Place>>,
    late: Vec<DataEvent<Place>>,
}

impl Driver for Toy {
    blockyard::leaf_calls!(take_budget, return_budget, prepare, unprepare, commit, finish);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        self.accepted.push((issue.queue, issue.hctx, issue.tag));
        self.last = Some(issue.request().clone());
        Accept::Queued
    }

    fn timed_out(
        &mut self,
        _: QueueId,
        _: HctxId,
        _: DriverTag,
        _: &Request,
        _: Instant,
    ) -> TimedOut {
        TimedOut::Ended(Outcome::Done(Status::Timeout))
    }
}

impl Device for Toy {
    fn next_finished(&mut self, _: Instant) -> Option<Finished> {
        self.finished.take()
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }
}

impl ReportsData for Toy {
    fn advance_data(&mut self, _: Instant) {
        self.reports.append(&mut self.late);
    }

    fn next_data_event(&mut self) -> Option<DataEvent<Place>> {
        self.reports.pop()
    }
}

/// Two disks of one host, over a [`Toy`], under a verifier.
struct Bench {
    host: Host<Medium<Toy>>,
    queues: [RequestQueue; 2],
    verifier: Verifier,
}

impl Bench {
    fn new(fua: bool, seed: u64) -> Self {
        let tags = TagSetConfig { queues: 2, ..TagSetConfig::single(8) };
        let block = u32::try_from(BLOCK).unwrap();
        let limits = Limits {
            write_cache: true,
            fua,
            logical_block_sectors: block,
            max_discard_sectors: u32::MAX,
            ..Limits::new(1 << 20)
        };
        let media = Media::new([&limits, &limits], &tags, Prng::new(seed));
        let host = Host::new(Medium { below: Toy::default(), media }, (), tags);
        let queues = [0, 1].map(|number| {
            let config = QueueConfig::new(1, 1, limits.clone(), Policies::NONE);
            RequestQueue::new(QueueId(number), config, &host)
        });
        let verifier = Verifier::new(2, Cache::Volatile, Prng::new(seed)).keeping(2);
        Self { host, queues, verifier }
    }

    fn media(&mut self) -> &mut Media {
        &mut self.host.driver.media
    }

    fn submit(&mut self, disk: usize, bio: Bio) {
        let now = Instant::ZERO;
        let Self { host, queues, verifier } = self;
        verifier.submitting(&mut host.driver.media, &bio);
        queues[disk].submit(host, CpuId(0), bio, now).expect("a bio that fits");
        while let Some(run) = queues[disk].next_run(host, now) {
            let _ = queues[disk].run(host, run.hctx, now);
        }
        verifier.submitted(QueueId(u16::try_from(disk).unwrap()), &bio);
    }

    /// Ends the oldest request.
    fn end(&mut self, outcome: Outcome) {
        self.end_at(0, outcome);
    }

    fn end_at(&mut self, at: usize, outcome: Outcome) {
        let now = Instant::ZERO;
        let Self { host, queues, verifier } = self;
        let (queue, hctx, tag) = host.driver.below.accepted.remove(at);
        host.driver.below.finished = Some(Finished { queue, hctx, tag, outcome });
        let finished = host.driver.next_finished(now).expect("a request that has ended");
        let of = &mut queues[queue.index()];
        of.conclude(host, &finished, now).expect("a request in flight");
        while let Some(run) = of.next_run(host, now) {
            let _ = of.run(host, run.hctx, now);
        }
        while let Some(ended) = of.next_ended() {
            verifier.ended(&mut host.driver.media, queue, &ended, now);
        }
    }

    fn done(&mut self, disk: usize, bio: Bio) {
        self.submit(disk, bio);
        self.end(Outcome::Done(Status::Ok));
    }

    /// The device loses power, and everything that any disk held.
    fn lose(&mut self) {
        let media = self.media();
        for disk in &mut media.disks {
            (disk.live, disk.durable, disk.cache) = (Image::new(), Image::new(), Spans::new());
        }
        media.lost = true;
    }

    fn verified(&mut self) -> Verified {
        self.verifier.finish(&self.host.driver.media, Instant::ZERO)
    }
}

const FAILED: Outcome = Outcome::Done(Status::IoError);

/// How many of 1000 runs leave the data of `disk` at its first block.
fn share(run: impl Fn(&mut Bench) -> Image) -> usize {
    let runs = (0..1000).map(|seed| run(&mut Bench::new(true, seed)));
    let holds = |image: &Image| image.pieces(0..1).any(|(_, held)| held.stamp != Stamp::NEVER);
    runs.filter(holds).count()
}

fn survivors_of(bench: &mut Bench, disk: u16) -> Image {
    let draws = &mut bench.host.driver.media.draws.clone();
    bench.media().survivors(QueueId(disk), draws)
}

fn share_flushed(outcome: Outcome) -> usize {
    share(|bench| {
        bench.done(0, Bio::write(0, 4, 1));
        bench.submit(0, Bio::new(Op::Flush, 0, 0, 2));
        bench.end(outcome);
        bench.media().disks[0].durable.clone()
    })
}

// [block-is-never-torn], [power-loss-keeps-durable-data], [flush-empties-cache]
#[test]
fn what_the_rules_leave_open_is_drawn() {
    let half = 430..570;
    let in_flight = share(|bench| {
        bench.submit(0, Bio::write(0, 8, 1).with_flags(Flags::FUA));
        survivors_of(bench, 0)
    });
    assert!(half.contains(&in_flight), "a write in flight: {in_flight}");
    let of_other = share(|bench| {
        bench.submit(1, Bio::write(0, 8, 1));
        survivors_of(bench, 0)
    });
    assert_eq!(of_other, 0, "a write to another disk");
    let failed = share(|bench| {
        bench.submit(0, Bio::write(0, 8, 1));
        bench.end(FAILED);
        bench.media().live(QUEUE).clone()
    });
    assert!(half.contains(&failed), "a failed write: {failed}");
    let discarded = share(|bench| {
        bench.submit(0, Bio::new(Op::Discard, 0, 8, 1));
        bench.end(Outcome::Done(Status::Ok));
        bench.media().live(QUEUE).clone()
    });
    assert!((690..810).contains(&discarded), "a discard that has an effect: {discarded}");
    let failed = share_flushed(FAILED);
    assert!(half.start + 20 < failed && failed < half.end + 60, "a failed flush: {failed}");
    assert_eq!(share_flushed(Outcome::Done(Status::Ok)), 1000);
    // Only FUA, where the device has it, makes a write durable at once.
    for (fua, flags, most) in
        [(true, Flags::FUA, 1000), (true, Flags::NONE, 200), (false, Flags::NONE, 200)]
    {
        let durable = (0..1000).filter(|&seed| {
            let mut bench = Bench::new(fua, seed);
            bench.done(0, Bio::write(0, 4, 1).with_flags(flags));
            !bench.media().disks[0].durable.is_empty()
        });
        let durable = durable.count();
        assert!(durable <= most && (most < 1000 || durable == 1000), "{durable} with {flags:?}");
    }
}

// [flush-empties-cache]
#[test]
fn a_flush_covers_the_writes_that_were_done_when_it_was_accepted() {
    let covered = (0..50).filter(|&seed| {
        let mut bench = Bench::new(true, seed);
        bench.done(0, Bio::write(0, 4, 1));
        bench.submit(0, Bio::new(Op::Flush, 0, 0, 2));
        bench.submit(0, Bio::write(0, 4, 3));
        bench.end_at(1, Outcome::Done(Status::Ok));
        bench.end(Outcome::Done(Status::Ok));
        assert!(bench.media().stamps.is_empty());
        let durable = bench.media().disks[0].durable.iter().next();
        let stamp = durable.map(|(_, held)| held.stamp.0).expect("the first write is durable");
        assert!((1..=2).contains(&stamp), "{stamp}");
        stamp == 1
    });
    assert!(covered.count() > 30, "the second write stays in the cache, or leaves it early");
}

const fn flushed_page<P>() -> DataEvent<P> {
    DataEvent::Flushed { page: 7 }
}

#[test]
fn reports_are_taken_whenever_the_device_is_called() {
    let calls: [fn(&mut Bench); 3] = [
        |bench| bench.host.driver.advance_data(Instant::ZERO),
        |bench| bench.submit(0, Bio::read(0, 4, 9)),
        |bench| bench.end(Outcome::Done(Status::Ok)),
    ];
    for (number, call) in calls.into_iter().enumerate() {
        let mut bench = Bench::new(true, 1);
        bench.media().disks.truncate(1);
        bench.submit(0, Bio::read(100, 4, 8));
        let below = &mut bench.host.driver.below;
        if number == 0 {
            below.late.push(flushed_page())
        } else {
            below.reports.push(flushed_page())
        }
        bench.media().disks[0].cache.set(0..4, vec![Cached { done: 7, content: WIPED }]);
        call(&mut bench);
        assert_eq!(bench.media().cached_sectors(QUEUE), 0, "call {number}");
    }
}

#[test]
fn a_request_whose_time_is_over_has_ended() {
    let mut bench = Bench::new(true, 1);
    bench.submit(0, Bio::write(0, 4, 1));
    let (queue, hctx, tag) = bench.host.driver.below.accepted[0];
    let request = bench.host.driver.below.last.take().expect("request in flight");
    let answer = bench.host.driver.timed_out(queue, hctx, tag, &request, Instant::ZERO);
    assert_eq!(answer, TimedOut::Ended(Outcome::Done(Status::Timeout)));
    assert!(bench.media().in_flight.iter().all(Option::is_none));
}

#[test]
fn the_verifier_counts_what_it_checks() {
    let mut bench = Bench::new(true, 3);
    bench.done(0, Bio::write(0, 8, 1));
    bench.done(1, Bio::write(8, 4, 2));
    bench.done(0, Bio::read(0, 8, 3));
    bench.done(1, Bio::read(8, 4, 4));
    bench.done(1, Bio::new(Op::Flush, 0, 0, 5));
    bench.submit(0, Bio::read(0, 8, 6));
    bench.end(FAILED);
    assert!(bench.media().stamps.is_empty(), "bios that have ended are forgotten");
    let cached = [0, 1].map(|disk| bench.media().cached_sectors(QueueId(disk)));
    let verified = bench.verified();
    let counts = (verified.reads, verified.read_sectors, verified.writes, verified.flushes);
    assert_eq!((counts, verified.violation_count), ((2, 12, 2, 1), 0));
    assert_eq!(verified.cached_sectors, cached[0] + cached[1]);
    assert!(verified.cached_sectors > 0);
    let bio = Bio::write(0, 4, 7);
    let Bench { host, verifier, .. } = &mut bench;
    verifier.submitting(&mut host.driver.media, &bio);
    verifier.refused(&mut host.driver.media, &bio);
    assert!(bench.media().stamps.is_empty(), "nor is a bio that was refused kept");
}

// [lost-write-fails-flush]
#[test]
fn the_verifier_learns_of_a_loss_before_whatever_follows_it() {
    // A write after the loss is not lost.
    let mut bench = Bench::new(true, 1);
    bench.done(0, Bio::write(0, 4, 1));
    bench.lose();
    bench.done(1, Bio::write(0, 4, 2));
    assert_eq!(bench.verified().violation_count, 0, "the first write may be lost");
    bench.media().disks[1].live = Image::new();
    assert_eq!(bench.verified().violation_count, 1, "the second may not");
    // A flush that fails after the loss has reported it.
    let mut bench = Bench::new(true, 1);
    bench.done(0, Bio::write(0, 4, 1));
    bench.submit(0, Bio::new(Op::Flush, 0, 0, 2));
    bench.lose();
    bench.end(FAILED);
    bench.done(0, Bio::new(Op::Flush, 0, 0, 3));
    assert_eq!(bench.verified().violation_count, 0);
    // What is lost already, a loss of power does not take.
    let mut bench = Bench::new(true, 1);
    bench.done(0, Bio::write(0, 4, 1));
    bench.lose();
    let Bench { host, verifier, .. } = &mut bench;
    verifier.power_cut(&mut host.driver.media, None, Instant::ZERO);
    assert_eq!(bench.verified().power_cuts[0].lost_by_right, 0);
}

// [durable-write-survives]
#[test]
fn the_verifier_keeps_some_violations_and_counts_all() {
    let mut bench = Bench::new(true, 1);
    for number in 0..4 {
        bench.done(0, Bio::write(16 * number, 4, number + 1).with_flags(Flags::FUA));
    }
    for disk in &mut bench.media().disks {
        (disk.live, disk.durable) = (Image::new(), Image::new());
    }
    let mut before = 0;
    for number in 0..3 {
        let Bench { host, verifier, .. } = &mut bench;
        verifier.power_cut(&mut host.driver.media, None, Instant::ZERO);
        let verified = bench.verified();
        assert_eq!(verified.power_cuts[number].lost_by_wrong, 16);
        assert_eq!(verified.violations.len(), 2);
        assert!(verified.violations.iter().all(|one| one.found == Found::AfterPowerCut));
        assert!(verified.violation_count > before);
        before = verified.violation_count;
    }
    assert_eq!(before, 3 * 4 + 4, "four at each loss of power and four at the end");
}

const fn received_at(place: u8) -> DataEvent<u8> {
    DataEvent::Received { place, sectors: 3..5, page: 2 }
}

#[test]
fn an_event_keeps_its_data_under_another_name() {
    assert_eq!(received_at(1).of(|place| Some(place + 1)), Some(received_at(2)));
    assert_eq!(received_at(1).of(|_| None::<u8>), None);
    let lost: Option<DataEvent<u8>> = DataEvent::<u8>::Lost.of(|_| None);
    assert_eq!(lost, Some(DataEvent::Lost));
    assert!(!Toy::default().keeps_data());
}
