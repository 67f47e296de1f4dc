//! Memory for sessions, in a process whose address space may be used up.
//!
//! # Rules (cited by name)
//!
//! - **[session-fails-without-memory]** A large allocation for a session is made only if the
//!   process can have [`RESERVE_BYTES`] more. Otherwise the session ends, and not the server: an
//!   allocation of Rust that fails ends the process. The reserve is for small allocations, which
//!   are not checked.

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

/// Returns a buffer of `bytes` that begins with a copy of `start` and continues with zeroes, or
/// `None` if there is no memory.
///
/// # Panics
///
/// Panics if `start` is longer than the buffer.
pub(crate) fn copied_buffer(start: &[u8], bytes: usize) -> Option<Rc<[u8]>> {
    let mut buffer = zeroed_buffer(bytes)?;
    let room = Rc::get_mut(&mut buffer).expect("a new buffer has one owner");
    room[..start.len()].copy_from_slice(start);
    Some(buffer)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::has_room_for;
    use rustix::process::{Resource, Rlimit, setrlimit};
    use std::env;
    use std::process::Command;

    /// Calls `check` in a process of its own, which has memory for small allocations only. `test`
    /// is the path of the calling test.
    pub(crate) fn without_memory(test: &str, check: impl FnOnce()) {
        const MARK: &str = "BLOCKYARD_TEST_WITHOUT_MEMORY";
        if env::var_os(MARK).is_none() {
            let mut own = Command::new(env::current_exe().unwrap());
            let output = own.args([test, "--exact"]).env(MARK, "").output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains(" 1 passed"), "{text}");
            return;
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
        let size_kib: u64 = size.trim().strip_suffix(" kB").unwrap().parse().unwrap();
        let limit = Some((size_kib << 10) + (32 << 20));
        setrlimit(Resource::As, Rlimit { current: limit, maximum: limit }).unwrap();
        let mut taken = Vec::with_capacity(4096);
        while has_room_for(0) {
            taken.push(vec![1_u8; 256 << 10]);
        }
        check();
    }
}
