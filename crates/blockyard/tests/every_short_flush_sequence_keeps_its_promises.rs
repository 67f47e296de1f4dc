//! Enumerates flush sequences: every kind of up to six bios, and every order of their submissions
//! and completions.
//!
//! Three checks run, independent of the core's code: the [`Ledger`] of a device with a volatile
//! cache (P1 to P3, a power cut at any instant); the rules of `blockyard::flush` from the device's
//! view ([one-flush-at-a-time], [flush-waits-for-data]); and, if there are tags for all bios, a
//! greedy [`Reference`], which predicts the commands in the device at each instant and so the
//! smallest number of flush commands.
//!
//! # Coverage
//!
//! A queue cannot be cloned, so a path of steps is replayed from the start for each of its
//! continuations. Up to three bios every path is played. For more bios, a state that another path
//! has reached is not explored again; [`World::key`] defines equal states. With six bios this
//! covers 320,696,626 paths in 390,688 states without native FUA, and 277,070,847 paths in 122,736
//! states with it, each with and without an elevator.

mod durability;

use blockyard::bio::{Bio, Flags, Op};
use blockyard::driver::{Accept, Driver, Issue};
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::Policies;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};
use core::panic::AssertUnwindSafe;
use durability::Ledger;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{catch_unwind, resume_unwind};

const NOW: Instant = Instant::ZERO;
const CPU: CpuId = CpuId(0);

/// The kind of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Flush,
    Write,
    Preflush,
    Fua,
    PreflushFua,
}

const KINDS: [Kind; 5] = [Kind::Flush, Kind::Write, Kind::Preflush, Kind::Fua, Kind::PreflushFua];

impl Kind {
    /// Returns a bio of this kind. Writes do not touch, so none merge.
    fn bio(self, cookie: u64) -> Bio {
        let write = Bio::write(cookie * 64, 8, cookie);
        match self {
            Self::Flush => Bio::new(Op::Flush, 0, 0, cookie),
            Self::Write => write,
            Self::Preflush => write.with_flags(Flags::PREFLUSH),
            Self::Fua => write.with_flags(Flags::FUA),
            Self::PreflushFua => write.with_flags(Flags::PREFLUSH | Flags::FUA),
        }
    }

    const fn asks_before(self) -> bool {
        matches!(self, Self::Flush | Self::Preflush | Self::PreflushFua)
    }

    /// Returns whether a flush must follow the bio's data.
    const fn asks_after(self, native_fua: bool) -> bool {
        matches!(self, Self::Fua | Self::PreflushFua) && !native_fua
    }
}

/// A command that the device was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Command {
    Flush,
    Data(u64),
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    command: Command,
    tag: DriverTag,
    fua: bool,
}

/// A device that accepts every request.
#[derive(Debug, Default)]
struct Device {
    sent: Vec<Sent>,
}

impl Driver for Device {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let command = match issue.request().op {
            Op::Flush => Command::Flush,
            _ => Command::Data(
                issue.pieces().next().expect("a data request should have a piece").cookie,
            ),
        };
        let fua = issue.request().flags.contains(Flags::FUA);
        self.sent.push(Sent { command, tag: issue.tag, fua });
        Accept::Queued
    }
}

/// The stage of a bio in its flush sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    WaitsBefore,
    CoveredBefore,
    Data,
    WaitsAfter,
    CoveredAfter,
}

/// A greedy model of flush sequences. A flush starts as soon as a bio waits for one while neither a
/// flush nor sequenced data is in flight, and serves every waiting bio. Fewer flushes would require
/// knowing the future.
#[derive(Clone, Debug, Default)]
struct Reference {
    native_fua: bool,
    flushes: bool,
    bios: Vec<(u64, Kind, Place)>,
}

impl Reference {
    fn submit(&mut self, cookie: u64, kind: Kind) {
        let place = if kind.asks_before() { Place::WaitsBefore } else { Place::Data };
        self.bios.push((cookie, kind, place));
        self.flush_if_possible();
    }

