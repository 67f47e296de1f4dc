//! Judges every state that a crash may leave, by these checks, whose names open its messages:
//!
//! - *reads*: the BTT opens. Each sector reads as an allowed value, whole: one that was
//!   acknowledged or was being written.
//! - *owners*: each block is in the map once or free once.
//! - *others*: Linux's recovery does the same, in any order of lanes; so does libpmemblk's in a
//!   pool.
//! - *again*: opening again changes nothing, and a recovery that is cut off at any moment can be
//!   recovered from.
//! - *later*: a sector that was read after the BTT was opened reads the same after any later crash,
//!   while another thread than the one that opened the BTT writes other sectors through every lane.
//! - *check*: a check finds no damage, before the BTT is opened and after.
//!
//! # Data
//!
//! A word of a block that may be durable with `n` values makes `n` states, independently of all
//! other words. These states are not visited one by one. Recovery never looks at data, so it does
//! the same in all of them, and a sector with that block reads as one of the mixes. Any two writes
//! differ in every word, so all mixes are allowed only if each word has one value, and then there
//! is only one mix. So a block is either known or torn, and no sector may have a torn block, which
//! is equivalent to visiting all states. (A test visits them for comparison, in a case with few.)
//! All mixes of the words of map and log are visited, or random ones if an arena is too large.

use super::crash::{Moment, State};
use super::linux::{self, Whose};
use super::omit::Omission;
use super::recorder::Recorder;
use super::shape::{SECTOR_BYTES, Shape, Value};
use super::solo::Solo;
use blockyard::prng::Prng;
use blockyard_btt::check::{self, check};
use blockyard_btt::{
    Btt, Container, IoError, LaneChoice, MediaError, Memory, OpenOptions, Policy, PostmapAba,
    PremapAba, ReadTracking, recover,
};
use core::hash::{Hash, Hasher};
use std::collections::BTreeSet;
use std::hash::DefaultHasher;

/// In a run with random crashes, one in so many moments is judged.
const LOOKED_AT: u64 = 16;
/// The most states of one moment. With more, an exploration would not end.
const STATES_MAX: u64 = 1 << 22;

/// The numbers of visited states.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Different moments.
    pub(crate) moments: u64,
    /// Different states of map, log and the known contents of blocks, in these moments.
    pub(crate) states: u64,
    /// The states of all words in these moments, had each been visited, or the largest number.
    pub(crate) all_states: u128,
    /// Recoveries that had a write to finish.
    pub(crate) finished: u64,
    /// States that only an interrupted recovery leaves.
    pub(crate) interrupted: u64,
}

/// The values that each sector may have.
pub(crate) type Allowed = [Vec<Value>];

/// The judge, which remembers what it visited.
#[derive(Debug)]
pub(crate) struct Judge {
    pub(crate) shape: Shape,
    pub(crate) counts: Counts,
    omission: Option<Omission>,
    moments: BTreeSet<u128>,
    states: BTreeSet<u128>,
    /// States from which another thread went on writing.
    lived: BTreeSet<Vec<u64>>,
    /// The judged states were left by an interrupted recovery.
    recovering: bool,
    /// Every mix of the words of torn blocks is visited too.
    pub(crate) visits_data: bool,
    /// Chooses the states to visit, if not all are visited.
    draws: Option<Prng>,
}

/// A hash so wide that no two visited states share one.
fn hash(of: &impl Hash) -> u128 {
    half_hash(of, 1) << 64 | half_hash(of, 2)
}

fn half_hash(of: &impl Hash, salt: u64) -> u128 {
    let mut hasher = DefaultHasher::new();
    salt.hash(&mut hasher);
    of.hash(&mut hasher);
    u128::from(hasher.finish())
}

impl Judge {
    pub(crate) fn new(shape: Shape, omission: Option<Omission>, draws: Option<Prng>) -> Self {
        Self {
            shape,
            counts: Counts::default(),
            omission,
            moments: BTreeSet::new(),
            states: BTreeSet::new(),
            lived: BTreeSet::new(),
            recovering: false,
            visits_data: false,
            draws,
        }
    }

