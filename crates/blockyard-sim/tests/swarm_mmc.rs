//! The swarm of MMC hosts runs every pipeline over a modelled card and controller with every
//! modelled fault. Each seed draws host, card, faults and jobs. The swarm checks that
//!
//! - every command is legal and every transfer belongs to its request; the model panics otherwise
//!   ([misuse-ends-simulation], [transfer-matches-request], [completed-request-passed-whole],
//!   [failed-transfer-recovered-first], [status-read-after-switch], [one-task-moves-data],
//!   [failed-engine-starts-nothing], [direct-command-after-tasks]);
//! - the contract of drivers holds (`Checked`), and so do the queues' accounts after every piece of
//!   work ([one-deferred-run-pending]);
//! - reads return the last writes, and durable data survives a loss of power or a reset (`Verify`);
//! - a sleeping host does nothing, and interrupts reach only its own processor;
//! - every I/O ends exactly once.
//!
//! One system in four is sound, although it may be slow: no operation fails, the card is not reset,
//! and background operations run when requested.
//!
//! ```sh
//! BLOCKYARD_SWARM_SEED=123 cargo test --release -p blockyard-sim --test swarm_mmc
//! ```
#![expect(clippy::tests_outside_test_module, reason = "the whole crate is a test")]

use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard::trace::{Event, Sink};
use blockyard::unit::CpuId;
use blockyard_devices::data::history::Wrong;
use blockyard_devices::data::verify::{Verified, Verify};
use blockyard_devices::mmc::host::MmcHost;
use blockyard_devices::profile::{
    AheadTiming, BackgroundTiming, CardFaults, Design, Device, DeviceModel, Gather, HostFaults,
    MmcProfile, Spread, Stall, UnitTiming,
};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_mmc::block::Counts;
use blockyard_mmc::host::{BusyDetect, Transfer};
use blockyard_mmc::mode::{Mode, Timing};
use blockyard_mmc::policy::{
    Bounce, HostPolicy, HsqDefer, HsqLimit, HsqOrder, HsqPolicy, Packed, Pipeline,
};
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::observe::{Observer, Work};
use core::ops::Range;

fn pick<T: Copy>(prng: &mut Prng, choices: &[T]) -> T {
    choices[usize::try_from(prng.below(choices.len() as u64))
        .expect("an index below a length should fit usize")]
}

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

/// Draws a pipeline and its policies for the host and card of `mmc`.
fn policy(prng: &mut Prng, mmc: &MmcProfile) -> HostPolicy {
    let has = mmc.host.busy_detect;
    let is_emmc = mmc.card.is_emmc();
    let hsq = HsqPolicy {
        order: pick(prng, &[HsqOrder::TagWalk, HsqOrder::Fifo]),
        limit: pick(prng, &[HsqLimit::Fixed(1), HsqLimit::Fixed(2), HsqLimit::Dynamic]),
        limit_off_by_one: pick(prng, &[false, true]),
        defer: pick(prng, &[HsqDefer::Always, HsqDefer::Removable, HsqDefer::Never]),
    };
    let mut pipelines = vec![
        Pipeline::Serial,
        Pipeline::TwoSlotMapOverlap,
        Pipeline::TwoSlotFull,
        Pipeline::PostBeforeStart,
        Pipeline::IssueOnCompletion,
        Pipeline::BlkMqWait,
    ];
    if has == BusyDetect::Hardware {
        pipelines.extend([Pipeline::Hsq(hsq); 3]);
    }
    if mmc.card.features.queue_depth > 0 {
        pipelines.extend([Pipeline::Cqe; 3]);
    }
    let pipeline = pick(prng, &pipelines);
    let better: &[_] = match has {
        BusyDetect::Status => &[BusyDetect::Status],
        BusyDetect::Line => &[BusyDetect::Status, BusyDetect::Line],
        BusyDetect::Hardware => &[BusyDetect::Status, BusyDetect::Line, BusyDetect::Hardware],
    };
    let busy = match pipeline {
        Pipeline::Hsq(_) => BusyDetect::Hardware,
        _ => pick(prng, better),
    };
    let bounces = match pipeline {
        Pipeline::Hsq(_) | Pipeline::IssueOnCompletion | Pipeline::Cqe => {
            [Bounce::None, Bounce::None, Bounce::Async]
        }
        _ => [Bounce::None, Bounce::Sync, Bounce::Async],
    };
    let transfer = match pipeline {
        Pipeline::Cqe => Transfer::Dma,
        _ => pick(prng, &[Transfer::Dma, Transfer::Dma, Transfer::Pio]),
    };
    let bounce = if transfer == Transfer::Dma { pick(prng, &bounces) } else { Bounce::None };
    let packs =
        is_emmc && mmc.host.set_block_count && pipeline != Pipeline::Cqe && bounce != Bounce::Sync;
    HostPolicy {
        transfer,
        close_ended: pick(prng, &[false, true]),
        bounce,
        packed: if packs {
            pick(prng, &[Packed::Off, Packed::Write, Packed::ReadWrite])
        } else {
            Packed::Off
        },
        ..HostPolicy::new(pipeline, busy)
    }
}

