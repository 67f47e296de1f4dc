//! bfq between calls of a queue, with a device that serves requests for a fixed time.

mod processes;
mod shares;

use super::*;
use crate::bio::{Bio, IoPrio, PrioClass, Submitter};
use crate::request::BioId;
use crate::request::Bios;
use crate::status::Status;
use crate::unit::CpuId;
use std::vec::Vec;

const CAPACITY: usize = 64;
const HCTX: HctxId = HctxId(0);
/// The time that the device takes for each request.
const SERVICE: Duration = Duration::from_ms(1);

/// A process that reads: each read follows the end of the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    process: u32,
    group: u32,
    prio: IoPrio,
    /// Sectors of a read, and from the start of one to the start of the next.
    sectors: u32,
    step: u64,
    think: Duration,
    at: u64,
    /// When it submits its next read; `None` while one is held or in the device.
    due: Option<Instant>,
}

impl Reader {
    /// A reader of best effort, level 4, that reads 64 sectors at a time one after the other.
    fn new(process: u32) -> Self {
        Self {
            process,
            group: 0,
            prio: IoPrio { class: PrioClass::BestEffort, level: 4 },
            sectors: 64,
            step: 64,
            think: Duration::ZERO,
            at: u64::from(process) << 32,
            due: Some(Instant::ZERO),
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

/// An elevator, and a device that serves one request at a time.
pub(super) struct Rig {
    bfq: Bfq,
    requests: Requests,
    bios: Bios,
    carried: Vec<Option<BioId>>,
    readers: Vec<Reader>,
    now: Instant,
    /// The request in the device, and its end.
    served: Option<(RequestId, Instant)>,
    /// The process of each dispatch, its sectors, and its instant.
    log: Vec<(u32, u32, Instant)>,
}

impl Rig {
    fn new(rotational: bool, tunables: BfqTunables, readers: Vec<Reader>) -> Self {
        Self { readers, ..Self::of_capacity(CAPACITY, rotational, tunables) }
    }

    /// Without readers.
    fn of_capacity(capacity: usize, rotational: bool, tunables: BfqTunables) -> Self {
        Self {
            bfq: Bfq::new(capacity, rotational, tunables),
            requests: Requests::new(capacity),
            bios: Bios::new(u32::try_from(capacity).unwrap()),
            carried: std::vec![None; capacity],
            readers: Vec::new(),
            now: Instant::ZERO,
            served: None,
            log: Vec::new(),
        }
    }

    fn submit(&mut self, at: usize) {
        let reader = &mut self.readers[at];
        let bio = Bio::read(reader.at, reader.sectors, 0)
            .with_prio(reader.prio)
            .with_submitter(Submitter { process: reader.process, group: reader.group });
        reader.at += reader.step;
        reader.due = None;
        self.insert(bio);
    }

    fn insert(&mut self, bio: Bio) {
        let free = self.carried.iter().position(Option::is_none).expect("a free request");
        let id = RequestId(u32::try_from(free).unwrap());
        let bio = self.bios.take(bio).expect("a free bio");
        self.carried[free] = Some(bio);
        self.requests.start(id, bio, &self.bios[bio], CpuId(0), HCTX, self.now);
        self.bfq.insert(&mut self.requests, id, Place::Sorted, self.now);
    }

    fn dispatch(&mut self) {
        if self.served.is_some() {
            return;
        }
        let before = self.bfq.serving;
        let Some(id) = self.bfq.dispatch(&mut self.requests, HCTX, self.now) else { return };
        let rq = &self.requests[id];
        self.log.push((rq.submitter.process, rq.sectors, self.now));
        self.served = Some((id, self.now + SERVICE));
        // [budget-kept]
        if let Some(serving) = self.bfq.serving.filter(|serving| before == Some(*serving)) {
            let left = self.bfq.scheduler.of(serving).left();
            assert!(left >= 0, "[budget-kept] queue {serving} has {left} sectors left");
        }
    }

    fn finish(&mut self, id: RequestId) {
        self.bfq.finished(id, &self.requests[id], self.now);
        let process = self.requests[id].submitter.process;
        if let Some(reader) = self.readers.iter_mut().find(|reader| reader.process == process) {
            reader.due = Some(self.now + reader.think);
        }
        let bio = self.carried[id.index()].take().expect("it carries a bio");
        self.requests.make_idle(id);
        self.bios.end_chain(bio, 0, Status::Ok);
        while self.bios.next_ended().is_some() {}
        self.served = None;
    }

    /// Ends the request in the device, if there is one.
    fn finish_served(&mut self) {
        if let Some((id, at)) = self.served {
            self.now = at;
            self.finish(id);
        }
    }

    /// Does what is due at each instant until `end`.
    fn run(&mut self, end: Instant) {
        while self.now < end {
            if let Some((id, _)) = self.served.filter(|(_, at)| *at <= self.now) {
                self.finish(id);
            }
            if let Some(at) = self.readers.iter().position(|reader| reader.is_due(self.now)) {
                self.submit(at);
                continue;
            }
            self.dispatch();
            let mut next = end;
            let idle = self.bfq.poll_at(HCTX).filter(|_| self.served.is_none());
            let instants = self.readers.iter().filter_map(|reader| reader.due).chain(idle);
            for at in instants.chain(self.served.map(|served| served.1)) {
                next = next.min(at);
            }
            self.now = next.max(self.now);
        }
    }

    /// Returns the sectors that `process` got.
    fn sectors_of(&self, process: u32) -> u64 {
        let own = self.log.iter().filter(|entry| entry.0 == process);
        own.map(|entry| u64::from(entry.1)).sum()
    }
}

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

fn plain() -> BfqTunables {
    BfqTunables { low_latency: false, ..BfqTunables::default() }
}
