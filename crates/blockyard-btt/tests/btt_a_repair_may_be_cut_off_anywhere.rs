//! Small arenas with damaged logs and maps, repaired: at each step of the repair, every state of eight bytes
//! that a loss of power may leave, in whatever order stores became durable, is no worse than before, reads
//! as the repaired one if it can be opened, and is repaired to the same bytes (`repair` P2, P3).

#![allow(clippy::cast_possible_truncation, reason = "words are taken apart")]

mod btt_rig;

use blockyard_btt::check::{Options, Report, check};
use blockyard_btt::flog::SlotLayout;
use blockyard_btt::repair::Plan;
use blockyard_btt::{Btt, Container, IoError, LaneChoice, OpenOptions, Policy, ReadTracking};
use btt_rig::{Omission, Shape, Solo, State, Value};

const SHAPE: Shape = Shape::new(4, 3);

/// Damage to map and log.
#[derive(Clone, Copy, Debug)]
enum Damage {
    None,
    /// A lane's entries have these numbers.
    Numbers(usize, [u32; 2]),
    /// A lane's newest entry has this in one of its first three words.
    Names(usize, usize, u32),
    /// A lane's log is zeroes.
    Nothing(usize),
    /// A lane has something behind its entries.
    Padding(usize),
    /// A lane has the same log as another.
    Copied(usize, usize),
    /// A sector's map entry.
    Map(usize, u32),
    /// The sector of a lane's newest entry has the old block.
    Cut(usize),
}

/// Map and log, in words of four bytes.
struct Words<'a>(&'a mut [u64], Shape);

impl Words<'_> {
    fn get(&self, n: usize) -> u32 {
        (self.0[n / 2] >> (n % 2 * 32)) as u32
    }

    fn put(&mut self, n: usize, word: u32) {
        let shift = n % 2 * 32;
        self.0[n / 2] = self.0[n / 2] & !(0xffff_ffff << shift) | u64::from(word) << shift;
    }

    fn group(&self, lane: usize) -> usize {
        self.0.len() * 2 - (self.1.lanes as usize - lane) * 16
    }

    fn entry(&self, lane: usize, slot: usize) -> usize {
        self.group(lane) + slot * if self.1.slots == SlotLayout::OldLinux { 8 } else { 4 }
    }

    fn newest(&self, lane: usize) -> usize {
        let entries = [0, 1].map(|slot| self.entry(lane, slot));
        let [a, b] = entries.map(|at| self.get(at + 3));
        entries[usize::from(b == a % 3 + 1)]
    }

    fn damage(&mut self, damage: Damage) {
        match damage {
            Damage::None => {}
            Damage::Numbers(lane, numbers) => {
                (0..2).for_each(|slot| self.put(self.entry(lane, slot) + 3, numbers[slot]));
            }
            Damage::Names(lane, word, to) => self.put(self.newest(lane) + word, to),
            Damage::Nothing(lane) => (0..16).for_each(|n| self.put(self.group(lane) + n, 0)),
            Damage::Padding(lane) => self.put(self.group(lane) + 15, 7),
            Damage::Copied(from, to) => {
                (0..16).for_each(|n| self.put(self.group(to) + n, self.get(self.group(from) + n)));
            }
            Damage::Map(sector, entry) => self.put(sector, entry),
            Damage::Cut(lane) => {
                let newest = self.newest(lane);
                let (lba, old) = (self.get(newest), self.get(newest + 1));
                self.put(lba as usize, 0xc000_0000 | old);
            }
        }
    }
}

fn memory(shape: Shape, state: &State, omission: Option<Omission>) -> Solo {
    Solo::new(shape, shape.crashed(&state.metadata, &state.blocks, omission))
}

/// Some sectors written, through every lane, one of them twice.
fn used(shape: Shape) -> State {
    let memory = Solo::new(shape, shape.fresh(1, None).0);
    let lanes = LaneChoice::Own { sets: 1 };
    let policy = Policy { tracking: ReadTracking::Versions, lanes };
    let options = OpenOptions { policy, ..OpenOptions::new(shape.container) };
    let btt = Btt::open(&memory, &options).expect("it is whole");
    let mut worker = btt.worker();
    for (mark, lba) in (1..).zip([0, 1, 2, 0, 1]) {
        worker.write(lba, &Value::of(mark).bytes()).expect("it is written");
    }
    drop(worker);
    let state = shape.state(&memory.recorder());
    drop(btt);
    state
}

fn checked(memory: &Solo, shape: Shape) -> (Report, Plan) {
    check(memory, &Options::new(shape.container), &mut |_| {}).expect("it can be read")
}

/// What sectors read as, if it can be opened: one that names no block is as lost as it will be.
fn contents(shape: Shape, state: &State) -> Option<Vec<Value>> {
    let memory = memory(shape, state, None);
    let options = OpenOptions { read_only: true, ..OpenOptions::new(shape.container) };
    let btt = Btt::open(&memory, &options).ok()?;
    let read = |lba| {
        let mut bytes = [0; 16];
        match btt.read(lba, &mut bytes) {
            Ok(()) => Value::read(&bytes),
            Err(IoError::Lost | IoError::Map) => Value::Lost,
            Err(error) => panic!("sector {lba}: {error}"),
        }
    };
    Some((0..btt.sectors()).map(read).collect())
}

