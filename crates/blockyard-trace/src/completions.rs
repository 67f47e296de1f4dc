//! Matches completions to I/Os in the traces that record the two separately.
//!
//! An I/O is complete when its whole range is complete: one completion may end many merged I/Os, or
//! a part of a split one. A flush has no range: a completion without a range ends the earliest
//! flush of its disk. I/Os come out in their order once their end is known or given up. The end is
//! given up at the end of the trace, or after [`OPEN_MAX`] later I/Os.

use super::limits::OPEN_MAX;
use super::record::Issue;
use blockyard::bio::Op;
use blockyard::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// I/Os whose completion may still follow.
#[derive(Debug, Default)]
pub(super) struct Completions {
    /// In the order of the trace.
    open: VecDeque<Open>,
    /// Number of the first I/O in `open`.
    first: u64,
    /// By disk: numbers of the open flushes.
    flushes: BTreeMap<u16, VecDeque<u64>>,
    /// By disk and first byte: numbers of the other open I/Os.
    waiting: BTreeMap<(u16, u64), VecDeque<u64>>,
    /// Length of the longest I/O in `waiting`, bytes: how far before a completion an I/O in its
    /// range may begin.
    len_bytes_max: u64,
}

#[derive(Debug)]
struct Open {
    at_ns: u64,
    issue: Issue,
    left_bytes: u32,
    done: bool,
}

impl Open {
    fn end(&mut self, at_ns: u64) {
        debug_assert!(!self.done, "an I/O ends once");
        self.done = true;
        self.issue.took = Some(Duration::from_ns(at_ns.saturating_sub(self.at_ns)));
    }
}

impl Completions {
    /// Notes that an I/O was issued.
    pub(super) fn issued(&mut self, at_ns: u64, issue: Issue) {
        debug_assert!(issue.len_bytes > 0 || issue.op == Op::Flush, "only a flush has no range");
        // [bounded-trace-memory]
        debug_assert!(self.open.len() <= OPEN_MAX, "the reader drains I/Os before it adds one");
        let number = self.first + self.open.len() as u64;
        if issue.op == Op::Flush {
            self.flushes.entry(issue.disk).or_default().push_back(number);
        } else {
            let key = (issue.disk, issue.offset_bytes);
            self.waiting.entry(key).or_default().push_back(number);
            self.len_bytes_max = self.len_bytes_max.max(issue.len_bytes.into());
        }
        self.open.push_back(Open { at_ns, issue, left_bytes: issue.len_bytes, done: false });
    }

    /// Notes that a range was completed.
    pub(super) fn completed(&mut self, at_ns: u64, disk: u16, offset_bytes: u64, len_bytes: u32) {
        if len_bytes == 0 {
            let flush = self.flushes.get_mut(&disk).and_then(VecDeque::pop_front);
            if let Some(number) = flush {
                self.open[index(number, self.first)].end(at_ns);
            }
            return;
        }
        let end = offset_bytes.saturating_add(len_bytes.into());
        let from = offset_bytes.saturating_sub(self.len_bytes_max);
        let mut ended = Vec::new();
        for (&key, numbers) in self.waiting.range((disk, from)..(disk, end)) {
            // Of two I/Os at the same place, the earlier one ends first.
            let Some(number) = numbers.front() else { continue };
            let open = &mut self.open[index(*number, self.first)];
            let begin = open.issue.offset_bytes.max(offset_bytes);
            let stop = (open.issue.offset_bytes + u64::from(open.issue.len_bytes)).min(end);
            let part = u32::try_from(stop.saturating_sub(begin)).unwrap_or(u32::MAX);
            open.left_bytes = open.left_bytes.saturating_sub(part);
            if open.left_bytes == 0 {
                open.end(at_ns);
                ended.push((key, *number));
            }
        }
        for (key, number) in ended {
            self.forget(key, number);
        }
    }

