//! Watchers: callbacks that receive every trace event of every request.

use blockyard::time::Instant;
use blockyard::trace::Event;
use core::fmt;
use std::cell::RefCell;
use std::rc::Rc;

/// A callback for each event of a lane's request queues. The first argument is the index of the disk in
/// [`Config::disks`](crate::Config::disks). The lane waits until the call returns.
pub type Tell = Box<dyn FnMut(u16, &Event<'_>)>;

/// An observer of every trace event of every request, on all lanes.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// Returns the callback for `lane`, which starts at `now` on the clock of the events. The lane's thread
    /// calls this function, and drops the callback when the lane ends.
    fn lane(&self, lane: u32, now: Instant) -> Tell;
}

/// A [`Tell`] that all disks of a lane share.
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
