//! The second swarm: random fio jobs on random devices under random designs, through `Simulation`.
//! The accounts are checked after every piece of work. `BLOCKYARD_SWARM_SEED` and
//! `BLOCKYARD_SWARM_SEEDS` work as in the swarm.

use blockyard::policy::{
    BusyTrack, Dequeue, Dispatch, ElevatorKind, Merges, Model, Plugging, Policies, SchedDepth,
    SwqMerge,
};
use blockyard::prng::Prng;
use blockyard::time::Duration;
use blockyard_devices::profile::{
    Design, Device, DeviceModel, FaultRules, HbaProfile, NullCompletion, NullProfile, Refusal,
    RefusalMode, Spread, WbtLatency,
};
use blockyard_fio::job::{
    BlockSizes, Engine, FadviseHint, JobFile, Mix, NoSource, PerOp, SyncMode, parse_args,
};
use blockyard_sim::simulate::{Conditions, Report, Simulation};

fn args(prng: &mut Prng) -> Vec<String> {
    let jobs = 1 + prng.below(3);
    let mut args = Vec::new();
    for job in 0..jobs {
        let words = ["read", "write", "randread", "randwrite", "rw", "randrw"];
        args.push(format!("--name=job{job}"));
        args.push(format!("--rw={}", prng.pick(&words)));
        args.push(format!("--ioengine={}", prng.pick(&["libaio", "io_uring", "psync"])));
        args.push(format!("--bs={}", prng.pick(&["4k", "16k", "512k", "4k-64k"])));
        args.push(format!("--iodepth={}", prng.pick(&[1, 4, 32])));
        args.push(format!("--numjobs={}", prng.pick(&[1, 3, 12])));
        args.push(format!("--number_ios={}", prng.pick(&[5, 40])));
        args.push(format!("--size={}", prng.pick(&["1m", "8m"])));
        args.push("--direct=1".to_owned());
        let extras = [
            "--iodepth_batch_submit=8",
            "--iodepth_batch_complete_min=4",
            "--thinktime=30us",
            "--rate_iops=20k",
            "--fsync=3",
            "--startdelay=1ms",
            "--prioclass=3",
            "--group_reporting",
            "--stonewall",
        ];
        args.extend(extras.iter().filter(|_| prng.below(5) == 0).map(|extra| (*extra).to_owned()));
    }
    if args.iter().any(|arg| arg.contains("4k-64k")) {
        args.iter_mut().for_each(|arg| *arg = arg.replace("--bs=4k-64k", "--bsrange=4k-64k"));
    }
    args
}

/// A device and its rule for busy answers, if any.
fn device(prng: &mut Prng) -> (Device, Option<FaultRules>) {
    let mut faults = None;
    let mut device = Device::lookup("null").expect("`null` should be a built-in device");
    device.limits.write_cache = false;
    device.limits.max_sectors = prng.pick(&[8, 64, 2560]);
    device.limits.max_segments = prng.pick(&[1, 3, 128]);
    device.machine.cpus = prng.pick(&[1, 2, 7, 16]);
    let queues = prng.pick(&[1, 2, 4, 8]);
    let depth = prng.pick(&[1, 2, 5, 64]);
    device.model = if prng.below(2) == 0 {
        let null = NullProfile {
            completion: prng.pick(&[
                NullCompletion::None,
                NullCompletion::Softirq,
                NullCompletion::Timer,
            ]),
            completion_time: Duration::from_us(prng.pick(&[1, 30])),
            submit_queues: queues,
            depth,
            shared_tags: prng.below(3) == 0,
            disks: prng.pick(&[1, 2, 4]),
            bandwidth_limit: prng.pick(&[None, Some(200_000_000)]),
        };
        faults = prng.pick(&[None, Some(3), Some(50)]).map(busy_one_in);
        DeviceModel::Null(null)
    } else {
        DeviceModel::Hba(hba(prng, queues, depth))
    };
    (device, faults)
}