fn one_in(prng: &mut Prng, odds: u32) -> Option<u32> {
    (prng.below(3) == 0).then_some(odds)
}

/// Draws the host and card of `mmc`. Returns whether they are sound.
fn profile(prng: &mut Prng, mmc: &mut MmcProfile, soldered_in: bool, cpus: u16) -> bool {
    let host = &mut mmc.host;
    host.busy_detect = pick(prng, &[BusyDetect::Status, BusyDetect::Line, BusyDetect::Hardware]);
    host.non_removable = soldered_in;
    host.set_block_count = pick(prng, &[false, true]);
    host.queue_engine_direct = pick(prng, &[false, true]);
    host.bounce_buffers = true;
    host.interrupt_cpu = pick(prng, &[0, cpus - 1]);
    let sound = prng.below(4) == 0;
    host.faults = HostFaults {
        interrupt_lost_one_in: one_in(prng, 60),
        not_now_one_in: one_in(prng, 5),
        drift_one_in: one_in(prng, 20),
        tuning_fails_one_in: one_in(prng, 3),
        removed_at: (prng.below(12) == 0).then(|| us(1 + prng.below(100_000))),
    };
    if sound {
        let not_now_one_in = host.faults.not_now_one_in;
        host.faults = HostFaults { not_now_one_in, ..HostFaults::default() };
    }
    let is_emmc = mmc.card.is_emmc();
    let timings: &[_] = match is_emmc {
        true => &[Timing::Hs400Es, Timing::Hs400, Timing::Hs200, Timing::MmcDdr52],
        false => &[Timing::SdHighSpeed, Timing::Sdr50, Timing::Sdr104],
    };
    mmc.card.mode = Mode::new(pick(prng, timings), mmc.card.mode.width);
    let features = &mut mmc.card.features;
    features.cache_bytes = pick(prng, &[0, 1 << 15, 1 << 19]);
    if !is_emmc && features.cache_bytes > 0 {
        features.queue_depth = pick(prng, &[0, 2, 32]);
        host.queue_engine_depth = 32;
    }
    if is_emmc {
        features.packed_writes = pick(prng, &[2, 5, 63]);
        features.packed_reads = pick(prng, &[2, 5, 63]);
        features.hpi = pick(prng, &[false, true]);
        features.bkops = pick(prng, &[false, true]);
    }
    let timing = &mut mmc.card.timing;
    timing.write.flush = us(pick(prng, &[0, 2000]));
    timing.read.access = us(pick(prng, &[0, 30, 200]));
    timing.read.parallel = pick(prng, &[1, 2]);
    let spread = Spread::new(&[(0, 20), (50_000_000, 100), (100_000_000, 400)]);
    timing.read.spread = pick(prng, &[None, spread]);
    let ahead = AheadTiming {
        per_kib: us(5),
        window_bytes: 65_536,
        command: us(pick(prng, &[0, 50])),
        streams: pick(prng, &[1, 3]),
    };
    timing.read.ahead = pick(prng, &[None, Some(ahead)]);
    timing.write.page_bytes = pick(prng, &[4096, 16_384]);
    timing.write.buffer_bytes = pick(prng, &[16_384, 1 << 20]);
    timing.write.early = pick(prng, &[false, true]);
    timing.write.program = us(pick(prng, &[0, 20, 700]));
    timing.write.partial = us(pick(prng, &[0, 50]));
    timing.write.gather = pick(prng, &[Gather::Command, Gather::Sequence, Gather::Any]);
    timing.write.sequences = pick(prng, &[1, 3]);
    timing.write.jump = us(pick(prng, &[0, 80]));
    timing.write.follow = pick(prng, &[None, Some(us(7))]);
    timing.write.spread = pick(prng, &[None, spread]);
    let units = UnitTiming { bytes: 1 << 19, open: pick(prng, &[1, 4]), copy_per_kib: us(1) };
    timing.units = pick(prng, &[None, Some(units)]);
    let stall = Stall { one_in_pages: 50, length: us(75_000), spread };
    timing.stall = pick(prng, &[None, Some(stall)]);
    // The slowest operations are interrupted before they end.
    let per_kib = us(pick(prng, &[10, 10, 10, 2000, 2000, 500_000]));
    let background = BackgroundTiming { level_bytes: 1 << 17, per_kib };
    timing.background = (features.bkops && prng.below(2) == 0).then_some(background);
    timing.faults = CardFaults {
        command_lost_one_in: one_in(prng, 100),
        response_crc_one_in: one_in(prng, 100),
        no_data_one_in: one_in(prng, 100),
        read_crc_one_in: one_in(prng, 400),
        write_crc_one_in: one_in(prng, 400),
        program_one_in: None,
    };
    if sound {
        timing.faults = CardFaults::default();
        // Even a buffer full of such pages stays within the time limits of every card.
        timing.stall = timing.stall.map(|stall| Stall { length: us(500), ..stall });
    }
    sound
}

