//! Runs real threads on the real code, one at a time. Each call of the memory is a point where
//! another thread may continue instead.
//!
//! - One thread runs until it calls the memory. Then it continues, or another one does. Switching
//!   away from a thread that could continue is a preemption, and the number of preemptions of a run
//!   is limited. Which thread continues when one ends or waits ([`Memory::relax`]) is free. All
//!   runs within these bounds are made.
//! - A waiting thread continues when another thread has done something. If all threads wait, they
//!   continue, because some may look again at what has changed meanwhile. If they only wait, again
//!   and again, the run fails.
//! - Preemptions are tried before loads, stores and fences, and in the middle of reading and
//!   writing a block. They are not tried before a write-back, which changes nothing that another
//!   thread sees. A later write-back would cover the same values or newer ones, and leave no state
//!   that is not visited anyway.
//! - Between two calls of the memory, a thread runs atomically. `versions_model` and
//!   `readers_model` check how atomics interact there.

use super::judge::{Counts, Judge, read_all};
use super::omit::Omissions;
use super::paths::Paths;
use super::recorder::Recorder;
use super::shape::{SECTOR_BYTES, Shape, Value};
use blockyard::prng::Prng;
use blockyard_btt::{Btt, IoError, MediaError, Memory, OpenOptions, Policy, Worker};
use core::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard};

/// The most calls of the memory in a run.
const STEPS_MAX: u32 = 10_000;
/// The most calls in a row that only wait.
const WAITS_MAX: u32 = 64;

/// An operation of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Writes this sector.
    Write(u64),
    /// Writes this many sectors from one on.
    WriteRun(u64, u64),
    /// Writes two sectors in one call.
    WriteTwo(u64, u64),
    /// Zeroes this many sectors from one on.
    Zero(u64, u64),
    /// Marks a sector as lost.
    Error(u64),
    /// Reads a sector.
    Read(u64),
    /// Drops the worker, and makes a new one.
    Anew,
}

/// The subject of an exploration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix<'a> {
    pub(crate) shape: Shape,
    pub(crate) policy: Policy,
    /// The operations of each thread.
    pub(crate) scripts: &'a [&'a [Op]],
    /// The most preemptions of a run.
    pub(crate) preemptions: u32,
}

/// The result of an exploration.
#[derive(Clone, Debug)]
pub(crate) struct Explored {
    pub(crate) runs: u64,
    pub(crate) counts: Counts,
    /// The first check that failed.
    pub(crate) broken: Option<String>,
}

/// A change of a sector by a thread.
#[derive(Clone, Copy, Debug)]
struct Record {
    value: Value,
    begun: u64,
    /// The time when it was acknowledged.
    ended: Option<u64>,
    /// The time of that acknowledgement, if a later part of the same call wrote the sector again.
    covered: Option<u64>,
}

/// The state that the threads of a run share. One of them uses it at a time.
#[derive(Debug)]
struct World {
    recorder: Recorder,
    judge: Judge,
    paths: Paths,
    /// By sector.
    records: Vec<Vec<Record>>,
    clock: u64,
    /// Threads take turns. Otherwise the run is being prepared or evaluated.
    live: bool,
    /// The thread whose turn it is.
    turn: usize,
    ended: Vec<bool>,
    waits: Vec<bool>,
    /// Calls since a thread last did something.
    idle: u32,
    preemptions_left: u32,
    steps: u32,
    broken: Option<String>,
    /// All threads wait, or one does not end.
    stuck: bool,
}

/// The memory of a run.
#[derive(Debug)]
struct Rig {
    world: Mutex<World>,
    turns: Vec<Condvar>,
    /// Some operation reads, so blocks are copied in two halves.
    halves: bool,
}

thread_local! {
    static THREAD: Cell<usize> = const { Cell::new(0) };
}

/// Makes all runs of a mix, until a check fails.
pub(crate) fn explore(mix: &Mix<'_>, omissions: Omissions) -> Explored {
    let judge = Judge::new(mix.shape, omissions.opening, None);
    runs(mix, omissions, judge, Paths::default())
}

/// The same, and also visits every state of data.
pub(crate) fn explore_data(mix: &Mix<'_>, omissions: Omissions) -> Explored {
    let mut judge = Judge::new(mix.shape, omissions.opening, None);
    judge.visits_data = true;
    runs(mix, omissions, judge, Paths::default())
}