/// Returns a rule that refuses one request in this many by chance.
fn busy_one_in(odds: u64) -> FaultRules {
    let text = format!("[[rule]]\nname = \"busy\"\none-in = {odds}\nbusy = \"resource\"\n");
    FaultRules::parse("faults.toml", &text).expect("the rule should parse")
}

fn hba(prng: &mut Prng, hw_queues: u16, can_queue: u16) -> HbaProfile {
    let full = RefusalMode::LunFull {
        ramp_down_after: prng.pick(&[1, 3]),
        ramp_up_period: Duration::from_us(300),
    };
    let mode = prng.pick(&[RefusalMode::HostFull, RefusalMode::TargetFull, full]);
    let refusal = Refusal { mode, limit: prng.pick(&[1, 3, 20]) };
    HbaProfile {
        hw_queues,
        can_queue,
        cmd_per_lun: prng.pick(&[1, 3, 62]),
        luns: prng.pick(&[1, 2, 4]),
        command_read: Duration::from_us(20),
        command_write: Duration::from_us(30),
        spread: prng.pick(&[None, Spread::new(&[(0, 60), (100_000_000, 140)])]),
        port_read: Duration::from_us(1),
        port_write: Duration::from_us(2),
        burst: prng.pick(&[512, 4096, 1 << 20]),
        link_read: 2_000_000_000,
        link_write: 1_000_000_000,
        refusal: prng.pick(&[None, Some(refusal)]),
    }
}

fn design(prng: &mut Prng) -> Design {
    let mut design = Design::lookup("mq-none").expect("`mq-none` should be a built-in design");
    let dispatches =
        [Dispatch::DrainAll, Dispatch::HoldUntilFlushed, Dispatch::SharedList, Dispatch::Budget];
    let base = prng.pick(&[Policies::NONE, Policies::mq_deadline(), Policies::mq_kyber()]);
    design.policies = Policies {
        model: prng.pick(&[Model::Multi, Model::Multi, Model::SingleLock]),
        elevator: base.elevator,
        dispatch: prng.pick(&dispatches),
        dequeue: prng.pick(&[Dequeue::SpliceAll, Dequeue::RoundRobin, Dequeue::ByBusy]),
        busy: prng.pick(&[BusyTrack::Off, BusyTrack::Bit, BusyTrack::Ewma]),
        swq_merge: prng.pick(&[SwqMerge::Off, SwqMerge::Last8, SwqMerge::Hash]),
        sched_depth: prng.pick(&[SchedDepth::Fixed(2), SchedDepth::FromDeviceDepth]),
        merges: prng.pick(&[Merges::All, Merges::All, Merges::Last, Merges::Off]),
        plug: prng.pick(&[Plugging::Batches, Plugging::EveryBio, Plugging::Calls]),
        restart: base.restart,
        wbt: None, // made for the device, from the following
    };
    design.wbt_latency = prng.fork(1).pick(&[
        WbtLatency::Linux,
        WbtLatency::Off,
        WbtLatency::Target(Duration::from_us(1)),
    ]);
    if let ElevatorKind::Deadline(tunables) = &mut design.policies.elevator {
        tunables.async_depth = prng.pick(&[None, Some(1)]);
    }
    design
}

/// Draws hardware queues for reads alone and for polling, and jobs that use them.
fn kinds(seed: u64, jobs: &mut JobFile, device: &Device, design: &mut Design) {
    if design.policies.model == Model::SingleLock {
        return;
    }
    let prng = &mut Prng::new(seed).fork(0x706f);
    design.read_queues.count = prng.pick(&[0, 0, 1, 3]).min(device.machine.cpus);
    design.poll_queues.count = prng.pick(&[0, 1, 2, 8]).min(device.machine.cpus);
    if design.poll_queues.count > 0 {
        let rings = jobs.jobs.iter_mut().filter(|job| job.engine == Engine::IoUring);
        rings.for_each(|job| job.hipri = prng.below(2) == 0);
    }
}

