//! adios between calls of a queue, on virtual time that a test moves.

mod batches;
mod order;

use super::*;
use crate::bio::Bio;
use crate::request::{BioId, Bios};
use crate::status::Status;
use crate::unit::CpuId;
use std::vec::Vec;

const CAPACITY: usize = 64;
const HCTX: HctxId = HctxId(0);

/// 1 ms for each request of at most 4 KiB, and 10 us for each further KiB.
const KNOWN: AdiosModel = AdiosModel { base: Duration::from_ms(1), slope: Duration::from_us(10) };

/// Tunables with which all kinds are known.
fn known() -> AdiosTunables {
    AdiosTunables {
        lat_model_read: KNOWN,
        lat_model_write: KNOWN,
        lat_model_discard: KNOWN,
        ..AdiosTunables::default()
    }
}

/// A write that nobody waits for.
fn write(sector: u64, sectors: u32) -> Bio {
    Bio::write(sector, sectors, 0)
}

fn sync_write(sector: u64) -> Bio {
    Bio::write(sector, 8, 0).with_flags(Flags::SYNC)
}

fn read(sector: u64) -> Bio {
    Bio::read(sector, 8, 0)
}

fn discard(sector: u64) -> Bio {
    Bio::new(Op::Discard, sector, 8, 0)
}

/// An elevator and its requests.
struct Rig {
    adios: Adios,
    requests: Requests,
    bios: Bios,
    carried: Vec<Option<BioId>>,
    next: u32,
    now: Instant,
}

impl Rig {
    fn new(rotational: bool, tunables: AdiosTunables) -> Self {
        Self {
            adios: Adios::new(CAPACITY, rotational, tunables),
            requests: Requests::new(CAPACITY),
            bios: Bios::new(u32::try_from(CAPACITY).unwrap()),
            carried: std::vec![None; CAPACITY],
            next: 0,
            now: Instant::ZERO,
        }
    }

    fn at_us(&mut self, us: u64) -> &mut Self {
        self.now = Instant::ZERO + Duration::from_us(us);
        self
    }

    /// Inserts a request with `bio`, as the queue does.
    fn insert(&mut self, bio: Bio) -> RequestId {
        let id = RequestId(self.next);
        self.next += 1;
        let bio = self.bios.take(bio).expect("a free bio");
        self.carried[id.index()] = Some(bio);
        self.requests.start(id, bio, &self.bios[bio], CpuId(0), HCTX, self.now);
        self.adios.insert(&mut self.requests, id, Place::Sorted, self.now);
        id
    }

    fn insert_all(&mut self, bios: &[Bio]) {
        for bio in bios {
            self.insert(*bio);
        }
    }

    /// Whether a bio finds a request to join.
    fn finds_merge(&mut self, bio: Bio) -> bool {
        let id = RequestId(self.next);
        let bio = self.bios.take(bio).expect("a free bio");
        self.carried[id.index()] = Some(bio);
        self.requests.start(id, bio, &self.bios[bio], CpuId(0), HCTX, self.now);
        let limits = Limits::new(1 << 20);
        let ctx = Ctx { cpu: CpuId(0), hctx: HCTX };
        let other = self.requests[id].extent();
        let found = self.adios.find_merge(&self.requests, &limits, ctx, &other, true);
        self.release(id);
        found.is_some()
    }

    /// Dispatches a request, which the device begins at once.
    fn dispatch(&mut self) -> Option<RequestId> {
        let id = self.adios.dispatch(&mut self.requests, HCTX, self.now)?;
        self.requests[id].times.scheduled = self.now;
        self.requests[id].times.issued = self.now;
        Some(id)
    }

    /// Returns the sectors of all requests in the order in which they go.
    fn sectors(&mut self) -> Vec<u64> {
        let mut sectors = Vec::new();
        while let Some(id) = self.dispatch() {
            sectors.push(self.requests[id].sector);
        }
        sectors
    }

    fn finish(&mut self, id: RequestId) {
        self.requests[id].state = State::Complete;
        self.adios.finished(id, &self.requests[id], self.now);
    }

    /// Ends the bio of a request, and gives its number back.
    fn release(&mut self, id: RequestId) {
        let bio = self.carried[id.index()].take().expect("it carries a bio");
        self.requests.make_idle(id);
        self.bios.end_chain(bio, 0, Status::Ok);
        while self.bios.next_ended().is_some() {}
    }

    fn predict_ns(&self, kind: Kind, bytes: u32) -> u64 {
        self.adios.models[kind.index()].predict_ns(bytes)
    }
}
