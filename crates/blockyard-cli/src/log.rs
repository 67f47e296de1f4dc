//! Lines for standard error, which never block a server.
//!
//! Before [`begin`], a line is written at once, however long that takes. Afterwards, one thread writes. Lines for which
//! there is no room are dropped, and their count is written when there is room again.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::terminal::above_progress;

/// The maximum number of lines that wait to be written.
const LINES_MAX: usize = 1024;
/// The time for which the end of the program waits for standard error.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The waiting lines.
#[derive(Debug)]
struct Queue {
    lines: VecDeque<String>,
    /// The number of lines dropped since there was room.
    dropped: u64,
    has_writer: bool,
    is_writing: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue::new());
/// Signals that the queue has a line or that the writer has written one.
static CHANGED: Condvar = Condvar::new();

impl Queue {
    const fn new() -> Self {
        Self { lines: VecDeque::new(), dropped: 0, has_writer: false, is_writing: false }
    }

    fn put(&mut self, line: String) {
        // After a drop, the count comes before the next line.
        if self.dropped > 0 || self.lines.len() == LINES_MAX {
            self.dropped += 1;
        } else {
            self.lines.push_back(line);
        }
    }

    fn next(&mut self) -> Option<String> {
        let next = self.lines.pop_front();
        if self.dropped > 0 && self.lines.len() <= LINES_MAX / 2 {
            let count = core::mem::take(&mut self.dropped);
            self.lines.push_back(format!(
                "blockyard: warning: {count} lines of the log were dropped: standard error was full\n"
            ));
        }
        next
    }
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread that writes.
pub(crate) fn begin() {
    queue().has_writer = true;
    std::thread::spawn(|| {
        let mut waiting = queue();
        loop {
            if let Some(line) = waiting.next() {
                waiting.is_writing = true;
                drop(waiting);
                print(&line);
                waiting = queue();
            } else {
                waiting.is_writing = false;
                CHANGED.notify_all();
                waiting = CHANGED.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
        }
    });
}

/// Queues a line for the writer thread. Writes the line itself if there is no such thread.
pub(crate) fn put(line: String) {
    let mut queue = queue();
    if queue.has_writer {
        queue.put(line);
        CHANGED.notify_all();
    } else {
        drop(queue);
        print(&line);
    }
}

fn print(line: &str) {
    // A failure to print cannot be reported.
    above_progress(|| drop(anstream::stderr().write_all(line.as_bytes())));
}

/// Waits for a short time until all lines are written.
pub(crate) fn finish() {
    let has_more = |queue: &mut Queue| queue.is_writing || !queue.lines.is_empty();
    drop(CHANGED.wait_timeout_while(queue(), LAST_LINES, has_more));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_lines_are_counted_in_their_place() {
        let mut queue = Queue::new();
        for number in 0..LINES_MAX + 7 {
            queue.put(number.to_string());
        }
        for number in 0..LINES_MAX / 2 {
            assert_eq!(queue.next(), Some(number.to_string()));
        }
        queue.put("after".to_owned());
        let rest: Vec<_> = core::iter::from_fn(|| queue.next()).collect();
        assert_eq!(rest[LINES_MAX / 2 - 1], (LINES_MAX - 1).to_string());
        assert!(rest[LINES_MAX / 2].contains(" 7 lines of the log were dropped"));
        assert_eq!(rest[LINES_MAX / 2 + 1..], ["after"]);
    }
}
