//! mq-deadline and kyber alone.

use blockyard::elevator::deadline::Deadline;
use blockyard::elevator::kyber::Kyber;
use blockyard::elevator::{Ctx, Elevator, Place};
use blockyard::hardware_queue::QueueMap;
use blockyard::limits::Limits;
use blockyard::policy::{DeadlineTunables, KyberTunables};
use blockyard::request::Requests;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, HctxId, RequestId};
use blockyard_bench::Sectors;
use divan::Bencher;

const HELD: [u32; 4] = [1, 32, 4096, 32768];
const CTX: Ctx = Ctx { cpu: CpuId(0), hctx: HctxId(0) };

fn main() {
    divan::main();
}

/// An elevator that holds reads of random sectors.
struct Rig<E> {
    requests: Requests,
    elevator: E,
    sectors: Sectors,
    limits: Limits,
}

fn deadline(held: u32) -> Rig<Deadline> {
    Rig::new(held, Deadline::new(held as usize + 1, DeadlineTunables::default()))
}

fn kyber(held: u32) -> Rig<Kyber> {
    Rig::new(held, Kyber::new(&QueueMap::even(1, 1), KyberTunables::default()))
}

impl<E: Elevator> Rig<E> {
    fn new(held: u32, elevator: E) -> Self {
        let mut rig = Self {
            requests: Requests::new(held as usize + 1),
            elevator,
            sectors: Sectors::default(),
            limits: Limits::new(1 << 21),
        };
        (0..held).for_each(|id| rig.insert(RequestId(id)));
        rig
    }

    fn insert(&mut self, id: RequestId) {
        let rq = &mut self.requests[id];
        (rq.sector, rq.sectors, rq.segments) = (self.sectors.draw(), 8, 1);
        self.elevator.insert(&mut self.requests, id, Place::Sorted, Instant::ZERO);
    }

    fn dispatch(&mut self) -> RequestId {
        let id = self.elevator.dispatch(&mut self.requests, HctxId(0), Instant::ZERO);
        let id = id.expect("request of an elevator that holds some");
        self.elevator.finished(id, &self.requests[id], Instant::ZERO);
        id
    }
}

/// One request leaves the elevator and another enters.
fn dispatch_insert_in<E: Elevator>(bencher: Bencher<'_, '_>, mut rig: Rig<E>) {
    bencher.bench_local(|| {
        let id = rig.dispatch();
        rig.insert(id);
    });
}

#[divan::bench(args = HELD)]
fn dispatch_insert(bencher: Bencher<'_, '_>, held: u32) {
    dispatch_insert_in(bencher, deadline(held));
}

#[divan::bench(args = HELD)]
fn dispatch_insert_kyber(bencher: Bencher<'_, '_>, held: u32) {
    dispatch_insert_in(bencher, kyber(held));
}

/// A search without a match.
fn find_merge_miss_in<E: Elevator>(bencher: Bencher<'_, '_>, mut rig: Rig<E>) {
    let mut other = rig.requests[RequestId(0)].extent();
    bencher.bench_local(|| {
        other.sector = rig.sectors.draw() + 4; // adjacent to none: requests lie 8 sectors apart
        rig.elevator.find_merge(&rig.requests, &rig.limits, CTX, &other, true)
    });
}

#[divan::bench(args = HELD)]
fn find_merge_miss(bencher: Bencher<'_, '_>, held: u32) {
    find_merge_miss_in(bencher, deadline(held));
}

#[divan::bench(args = HELD)]
fn find_merge_miss_kyber(bencher: Bencher<'_, '_>, held: u32) {
    find_merge_miss_in(bencher, kyber(held));
}
