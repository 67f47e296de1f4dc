//! Repairs of small arenas with damaged logs and maps. At each step of a repair, every state that a
//! power cut may leave is no worse than before, reads like the repaired one if it can be opened,
//! and can be repaired to the same bytes ([repair-steps-durable], [rewritten-log-unreadable]).

#![allow(clippy::cast_possible_truncation, reason = "words are taken apart")]

mod crash_rig;

use blockyard_btt::check::{Options, Report, check};
use blockyard_btt::flog::SlotLayout;
use blockyard_btt::repair::Plan;
use blockyard_btt::{Btt, Container, IoError, LaneChoice, OpenOptions, Policy, ReadTracking};
use crash_rig::{Omission, Shape, Solo, State, Value};

const SHAPE: Shape = Shape::new(4, 3);

/// Damage to map and log.
#[derive(Clone, Copy, Debug)]
enum Damage {
    None,
    /// The numbers of a lane's entries are replaced.
    Numbers(usize, [u32; 2]),
    /// One of the first three words of a lane's newest entry is replaced.
    Names(usize, usize, u32),
    /// A lane's log is zeroed.
    Nothing(usize),
    /// The padding of a lane's log is not zero.
    Padding(usize),
    /// A lane's log is copied to another lane.
    Copied(usize, usize),
    /// A sector's map entry is replaced.
    Map(usize, u32),
    /// The sector of a lane's newest entry gets its old block back.
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
                let lba = self.get(newest);
                let old = self.get(newest + 1);
                self.put(lba as usize, 0xc000_0000 | old);
            }
        }
    }
}

fn memory(shape: Shape, state: &State, omission: Option<Omission>) -> Solo {
    Solo::new(shape, shape.crashed(&state.metadata, &state.blocks, omission))
}

/// Returns a state with some sectors written, through every lane, and one of them written twice.
fn used(shape: Shape) -> State {
    let memory = Solo::new(shape, shape.fresh(1, None).0);
    let lanes = LaneChoice::Own { sets: 1 };
    let policy = Policy { tracking: ReadTracking::Versions, lanes };
    let options = OpenOptions { policy, ..OpenOptions::new(shape.container) };
    let btt = Btt::open(&memory, &options).expect("undamaged BTT");
    let mut worker = btt.worker();
    for (mark, lba) in (1..).zip([0, 1, 2, 0, 1]) {
        worker.write(lba, &Value::of(mark).bytes()).expect("write to the recorder");
    }
    drop(worker);
    let state = shape.state(&memory.recorder());
    drop(btt);
    state
}

fn checked(memory: &Solo, shape: Shape) -> (Report, Plan) {
    check(memory, &Options::new(shape.container), &mut |_| {}).expect("check of the recorder")
}

/// Reads all sectors, if the BTT can be opened. A sector without an existing block counts as lost.
fn contents(shape: Shape, state: &State) -> Option<Vec<Value>> {
    let memory = memory(shape, state, None);
    let options = OpenOptions { read_only: true, ..OpenOptions::new(shape.container) };
    let btt = Btt::open(&memory, &options).ok()?;
    Some(
        (0..btt.sectors())
            .map(|lba| {
                let mut bytes = [0; 16];
                match btt.read(lba, &mut bytes) {
                    Ok(()) => Value::read(&bytes),
                    Err(IoError::Lost | IoError::Map) => Value::Lost,
                    Err(error) => panic!("sector {lba}: {error}"),
                }
            })
            .collect(),
    )
}

/// Repairs a damaged state, and again after each possible power cut. Returns the number of states.
fn repaired(shape: Shape, damaged: &State, omission: Option<Omission>) -> Result<u64, String> {
    let solo = memory(shape, damaged, omission);
    let (before, plan) = checked(&solo, shape);
    if plan.steps().is_empty() {
        return Ok(0);
    }
    solo.keep_moments();
    plan.apply(&solo, &mut || {}).expect("repair of the recorder");
    let moments = solo.take_moments();
    let whole = shape.state(&solo.recorder());
    let (after, rest) = checked(&solo, shape);
    if !rest.steps().is_empty() || after.worst() > before.worst() {
        return Err(format!("not repaired: {:?}", after.findings()));
    }
    let last = moments.last().expect("the moment after the repair").count();
    if last != 1 {
        return Err(format!("{last} states after the repair"));
    }
    let read = contents(shape, damaged);
    let right = contents(shape, &whole);
    let mut states = 0;
    for moment in &moments {
        for n in 0..moment.count() {
            states += 1;
            let cut = moment.state(n);
            let now = contents(shape, &cut);
            if read.is_some() && now.is_none() || now.is_some() && now != right {
                return Err(describe(
                    &cut,
                    &plan,
                    &format!("reads {now:x?} instead of {right:x?}"),
                ));
            }
            let again = memory(shape, &cut, None);
            let (report, plan) = checked(&again, shape);
            if report.worst() > before.worst() {
                return Err(describe(&cut, &plan, &format!("worse, {:?}", report.findings())));
            }
            plan.apply(&again, &mut || {}).expect("repair of the recorder");
            if shape.state(&again.recorder()).metadata != whole.metadata {
                return Err(describe(&cut, &plan, "repaired again to something else"));
            }
        }
    }
    Ok(states)
}

fn describe(cut: &State, plan: &Plan, what: &str) -> String {
    format!("{what}: {:x?}, {:?}", cut.metadata, plan.steps())
}

/// Returns damages to one lane.
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

/// Calls `visit` with damaged states of every shape until it returns false: each damage of two
/// lanes, combined with damages of the map.
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
fn a_repair_survives_a_power_cut_anywhere() {
    let mut repairs = 0;
    let mut states = 0;
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

/// All fences except the one after a map entry, on which no later step depends. That fence only
/// makes the reported progress true.
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
        let (damages, broken) = found.unwrap_or_else(|| panic!("{omission:?} was not detected"));
        println!("{omission:?}: {damages:?}: {}", broken.chars().take(90).collect::<String>());
    }
}
