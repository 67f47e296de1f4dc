//! The front end of a virtual disk: virtio-blk.
//!
//! The guest's processor puts commands in a queue in its memory, and kicks the host. A kick leaves
//! the guest, and is what costs. The host's thread takes the commands of all queues, one at a time,
//! and passes them to the medium; it passes completions back the same way. While it works, it looks
//! at the queues by itself and asks for no kicks (virtio's event index), so a busy disk is kicked
//! rarely.
//!
//! A thread that waits for the medium takes commands one by one instead, and answers a batch of
//! them together: [`engine`].
//!
//! Left out: several threads of the host, the time for which the thread polls before it sleeps,
//! copies of data, completions of an asynchronous engine that share an interrupt, and indirect
//! descriptors.
//!
//! [`engine`]: super::engine

pub(crate) mod profile;

use super::front::{Front, FrontUse};
use super::line::Line;
use crate::fronts::virtio::profile::{VirtioEngine, VirtioProfile};
use crate::medium::Access;
use blockyard::time::{Duration, Instant};

/// The front end.
#[derive(Debug)]
pub(crate) struct Virtio {
    profile: VirtioProfile,
    thread: Line,
}

impl Virtio {
    /// Returns an idle front end by `profile`. A thread that waits for the medium wakes up where
    /// the drive says ([`SyncEngine`](super::engine::SyncEngine)).
    pub(super) fn new(profile: VirtioProfile) -> Self {
        let wakeup = match profile.engine {
            VirtioEngine::Async => profile.wakeup,
            VirtioEngine::Sync => Duration::ZERO,
        };
        Self { profile: VirtioProfile { wakeup, ..profile }, thread: Line::default() }
    }

    /// Lets the thread work for `time` from `now` on, or from when it has woken up.
    fn work(&mut self, now: Instant, time: Duration) -> Instant {
        let wakes = if self.thread.is_idle(now) { self.profile.wakeup } else { Duration::ZERO };
        self.thread.pass(now + wakes, time)
    }
}

impl Front for Virtio {
    fn needs_doorbell(&self, now: Instant) -> bool {
        self.thread.is_idle(now) // a thread that works looks at the queues by itself
    }

    fn send(&mut self, _access: Access, now: Instant) -> Instant {
        self.work(now, self.profile.interval)
    }

    fn answer(&mut self, _access: Access, now: Instant) -> Instant {
        self.work(now, self.profile.answer)
    }

    fn used(&self) -> FrontUse {
        FrontUse { controller: self.thread.used(), link: Duration::ZERO }
    }

    fn forget(&mut self) {
        self.thread.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::bio::Op;
    use blockyard::unit::HctxId;

    const READ: Access =
        Access { op: Op::Read, start: 0, sectors: 8, fua: false, queue: HctxId(0) };

    const fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    #[test]
    fn a_host_that_works_is_not_kicked() {
        let us = Duration::from_us;
        let profile = VirtioProfile {
            hw_queues: 1,
            depth: 128,
            engine: VirtioEngine::Async,
            kick: us(2),
            wakeup: us(5),
            interval: us(3),
            answer: us(1),
        };
        let mut virtio = Virtio::new(profile);
        assert!(virtio.needs_doorbell(at(10)));
        assert_eq!(virtio.send(READ, at(10)), at(18), "it wakes up for the first");
        assert!(!virtio.needs_doorbell(at(17)));
        assert_eq!(virtio.send(READ, at(17)), at(21), "and takes the second at once");
        assert_eq!(virtio.answer(READ, at(19)), at(22));
        assert!(virtio.needs_doorbell(at(22)));
        assert_eq!(virtio.answer(READ, at(30)), at(36));
        assert_eq!(virtio.thread.used(), us(3 + 3 + 1 + 1));
    }
}