    /// Whether to judge this moment.
    pub(crate) fn is_due(&mut self) -> bool {
        self.draws.as_mut().is_none_or(|prng| prng.below(LOOKED_AT) == 0)
    }

    /// Judges every state that a crash at this moment may leave.
    pub(crate) fn now(&mut self, recorder: &Recorder, allowed: &Allowed) -> Result<(), String> {
        let moment = Moment::of(self.shape, recorder);
        if !self.moments.insert(hash(&(&moment, allowed))) {
            return Ok(());
        }
        self.counts.moments += 1;
        let all = recorder.open().map(|(_, values)| values.len() as u128);
        let all = all.fold(1, u128::saturating_mul);
        self.counts.all_states = self.counts.all_states.saturating_add(all);
        if self.visits_data {
            let mut mixes = moment.untorn(self.shape, recorder).into_iter();
            return mixes.try_for_each(|moment| self.moment(&moment, allowed, true));
        }
        self.moment(&moment, allowed, true)
    }

    fn moment(&mut self, moment: &Moment, allowed: &Allowed, live: bool) -> Result<(), String> {
        if let Some(prng) = &mut self.draws {
            let state = moment.draw(prng);
            return self.state(&state, allowed, live);
        }
        assert!(moment.count() <= STATES_MAX, "{} states of one moment", moment.count());
        (0..moment.count()).try_for_each(|n| self.state(&moment.state(n), allowed, live))
    }

    /// Judges all moments, or a random one of them.
    fn some(&mut self, moments: &[Moment], allowed: &Allowed) -> Result<(), String> {
        let drawn = self.draws.as_mut().map(|prng| prng.below(moments.len() as u64) as usize);
        let moments = drawn.map_or(moments, |at| &moments[at..=at]);
        moments.iter().try_for_each(|moment| self.moment(moment, allowed, false))
    }

    /// Judges one state.
    fn state(&mut self, state: &State, allowed: &Allowed, live: bool) -> Result<(), String> {
        let State { metadata, blocks } = state;
        if !self.states.insert(hash(&(metadata, blocks, allowed))) {
            return Ok(());
        }
        self.counts.states += 1;
        self.counts.interrupted += u64::from(self.recovering);
        let shape = self.shape;
        let found = |what: String| {
            format!(
                "{what}\nmap and log: {metadata:x?}\nblocks: {blocks:x?}\nallowed: {allowed:x?}"
            )
        };
        let memory = Solo::new(shape, shape.crashed(metadata, blocks, self.omission));
        let options = OpenOptions {
            // One set of all lanes, in turn, for the check *later*.
            policy: Policy { tracking: ReadTracking::Versions, lanes: LaneChoice::Own { sets: 1 } },
            ..OpenOptions::new(shape.container)
        };
        let checked = self.clean(&memory);
        memory.keep_moments();
        let btt =
            Btt::open(&memory, &options).map_err(|e| found(format!("reads: refused: {e}")))?;
        let finished = memory.stores() > 0;
        let moments = memory.take_moments();
        self.whole(&memory, metadata).map_err(found)?;
        let checked_again = if finished { self.clean(&memory) } else { Ok(()) };
        let values = read_all(&btt).map_err(|error| found(format!("reads: {error}")))?;
        for (lba, (value, allowed)) in values.iter().zip(allowed).enumerate() {
            if !allowed.contains(value) {
                return Err(found(format!("reads: sector {lba} is {value:x?}")));
            }
        }
        checked.and(checked_again).map_err(|what| found(format!("check: {what}")))?;
        if finished {
            self.counts.finished += 1;
            let outer = core::mem::replace(&mut self.recovering, true);
            self.some(&moments, allowed)?;
            self.recovering = outer;
            if live && self.lived.insert(metadata.clone()) {
                self.live(&memory, &btt, values)?;
            }
        }
        Ok(())
    }

