//! Persistent memory as a disk, raw or under a block translation table.
//!
//! The table is the library's own ([`blockyard_btt`]), over a memory that charges for each call, so
//! the cost of a design follows from its accesses. The submitting processor is busy until a request
//! is done; nothing is queued, and there are no interrupts.

mod calendar;
pub mod evidence;
mod family;
pub mod figures;
mod kept;
mod lines;
mod machine;
mod memory;
pub(crate) mod profile;
mod store;
pub(crate) mod tables;

pub use machine::{Part, PmemReport};

use super::activity::Activity;
use crate::btt::BttDesign;
use crate::data::event::{DataEvent, Place, ReportsData};
use crate::family::FamilyModel;
use crate::pmem::profile::{CAPACITY_MAX, CAPACITY_MIN, PmemProfile};
use crate::terms::Completion;
use blockyard::bio::Op;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome};
use blockyard::prng::Prng;
use blockyard::request::Request;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{DriverTag, SECTOR_BYTES};
use blockyard_btt::find::find;
use blockyard_btt::layout::{ARENA_BYTES_MAX, INFO_BYTES, MAP_ENTRY_BYTES, NFREE};
use blockyard_btt::{Btt, Container, Format, IoError, Memory, OpenOptions, Seat, Uuid};
use kept::Kept;
use machine::Machine;
use memory::Modelled;
use std::collections::VecDeque;

// The largest disk fits one arena together with its table.
const _: () = assert!(with_table(CAPACITY_MAX, 512) <= ARENA_BYTES_MAX);

/// The model.
#[derive(Debug)]
pub struct Pmem {
    disk: Disk,
    /// The buffer for the data of a request.
    buffer: Vec<u8>,
    finished: VecDeque<Finished>,
    /// Time for which no processor has been charged yet.
    spent: Duration,
    activity: Activity,
    /// The record of writes, if data is kept.
    kept: Option<Box<Kept>>,
    profile: PmemProfile,
    btt: Option<BttDesign>,
}

#[derive(Debug)]
enum Disk {
    Plain(Box<Modelled>),
    /// The table, and each processor's seat at it.
    Btt(Box<Btt<Modelled>>, Vec<Seat>),
}

impl Pmem {
    /// Returns a disk of `capacity` bytes, with or without a BTT. Each of its sectors was written
    /// once.
    ///
    /// # Panics
    ///
    /// Panics if `capacity` is not within [`CAPACITY_MIN`] and [`CAPACITY_MAX`].
    #[must_use]
    pub fn new(profile: PmemProfile, btt: Option<&BttDesign>, capacity: u64, cpus: u16) -> Self {
        assert!((CAPACITY_MIN..=CAPACITY_MAX).contains(&capacity), "{capacity} bytes");
        let machine = Machine::new(profile, btt, cpus);
        let disk = match btt {
            None => {
                let memory = Modelled::new(capacity, machine);
                memory.is_plain();
                Disk::Plain(Box::new(memory))
            }
            Some(btt) => {
                let memory = Modelled::new(with_table(capacity, btt.sector_bytes), machine);
                let table = formatted(memory, btt, cpus);
                let seats = (0..cpus).map(|_| table.seat()).collect();
                Disk::Btt(Box::new(table), seats)
            }
        };
        Self {
            disk,
            buffer: Vec::new(),
            finished: VecDeque::new(),
            spent: Duration::ZERO,
            activity: Activity::default(),
            kept: None,
            profile,
            btt: btt.copied(),
        }
    }

    const fn memory(&self) -> &Modelled {
        match &self.disk {
            Disk::Plain(memory) => memory,
            Disk::Btt(btt, _) => btt.memory(),
        }
    }

    /// Returns the operations and their times.
    #[must_use]
    pub(crate) fn report(&self) -> PmemReport {
        self.memory().inside().machine.report()
    }

    /// Carries out `request` under the driver tag `tag`.
    fn perform(&mut self, tag: DriverTag, request: &Request) -> Result<(), IoError> {
        let bytes = request.sectors as usize * SECTOR_BYTES as usize;
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        let data = &mut self.buffer[..bytes];
        if let Some(kept) = self.kept.as_mut().filter(|_| request.op == Op::Write) {
            kept.write(tag, request.sector, data);
        }
        let at = request.sector * u64::from(SECTOR_BYTES);
        let done = match &mut self.disk {
            Disk::Plain(memory) => match request.op {
                Op::Read => Ok(memory.read(at, data)?),
                Op::Write => {
                    memory.write(at, data)?;
                    Ok(memory.fence()?)
                }
                Op::WriteZeroes | Op::Discard => {
                    memory.zero(at, bytes as u64)?;
                    Ok(memory.fence()?)
                }
                _ => Ok(()),
            },
            Disk::Btt(btt, seats) => {
                let sector_bytes = u64::from(btt.sector_bytes());
                let lba = at / sector_bytes;
                let count = bytes as u64 / sector_bytes;
                let seat = &mut seats[request.cpu.index()];
                match request.op {
                    Op::Read => seat.read(btt, lba, data),
                    Op::Write => seat.write(btt, lba, data),
                    Op::WriteZeroes | Op::Discard => btt.set_zero(lba, count),
                    _ => Ok(()),
                }
            }
        };
        match &mut self.kept {
            Some(kept) if request.op == Op::Read => kept.read(tag, request.sector, data),
            Some(kept) if matches!(request.op, Op::WriteZeroes | Op::Discard) => {
                kept.erase(request.sector..request.end_sector());
            }
            _ => {}
        }
        done
    }

