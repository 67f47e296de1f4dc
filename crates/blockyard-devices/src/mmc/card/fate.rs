//! The fate of data: which data is on the medium for certain ([certain-once-programmed]).

use crate::data::event::DataEvent;
use core::ops::Range;
use std::collections::VecDeque;

/// The record of the pages that the card has received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// Pages that are certain once they are programmed, in order.
    through: VecDeque<(u64, Range<u64>)>,
    /// A flush is in progress: pages up to this number are certain once programmed.
    flushing: Option<u64>,
    /// Sectors of pages that could not be programmed.
    failed: Vec<Range<u64>>,
    /// Events not reported yet. Each names its data by the first sector within the transfer.
    data_events: VecDeque<DataEvent<u32>>,
}

/// The point at which a received page is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// At once: the card keeps the page whatever happens.
    Now,
    /// When the page is programmed.
    Programmed,
    /// When a flush has covered the page.
    Flushed,
}

impl Fate {
    /// Records page number `page`, received for `sectors` with the transfer's data from `place` on.
    pub(super) fn received(&mut self, place: u32, sectors: Range<u64>, page: u64, when: When) {
        debug_assert!(!sectors.is_empty(), "page {page} without sectors");
        debug_assert!(self.through.back().is_none_or(|(last, _)| *last <= page), "pages in order");
        self.data_events.push_back(DataEvent::Received { place, sectors: sectors.clone(), page });
        match when {
            When::Now => self.data_events.push_back(DataEvent::Certain { page, sectors }),
            When::Programmed => self.through.push_back((page, sectors)),
            When::Flushed => {}
        }
    }

    /// Records that the card keeps `page`, the last one, whatever happens.
    pub(super) fn certain(&mut self, page: u64) {
        let from = self.through.partition_point(|(number, _)| *number < page);
        let certain = self.through.drain(from..);
        self.data_events
            .extend(certain.map(|(page, sectors)| DataEvent::Certain { page, sectors }));
    }

    /// Records that a page of `sectors` cannot be programmed, so the old data stays.
    pub(super) fn fails(&mut self, sectors: Range<u64>) {
        self.failed.push(sectors);
    }

    /// Returns all sectors that could not be programmed.
    pub(super) fn failed(&self) -> &[Range<u64>] {
        &self.failed
    }

    pub(super) fn sent(&mut self, place: u32, sectors: Range<u64>) {
        if !sectors.is_empty() {
            self.data_events.push_back(DataEvent::Sent { place, sectors });
        }
    }

    pub(super) fn erased(&mut self, sectors: Range<u64>, certain: bool) {
        self.data_events.push_back(DataEvent::Erased { sectors, certain });
    }

    /// Begins a flush of all pages up to number `page`.
    pub(super) const fn flush(&mut self, page: u64) {
        self.flushing = Some(page);
    }

    /// Interrupts the flush, which then promises nothing.
    pub(super) const fn interrupt(&mut self) {
        self.flushing = None;
    }

    /// Records that all pages up to number `page` are programmed.
    pub(super) fn programmed(&mut self, page: u64) {
        let done = self.through.partition_point(|(number, _)| *number <= page);
        let certain = self.through.drain(..done);
        self.data_events
            .extend(certain.map(|(page, sectors)| DataEvent::Certain { page, sectors }));
        if let Some(to) = self.flushing {
            self.data_events.push_back(DataEvent::Flushed { page: to.min(page) });
            self.flushing = self.flushing.filter(|to| *to > page);
        }
    }

    /// Loses everything that is not certain.
    pub(super) fn lose(&mut self) {
        self.through.clear();
        self.flushing = None;
        self.data_events.push_back(DataEvent::Lost);
    }

    pub(super) fn next_data_event(&mut self) -> Option<DataEvent<u32>> {
        self.data_events.pop_front()
    }
}