/// Makes one random run of a mix, with crashes at random moments.
pub(crate) fn draw(mix: &Mix<'_>, omissions: Omissions, prng: &Prng) -> Explored {
    let judge = Judge::new(mix.shape, omissions.opening, Some(prng.fork(0)));
    runs(mix, omissions, judge, Paths::drawn(prng.fork(1)))
}

fn runs(mix: &Mix<'_>, omissions: Omissions, mut judge: Judge, mut paths: Paths) -> Explored {
    let mut runs = 0;
    loop {
        let mut world = run(mix, omissions, judge, paths);
        runs += 1;
        if world.broken.is_some() || !world.paths.next() {
            let counts = world.judge.counts;
            let broken = world.broken;
            return Explored { runs, counts, broken };
        }
        (judge, paths) = (world.judge, world.paths);
    }
}

fn run(mix: &Mix<'_>, omissions: Omissions, judge: Judge, paths: Paths) -> World {
    let threads = mix.scripts.len();
    let (recorder, values) = mix.shape.fresh(threads + 1, omissions.running);
    let world = World {
        recorder,
        judge,
        paths,
        records: values
            .into_iter()
            .map(|value| vec![Record { value, begun: 0, ended: Some(0), covered: None }])
            .collect(),
        clock: 0,
        live: false,
        turn: 0,
        ended: vec![false; threads],
        waits: vec![false; threads],
        idle: 0,
        preemptions_left: mix.preemptions,
        steps: 0,
        broken: None,
        stuck: false,
    };
    let halves = mix.scripts.iter().any(|ops| ops.iter().any(|op| matches!(op, Op::Read(_))));
    let turns = (0..threads).map(|_| Condvar::new()).collect();
    let rig = Rig { world: Mutex::new(world), turns, halves };
    THREAD.set(threads);
    let options = OpenOptions { policy: mix.policy, ..OpenOptions::new(mix.shape.container) };
    let btt = Btt::open(&rig, &options).expect("BTT of a new shape");
    {
        let mut world = rig.lock();
        world.live = true;
        world.turn = world.paths.choose(threads);
    }
    std::thread::scope(|scope| {
        for (thread, ops) in mix.scripts.iter().enumerate() {
            let rig = &rig;
            let btt = &btt;
            scope.spawn(move || {
                THREAD.set(thread);
                drop(rig.wait(rig.lock(), thread));
                let outcome = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
                    perform(rig, btt, thread as u64, ops)
                }));
                rig.end_thread(thread, outcome.unwrap_or_else(|_| Err("a panic".to_owned())));
            });
        }
    });
    rig.lock().live = false;
    if rig.lock().broken.is_none() {
        let read = read_all(&btt);
        let mut world = rig.lock();
        world.moment();
        let allowed = world.allowed();
        let read = read.map_err(|error| error.to_string()).and_then(|values| {
            let at =
                values.iter().zip(&allowed).position(|(value, allowed)| !allowed.contains(value));
            at.map_or(Ok(()), |at| Err(format!("at the end, sector {at} reads as {values:x?}")))
        });
        if let Err(broken) = read {
            world.break_off(broken);
        }
    }
    drop(btt);
    rig.world.into_inner().expect("no panic while the world was locked")
}

/// Carries out the operations of a thread.
fn perform(rig: &Rig, btt: &Btt<&Rig>, thread: u64, ops: &[Op]) -> Result<(), String> {
    let mut worker = btt.worker();
    for (n, op) in (1..).zip(ops) {
        match *op {
            Op::Write(lba) => rig.change(&[(lba, mark(thread, n, 0))], |changes| {
                worker.write(lba, &changes[0].1.bytes())
            }),
            Op::WriteRun(lba, count) => {
                let changes: Vec<_> =
                    (0..count).map(|at| (lba + at, mark(thread, n, at))).collect();
                rig.change(&changes, |changes| {
                    let bytes: Vec<u8> = changes.iter().flat_map(|c| c.1.bytes()).collect();
                    worker.write(lba, &bytes)
                })
            }
            Op::WriteTwo(a, b) => {
                rig.change(&[(a, mark(thread, n, 0)), (b, mark(thread, n, 1))], |changes| {
                    let bytes = [changes[0].1.bytes(), changes[1].1.bytes()];
                    worker.write_many(&[(a, &bytes[0]), (b, &bytes[1])])
                })
            }
            Op::Zero(lba, count) => {
                let changes: Vec<_> = (lba..lba + count).map(|lba| (lba, Value::Zero)).collect();
                rig.change(&changes, |_| worker.set_zero(lba, count))
            }
            Op::Error(lba) => rig.change(&[(lba, Value::Lost)], |_| btt.set_error(lba)),
            Op::Read(lba) => rig.read_sector(&mut worker, lba),
            Op::Anew => {
                drop(worker);
                worker = btt.worker();
                Ok(())
            }
        }?;
    }
    Ok(())
}

