//! Enumerates every order in which up to three submitters take, miss, wait for and return up to
//! three tags, with and without reserved tags, on a set used by one queue or shared by two.
//!
//! Like any caller, a submitter without a tag takes two steps: it is refused, and then registers.
//! Any step may happen in between. No submitter may sleep while no tag of its kind is in use
//! ([sleeper-implies-tag-in-use]), be woken twice, or sleep at the end.

use blockyard::tag::{TagSet, TagSetConfig};
use blockyard::unit::{DriverTag, HctxId, QueueId};
use std::collections::BTreeSet;

const HCTX: HctxId = HctxId(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Wants,
    /// The submitter was refused and has not registered yet.
    Refused,
    Sleeps,
    Woken,
    Holds(DriverTag),
    Gone,
}

#[derive(Clone, Debug)]
struct Submitter {
    queue: QueueId,
    reserved: bool,
    place: Place,
    /// The tries that the submitter has left.
    tries: u8,
}

/// The tries of a submitter, which may be woken once for a tag that another takes first.
const TRIES: u8 = 2;

/// The system. At first other requests use every tag.
#[derive(Clone, Debug)]
struct World {
    tags: TagSet,
    others: Vec<DriverTag>,
    submitters: Vec<Submitter>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// One of the other requests ends.
    Free,
    Act(usize),
    /// A woken submitter leaves without a try, or moves to another hardware queue.
    Leave(usize),
    /// A queue without tags stops sharing them.
    Idle(QueueId),
}

impl World {
    fn new(depth: u16, reserved: u16, submitters: Vec<Submitter>) -> Self {
        let config = TagSetConfig {
            hctxs: 1,
            depth: depth + reserved,
            reserved,
            shared_over_hctxs: false,
            queues: 2,
            max_waiters: 3,
        };
        let mut tags = TagSet::new(config);
        let normal = core::iter::from_fn(|| tags.take(QueueId(0), HCTX, u32::MAX));
        let mut others: Vec<_> = normal.collect();
        others.extend(core::iter::from_fn(|| tags.take_reserved(QueueId(0), HCTX)));
        Self { tags, others, submitters }
    }

    fn holds_any(&self, queue: QueueId) -> bool {
        let holds = |one: &Submitter| one.queue == queue && matches!(one.place, Place::Holds(_));
        self.submitters.iter().any(holds) || (queue == QueueId(0) && !self.others.is_empty())
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        steps.extend((!self.others.is_empty()).then_some(Step::Free));
        for (at, one) in self.submitters.iter().enumerate() {
            let tired = one.place == Place::Woken && one.tries == 0;
            let acts = !tired && !matches!(one.place, Place::Sleeps | Place::Gone);
            steps.extend(acts.then_some(Step::Act(at)));
            steps.extend((one.place == Place::Woken).then_some(Step::Leave(at)));
        }
        let idle = [QueueId(0), QueueId(1)].into_iter().filter(|queue| !self.holds_any(*queue));
        steps.extend(idle.map(Step::Idle));
        steps
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Free => {
                let tag = self.others.pop().expect("a request should be in flight");
                self.tags.put(HCTX, tag);
            }
            Step::Idle(queue) => self.tags.idle(queue),
            Step::Leave(at) => self.submitters[at].place = Place::Gone,
            Step::Act(at) => {
                let Submitter { queue, reserved, place, .. } = self.submitters[at];
                self.submitters[at].place = match place {
                    Place::Wants | Place::Woken => {
                        self.submitters[at].tries -= 1;
                        let tag = if reserved {
                            self.tags.take_reserved(queue, HCTX)
                        } else {
                            self.tags.take(queue, HCTX, u32::MAX)
                        };
                        tag.map_or(Place::Refused, Place::Holds)
                    }
                    Place::Refused => {
                        self.tags
                            .wait(HCTX, at as u64, reserved)
                            .expect("the list of waiters should have room");
                        Place::Sleeps
                    }
                    Place::Holds(tag) => {
                        self.tags.put(HCTX, tag);
                        Place::Gone
                    }
                    Place::Sleeps | Place::Gone => {
                        unreachable!("a submitter that sleeps or has left takes no step")
                    }
                };
            }
        }
        while let Some(waiter) = self.tags.next_woken() {
            let one = &mut self.submitters
                [usize::try_from(waiter).expect("a waiter should be one of three")];
            assert_eq!(one.place, Place::Sleeps, "a woken submitter should be asleep");
            one.place = Place::Woken;
        }
    }

    /// Checks [sleeper-implies-tag-in-use] for each kind of tag.
    fn check(&self) {
        let reserved = self.tags.config().reserved;
        let held = |one: &Submitter| match one.place {
            Place::Holds(tag) => Some(tag),
            _ => None,
        };
        let mut in_use = self.others.clone();
        in_use.extend(self.submitters.iter().filter_map(held));
        for one in self.submitters.iter().filter(|one| one.place == Place::Sleeps) {
            let kin = in_use.iter().filter(|tag| (tag.0 < reserved) == one.reserved);
            assert!(kin.count() > 0, "[sleeper-implies-tag-in-use]: {self:?}");
        }
        let normal = in_use.iter().filter(|tag| tag.0 >= reserved).count();
        assert_eq!(self.tags.in_use(HCTX) as usize, normal, "[reserved-tags-separate]");
    }
}

/// Returns every configuration of up to three submitters: two queues that share the tags, or one
/// queue with some requests that need a reserved tag.
fn crowds(reserved: bool) -> Vec<Vec<Submitter>> {
    let mut crowds = Vec::new();
    for a in 0..2 {
        crowds.push(vec![a]);
        for b in a..2 {
            crowds.push(vec![a, b]);
            crowds.extend((b..2).map(|c| vec![a, b, c]));
        }
    }
    let one = |kind: u16| Submitter {
        queue: QueueId(if reserved { 0 } else { kind }),
        reserved: reserved && kind == 1,
        place: Place::Wants,
        tries: TRIES,
    };
    crowds.into_iter().map(|kinds| kinds.into_iter().map(one).collect()).collect()
}

#[test]
fn no_waiter_for_a_tag_is_forgotten() {
    let mut worlds = 0;
    for (depth, reserved) in [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1)] {
        for crowd in crowds(reserved > 0) {
            let mut seen = BTreeSet::new();
            let mut open = vec![World::new(depth, reserved, crowd)];
            while let Some(world) = open.pop() {
                if !seen.insert(format!("{world:?}")) {
                    continue;
                }
                world.check();
                let steps = world.steps();
                let moves = |step: &Step| !matches!(step, Step::Idle(_));
                if !steps.iter().any(moves) {
                    let gone = |one: &Submitter| one.place == Place::Gone;
                    assert!(world.submitters.iter().all(gone), "stuck: {world:?}");
                }
                for step in steps {
                    let mut next = world.clone();
                    next.take(step);
                    open.push(next);
                }
            }
            worlds += seen.len();
        }
    }
    println!("{worlds} worlds");
    assert!(worlds > 50_000, "only {worlds} worlds were visited");
}
