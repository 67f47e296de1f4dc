//! The actions of submitters.

use super::{Event, Machine};
use crate::draw::one_in;
use crate::submitter::Asleep;
use blockyard::bio::{Bio, Flags, Op, Submitter};
use blockyard::status::SubmitError;
use blockyard::time::Duration;

/// Bios by kind, for sums.
pub(crate) const BIOS: [&str; 9] = [
    "reads",
    "writes",
    "flushes",
    "discards",
    "write-zeroes",
    "secure erases",
    "passthrough",
    "with FUA or preflush",
    "reserved",
];

/// Returns the kind of `bio`, an index into [`BIOS`]. Flags take precedence over the op.
fn kind(bio: &Bio) -> usize {
    if bio.flags.contains(Flags::RESERVED) {
        return 8;
    }
    if bio.flags.intersects(Flags::FUA | Flags::PREFLUSH) {
        return 7;
    }
    match bio.op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Discard => 3,
        Op::WriteZeroes => 4,
        Op::SecureErase => 5,
        Op::DriverIn | Op::DriverOut => 6,
    }
}

impl Machine {
    /// Lets a submitter submit a batch, with or without a plug.
    pub(super) fn step(&mut self, at: usize) {
        let queue = self.submitters[at].plan.queue;
        let cpu = self.submitters[at].plan.cpu;
        if self.submitters[at].asleep != Asleep::No {
            return;
        }
        let plugs = self.submitters[at].plan.plugs;
        if plugs {
            self.queues[queue.index()].plug(cpu);
        }
        for _ in 0..self.submitters[at].plan.batch {
            if !self.submitters[at].may_submit() || !self.submit(at) {
                break;
            }
            self.after_call();
        }
        if plugs {
            let hold = self.submitters[at].plan.plug_hold_max;
            if hold == Duration::ZERO {
                self.queues[queue.index()].unplug(&mut self.host, cpu, self.now);
            } else {
                self.later(hold, Event::Unplug(queue, cpu));
            }
        }
        if self.submitters[at].asleep == Asleep::No && self.submitters[at].may_submit() {
            self.later(self.submitters[at].plan.think_max, Event::Step(at));
        }
    }

    /// Submits the next bio. Returns whether it was accepted.
    fn submit(&mut self, at: usize) -> bool {
        let cookie = self.next_cookie;
        let submitter = &mut self.submitters[at];
        let queue = submitter.plan.queue;
        let cpu = submitter.plan.cpu;
        let limits = &self.plan.queues[queue.index()].limits;
        let process = u32::try_from(at).expect("a submitter's number should fit 32 bits");
        let bio = submitter
            .next_bio(&mut self.prng, limits, cookie)
            .with_submitter(Submitter { process, group: process / 4 });
        let target = &mut self.queues[queue.index()];
        let held = (target.bios_in_use(), target.in_flight());
        self.checkers.data.submitting(self.host.driver.media(), &bio);
        let Err(refused) = target.submit(&mut self.host, cpu, bio, self.now) else {
            self.next_cookie += 1;
            self.submitters[at].taken(cookie);
            self.checkers.data.taken(queue, &bio);
            self.checkers.entered(queue, bio, self.now, self.faulty);
            self.summary.bios[kind(&bio)] += 1;
            return true;
        };
        let kept = (target.bios_in_use(), target.in_flight());
        assert_eq!(held, kept, "[refusal] of {bio:?} kept something");
        self.checkers.data.refused(self.host.driver.media(), &bio);
        self.checkers.pauses.refused(queue, &bio, refused);
        self.wait_after(at, bio, refused);
        false
    }

    fn wait_after(&mut self, at: usize, bio: Bio, refused: SubmitError) {
        match refused {
            SubmitError::NoTag | SubmitError::Frozen | SubmitError::Throttled => {
                let throttled = refused == SubmitError::Throttled;
                let asleep = if throttled { Asleep::ForPlace } else { Asleep::ForTag };
                self.submitters[at].asleep = asleep;
                if one_in(&mut self.prng, self.plan.late_wait_one_in) {
                    self.later(Duration::from_us(20), Event::Register(at, bio));
                } else {
                    self.register(at, &bio);
                }
            }
            SubmitError::WouldBlock => {
                self.submitters[at].retry_without(Flags::NOWAIT);
                self.later(Duration::from_us(20), Event::Step(at));
                self.submitters[at].asleep = Asleep::No;
            }
            SubmitError::TooManyBios => self.submitters[at].asleep = Asleep::ForMemory,
            refused => panic!("[refusal] {refused} of {bio:?}"),
        }
    }

    pub(super) fn register(&mut self, at: usize, bio: &Bio) {
        let queue = self.submitters[at].plan.queue;
        let cpu = self.submitters[at].plan.cpu;
        let waited = self.queues[queue.index()].wait(&mut self.host, cpu, bio, at as u64, self.now);
        assert!(waited.is_ok(), "[refusal] no room to wait");
    }
}
