//! Who is told every step of every request, as a trace is.

use blockyard::time::Instant;
use blockyard::trace::Event;
use core::fmt;
use std::cell::RefCell;
use std::rc::Rc;

/// What a lane calls with the number of a disk, counted as in [`Config::disks`](crate::Config::disks),
/// and each event of its queue to this disk. The lane waits for it.
pub type Tell = Box<dyn FnMut(u16, &Event<'_>)>;

/// Who is told every step of every request, by each lane.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// What `lane`, which begins at `now` by the clock of events, is to call. It is asked for by the
    /// lane's thread, and dropped at the lane's end.
    fn lane(&self, lane: u32, now: Instant) -> Tell;
}

/// A [`Tell`] for all disks of a lane.
#[derive(Clone)]
pub(crate) struct LaneWatcher(Rc<RefCell<Tell>>);

impl LaneWatcher {
    pub(crate) fn new(tell: Tell) -> Self {
        Self(Rc::new(RefCell::new(tell)))
    }

    #[inline]
    pub(crate) fn tell(&self, disk: u16, event: &Event<'_>) {
        (self.0.borrow_mut())(disk, event);
    }
}

impl fmt::Debug for LaneWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaneWatcher")
    }
}