/// A unique number for each sector that is written.
fn mark(thread: u64, n: u64, sector: u64) -> Value {
    Value::of((thread + 1) << 16 | n << 8 | sector)
}

impl World {
    /// Returns the values that each sector may have after a crash now: those not certainly
    /// overwritten.
    fn allowed(&self) -> Vec<Vec<Value>> {
        self.records
            .iter()
            .map(|records| {
                let mut allowed: Vec<Value> = records
                    .iter()
                    .filter(|record| !is_over(records, record))
                    .map(|record| record.value)
                    .collect();
                allowed.sort_unstable();
                allowed.dedup();
                allowed
            })
            .collect()
    }

    /// Judges a crash at this moment.
    fn moment(&mut self) {
        if self.broken.is_none() && !self.paths.on_known_ground() && self.judge.is_due() {
            let allowed = self.allowed();
            if let Err(broken) = self.judge.now(&self.recorder, &allowed) {
                self.break_off(broken);
            }
        }
    }

    fn break_off(&mut self, broken: String) {
        self.broken.get_or_insert(broken);
    }

    /// Chooses the next thread after `me`, which continues if it `may_continue` and no other is
    /// chosen.
    fn choose(&mut self, me: usize, may_continue: bool) {
        let threads = 0..self.ended.len();
        let others = threads
            .clone()
            .filter(|&t| t != me)
            .filter(|&t: &usize| !self.ended[t] && !self.waits[t]);
        let mut ways: Vec<usize> = match (may_continue, self.preemptions_left) {
            (true, 0) => vec![me],
            (true, _) => [me].into_iter().chain(others).collect(),
            (false, _) => others.collect(),
        };
        if ways.is_empty() {
            ways = threads.filter(|&t| !self.ended[t]).collect();
        }
        let way = if ways.len() == 1 { 0 } else { self.paths.choose(ways.len()) };
        self.turn = ways[way];
        if may_continue && self.turn != me {
            self.preemptions_left -= 1;
        }
    }

    /// Counts a step of `me`.
    fn count(&mut self, me: usize, step: Step) {
        self.steps += 1;
        match step {
            Step::Wait => self.idle += 1,
            Step::Act | Step::Quiet => {
                self.idle = 0;
                self.waits.fill(false);
            }
        }
        self.waits[me] = step == Step::Wait;
        if self.steps > STEPS_MAX || self.idle > WAITS_MAX {
            self.stuck = true;
            self.break_off("all threads wait, or one does not end".to_owned());
        }
    }
}

fn is_over(records: &[Record], record: &Record) -> bool {
    record.covered.is_some()
        || records.iter().any(|later| {
            later.ended.is_some() && record.ended.is_some_and(|ended| later.begun > ended)
        })
}

/// The effect of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Other threads may see the effect, or depend on it.
    Act,
    /// Other threads do not notice it.
    Quiet,
    /// The thread waits.
    Wait,
}

