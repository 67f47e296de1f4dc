//! Waking a lane: a counter that can be waited for like a socket.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;

/// A bell that has not been rung.
///
/// # Errors
///
/// There is no descriptor left.
pub(crate) fn bell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Rings it: who waits for it, or will, wakes.
pub(crate) fn ring(bell: &OwnedFd) {
    // It cannot be rung only where it has been and nobody looked: then it rings still.
    let _ = rustix::io::write(bell, &[1; 8]);
}

/// Nobody has rung it from now on.
pub(crate) fn silence(bell: &OwnedFd) {
    let mut count = [0; 8];
    // Where nobody had rung it there is nothing to do.
    let _ = rustix::io::read(bell, &mut count);
}
