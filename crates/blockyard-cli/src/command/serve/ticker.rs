//! The rates of clients, in a line of a terminal.

#![expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]

use core::time::Duration;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

use blockyard_serve::{Gauge, Traffic, counted};

use std::io::IsTerminal;

use crate::terminal::ProgressLine;
use blockyard_text::number::{approximate, count, digits};

/// The time between two updates.
const PERIOD: Duration = Duration::from_secs(1);
/// The time limit for erasing the line on the terminal.
const ERASING: Duration = Duration::from_millis(500);

/// A thread that updates the line. It exists only if standard error is a terminal.
pub(super) struct Ticker(Option<(Sender<()>, Receiver<()>)>);

impl Ticker {
    pub(super) fn begin(gauge: Gauge) -> Self {
        Self(std::io::stderr().is_terminal().then(|| {
            let line = ProgressLine::new("{msg}", None, true);
            let (end, ended) = channel();
            let (erased, is_erased) = channel();
            std::thread::spawn(move || {
                let mut before = (Instant::now(), Traffic::default());
                while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
                    let Some(traffic) = gauge.read() else { continue };
                    let now = Instant::now();
                    line.bar().set_message(rates(&before.1, &traffic, now - before.0));
                    before = (now, traffic);
                }
                drop(line);
                drop(erased);
            });
            (end, is_erased)
        }))
    }

    /// Erases the line and ends the thread. Does not wait for a terminal that is blocked.
    pub(super) fn end(self) {
        if let Some((end, is_erased)) = self.0 {
            drop(end);
            let _ = is_erased.recv_timeout(ERASING);
        }
    }
}

/// Formats the rates between `before` and `now`, which are `passed` apart.
pub(super) fn rates(before: &Traffic, now: &Traffic, passed: Duration) -> String {
    let [reads, read, writes, written] = [
        (now.reads, before.reads),
        (now.read_bytes, before.read_bytes),
        (now.writes, before.writes),
        (now.written_bytes, before.written_bytes),
    ]
    .map(|(now, before)| approximate(now - before) / passed.as_secs_f64());
    let [read, written] = [read, written].map(|rate| digits(rate / f64::from(1 << 20)));
    let [reads, writes] = [reads, writes].map(count);
    let clients = counted(now.clients, "client");
    let in_flight = now.in_flight;
    format!(
        "read {reads}/s, {read} MiB/s; write {writes}/s, {written} MiB/s; {clients}, {in_flight} in flight"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_since_the_last_update() {
        let before = Traffic { reads: 100, read_bytes: 1 << 20, ..Traffic::default() };
        let now = Traffic {
            reads: 60_100,
            read_bytes: 257 << 20,
            writes: 3,
            written_bytes: 1 << 19,
            in_flight: 17,
            clients: 2,
        };
        assert_eq!(
            rates(&before, &now, Duration::from_secs(2)),
            "read 30.0k/s, 128 MiB/s; write 2/s, 0.25 MiB/s; 2 clients, 17 in flight"
        );
        let idle =
            rates(&now, &Traffic { clients: 1, in_flight: 0, ..now }, Duration::from_secs(1));
        assert_eq!(idle, "read 0/s, 0.00 MiB/s; write 0/s, 0.00 MiB/s; 1 client, 0 in flight");
    }
}
