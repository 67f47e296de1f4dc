//! Damage to the file of a disk: each failed request is counted, and each disk is reported once.

use crate::event::{DiskEvent, Event, Harm};
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
}

impl Damage {
    pub(in crate::disk) fn new(disk: &str, events: Option<&mpsc::SyncSender<Event>>) -> Self {
        Self {
            disk: disk.to_owned(),
            events: events.cloned(),
            is_reported: AtomicBool::new(false),
            harm: Mutex::new(None),
            failed: AtomicU64::new(0),
        }
    }

    /// Counts a request that failed because of `harm`. The first report that finds room in the log is the only one.
    #[cold]
    pub(in crate::disk) fn note(&self, harm: Harm) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self.harm.lock().unwrap_or_else(PoisonError::into_inner) = Some(harm);
        let Some(events) = &self.events else { return };
        if self.is_reported.swap(true, Ordering::Relaxed) {
            return;
        }
        let event = DiskEvent { disk: self.disk.clone(), harm };
        // A lane never waits for the log: the next failure tries again.
        let has_room = events.try_send(Event::Disk(event)).is_ok();
        self.is_reported.store(has_room, Ordering::Relaxed);
    }

    /// Returns the damage that was found last, if any.
    pub(crate) fn harm(&self) -> Option<Harm> {
        *self.harm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

impl Damaged for Damage {
    fn cut_short(&self, disk_bytes: u64, file_bytes: u64) {
        self.note(Harm::CutShort { disk_bytes, file_bytes });
    }
}