impl Rig {
    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no panic while the world was locked")
    }

    fn wait<'a>(&self, mut world: MutexGuard<'a, World>, me: usize) -> MutexGuard<'a, World> {
        while world.turn != me && !world.stuck {
            world = self.turns[me].wait(world).expect("no panic while the world was locked");
        }
        world
    }

    fn pass<'a>(&self, world: MutexGuard<'a, World>, me: usize) -> MutexGuard<'a, World> {
        if world.turn != me {
            self.turns[world.turn].notify_one();
            return self.wait(world, me);
        }
        world
    }

    /// Called before each call of the memory.
    fn step(&self, step: Step) -> (usize, MutexGuard<'_, World>) {
        let me = THREAD.get();
        let mut world = self.lock();
        if !world.live {
            return (me, world);
        }
        world.moment();
        world.count(me, step);
        if !world.stuck && step != Step::Quiet {
            world.choose(me, step != Step::Wait);
            world = self.pass(world, me);
        }
        if world.stuck {
            self.turns.iter().for_each(Condvar::notify_all);
            if step == Step::Wait {
                drop(world);
                panic!("a wait that nothing will end");
            }
        }
        (me, world)
    }

    fn end_thread(&self, me: usize, outcome: Result<(), String>) {
        let mut world = self.lock();
        if let Err(broken) = outcome {
            world.break_off(broken);
        }
        world.ended[me] = true;
        world.waits.fill(false);
        world.moment();
        if world.ended.contains(&false) && !world.stuck {
            world.choose(me, false);
            self.turns[world.turn].notify_one();
        }
    }

    /// Changes sectors, and records when each change was begun and acknowledged.
    fn change(
        &self,
        changes: &[(u64, Value)],
        act: impl FnOnce(&[(u64, Value)]) -> Result<(), IoError>,
    ) -> Result<(), String> {
        let mut world = self.lock();
        world.clock += 1;
        let begun = world.clock;
        for &(lba, value) in changes {
            world.records[lba as usize].push(Record { value, begun, ended: None, covered: None });
        }
        drop(world);
        act(changes).map_err(|error| format!("a call failed: {error}"))?;
        let mut world = self.lock();
        world.clock += 1;
        let now = world.clock;
        for (n, &(lba, value)) in changes.iter().enumerate() {
            let records = &mut world.records[lba as usize];
            let again = changes[n + 1..].iter().any(|&(later, _)| later == lba);
            let at = records
                .iter()
                .position(|record| record.begun == begun && record.value == value)
                .expect("record of a change that was begun");
            records[at].ended = Some(now);
            records[at].covered = again.then_some(now);
        }
        world.moment();
        Ok(())
    }

    /// Reads a sector, which must have a value that it had at one moment during the read.
    fn read_sector<'a>(
        &self,
        worker: &mut Worker<&Btt<&'a Self>, &'a Self>,
        lba: u64,
    ) -> Result<(), String> {
        let mut world = self.lock();
        world.clock += 1;
        let begun = world.clock;
        drop(world);
        let mut bytes = [0; SECTOR_BYTES as usize];
        let value = match worker.read(lba, &mut bytes) {
            Ok(()) => Value::read(&bytes),
            Err(IoError::Lost | IoError::Media(MediaError::Bad)) => Value::Lost,
            Err(error) => return Err(format!("a read failed: {error}")),
        };
        let world = self.lock();
        let records = &world.records[lba as usize];
        if records.iter().any(|record| record.value == value && !is_over_at(records, begun, record))
        {
            return Ok(());
        }
        Err(format!("a read of sector {lba} returned {value:x?}; records: {records:x?}"))
    }
}

fn is_over_at(records: &[Record], begun: u64, record: &Record) -> bool {
    if record.covered.is_some_and(|covered| covered < begun) {
        return true;
    }
    records.iter().any(|later| {
        later.ended.is_some_and(|ended| ended < begun)
            && record.ended.is_some_and(|ended| later.begun > ended)
    })
}

impl Memory for Rig {
    fn len(&self) -> u64 {
        self.lock().recorder.regions().len
    }

    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        let pieces = if self.halves { to.len() / 2 } else { to.len() };
        for (at, to) in (at..).step_by(pieces).zip(to.chunks_mut(pieces)) {
            let (_, world) = self.step(Step::Act);
            if world.recorder.is_bad(at, to.len() as u64) {
                return Err(MediaError::Bad);
            }
            world.recorder.read(at, to);
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        let pieces = if self.halves { from.len() / 2 } else { from.len() };
        for (at, from) in (at..).step_by(pieces).zip(from.chunks(pieces)) {
            let step = if self.halves { Step::Act } else { Step::Quiet };
            let (me, mut world) = self.step(step);
            if world.recorder.refuses(at, from.len() as u64) {
                return Err(MediaError::Bad);
            }
            world.recorder.write(me, at, from);
        }
        Ok(())
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        let (me, mut world) = self.step(Step::Act);
        world.recorder.zero(me, at, len);
        Ok(())
    }

    fn load(&self, at: u64) -> Result<u32, MediaError> {
        let mut bytes = [0; 4];
        self.step(Step::Act).1.recorder.read(at, &mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        let (me, mut world) = self.step(Step::Act);
        world.recorder.store(me, at, &word.to_le_bytes());
        Ok(())
    }

    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        let (me, mut world) = self.step(Step::Act);
        world.recorder.store(me, at, &word.to_le_bytes());
        Ok(())
    }

    fn write_back(&self, at: u64, len: u64) {
        let (me, mut world) = self.step(Step::Quiet);
        world.recorder.write_back(me, at, len);
    }

    fn fence(&self) -> Result<(), MediaError> {
        let (me, mut world) = self.step(Step::Act);
        world.recorder.fence(me);
        Ok(())
    }

    fn relax(&self, _: u32) {
        drop(self.step(Step::Wait));
    }
}
