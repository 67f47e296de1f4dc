//! Reports that the machine is too slow for the model of a disk, and the totals at the end.
//!
//! A disk has a line when, of its completions in the last 10 s, at least 100 and more than 1 % were
//! late by [`LATE`] or more. It has no further line for a minute. For example, 6 late completions
//! of 168 are no line, and 120 of 9000 are one.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use blockyard_serve::{LATE, Lateness, Timing, counted};

use super::prefix;
use crate::message::note;

/// The time between two looks at the counts.
const PERIOD: Duration = Duration::from_secs(1);
/// The looks over which completions count: 10 s.
const LOOKS: usize = 10;
/// The looks after a line without another one: a minute.
const QUIET: u32 = 60;
/// The least late completions of a line.
const LATE_MIN: u64 = 100;

/// A thread that watches the disks that behave like models, or `None` without such disks.
pub(super) struct Watch(Option<(Sender<()>, JoinHandle<()>)>);

impl Watch {
    pub(super) fn begin(disks: Vec<(String, Arc<Timing>)>) -> Self {
        Self((!disks.is_empty()).then(|| {
            let (end, ended) = channel();
            (end, std::thread::spawn(move || watch(&disks, &ended)))
        }))
    }

    /// Ends the thread, which then reports the totals.
    pub(super) fn end(self) {
        if let Some((end, thread)) = self.0 {
            drop(end);
            thread.join().expect("the thread that watches models should not panic");
        }
    }
}

/// The counts of a disk, and what they say.
#[derive(Debug)]
struct Judge {
    /// The counts at the last looks, the oldest first. At the start they were zero.
    seen: VecDeque<Lateness>,
    /// The looks until the next line is allowed.
    quiet: u32,
}

impl Judge {
    fn new() -> Self {
        Self { seen: VecDeque::from([Lateness::default()]), quiet: 0 }
    }

    /// Looks at the counts. Returns the late completions and all completions of the last 10 s, if
    /// they deserve a line.
    fn look(&mut self, now: Lateness) -> Option<(u64, u64)> {
        let before = *self.seen.front().expect("the counts of an earlier look are kept");
        self.seen.push_back(now);
        if self.seen.len() > LOOKS {
            self.seen.pop_front();
        }
        self.quiet = self.quiet.saturating_sub(1);
        let late = now.late - before.late;
        let completions = now.completions - before.completions;
        let is_slow = late >= LATE_MIN && late > completions / 100;
        if !is_slow || self.quiet > 0 {
            return None;
        }
        self.quiet = QUIET;
        Some((late, completions))
    }
}

fn watch(disks: &[(String, Arc<Timing>)], ended: &Receiver<()>) {
    let mut judges: Vec<_> = disks.iter().map(|_| Judge::new()).collect();
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
        for ((name, timing), judge) in disks.iter().zip(&mut judges) {
            if let Some((late, completions)) = judge.look(timing.read()) {
                note(&format!(
                    "{}too slow for the model: in the last 10 s {late} of {completions} completions were late \
                     by {} us or more",
                    prefix(name),
                    LATE.as_ns() / 1000,
                ));
            }
        }
    }
    for (name, timing) in disks {
        let Lateness { completions, late, total, most } = timing.read();
        let Some(mean) = total.as_ns().checked_div(completions) else { continue };
        note(&format!(
            "{}of {} of the model {late} {} late by {} us or more; on average {} us, at most {} us",
            prefix(name),
            counted(completions, "completion"),
            if late == 1 { "was" } else { "were" },
            LATE.as_ns() / 1000,
            mean / 1000,
            most.as_ns() / 1000,
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the looks, from 1, at which a disk with these completions and late ones in each
    /// second has a line.
    fn lines(seconds: impl IntoIterator<Item = (u64, u64)>) -> Vec<usize> {
        let mut judge = Judge::new();
        let mut now = Lateness::default();
        let mut lines = Vec::new();
        for (at, (completions, late)) in seconds.into_iter().enumerate() {
            now.completions += completions;
            now.late += late;
            if judge.look(now).is_some() {
                lines.push(at + 1);
            }
        }
        lines
    }

    #[test]
    fn a_slow_machine_has_a_line_a_minute() {
        const NONE: [usize; 0] = [];
        assert_eq!(lines([(168, 6); 9]), NONE, "54 late ones");
        assert_eq!(lines([(168, 6); 200]), NONE, "60 late ones in any 10 s");
        assert_eq!(lines([(1000, 10); 200]), NONE, "1 %");
        assert_eq!(lines([(1000, 20); 200]), [5, 65, 125, 185], "2 %");
        assert_eq!(lines([(9000, 120)]), [1]);
        let hiccup = [(50, 50)].into_iter().chain([(50, 0); 10]).chain([(50, 50); 1]);
        assert_eq!(lines(hiccup), NONE, "50 late ones, and 50 more after the 10 s");
    }
}
