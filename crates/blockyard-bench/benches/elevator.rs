//! mq-deadline alone.

use blockyard::elevator::deadline::Deadline;
use blockyard::elevator::{Elevator, Place};
use blockyard::limits::Limits;
use blockyard::policy::DeadlineTunables;
use blockyard::request::Requests;
use blockyard::time::Instant;
use blockyard::unit::{HctxId, RequestId};
use blockyard_bench::Sectors;
use divan::Bencher;

const HELD: [u32; 4] = [1, 32, 4096, 32768];

fn main() {
    divan::main();
}

/// An elevator that holds reads of random sectors.
struct Rig {
    requests: Requests,
    elevator: Deadline,
    sectors: Sectors,
    limits: Limits,
}

impl Rig {
    fn new(held: u32) -> Self {
        let count = held as usize + 1;
        let mut rig = Self {
            requests: Requests::new(count),
            elevator: Deadline::new(count, DeadlineTunables::default()),
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
        let id = id.expect("it holds requests");
        self.elevator.finished(&self.requests[id], Instant::ZERO);
        id
    }
}

/// One request goes and another comes.
#[divan::bench(args = HELD)]
fn dispatch_insert(bencher: Bencher<'_, '_>, held: u32) {
    let mut rig = Rig::new(held);
    bencher.bench_local(|| {
        let id = rig.dispatch();
        rig.insert(id);
    });
}

/// A search that finds nothing.
#[divan::bench(args = HELD)]
fn find_merge_miss(bencher: Bencher<'_, '_>, held: u32) {
    let mut rig = Rig::new(held);
    let mut other = rig.requests[RequestId(0)].extent();
    bencher.bench_local(|| {
        other.sector = rig.sectors.draw() + 4; // touches none: requests lie 8 sectors apart
        rig.elevator.find_merge(&rig.requests, &rig.limits, &other, true)
    });
}
