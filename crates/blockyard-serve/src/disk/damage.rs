//! Damage to the file of a disk: each failed request is counted, and each disk is reported once.
//!
//! After a flush of a disk has failed, the disk counts as one whose flush failed until another one
//! succeeds, which never happens for a file ([failed-flush-stays-failed]). The log gets a line at
//! each change, and not for each flush: of flushes that end ok, failed, failed, ok, the second and
//! the last have one.

use crate::observation::event::{DiskEvent, Event, Harm};
use blockyard_std::parts::device::file::Damaged;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

/// The damage to the file of one disk.
#[derive(Debug)]
pub(crate) struct Damage {
    disk: String,
    events: Option<mpsc::SyncSender<Event>>,
    is_reported: AtomicBool,
    /// The damage that was found last.
    harm: Mutex<Option<Harm>>,
    /// The number of requests that failed because of the damage.
    failed: AtomicU64,
    /// Whether the last flush failed, and whether the log knows.
    has_failed_flush: AtomicBool,
    is_flush_reported: AtomicBool,
}

impl Damage {
    pub(in crate::disk) fn new(disk: &str, events: Option<&mpsc::SyncSender<Event>>) -> Self {
        Self {
            disk: disk.to_owned(),
            events: events.cloned(),
            is_reported: AtomicBool::new(false),
            harm: Mutex::new(None),
            failed: AtomicU64::new(0),
            has_failed_flush: AtomicBool::new(false),
            is_flush_reported: AtomicBool::new(false),
        }
    }

    /// Counts a request that failed because of `harm`. The first report that finds room in the log
    /// is the only one.
    #[cold]
    pub(in crate::disk) fn note_failure(&self, harm: Harm) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self.harm.lock().unwrap_or_else(PoisonError::into_inner) = Some(harm);
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            // A lane never waits for the log: the next failure tries again.
            self.is_reported.store(self.report(harm), Ordering::Relaxed);
        }
    }

    /// Notes that a flush has ended, and whether it `failed`. The log learns of a change only.
    pub(crate) fn note_flush(&self, failed: bool) {
        self.has_failed_flush.store(failed, Ordering::Relaxed);
        if self.is_flush_reported.swap(failed, Ordering::Relaxed) == failed {
            return;
        }
        let harm = if failed { Harm::FlushFailed } else { Harm::FlushSucceeded };
        if !self.report(harm) {
            self.is_flush_reported.store(!failed, Ordering::Relaxed); // the next flush tries again
        }
    }

    /// Returns whether the last flush failed.
    pub(crate) fn has_failed_flush(&self) -> bool {
        self.has_failed_flush.load(Ordering::Relaxed)
    }

    /// Reports `harm` to the log. Returns whether the log, if there is one, has taken it.
    fn report(&self, harm: Harm) -> bool {
        let Some(events) = &self.events else { return true };
        events.try_send(Event::Disk(DiskEvent { disk: self.disk.clone(), harm })).is_ok()
    }

    /// Returns the damage that was found last, if any.
    pub(crate) fn harm(&self) -> Option<Harm> {
        *self.harm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn failed_requests(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

impl Damaged for Damage {
    fn cut_short(&self, disk_bytes: u64, file_bytes: u64) {
        self.note_failure(Harm::CutShort { disk_bytes, file_bytes });
    }

    fn flush_failed(&self) {
        self.note_flush(true);
    }
}