    /// Completes `command` and returns the bios that end with it.
    fn complete(&mut self, command: Command, ok: bool) -> BTreeSet<u64> {
        let native_fua = self.native_fua;
        self.flushes &= command != Command::Flush;
        let mut ended = BTreeSet::new();
        for (cookie, kind, place) in &mut self.bios {
            let next = match (command, *place) {
                (Command::Flush, Place::CoveredBefore) if *kind != Kind::Flush => Some(Place::Data),
                (Command::Flush, Place::CoveredBefore | Place::CoveredAfter) => None,
                (Command::Data(done), Place::Data) if done == *cookie => {
                    kind.asks_after(native_fua).then_some(Place::WaitsAfter)
                }
                _ => continue,
            };
            match next {
                Some(next) if ok => *place = next,
                _ => _ = ended.insert(*cookie),
            }
        }
        self.bios.retain(|(cookie, ..)| !ended.contains(cookie));
        self.flush_if_possible();
        ended
    }

    fn flush_if_possible(&mut self) {
        let native_fua = self.native_fua;
        let held = self.bios.iter().any(|(_, kind, at)| {
            *at == Place::Data && (kind.asks_before() || kind.asks_after(native_fua))
        });
        if self.flushes || held {
            return;
        }
        for (_, _, place) in &mut self.bios {
            *place = match *place {
                Place::WaitsBefore => Place::CoveredBefore,
                Place::WaitsAfter => Place::CoveredAfter,
                other => other,
            };
            self.flushes |= matches!(place, Place::CoveredBefore | Place::CoveredAfter);
        }
    }

    /// Returns the commands in the device, in order.
    fn commands(&self) -> Vec<Command> {
        let data = self.bios.iter().filter(|(_, _, place)| *place == Place::Data);
        let flush = self.flushes.then_some(Command::Flush);
        flush.into_iter().chain(data.map(|(cookie, ..)| Command::Data(*cookie))).collect()
    }
}

/// A possible next step.
#[derive(Clone, Copy, Debug)]
enum Step {
    Submit(Kind),
    /// A run of the hardware queue, if runs are separate steps.
    Run,
    Complete(Command, bool),
}

/// A system to explore.
#[derive(Clone, Copy, Debug)]
struct Setup {
    policies: Policies,
    native_fua: bool,
    /// The number of tags. With fewer than one for each bio and one for the flush, requests wait
    /// for tags and the reference is not compared.
    depth: u16,
    bios: u64,
    /// Whether one command may fail.
    failure: bool,
    /// Whether runs are separate steps instead of immediate.
    late_runs: bool,
    /// Whether every path is played, even to a state that was explored.
    every_path: bool,
}

impl Setup {
    const fn new(policies: Policies, native_fua: bool, bios: u64) -> Self {
        let failure = false;
        let late_runs = false;
        let every_path = false;
        Self { policies, native_fua, depth: 8, bios, failure, late_runs, every_path }
    }

    const fn is_exact(&self) -> bool {
        self.depth as u64 > self.bios && !self.late_runs
    }
}

struct World {
    setup: Setup,
    host: Host<Device>,
    queue: RequestQueue,
    kinds: Vec<Kind>,
    ended: BTreeSet<u64>,
    with_device: Vec<Sent>,
    flush_sent_at: Option<u64>,
    runs: Vec<HctxId>,
    may_fail: bool,
    ledger: Ledger,
    reference: Reference,
}

fn small(count: usize) -> u8 {
    u8::try_from(count).expect("there should be at most six bios")
}

impl World {
    fn new(setup: Setup) -> Self {
        let tags = TagSetConfig {
            hctxs: 1,
            depth: setup.depth,
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: 1,
        };
        let host = Host::new(Device::default(), (), tags);
        let limits = Limits { write_cache: true, fua: setup.native_fua, ..Limits::new(1024) };
        let config = QueueConfig {
            max_bios: 8,
            max_waiters: 1,
            ..QueueConfig::new(1, 1, limits, setup.policies)
        };
        Self {
            queue: RequestQueue::new(QueueId(0), config, &host),
            host,
            kinds: Vec::new(),
            ended: BTreeSet::new(),
            with_device: Vec::new(),
            flush_sent_at: None,
            runs: Vec::new(),
            may_fail: setup.failure,
            ledger: Ledger::default(),
            reference: Reference { native_fua: setup.native_fua, ..Reference::default() },
            setup,
        }
    }

    fn steps(&self) -> Vec<Step> {
        let submits = (self.kinds.len() as u64) < self.setup.bios;
        let mut steps: Vec<_> = if submits { KINDS.map(Step::Submit).to_vec() } else { Vec::new() };
        steps.extend((!self.runs.is_empty()).then_some(Step::Run));
        let commands = self.with_device.iter().map(|sent| sent.command);
        steps.extend(commands.clone().map(|command| Step::Complete(command, true)));
        if self.may_fail {
            steps.extend(commands.map(|command| Step::Complete(command, false)));
        }
        steps
    }

