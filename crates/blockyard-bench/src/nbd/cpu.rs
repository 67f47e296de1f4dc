//! Processor time of a server: of all its threads and of the processes that it forked for its
//! clients.

use std::fs;
use std::io::{self, ErrorKind};

/// Returns the time that the process and its children have run on a processor, in nanoseconds.
///
/// The time is the first number of `/proc/PID/task/*/schedstat` (Linux,
/// `Documentation/scheduler/sched-stats.rst`). Threads that have exited do not count.
///
/// # Errors
///
/// Returns an error if the process does not exist.
pub fn nanoseconds(pid: u32) -> io::Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?.path();
        // A thread may exit in the meantime.
        let Ok(stat) = fs::read_to_string(thread.join("schedstat")) else { continue };
        sum += number(stat.split_whitespace().next())?;
        let Ok(children) = fs::read_to_string(thread.join("children")) else { continue };
        for child in children.split_whitespace() {
            let child = child.parse().map_err(|_| unreadable())?;
            sum += nanoseconds(child).or_else(|error| match error.kind() {
                ErrorKind::NotFound => Ok(0),
                _ => Err(error),
            })?;
        }
    }
    Ok(sum)
}

fn number(word: Option<&str>) -> io::Result<u64> {
    word.and_then(|word| word.parse().ok()).ok_or_else(unreadable)
}

fn unreadable() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the kernel reports no processor times (schedstat)")
}