    /// Returns the next I/O whose end is known or given up. `at_end`: the trace holds no more.
    pub(super) fn next(&mut self, at_end: bool) -> Option<(u64, Issue)> {
        let front = self.open.front()?;
        if !front.done && !at_end && self.open.len() <= OPEN_MAX {
            return None;
        }
        let number = self.first;
        let open = self.open.pop_front()?;
        self.first += 1;
        debug_assert_eq!(open.done, open.issue.took.is_some(), "an I/O that ended has a duration");
        if !open.done && open.issue.op == Op::Flush {
            let flush = self.flushes.entry(open.issue.disk).or_default().pop_front();
            debug_assert_eq!(flush, Some(number), "the earliest open flush of its disk");
        } else if !open.done {
            self.forget((open.issue.disk, open.issue.offset_bytes), number);
        }
        Some((open.at_ns, open.issue))
    }

    fn forget(&mut self, key: (u16, u64), number: u64) {
        if let Some(numbers) = self.waiting.get_mut(&key) {
            debug_assert!(numbers.contains(&number), "an open I/O waits at its first byte");
            numbers.retain(|known| *known != number);
            if numbers.is_empty() {
                self.waiting.remove(&key);
            }
        }
        if self.waiting.is_empty() {
            self.len_bytes_max = 0;
        }
    }
}

fn index(number: u64, first: u64) -> usize {
    debug_assert!(number >= first, "I/O {number} has left the window, which begins at {first}");
    usize::try_from(number - first).expect("an open I/O should have a number in the window")
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::bio::Flags;

    fn issue(offset_bytes: u64, len_bytes: u32) -> Issue {
        let op = Op::Write;
        let flags = Flags::NONE;
        Issue {
            disk: 0,
            cpu: 0,
            pid: 0,
            op,
            offset_bytes,
            len_bytes,
            flags,
            took: None,
            joins: false,
        }
    }

    fn took(completions: &mut Completions, at_end: bool) -> Vec<Option<u64>> {
        core::iter::from_fn(|| completions.next(at_end))
            .map(|(_, issue)| issue.took.map(Duration::as_ns))
            .collect()
    }

    #[test]
    fn one_completion_ends_all_merged_ios() {
        let mut completions = Completions::default();
        completions.issued(10, issue(0, 4096));
        completions.issued(20, issue(4096, 4096));
        completions.issued(25, issue(8192, 512));
        completions.completed(100, 0, 0, 8192);
        assert_eq!(took(&mut completions, false), [Some(90), Some(80)]);
        assert_eq!(took(&mut completions, true), [None]);
    }

    #[test]
    fn a_split_io_ends_with_its_last_part() {
        let mut completions = Completions::default();
        completions.issued(10, issue(0, 8192));
        completions.completed(50, 0, 4096, 4096);
        assert_eq!(took(&mut completions, false), []);
        completions.completed(70, 0, 0, 4096);
        assert_eq!(took(&mut completions, false), [Some(60)]);
    }

    #[test]
    fn of_two_ios_to_a_place_and_of_two_flushes_the_earlier_ends_first() {
        let mut completions = Completions::default();
        let flush = Issue { op: Op::Flush, ..issue(0, 0) };
        for (at, issue) in [(1, issue(0, 512)), (2, issue(0, 512)), (3, flush), (4, flush)] {
            completions.issued(at, issue);
        }
        completions.completed(10, 0, 0, 512);
        completions.completed(20, 0, 0, 0);
        assert_eq!(took(&mut completions, true), [Some(9), None, Some(17), None]);
    }

    // [bounded-trace-memory]
    #[test]
    fn an_io_without_an_end_is_given_up_in_bounded_memory() {
        let mut completions = Completions::default();
        for at in 0..=OPEN_MAX as u64 {
            completions.issued(at, issue(at * 512, 512));
        }
        assert_eq!(completions.next(false).map(|(at, issue)| (at, issue.took)), Some((0, None)));
        assert_eq!(completions.next(false), None);
        completions.completed(9, 0, 0, 512);
        assert_eq!(completions.next(false), None, "a late completion matches no I/O");
    }
}