/// The largest block size of jobs.
const LARGEST_BIO_SECTORS: u32 = 2048;

fn jobs(prng: &mut Prng, trims: bool) -> Vec<String> {
    let mut args = Vec::new();
    for job in 0..1 + prng.below(3) {
        let words =
            ["read", "write", "randread", "randwrite", "rw", "randrw", "randwrite", "randtrim"];
        let words = &words[..if trims { 8 } else { 7 }];
        args.push(format!("--name=job{job}"));
        args.push(format!("--rw={}", pick(prng, words)));
        args.push(format!("--ioengine={}", pick(prng, &["libaio", "psync"])));
        args.push(format!("--bsrange={}", pick(prng, &["4k-4k", "512-64k", "4k-1m"])));
        args.push(format!("--iodepth={}", pick(prng, &[1, 4, 32])));
        args.push(format!("--numjobs={}", pick(prng, &[1, 3, 10])));
        args.push(format!("--number_ios={}", pick(prng, &[5, 30])));
        args.push(format!("--size={}", pick(prng, &["2m", "8m"])));
        args.extend(["--direct=1", "--filename=/dev/mmcblk0"].map(str::to_owned));
        args.push("--continue_on_error=all".to_owned());
        if prng.below(2) == 0 {
            let syncs = ["--fsync=3", "--fdatasync=1", "--sync=dsync", "--sync=dsync"];
            args.push(pick(prng, &syncs).to_owned());
        }
    }
    args
}

struct Drawn {
    args: Vec<String>,
    device: Device,
    design: Design,
    verify: Verify,
    sleeps: Vec<(Duration, Duration)>,
    /// Whether no part fails by itself.
    sound: bool,
}

/// Returns the smallest number of requests of at most `longest` sectors that hold all of `sectors`.
fn fewest_requests(mut sectors: Vec<Range<u64>>, longest: u64) -> u64 {
    sectors.sort_unstable_by_key(|range| range.start);
    let mut requests = 0;
    let mut held = 0;
    for range in sectors {
        while held.max(range.start) < range.end {
            held = held.max(range.start) + longest;
            requests += 1;
        }
    }
    requests
}