/// Repairs, with a call left out, and again from wherever it may be cut off: how many states there were.
fn repaired(shape: Shape, damaged: &State, omission: Option<Omission>) -> Result<u64, String> {
    let solo = memory(shape, damaged, omission);
    let (before, plan) = checked(&solo, shape);
    if plan.steps().is_empty() {
        return Ok(0);
    }
    solo.keep_moments();
    plan.apply(&solo, &mut || {}).expect("it is written");
    let moments = solo.take_moments();
    let whole = shape.state(&solo.recorder());
    let (after, rest) = checked(&solo, shape);
    if !rest.steps().is_empty() || after.worst() > before.worst() {
        return Err(format!("not repaired: {:?}", after.findings()));
    }
    let last = moments.last().expect("there is the end").count();
    if last != 1 {
        return Err(format!("at the end there are {last} states"));
    }
    let (read, right) = (contents(shape, damaged), contents(shape, &whole));
    let mut states = 0;
    for moment in &moments {
        for n in 0..moment.count() {
            states += 1;
            let cut = moment.state(n);
            let told = |what: &str| format!("{what}: {:x?}, {:?}", cut.metadata, plan.steps());
            let now = contents(shape, &cut);
            if read.is_some() && now.is_none() || now.is_some() && now != right {
                return Err(told(&format!("reads {now:x?} instead of {right:x?}")));
            }
            let again = memory(shape, &cut, None);
            let (report, plan) = checked(&again, shape);
            if report.worst() > before.worst() {
                return Err(told(&format!("worse, {:?}", report.findings())));
            }
            plan.apply(&again, &mut || {}).expect("it is written");
            if shape.state(&again.recorder()).metadata != whole.metadata {
                return Err(told("repaired again to something else"));
            }
        }
    }
    Ok(states)
}

/// Damages to one lane, or to the map.
fn damages(lane: usize) -> Vec<Damage> {
    let mut damages = vec![
        Damage::None,
        Damage::Nothing(lane),
        Damage::Padding(lane),
        Damage::Names(lane, 0, 4),
        Damage::Names(lane, 1, 7),
        Damage::Names(lane, 2, 0x3fff_ffff),
        Damage::Cut(lane),
    ];
    let numbers = [[1, 1], [2, 2], [3, 3], [0, 0], [9, 1], [3, 9], [2, 0], [3, 0], [0, 1], [0, 3]];
    damages.extend(numbers.map(|numbers| Damage::Numbers(lane, numbers)));
    damages
}

/// Calls `visit` with damaged states of every shape until it says that it has seen enough: each damage of
/// two lanes, and some of the map.
fn each(mut visit: impl FnMut(Shape, &State, [Damage; 3]) -> bool) {
    let shapes = [
        SHAPE,
        Shape { container: Container::Pool, ..SHAPE },
        Shape { slots: SlotLayout::OldLinux, ..SHAPE },
    ];
    for shape in shapes {
        let used = used(shape);
        for a in damages(0) {
            for b in damages(2).into_iter().chain([Damage::Copied(0, 2)]) {
                for c in [Damage::None, Damage::Map(3, 0xffff_ffff), Damage::Map(2, 0xc000_0007)] {
                    let mut damaged = used.clone();
                    let mut words = Words(&mut damaged.metadata, shape);
                    [a, b, c].into_iter().for_each(|damage| words.damage(damage));
                    if !visit(shape, &damaged, [a, b, c]) {
                        return;
                    }
                }
            }
        }
    }
}

#[test]
fn a_repair_may_be_cut_off_anywhere() {
    let (mut repairs, mut states) = (0, 0);
    each(|shape, damaged, damages| {
        match repaired(shape, damaged, None) {
            Ok(visited) => {
                repairs += u64::from(visited > 0);
                states += visited;
            }
            Err(broken) => panic!("{shape:?}, {damages:?}: {broken}"),
        }
        true
    });
    println!("{repairs} repairs, {states} states");
    assert!(repairs > 100);
}

/// All but the fence behind a map entry, which no later step depends on: it makes true what is told of
/// progress.
#[test]
fn each_fence_of_a_repair_is_needed() {
    for omission in [
        Omission::FirstWords,
        Omission::SecondWords,
        Omission::FenceBehindFirstWords,
        Omission::FenceBehindSecondWords,
        Omission::OwnEntries,
    ] {
        let mut found = None;
        each(|shape, damaged, damages| {
            found = repaired(shape, damaged, Some(omission)).err().map(|broken| (damages, broken));
            found.is_none()
        });
        let (damages, broken) = found.unwrap_or_else(|| panic!("{omission:?} was not noticed"));
        println!("{omission:?}: {damages:?}: {}", broken.chars().take(90).collect::<String>());
    }
}
