//! Collects the records of each call, which a task gets together.

use super::limits::CALLS_RECORDS_MAX;
use blockyard_trace::{CALL_SPAN_MAX, Record};
use std::collections::{BTreeMap, VecDeque};

/// The calls whose first record comes next, and which may still grow.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// In the order of their first records.
    window: VecDeque<Vec<Record>>,
    /// The number of the first call in `window`.
    first: u64,
    /// By thread: the number of its latest call.
    latest: BTreeMap<u32, u64>,
    /// Number of records in `window`.
    records: usize,
}

impl Calls {
    /// Returns whether another record may belong to the first call, as far as `last` is known: the
    /// trace's latest record.
    pub(super) fn wants(&self, last: Option<&Record>) -> bool {
        self.first().zip(last).is_none_or(|(first, last)| {
            self.records < CALLS_RECORDS_MAX && last.at <= first.at + CALL_SPAN_MAX
        })
    }

    /// Adds a record, which follows all earlier ones.
    pub(super) fn push(&mut self, record: Record) {
        self.records += 1;
        let call = if record.joins { self.latest.get(&record.pid) } else { None };
        let at = call.and_then(|number| number.checked_sub(self.first));
        let at = at.and_then(|at| usize::try_from(at).ok());
        if let Some(call) = at.and_then(|at| self.window.get_mut(at)) {
            call.push(record);
            return;
        }
        self.latest.insert(record.pid, self.first + self.window.len() as u64);
        self.window.push_back(vec![record]);
    }

    /// Passes over a record that is not replayed. Records that join it are a call of their own.
    pub(super) fn skip(&mut self, record: &Record) {
        if !record.joins {
            self.latest.remove(&record.pid);
        }
    }

    /// Returns the first record of the first call.
    pub(super) fn first(&self) -> Option<&Record> {
        self.window.front().and_then(|call| call.first())
    }

    /// Takes the first call.
    pub(super) fn take(&mut self) -> Option<Vec<Record>> {
        let call = self.window.pop_front()?;
        self.first += 1;
        self.records -= call.len();
        Some(call)
    }
}