impl Drawn {
    /// Returns a complaint about data that is wrong, if any.
    fn wrong(&self, verified: &Verified, host: &MmcHost) -> Option<String> {
        if self.hears_late() {
            return self.unexplained(verified, host);
        }
        verified.violations.first().map(ToString::to_string)
    }

    /// Returns a complaint about wrong data that late write errors do not explain. Such an error
    /// leaves older data in place of a page that could not be programmed. The driver counts these
    /// errors, except for one of the last write.
    fn unexplained(&self, verified: &Verified, host: &MmcHost) -> Option<String> {
        let failed = |sector: u64| host.failed_sectors().iter().any(|page| page.contains(&sector));
        fn is_explained(wrong: &Wrong, failed: impl Fn(u64) -> bool) -> bool {
            let is_older = wrong.found.is_some_and(|found| {
                found.shift == 0 && wrong.right.iter().any(|right| found.stamp < *right)
            });
            is_older && wrong.sectors.clone().all(failed)
        }
        if let Some(other) =
            verified.violations.iter().find(|one| !is_explained(&one.wrong, failed))
        {
            return Some(format!("not for a lost write: {other}"));
        }
        let missing = verified.violations.iter().map(|one| one.wrong.sectors.clone()).collect();
        let lost = fewest_requests(missing, self.device.limits.max_sectors.into());
        let counts = host.counts();
        let reported = counts.lost_writes + counts.doubtful_writes;
        let is_left_open = self.design.host.is_some_and(|policy| policy.open_limit.is_some());
        let known = match is_left_open {
            // A response about an open transfer speaks of all its writes, of which several may be
            // lost. The reads at the end have responses about the last one.
            true if reported > 0 => u64::MAX,
            true => 0,
            false => reported + 1,
        };
        (lost > known).then(|| format!("{lost} writes are lost: {counts:?}"))
    }

    /// Returns whether late write errors may legally lose data. Only a driver that requests the
    /// status after each write learns in time of a page that could not be programmed. Any other
    /// driver never learns of one in the last write.
    fn hears_late(&self) -> bool {
        let DeviceModel::Mmc(mmc) = &self.device.model else { unreachable!("it is a card") };
        let policy = self.design.host.expect("the drawn design should have a host policy");
        let asks = policy.busy == BusyDetect::Status && policy.pipeline != Pipeline::Cqe;
        // No response speaks of a write in a transfer that is open.
        let asks = asks && policy.open_limit.is_none();
        mmc.card.timing.faults.program_one_in.is_some() && !asks
    }

    fn has_cache(&self) -> bool {
        matches!(&self.device.model, DeviceModel::Mmc(mmc) if mmc.card.features.cache_bytes > 0)
    }

    /// Makes the queue send neither flushes nor durable writes.
    fn forgets_to_flush(&mut self) {
        let limits = &mut self.device.limits;
        (limits.write_cache, limits.fua) = (false, false);
    }

    fn told(&self) -> String {
        let Self { args, device, design, sleeps, .. } = self;
        format!("{args:?} {:?} {:?} {sleeps:?}", device.model, design.host)
    }
}