/// Draws jobs that use the page cache, and their read-ahead. Some of their blocks are no whole
/// sectors.
fn buffered(seed: u64, jobs: &mut JobFile, design: &mut Design) {
    let prng = &mut Prng::new(seed).fork(0x7061);
    design.read_ahead.bytes = prng.pick(&[0, 16 << 10, 128 << 10, 1 << 20].map(Some));
    design.read_ahead.request_widens = prng.pick(&[false, true]);
    for job in &mut jobs.jobs {
        let trims = matches!(job.pattern.mix, Mix::Trim | Mix::TrimWrite);
        let may = !trims && job.engine != Engine::IoUring && !job.hipri;
        job.direct = !may || prng.below(3) == 0;
        if !job.direct && prng.below(3) == 0 {
            job.block = PerOp::all(BlockSizes::Fixed(prng.pick(&[512, 2300, 9000])));
            job.sync = prng.pick(&[SyncMode::None, SyncMode::Dsync]);
        }
        job.invalidate = prng.pick(&[false, true]);
        let hints = [FadviseHint::None, FadviseHint::None, FadviseHint::Pattern];
        job.fadvise_hint = prng.pick(&hints);
    }
}

/// Runs one seed.
fn run(seed: u64) -> Result<Report, String> {
    let prng = &mut Prng::new(seed).fork(0x6a6f);
    let args = args(prng);
    let (device, faults) = device(prng);
    let mut design = design(prng);
    let mut jobs = parse_args(args.iter().map(String::as_str), &NoSource)
        .map_err(|wrong| format!("{wrong}: {args:?}"))?;
    kinds(seed, &mut jobs, &device, &mut design);
    buffered(seed, &mut jobs, &mut design);
    let conditions = Conditions { faults: faults.as_ref(), ..Conditions::new(seed) };
    let mut simulation = Simulation::under(&jobs, &device, &design, conditions)
        .map_err(|wrong| format!("{wrong}: {args:?}"))?;
    simulation.check_every_step();
    for _ in 0..2_000 {
        match simulation.advance(1_000) {
            Ok(true) => {}
            Ok(false) => {
                let world = simulation.world();
                let empty = world.queues().iter().all(|queue| queue.is_empty())
                    || world.reading_ahead() > 0;
                let report = simulation.report();
                return if empty { Ok(report) } else { Err("bios are left".to_owned()) };
            }
            Err(wrong) => return Err(format!("{wrong}: {args:?} {:?} {design:?}", device.model)),
        }
    }
    Err(format!("no end: {args:?} {:?} {design:?}", device.model))
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn all_jobs_end_and_the_same_seed_gives_the_same_report() {
    let seeds: Vec<u64> = match number("BLOCKYARD_SWARM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("BLOCKYARD_SWARM_SEEDS").unwrap_or(200) / 2).collect(),
    };
    let mut ios = 0;
    let mut events = 0;
    let mut failed = 0;
    for seed in &seeds {
        match run(*seed) {
            Err(what) => {
                println!(
                    "seed {seed}: {what}\n  BLOCKYARD_SWARM_SEED={seed} cargo test --release -p \
                     blockyard-sim --test random_jobs_on_random_devices_finish -- --nocapture"
                );
                failed += 1;
            }
            Ok(report) => {
                ios += report
                    .jobs
                    .iter()
                    .flat_map(|job| job.stats.measured())
                    .map(|m| m.ios)
                    .sum::<u64>();
                events += report.totals.events;
                if seed % 8 == 0 {
                    let again = run(*seed).expect("a seed that ended should end again");
                    assert_eq!(format!("{again:?}"), format!("{report:?}"), "seed {seed}");
                }
            }
        }
    }
    println!("{} seeds, {ios} I/Os, {events} events", seeds.len());
    assert_eq!(failed, 0, "seeds failed");
}
