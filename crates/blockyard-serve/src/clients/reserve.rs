//! Memory for sessions, in a process whose address space may be used up.
//!
//! # Rules (cited by name)
//!
//! - **[session-fails-without-memory]** A large allocation for a session is made only if the process can have [`RESERVE_BYTES`] more.
//!   Otherwise the session ends, and not the server: an allocation of Rust that fails ends the process. The reserve is for small
//!   allocations, which are not checked.

use std::rc::Rc;

/// The memory that must be free after a checked allocation, in bytes.
const RESERVE_BYTES: usize = 1 << 20;

/// The reason for which a session ends.
pub(crate) const NO_MEMORY: &str = "there is no memory for its session";

/// Returns whether the process can have `bytes` and the reserve.
pub(crate) fn has_room_for(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes + RESERVE_BYTES).is_ok()
}

/// Returns a buffer of zeroes, or `None` if there is no memory.
pub(crate) fn zeroed_buffer(bytes: usize) -> Option<Rc<[u8]>> {
    // The buffer is made as a vector first, and then copied behind its counts.
    has_room_for(2 * bytes).then(|| vec![0; bytes].into())
}