fn draw(seed: u64) -> Drawn {
    let prng = &mut Prng::new(seed).fork(0x6d6d63);
    let soldered_in = prng.below(2) == 0;
    let base = if soldered_in { "emmc-hs400-sprd" } else { "sd-ux500" };
    let mut device = Device::lookup(base).expect("the base should be built in");
    device.machine.cpus = pick(prng, &[1, 2, 4]);
    let DeviceModel::Mmc(mmc) = &mut device.model else { unreachable!("it is a card") };
    let sound = profile(prng, mmc, soldered_in, device.machine.cpus);
    let has_cache = mmc.card.features.cache_bytes > 0;
    if has_cache {
        // No bio is split. A reset could lose one part while others wait; if a flush then failed
        // before the bio ended, no later flush would report that loss ([reset-loss-fails-flush]).
        device.limits.max_sectors = device.limits.max_sectors.max(LARGEST_BIO_SECTORS);
        device.limits.max_segments = 256;
    }
    let can_force = soldered_in && mmc.host.set_block_count;
    device.limits.fua = can_force && prng.below(2) == 0;
    device.limits.write_cache = has_cache || device.limits.fua;
    let trims = soldered_in && prng.below(3) == 0;
    device.limits.max_discard_sectors = if trims { 1 << 20 } else { 0 };
    let policy = policy(prng, mmc);
    if !sound {
        mmc.card.timing.faults.program_one_in = one_in(prng, 50);
    }
    let queue = pick(prng, &["legacy-deadline", "mq-deadline", "mq-none", "mq-kyber"]);
    let mut design = Design::lookup(queue).expect("the design should be built in");
    design.host = Some(policy);
    // Also over the queues of a kernel that leaves the cache of an SD card off.
    design.sd_cache = true;
    let (cuts, within) =
        pick(prng, &[(0, 1), (0, 1), (80, 20_000), (80, 100_000), (20, 1_000_000)]);
    let power_cuts = (0..cuts).map(|_| us(prng.below(within))).collect();
    let verify = Verify { power_cuts, violations_kept: usize::MAX, ..Verify::default() };
    let sleeps = (0..prng.below(4)).map(|_| (us(prng.below(200_000)), us(prng.below(2_000_000))));
    let sleeps = sleeps.collect();
    Drawn { args: jobs(prng, trims), device, design, verify, sleeps, sound }
}

/// Checks that only this processor takes interrupts.
struct Watch(CpuId);

impl Sink for Watch {
    fn listens(&self) -> bool {
        false
    }

    fn event(&mut self, _event: &Event<'_>) {}
}

impl Observer for Watch {
    fn work_begins(&mut self, cpu: CpuId, work: &Work, now: Instant) {
        if matches!(work, Work::Interrupt) {
            assert_eq!(cpu, self.0, "the processor that is interrupted at {now} s");
        }
    }
}

/// Returns a complaint about the run of a sound system, if any.
fn complaint(mmc: &MmcProfile, report: &Report, counts: &Counts) -> Option<String> {
    let errors: u64 = report.jobs.iter().map(|job| job.stats.errors).sum();
    let sent = &report.family.mmc.as_ref().expect("the device should be an MMC host").commands;
    // Background operations that take too long and cannot be interrupted legally end in a reset.
    let timing = &mmc.card.timing;
    let outlasts = !mmc.card.features.hpi && timing.background.is_some();
    // So does a trim after a buffer full of pages that stall: its time limit does not include them.
    let outlasts = outlasts || timing.stall.is_some() && sent[38] > 0;
    // A transaction that waits for background operations to end has failed when they are
    // interrupted.
    let is_still = (errors, counts.resets) == (0, 0) && counts.failures <= counts.bkops_interrupts;
    // Background operations may become urgent while the last I/Os, a full queue, are in flight.
    let cares = counts.exceptions < 128 || counts.bkops_starts > 0;
    // An incomplete trim would not show in the data: the old content may legally be found.
    let erases = sent[35] == sent[36] && sent[36] == sent[38];
    let is_well = counts.strays == 0 && cares && (is_still && erases || outlasts);
    (!is_well)
        .then(|| format!("{errors} errors where nothing goes wrong: {counts:?}, commands {sent:?}"))
}

/// Runs one seed.
fn run(seed: u64, drawn: &Drawn) -> Result<(Report, Counts), String> {
    let Drawn { args, device, design, verify, sleeps, sound } = drawn;
    let DeviceModel::Mmc(profile) = &device.model else { unreachable!("it is a card") };
    let jobs = parse_args(args.iter().map(String::as_str), &NoSource)
        .map_err(|wrong| format!("{wrong}: {args:?}"))?;
    let conditions =
        Conditions { verify: Some(verify), sleeps, checked: true, ..Conditions::new(seed) };
    let mut watch = Watch(CpuId(profile.host.interrupt_cpu));
    let mut simulation = Simulation::observed(&jobs, device, design, conditions, &mut watch)
        .map_err(|wrong| wrong.to_string())?;
    simulation.check_every_step();
    for _ in 0..20_000 {
        match simulation.advance(1_000) {
            Ok(true) => {}
            Ok(false) => {
                let empty = simulation.world().queues().iter().all(|queue| queue.is_empty());
                let report = simulation.report();
                let mmc = simulation
                    .world()
                    .host
                    .driver
                    .model()
                    .mmc()
                    .expect("the device should be an MMC host");
                let counts = mmc.counts();
                let complaint = sound.then(|| complaint(profile, &report, &counts)).flatten();
                let verified = report.verified.as_ref().expect("the run should be verified");
                return match drawn.wrong(verified, mmc).or(complaint) {
                    _ if !empty => Err("bios are left".to_owned()),
                    Some(wrong) => Err(wrong),
                    None => Ok((report, counts)),
                };
            }
            Err(wrong) => return Err(wrong.to_string()),
        }
    }
    let mmc =
        simulation.world().host.driver.model().mmc().expect("the device should be an MMC host");
    Err(format!("no end at {}: {:?}", simulation.world().now(), mmc.counts()))
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Prints the seed and its draws if its run panics.
struct Told<'a>(u64, &'a Drawn);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!(
                "{}\nseed {}: BLOCKYARD_SWARM_SEED={} cargo test --release -p blockyard-sim --test \
                 swarm_mmc",
                self.1.told(),
                self.0,
                self.0
            );
        }
    }
}

