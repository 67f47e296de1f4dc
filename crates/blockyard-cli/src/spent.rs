//! What jobs do with their time: a table of `whatif`, a line of `run`.

use blockyard::time::Duration;
use blockyard_sim::measure::spent::Spent;
use serde::Serialize;

use crate::human::{approximate, nanoseconds};
use crate::table::{Align, Table};

/// Times of all instances of all jobs, nanoseconds added up.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Times {
    pub(crate) alive: u64,
    pub(crate) thinking: u64,
    pub(crate) in_calls: u64,
    pub(crate) ready: u64,
    pub(crate) waiting: u64,
    pub(crate) pausing: u64,
}

impl Times {
    pub(crate) fn of(spent: &Spent) -> Self {
        Self {
            alive: spent.alive.as_ns(),
            thinking: spent.thinking.as_ns(),
            in_calls: spent.in_calls.as_ns(),
            ready: spent.ready().as_ns(),
            waiting: spent.waiting.as_ns(),
            pausing: spent.pausing.as_ns(),
        }
    }

    /// Its parts with their names.
    const fn parts(&self) -> [(&'static str, u64); 5] {
        [
            ("thinking", self.thinking),
            ("in calls", self.in_calls),
            ("for a CPU", self.ready),
            ("for I/O", self.waiting),
            ("pausing", self.pausing),
        ]
    }

    /// Part of the time that `part` is, in a hundred.
    #[expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]
    fn percent(&self, part: u64) -> f64 {
        if self.alive > 0 { 100.0 * approximate(part) / approximate(self.alive) } else { 0.0 }
    }
}

/// Whether the times of jobs are worth telling: where they think or pause, or have one I/O under way
/// at a time, these are what waits on what.
pub(crate) fn tells(spent: &Spent, one_at_a_time: bool) -> bool {
    one_at_a_time || [spent.thinking, spent.pausing].iter().any(|part| *part > Duration::ZERO)
}

/// The parts of the lives of jobs, a row for each design.
pub(crate) fn table<'a>(designs: impl Iterator<Item = (&'a str, &'a Times)>) -> Table {
    let parts = Times::default().parts().map(|(name, _)| (name, Align::Right));
    let head = [("design", Align::Left), ("all", Align::Right)];
    let mut table = Table::new(&head.into_iter().chain(parts).collect::<Vec<_>>());
    for (name, times) in designs {
        let cell = |(_, ns): (&str, u64)| {
            format!("{} {:>3.0}%", nanoseconds(approximate(ns)), times.percent(ns))
        };
        let cells = times.parts().into_iter().map(cell);
        let all = nanoseconds(approximate(times.alive));
        table.row([name.to_owned(), all].into_iter().chain(cells));
    }
    table
}

/// The same as a line on one job.
pub(crate) fn line(times: &Times) -> String {
    let part = |(name, ns): (&str, u64)| format!("{name}={:.1}%", times.percent(ns));
    format!("  time         : {}\n", times.parts().map(part).join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPENT: Spent = Spent {
        alive: Duration::from_ms(100),
        thinking: Duration::from_ms(50),
        in_calls: Duration::from_ms(10),
        pausing: Duration::ZERO,
        waiting: Duration::from_ms(35),
    };

    #[test]
    fn shares_are_of_the_whole_life() {
        let times = Times::of(&SPENT);
        let expected = "  time         : thinking=50.0%, in calls=10.0%, for a CPU=5.0%, \
                        for I/O=35.0%, pausing=0.0%\n";
        assert_eq!(line(&times), expected);
        let table = table([("a", &times)].into_iter()).to_string();
        assert!(table.contains("100ms  50.0ms  50%  10.0ms  10%"), "{table}");
        assert!(line(&Times::default()).contains("for I/O=0.0%"));
    }

    #[test]
    fn jobs_that_neither_think_nor_wait_for_each_are_not_told_of() {
        let busy = Spent { thinking: Duration::ZERO, ..SPENT };
        assert_eq!(
            [tells(&busy, false), tells(&busy, true), tells(&SPENT, false)],
            [false, true, true]
        );
    }
}
