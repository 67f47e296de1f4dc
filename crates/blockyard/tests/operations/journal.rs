//! What happens in a play, line by line: steps of the world, events of the queues, calls of the device.

use blockyard::stats::{Direction, Stage, StageStats};
use blockyard::trace::{Event, Hold, Sink};
use core::cell::RefCell;
use core::fmt::{Arguments, Write};
use std::rc::Rc;

/// Receives the lines of a play. Its clones write to the same text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    text: Option<Rc<RefCell<dyn Lines>>>,
}

/// A text that grows.
pub(crate) trait Lines: Write + core::fmt::Debug {}
impl<T: Write + core::fmt::Debug> Lines for T {}

/// Prints what it gets.
#[derive(Debug)]
pub(super) struct Printer;

impl Write for Printer {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        print!("{text}");
        Ok(())
    }
}

impl Journal {
    /// Returns a journal that goes to `text`; without a text nothing is written.
    pub(crate) fn new(text: Option<Rc<RefCell<dyn Lines>>>) -> Self {
        Self { text }
    }

    pub(super) fn line(&self, what: Arguments<'_>) {
        if let Some(text) = &self.text {
            writeln!(text.borrow_mut(), "{what}").expect("a journal should take every line");
        }
    }
}

impl Sink for Journal {
    fn listens(&self) -> bool {
        self.text.is_some()
    }

    fn event(&mut self, event: &Event<'_>) {
        let Event { at, action, queue, cpu, hctx, op, flags, sector, sectors, request } = *event;
        self.line(format_args!(
            "{at} {action:?} {}.{}.{} {op:?} {flags:?} {sector}+{sectors}",
            queue.0, hctx.0, cpu.0
        ));
        if let Some((id, rq)) = request {
            let times = &rq.times;
            self.line(format_args!(
                "  {} {:?} {:?} {}+{} {}/{} {} {} {} {}",
                id.0,
                rq.state(),
                rq.driver_tag(),
                rq.sector,
                rq.sectors,
                rq.segments,
                rq.ranges,
                times.queued,
                times.scheduled,
                times.issued,
                times.flushed.as_ns(),
            ));
        }
    }
}

/// Writes the statistics that have been kept of a play.
pub(super) fn write_stats(journal: &Journal, stats: &StageStats) {
    for direction in Direction::ALL {
        let stages = Stage::ALL.map(|stage| {
            let times = stats.times_ns(direction, stage);
            (times.count(), times.sum())
        });
        let (bios, requests) = (stats.bios(direction), stats.requests(direction));
        journal.line(format_args!("{direction:?}: {bios} {requests} {stages:?}"));
    }
    journal.line(format_args!("held: {:?}", Hold::ALL.map(|hold| stats.held_ns(hold))));
}