    /// Takes one of [`Self::steps`]. Returns false if the queue refused a bio.
    fn take(&mut self, step: Step) -> bool {
        match step {
            Step::Submit(kind) => {
                let cookie = self.kinds.len() as u64;
                let submitted = self.queue.submit(&mut self.host, CPU, kind.bio(cookie), NOW);
                if submitted.is_err() {
                    assert!(!self.setup.is_exact(), "with enough tags no bio should be refused");
                    return false;
                }
                self.kinds.push(kind);
                self.ledger.submitted(cookie);
                self.reference.submit(cookie, kind);
                self.look(&BTreeSet::new(), Status::Ok);
            }
            Step::Run => {
                let hctx = self.runs.pop().expect("a run should be offered as a step");
                let _ = self.queue.run(&mut self.host, hctx, NOW);
                self.look(&BTreeSet::new(), Status::Ok);
            }
            Step::Complete(command, ok) => self.complete(command, ok),
        }
        true
    }

    fn complete(&mut self, command: Command, ok: bool) {
        let at = self.with_device.iter().position(|sent| sent.command == command);
        let Sent { tag, fua, .. } =
            self.with_device.remove(at.expect("a completed command should be in the device"));
        self.may_fail &= ok;
        let flush_sent_at =
            if command == Command::Flush { self.flush_sent_at.take() } else { None };
        if ok {
            match (command, flush_sent_at) {
                (Command::Data(cookie), _) => {
                    let bio = self.kinds[index(cookie)].bio(cookie);
                    self.ledger.done(&bio, fua);
                }
                (Command::Flush, sent_at) => {
                    self.ledger.flushed(sent_at.expect("the start of a flush should be recorded"));
                }
            }
        }
        let status = if ok { Status::Ok } else { Status::IoError };
        self.queue
            .complete(&mut self.host, HctxId(0), tag, status, NOW)
            .expect("a completed request should be in flight");
        let expected = self.reference.complete(command, ok);
        self.look(&expected, status);
    }

    /// Collects ended bios, sent requests and runs, and checks them.
    fn look(&mut self, expected: &BTreeSet<u64>, status: Status) {
        let mut ended = BTreeSet::new();
        loop {
            while let Some(end) = self.queue.next_ended() {
                let cookie = end.bio.cookie;
                assert!(self.ended.insert(cookie), "bio {cookie} ended twice");
                assert_eq!(end.status, status, "bio {cookie}");
                self.ledger.ended(&end.bio, end.status);
                ended.insert(cookie);
            }
            while let Some(sent) =
                (!self.host.driver.sent.is_empty()).then(|| self.host.driver.sent.remove(0))
            {
                self.sent(sent);
            }
            while let Some(run) = self.queue.next_run(&mut self.host, NOW) {
                self.runs.push(run.hctx);
            }
            self.runs.extend(self.host.next_starved().map(|(_, hctx)| hctx));
            if self.setup.late_runs || self.runs.is_empty() {
                break;
            }
            let hctx = self.runs.remove(0);
            let _ = self.queue.run(&mut self.host, hctx, NOW);
        }
        self.queue.self_check(&self.host);
        if self.setup.is_exact() {
            let mut commands: Vec<_> = self.with_device.iter().map(|sent| sent.command).collect();
            commands.sort_unstable();
            assert_eq!(commands, self.reference.commands(), "commands in the device");
        }
        if self.setup.is_exact() || status == Status::Ok {
            assert_eq!(ended, *expected, "bios that end");
        }
    }

    fn sent(&mut self, sent: Sent) {
        match sent.command {
            Command::Flush => {
                assert_eq!(self.flush_sent_at, None, "[one-flush-at-a-time]");
                let data = self.with_device.iter().filter_map(|sent| match sent.command {
                    Command::Data(cookie) => Some(self.kinds[index(cookie)]),
                    Command::Flush => None,
                });
                let fua = self.setup.native_fua;
                assert_eq!(
                    data.filter(|kind| kind.asks_before() || kind.asks_after(fua)).count(),
                    0,
                    "[flush-waits-for-data]"
                );
                self.flush_sent_at = Some(self.ledger.flush_sent());
            }
            Command::Data(cookie) => {
                let kind = self.kinds[index(cookie)];
                assert_eq!(
                    sent.fua,
                    kind.bio(cookie).flags.contains(Flags::FUA) && self.setup.native_fua
                );
                self.ledger.data_sent(&kind.bio(cookie));
            }
        }
        self.with_device.push(sent);
    }