/// Sums over all seeds.
#[derive(Default)]
struct Total {
    seeds: u64,
    ios: u64,
    errors: u64,
    commands: u64,
    cuts: usize,
    sleeps: u64,
    resets: u64,
    bkops_starts: u64,
    interrupts: u64,
    lost_writes: u64,
    doubtful_writes: u64,
}

impl Total {
    /// Runs `seed` and adds its results. One seed in 16 runs twice, with equal results.
    fn add(&mut self, seed: u64) {
        let drawn = draw(seed);
        let _told = Told(seed, &drawn);
        let (report, counts) = run(seed, &drawn).unwrap_or_else(|what| panic!("{what}"));
        let verified = report.verified.as_ref().expect("the run should be verified");
        if seed.is_multiple_of(16) {
            let again = run(seed, &drawn).expect("a seed that ended once should end again");
            assert_eq!(format!("{again:?}"), format!("{:?}", (&report, counts)));
        }
        let measured = report.jobs.iter().flat_map(|job| job.stats.measured());
        self.seeds += 1;
        self.ios += measured.map(|measured| measured.ios).sum::<u64>();
        self.errors += report.jobs.iter().map(|job| job.stats.errors).sum::<u64>();
        self.commands +=
            report.family.mmc.as_ref().map_or(0, |mmc| mmc.commands.iter().sum::<u64>());
        self.cuts += verified.power_cuts.len();
        self.sleeps += report.totals.sleeps;
        self.resets += counts.resets;
        self.bkops_starts += counts.bkops_starts;
        self.interrupts += counts.bkops_interrupts;
        self.lost_writes += counts.lost_writes;
        self.doubtful_writes += counts.doubtful_writes;
    }

    fn tell(&self) {
        let Self { seeds, ios, errors, commands, cuts, sleeps, resets, bkops_starts, .. } = self;
        let Self { interrupts, lost_writes, doubtful_writes, .. } = self;
        println!(
            "{seeds} seeds, {ios} I/Os, {errors} errors, {commands} commands, {cuts} looks at what a \
             loss of power would leave, {sleeps} sleeps, {resets} resets, background operations begun \
             {bkops_starts} times and interrupted {interrupts} times, {lost_writes} writes failed after they were \
             told done, {doubtful_writes} may have"
        );
    }
}

