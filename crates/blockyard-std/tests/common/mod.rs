//! Disks for tests, and a device that answers when it is told.
#![allow(dead_code, reason = "each test uses a part")]

use blockyard::bio::{Flags, IoPrio, Op};
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome, TimedOut};
use blockyard::limits::Limits;
use blockyard::request::Request;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::{DriverTag, HctxId, QueueId};
use blockyard_std::{Bell, Data, Disk, Options, Tools};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A file of zeroes that is removed when it is dropped.
pub(crate) struct Scratch(pub PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str, bytes: u64) -> Self {
        let path =
            std::env::temp_dir().join(format!("blockyard-std-{name}-{}", std::process::id()));
        std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A request that a [`Slow`] device got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) op: Op,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    pub(crate) is_fua: bool,
    pub(crate) prio: IoPrio,
}

/// What a test shares with its device.
#[derive(Default)]
pub(crate) struct Wires {
    pub(crate) got: Vec<Got>,
    /// Finish requests as soon as they come.
    pub(crate) is_quick: bool,
    /// Requests that touch this sector fail.
    pub(crate) bad_sector: Option<u64>,
    pub(crate) is_to_panic: bool,
    pub(crate) timed_out: u32,
    held: VecDeque<Finished>,
    finished: VecDeque<Finished>,
    bell: Option<Bell>,
}

pub(crate) type Shared = Arc<Mutex<Wires>>;

/// Returns the wires of a device that finishes requests as soon as they come.
pub(crate) fn quick() -> Shared {
    Arc::new(Mutex::new(Wires { is_quick: true, ..Wires::default() }))
}

/// Lets the device finish all requests that it holds.
pub(crate) fn release(wires: &Shared) {
    let mut wires = wires.lock().unwrap();
    let held = std::mem::take(&mut wires.held);
    wires.finished.extend(held);
    wires.bell.as_ref().unwrap().ring();
}

/// Memory that another thread may make wait.
pub(crate) struct Slow {
    bytes: Vec<u8>,
    data: Data,
    wires: Shared,
}

/// Opens a disk over a slow device.
pub(crate) fn slow(options: Options, limits: Limits, wires: &Shared) -> Disk {
    let wires = Arc::clone(wires);
    let bytes = usize::try_from(limits.capacity_sectors * 512).unwrap();
    let make = move |Tools { data, bell }: Tools| {
        wires.lock().unwrap().bell = Some(bell);
        Slow { bytes: vec![0; bytes], data, wires }
    };
    options.driver(limits, make).unwrap()
}

impl Driver for Slow {
    blockyard::leaf_calls!(take_budget, return_budget, prepare, unprepare, commit, finish);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let rq = issue.request();
        let mut wires = self.wires.lock().unwrap();
        assert!(!wires.is_to_panic, "the test wants it");
        wires.got.push(Got {
            op: rq.op,
            sector: rq.sector,
            sectors: rq.sectors,
            is_fua: rq.flags.contains(Flags::FUA),
            prio: rq.prio,
        });
        for piece in issue.pieces() {
            let start = usize::try_from(piece.sector * 512).unwrap();
            let bytes = &mut self.bytes[start..start + piece.sectors as usize * 512];
            match rq.op {
                Op::Read => self.data.fill(&piece, |to| to.copy_from_slice(bytes)),
                Op::Write => self.data.take(&piece, |from| bytes.copy_from_slice(from)),
                Op::Discard | Op::WriteZeroes => bytes.fill(0),
                _ => {}
            }
        }
        let range = rq.sector..rq.sector + u64::from(rq.sectors);
        let is_bad = wires.bad_sector.is_some_and(|bad| range.contains(&bad));
        let status = if is_bad { Status::Medium } else { Status::Ok };
        let queue = issue.queue;
        let hctx = issue.hctx;
        let tag = issue.tag;
        let finished = Finished { queue, hctx, tag, outcome: Outcome::Done(status) };
        match wires.is_quick {
            true => wires.finished.push_back(finished),
            false => wires.held.push_back(finished),
        }
        Accept::Queued
    }

    fn timed_out(
        &mut self,
        _: QueueId,
        _: HctxId,
        tag: DriverTag,
        _: &Request,
        _: Instant,
    ) -> TimedOut {
        let mut wires = self.wires.lock().unwrap();
        wires.timed_out += 1;
        wires.held.retain(|held| held.tag != tag);
        TimedOut::Ended(Outcome::Done(Status::Timeout))
    }
}

impl Device for Slow {
    fn next_finished(&mut self, _: Instant) -> Option<Finished> {
        self.wires.lock().unwrap().finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        (!self.wires.lock().unwrap().finished.is_empty()).then_some(Instant::ZERO)
    }
}

/// Random numbers, the same in every run.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}
