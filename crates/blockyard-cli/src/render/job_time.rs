//! The parts of the time of jobs: a table of `whatif`, a line of `run`.

use blockyard_answer::JobTime;
use blockyard_text::number::{approximate, time};

use super::table::Table;
use super::time_and_share;

/// Returns whether the times of jobs are shown, which is so for jobs that think, pause, or have one
/// I/O in flight at a time.
pub(crate) const fn is_shown(times: &JobTime, one_at_a_time: bool) -> bool {
    one_at_a_time || times.thinking > 0 || times.pausing > 0
}

/// Returns the parts of the time of jobs, a row for each design.
pub(super) fn table<'a>(designs: impl Iterator<Item = (&'a str, &'a JobTime)>) -> Table {
    let parts = JobTime::default().parts().map(|(name, _)| name);
    let mut table = Table::of_numbers("design", ["total"].into_iter().chain(parts));
    for (name, times) in designs {
        let cell = |(_, ns): (&str, u64)| time_and_share(approximate(ns), times.percent(ns));
        let cells = times.parts().into_iter().map(cell);
        table.row([name.to_owned(), time(times.alive)].into_iter().chain(cells));
    }
    table
}

/// Returns the same as a line about one job, in fio's style.
pub(crate) fn line(times: &JobTime) -> String {
    let part = |(name, ns): (&str, u64)| format!("{name}={:.1}%", times.percent(ns));
    format!("  time         : {}\n", times.parts().map(part).join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: JobTime = JobTime {
        alive: 100_000_000,
        thinking: 50_000_000,
        in_calls: 10_000_000,
        ready: 5_000_000,
        waiting: 35_000_000,
        pausing: 0,
        paced: 0,
    };

    #[test]
    fn shares_are_of_the_whole_life() {
        let expected = "  time         : thinking=50.0%, in calls=10.0%, waiting for a CPU=5.0%, \
                        waiting for I/O=35.0%, pausing=0.0%\n";
        assert_eq!(line(&TIMES), expected);
        let table = table([("a", &TIMES)].into_iter()).to_string();
        assert!(table.contains("100 ms  50.0 ms  50 %  10.0 ms  10 %"), "{table}");
        assert!(line(&JobTime::default()).contains("for I/O=0.0%"));
    }

    #[test]
    fn times_of_jobs_that_neither_think_nor_wait_for_each_io_are_not_shown() {
        let busy = JobTime { thinking: 0, ..TIMES };
        let shown = [is_shown(&busy, false), is_shown(&busy, true), is_shown(&TIMES, false)];
        assert_eq!(shown, [false, true, true]);
    }
}