    /// The check *check*.
    fn clean(&self, memory: &Solo) -> Result<(), String> {
        let options = check::Options { keep: 8, ..check::Options::new(self.shape.container) };
        let (report, _) =
            check(memory, &options, &mut |_| {}).map_err(|error| error.to_string())?;
        if report.is_clean() { Ok(()) } else { Err(format!("found {:?}", report.findings())) }
    }

    /// The checks *owners*, *others* and *again*, on an opened BTT.
    fn whole(&self, memory: &Solo, metadata: &[u64]) -> Result<(), String> {
        let shape = self.shape;
        let got = shape.state(&memory.recorder()).metadata;
        let words = shape.metadata_words();
        for ((arena, got), before) in
            shape.arenas().zip(got.chunks(words)).zip(metadata.chunks(words))
        {
            let recovered =
                recover::scan(memory, &arena).map_err(|error| format!("again: {error}"))?;
            if !recovered.cut_writes.is_empty() {
                return Err(format!("again: still to finish: {:?}", recovered.cut_writes));
            }
            let mut owned = vec![0; shape.blocks() as usize];
            let map = (0..shape.sectors).map(PremapAba).map(|lba| {
                arena
                    .load_map_entry(memory, lba)
                    .map(|entry| entry.block(lba))
                    .map_err(|e| e.to_string())
            });
            let map: Vec<PostmapAba> = map.collect::<Result<_, _>>()?;
            let free: Vec<PostmapAba> = recovered.lanes.iter().map(|lane| lane.free).collect();
            for block in map.iter().chain(&free) {
                owned[block.0 as usize] += 1;
            }
            if owned.iter().any(|&owners| owners != 1) {
                return Err(format!("owners: {owned:?}, map {map:?}, free {free:?}"));
            }
            // Linux opens pools too. libpmemblk opens only pools.
            let others = match shape.container {
                Container::Pool => &[Whose::Linux, Whose::Libpmemblk][..],
                _ => &[Whose::Linux],
            };
            for &whose in others {
                for descending in [false, true] {
                    let mut theirs = before.to_vec();
                    let mut lanes: Vec<u32> = (0..shape.lanes).collect();
                    if descending {
                        lanes.reverse();
                    }
                    let their_free = linux::recover(whose, shape, &mut theirs, lanes.into_iter())?;
                    if theirs != got || !free.iter().map(|block| block.0).eq(their_free) {
                        return Err(format!("others: {whose:?} has {theirs:x?}, we {got:x?}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// The check *later*: another thread goes on writing.
    fn live(&mut self, memory: &Solo, btt: &Btt<&Solo>, values: Vec<Value>) -> Result<(), String> {
        let shape = self.shape;
        memory.set_thread(1);
        let mut worker = btt.worker();
        let mut values: Vec<Vec<Value>> = values.into_iter().map(|value| vec![value]).collect();
        let lanes = (0..shape.arenas).flat_map(|arena| (0..shape.lanes).map(move |n| (arena, n)));
        for (mark, (arena, n)) in (0x7000..).zip(lanes) {
            let lba = (arena + 1) * shape.sectors - 1 - n % shape.sectors;
            let new = Value::of(mark);
            values[lba as usize].push(new);
            let write = worker.write(u64::from(lba), &new.bytes());
            write.map_err(|error| format!("later: {error}"))?;
            let moments = memory.take_moments();
            let (after, during) = moments.split_last().expect("the moment after the write");
            self.some(during, &values)?;
            values[lba as usize] = vec![new];
            self.moment(after, &values, false)?;
        }
        Ok(())
    }
}

/// Reads all sectors.
pub(crate) fn read_all<M: Memory>(btt: &Btt<M>) -> Result<Vec<Value>, IoError> {
    let mut worker = btt.worker();
    (0..btt.sectors())
        .map(|lba| {
            let mut bytes = [0; SECTOR_BYTES as usize];
            match worker.read(lba, &mut bytes) {
                Ok(()) => Ok(Value::read(&bytes)),
                Err(IoError::Lost | IoError::Media(MediaError::Bad)) => Ok(Value::Lost),
                Err(error) => Err(error),
            }
        })
        .collect()
}