#[test]
fn every_io_ends_once_and_nothing_is_lost() {
    let seeds: Vec<u64> = match number("BLOCKYARD_SWARM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("BLOCKYARD_SWARM_SEEDS").unwrap_or(300) / 2).collect(),
    };
    let mut total = Total::default();
    seeds.into_iter().for_each(|seed| total.add(seed));
    total.tell();
}

/// Returns the draws of `seed` with a host that leaves transfers open between requests, and with
/// jobs in sequence, of which every other seed has one alone.
fn left_open(seed: u64) -> Drawn {
    let mut drawn = draw(seed);
    for arg in &mut drawn.args {
        *arg = arg.replace("--rw=rand", "--rw=");
        if seed.is_multiple_of(2) && arg.starts_with("--numjobs=") {
            *arg = "--numjobs=1".to_owned();
        }
    }
    if let (true, Some(second)) =
        (seed.is_multiple_of(2), drawn.args.iter().position(|arg| arg == "--name=job1"))
    {
        drawn.args.truncate(second);
    }
    // The commands of these reads have responses about the writes of the last transfer, also of a
    // card that programs after it was busy.
    let last = "--name=last --stonewall --rw=randread --bs=4k --number_ios=3 --thinktime=200ms \
                --size=8m --direct=1 --filename=/dev/mmcblk0 --continue_on_error=all";
    drawn.args.extend(last.split_whitespace().map(str::to_owned));
    let limits = &mut drawn.device.limits;
    limits.write_cache = true;
    limits.max_sectors = limits.max_sectors.max(LARGEST_BIO_SECTORS);
    limits.max_segments = 256;
    let policy = drawn.design.host.as_mut().expect("the drawn design should have a host policy");
    policy.open_limit = Some(us([0, 100, 5000][usize::try_from(seed % 3).expect("at most 2")]));
    policy.packed = Packed::Off;
    if policy.pipeline == Pipeline::Cqe {
        policy.pipeline = Pipeline::BlkMqWait;
    }
    drawn
}

#[test]
fn transfers_that_stay_open_lose_nothing() {
    let mut total = Total::default();
    let mut continued = 0;
    let seeds = match number("BLOCKYARD_SWARM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BLOCKYARD_SWARM_SEEDS").unwrap_or(300) / 4,
    };
    for seed in seeds {
        let drawn = left_open(seed);
        let _told = Told(seed, &drawn);
        let (report, counts) = run(seed, &drawn)
            .unwrap_or_else(|what| panic!("seed {seed}: {what}\n{}", drawn.told()));
        continued += report.family.mmc.as_ref().map_or(0, |mmc| mmc.continued.iter().sum::<u64>());
        total.seeds += 1;
        total.lost_writes += counts.lost_writes;
    }
    println!("{} seeds, {continued} transfers continued one that was open", total.seeds);
    assert!(total.seeds < 10 || continued > 100, "{continued}");
}

/// Returns whether one of the first seeds shows `wrong` on a system that `spoil` breaks.
fn shows(wrong: &str, spoil: impl Fn(&mut Drawn) -> bool) -> bool {
    let spoiled = (0..400).filter_map(|seed| {
        let mut drawn = draw(seed);
        spoil(&mut drawn).then(|| run(seed, &drawn))
    });
    spoiled.take(60).any(|ended| ended.is_err_and(|what| what.contains(wrong)))
}

/// The canary of durability: queues that do not know of the cache and therefore send no flushes.
#[test]
fn a_host_that_forgets_to_flush_is_caught() {
    assert!(shows("after a loss of power", |drawn| {
        drawn.forgets_to_flush();
        drawn.has_cache() && drawn.verify.cuts_power()
    }));
}

/// The canary of a loss by reset: such queues where the power never fails.
#[test]
fn a_host_that_forgets_to_flush_before_a_reset_is_caught() {
    assert!(shows("at the end of the run", |drawn| {
        drawn.forgets_to_flush();
        drawn.verify.power_cuts.clear();
        drawn.has_cache()
    }));
}

