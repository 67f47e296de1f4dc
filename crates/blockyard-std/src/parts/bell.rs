//! Bells: event counters whose descriptors a lane waits on, so that other threads can wake it.

use core::time::Duration;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Returns a bell that has not been rung.
///
/// # Errors
///
/// Fails if no descriptor is left.
pub fn bell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Rings `bell`: wakes the thread that waits on it, or the next one that will.
pub fn ring(bell: &OwnedFd) {
    // The write fails only if the counter is full, and then the bell is still ringing.
    let _ = rustix::io::write(bell, &[1; 8]);
}

/// Waits until `bell` rings, for at most `wait`; [`Duration::MAX`] is no limit. Returns whether it
/// rings.
pub fn wait(bell: &OwnedFd, wait: Duration) -> bool {
    let limit = Timespec::try_from(wait).ok().filter(|_| wait != Duration::MAX);
    let mut waits = [PollFd::new(bell, PollFlags::IN)];
    // An interrupted wait is one that ended early.
    poll(&mut waits, limit.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Silences `bell`, so that only a later ring wakes the thread that waits on it.
pub fn silence(bell: impl AsFd) {
    let mut count = [0; 8];
    // The read fails if nobody has rung the bell, which is then silent already.
    let _ = rustix::io::read(bell, &mut count);
}