    /// Checks the data that a loss of power would leave, through the table's own recovery.
    fn look_at_survivors(&mut self) {
        // Without a table each write was fenced.
        let Disk::Btt(btt, seats) = &self.disk else { return };
        let Some(design) = self.btt else { return };
        let Some(kept) = &mut self.kept else { return };
        let cpus = cpus(seats);
        let machine = Machine::new(self.profile, Some(&design), cpus);
        let left = btt.memory().survivors(machine, &mut kept.draws);
        // A table that cannot be opened has lost all data.
        let left = Btt::open(left, &opened(&design, cpus)).ok();
        let unit = u64::from(design.sector_bytes / SECTOR_BYTES);
        kept.look_at_survivors(unit, |sectors, bytes| {
            left.as_ref().is_some_and(|btt| btt.read(sectors.start / unit, bytes).is_ok())
        });
    }
}

impl ReportsData for Pmem {
    fn keeps_data(&self) -> bool {
        self.kept.is_some()
    }

    fn advance_data(&mut self, _now: Instant) {
        self.look_at_survivors();
    }

    fn next_data_event(&mut self) -> Option<DataEvent<Place>> {
        self.kept.as_mut()?.next_data_event()
    }
}

impl Device for Pmem {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        if let Some(kept) = &mut self.kept {
            kept.pulled();
        }
        self.finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }
}

fn cpus(seats: &[Seat]) -> u16 {
    u16::try_from(seats.len()).expect("there should be one seat for each processor")
}

/// Returns the options to open a table of `design` on a machine with `cpus` processors.
fn opened(design: &BttDesign, cpus: u16) -> OpenOptions {
    OpenOptions { policy: design.policy(cpus), ..OpenOptions::new(Container::LabelledNamespace) }
}

/// Returns the bytes of memory for a BTT of `capacity` bytes.
const fn with_table(capacity: u64, sector_bytes: u32) -> u64 {
    let sectors = capacity.div_ceil(sector_bytes as u64);
    let spare = (NFREE * sector_bytes) as u64;
    let log = NFREE as u64 * 64;
    // Both info blocks, the space before the arena, and rounding.
    capacity + sectors * MAP_ENTRY_BYTES + spare + log + 8 * INFO_BYTES
}

/// Creates a BTT in `memory` for `cpus` processors.
fn formatted(memory: Modelled, design: &BttDesign, cpus: u16) -> Btt<Modelled> {
    let format = Format {
        container: Container::LabelledNamespace,
        sector_bytes: design.sector_bytes,
        uuid: Uuid(*b"blockyard's sim."),
        parent_uuid: Uuid::NIL,
        blank: true,
    };
    format.write(&memory).expect("the memory should have room for an arena");
    let arenas = find(&memory, Container::LabelledNamespace, None);
    let arenas = arenas.expect("an arena that was just formatted should be found");
    assert_eq!(arenas.len(), 1, "the largest disk fits one arena");
    let btt = Btt::open(memory, &opened(design, cpus))
        .expect("a table that was just formatted should open");
    btt.memory().has(arenas[0].start, &arenas[0].info.layout);
    btt
}

impl FamilyModel for Pmem {
    fn activity(&self) -> &Activity {
        &self.activity
    }

    fn activity_mut(&mut self) -> &mut Activity {
        &mut self.activity
    }

    fn completion(&self) -> Completion {
        Completion::WithinCall
    }

    fn forget(&mut self, now: Instant) {
        self.activity.forget(now);
        self.memory().inside().machine.forget();
    }

    fn take_spent(&mut self) -> Duration {
        core::mem::take(&mut self.spent)
    }

    fn keep_data(&mut self, draws: Prng) {
        self.memory().keep_data();
        self.kept = Some(Box::new(Kept::new(draws)));
    }
}

impl Driver for Pmem {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let request = issue.request();
        self.memory().inside().machine.begin(request.cpu.0, request.op.is_read());
        let done = self.perform(issue.tag, request);
        let begin = issue.now + self.spent;
        let took = self.memory().inside().machine.end(begin, issue.now);
        self.spent += took;
        if self.btt.is_some() {
            self.spent += self.profile.table_work;
        }
        self.activity.span(begin, begin + took);
        self.finished.push_back(Finished {
            queue: issue.queue,
            hctx: issue.hctx,
            tag: issue.tag,
            outcome: Outcome::Done(done.map_or(Status::IoError, |()| Status::Ok)),
        });
        Accept::Queued
    }
}