/// Returns whether `turn_off`, which turns off a feature or fault, changes the run of one of the
/// first seeds.
fn matters(turn_off: impl Fn(&mut Drawn) -> bool) -> bool {
    (0..400).any(|seed| {
        let drawn = draw(seed);
        let mut other = draw(seed);
        fn told(drawn: &Drawn, seed: u64) -> String {
            format!("{:?}", run(seed, drawn))
        }
        turn_off(&mut other) && told(&drawn, seed) != told(&other, seed)
    })
}

fn mmc_of(drawn: &mut Drawn) -> &mut MmcProfile {
    let DeviceModel::Mmc(mmc) = &mut drawn.device.model else { unreachable!("it is a card") };
    mmc
}

/// The canary of the draws: each drawn feature or fault must reach the model.
#[test]
fn every_drawn_feature_changes_some_run() {
    assert!(matters(|drawn| mmc_of(drawn).host.faults.interrupt_lost_one_in.take().is_some()));
    assert!(matters(|drawn| mmc_of(drawn).host.faults.not_now_one_in.take().is_some()));
    assert!(matters(|drawn| mmc_of(drawn).host.faults.drift_one_in.take().is_some()));
    assert!(matters(|drawn| mmc_of(drawn).host.faults.tuning_fails_one_in.take().is_some()));
    assert!(matters(|drawn| mmc_of(drawn).host.faults.removed_at.take().is_some()));
    assert!(matters(|drawn| mmc_of(drawn).card.timing.stall.take().is_some()));
    assert!(matters(|drawn| mmc_of(drawn).card.timing.units.take().is_some()));
    assert!(matters(|drawn| mmc_of(drawn).card.timing.background.take().is_some()));
    assert!(matters(|drawn| core::mem::take(&mut mmc_of(drawn).card.features.bkops)));
    assert!(matters(|drawn| core::mem::take(&mut mmc_of(drawn).card.features.hpi)));
    assert!(matters(|drawn| core::mem::take(&mut mmc_of(drawn).host.interrupt_cpu) > 0));
    assert!(matters(|drawn| core::mem::take(&mut mmc_of(drawn).host.queue_engine_direct)));
    assert!(matters(|drawn| core::mem::take(&mut drawn.device.limits.max_discard_sectors) > 0));
    assert!(matters(|drawn| !core::mem::take(&mut drawn.sleeps).is_empty()));
}

/// Seed 3201867634 drew writes of 640 KiB, which were split at 512 KiB. A reset lost the part that
/// was done, and a flush failed for that loss before the other part was done. The writer's own
/// flush then succeeded. A driver sees requests, not bios, and cannot prevent this. Therefore no
/// bio is split if there is a cache to lose.
#[test]
fn no_write_is_split_if_a_reset_can_lose_the_cache() {
    let mut caches = 0;
    for seed in (0..200).chain([3_201_867_634]) {
        let drawn = draw(seed);
        if !drawn.has_cache() {
            continue;
        }
        let Drawn { args, device, .. } = drawn;
        caches += 1;
        let limits = &device.limits;
        let jobs = parse_args(args.iter().map(String::as_str), &NoSource)
            .expect("drawn jobs should parse");
        for job in &jobs.jobs {
            let bytes = job.block.write.max_bytes();
            assert!(bytes.div_ceil(512) <= limits.max_sectors, "seed {seed}: {args:?}");
            assert!(bytes.div_ceil(4096) <= limits.max_segments.into(), "seed {seed}: {args:?}");
        }
    }
    assert!(caches > 20);
}

/// Runs for the number of seconds in `BLOCKYARD_SWARM_SOAK`; 0 means until a seed fails. Does
/// nothing if it is not set.
#[test]
fn fresh_seeds_pass_for_the_requested_time() {
    use core::hash::BuildHasher;
    let Some(seconds) = number("BLOCKYARD_SWARM_SOAK") else { return };
    let first = std::hash::RandomState::new().hash_one(0) >> 32;
    let began = std::time::Instant::now();
    let mut total = Total::default();
    for seed in first.. {
        total.add(seed);
        if seconds > 0 && began.elapsed().as_secs() >= seconds {
            return total.tell();
        }
    }
}