    /// Returns the part of the state that affects later steps: the bios and failures still to come;
    /// how many writes a power cut would lose and how many of these the flush in flight saves; and,
    /// for each unfinished bio in order of submission, its kind, its place and the number of writes
    /// owed to it. The identity of writes, cookies, tags and requests does not matter. The places
    /// come from the reference, which agrees with the device in every state.
    fn key(&self) -> Vec<u8> {
        let (lost, saved) = self.ledger.at_risk(self.flush_sent_at);
        let left = index(self.setup.bios) - self.kinds.len();
        let mut key = vec![small(left), u8::from(self.may_fail), small(lost), small(saved)];
        for (cookie, kind, place) in &self.reference.bios {
            let before = *place < Place::Data;
            let owed = if before { self.ledger.owed_to(*cookie) } else { 0 };
            key.extend([*kind as u8, *place as u8, small(owed)]);
        }
        key
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("there should be few bios")
}

/// The explored states.
#[derive(Debug, Default)]
struct Seen {
    /// The number of paths from each state to an end.
    states: BTreeMap<Vec<u8>, u128>,
    steps: u64,
}

/// Explores every continuation of `path`, which leads to `world`. Returns the number of paths.
fn explore(world: World, path: &mut Vec<Step>, seen: &mut Seen) -> u128 {
    let setup = world.setup;
    let key = (!setup.every_path).then(|| world.key());
    if let Some(paths) = key.as_ref().and_then(|key| seen.states.get(key)) {
        return *paths;
    }
    let steps = world.steps();
    if steps.is_empty() {
        assert!(world.queue.is_empty(), "{:?} should have ended", world.kinds);
    }
    let mut paths = u128::from(steps.is_empty());
    let mut here = Some(world);
    for step in steps {
        let mut world = here.take().unwrap_or_else(|| play(setup, path));
        path.push(step);
        if world.take(step) {
            seen.steps += 1;
            paths += explore(world, path, seen);
        }
        path.pop();
    }
    seen.states.extend(key.map(|key| (key, paths)));
    paths
}

fn play(setup: Setup, path: &[Step]) -> World {
    let mut world = World::new(setup);
    for step in path {
        world.take(*step);
    }
    world
}

/// Explores `setup` and returns the number of paths covered. A failure prints its path.
fn explore_all(setup: Setup) -> u128 {
    let mut path = Vec::new();
    let mut seen = Seen::default();
    let explored =
        catch_unwind(AssertUnwindSafe(|| explore(World::new(setup), &mut path, &mut seen)));
    let paths = explored.unwrap_or_else(|panic| {
        println!("after {path:?} with {setup:?}");
        resume_unwind(panic)
    });
    println!(
        "{} bios: {paths} paths, {} states, {} steps",
        setup.bios,
        seen.states.len(),
        seen.steps
    );
    paths
}

fn systems(bios: u64) -> impl Iterator<Item = Setup> {
    let with = move |policies| [false, true].map(|fua| Setup::new(policies, fua, bios));
    [Policies::NONE, Policies::mq_deadline()].into_iter().flat_map(with)
}

/// Playing every path finds as many paths as exploring each state once, so [`World::key`]
/// distinguishes states.
#[test]
fn every_path_of_three_bios() {
    for setup in systems(3) {
        for failure in [false, true] {
            let played = explore_all(Setup { every_path: true, failure, ..setup });
            assert_eq!(played, explore_all(Setup { failure, ..setup }));
        }
    }
}

#[test]
fn every_state_of_six_bios_with_fua() {
    for setup in systems(6).filter(|setup| setup.native_fua) {
        explore_all(setup);
    }
}

#[test]
fn every_state_of_six_bios_without_fua() {
    for setup in systems(6).filter(|setup| !setup.native_fua) {
        explore_all(setup);
    }
}

#[test]
fn every_state_of_four_bios_with_one_failed_command() {
    for setup in systems(4) {
        explore_all(Setup { failure: true, ..setup });
    }
}

#[test]
fn every_path_of_three_bios_with_few_tags_and_late_runs() {
    for setup in systems(3) {
        for depth in [1, 2, 8] {
            explore_all(Setup { every_path: true, late_runs: true, depth, ..setup });
        }
    }
}
