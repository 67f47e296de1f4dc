//! The events of a server, in the log.
//!
//! Strangers can connect as often as they like, so lines about clients are limited. Those about
//! disks are not: each disk has a few in its life.

use core::time::Duration;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use blockyard_serve::{ClientEvent, Config, Event, Happened, counted};

use crate::log::{self, Level};
use crate::message::note;

/// The most events that wait for the log; further events are lost.
const EVENTS_MAX: usize = 1024;
/// The lines about clients that may come in quick succession.
const BURST: u32 = 200;
/// The time after which one more line about a client may come.
const PAUSE: Duration = Duration::from_millis(50);

/// Starts a thread that logs the events of the server, until it has dropped `config` and all else
/// that sends them.
pub(super) fn start_log(config: &mut Config) -> JoinHandle<()> {
    let (events, happened) = sync_channel(EVENTS_MAX);
    config.events = Some(events);
    std::thread::spawn(move || log_all(&happened))
}

fn log_all(happened: &Receiver<Event>) {
    let mut limit = Limit::new(Instant::now());
    loop {
        let event = happened.recv_timeout(Duration::from_secs(1));
        let now = Instant::now();
        match event {
            Ok(Event::Client(event)) => {
                if limit.admits(now) {
                    report(&mut limit);
                    log_client(&event);
                }
            }
            Ok(Event::Disk(event)) => {
                log::put(Level::Warning, &event.to_string(), Some(("disk", &event.disk)));
            }
            Err(RecvTimeoutError::Timeout) => report(&mut limit),
            Err(RecvTimeoutError::Disconnected) => return report(&mut limit),
        }
    }
}

fn log_client(event: &ClientEvent) {
    let level = match event.happened {
        Happened::CutOff | Happened::NoMemory | Happened::NoWeight { .. } => Level::Warning,
        Happened::Entered { .. } | Happened::Gone { .. } => Level::Note,
    };
    log::put(level, &event.to_string(), Some(("client", &event.client)));
}

fn report(limit: &mut Limit) {
    let count = core::mem::take(&mut limit.suppressed);
    if count > 0 {
        let lines = counted(count, "line");
        let were = if count == 1 { "was" } else { "were" };
        note(&format!("{lines} about clients {were} suppressed: there were too many"));
    }
}

/// A limit on lines: [`BURST`] at a time, and one more in each [`PAUSE`].
#[derive(Debug)]
struct Limit {
    /// The instant at which the limit will be as if no line had ever come.
    full_at: Instant,
    /// The lines that were not admitted since the last report.
    suppressed: u64,
}

impl Limit {
    const fn new(now: Instant) -> Self {
        Self { full_at: now, suppressed: 0 }
    }

    /// Whether a line may come at `now`. Counts it if not.
    fn admits(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + PAUSE;
        let is_admitted = full_at - now <= PAUSE * BURST;
        if is_admitted {
            self.full_at = full_at;
        } else {
            self.suppressed += 1;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_to_a_burst_and_a_rate() {
        let start = Instant::now();
        let mut limit = Limit::new(start);
        fn admitted(limit: &mut Limit, now: Instant) -> usize {
            (0..1000).filter(|_| limit.admits(now)).count()
        }
        assert_eq!(admitted(&mut limit, start), 200);
        assert_eq!(limit.suppressed, 800);
        assert_eq!(admitted(&mut limit, start + Duration::from_secs(1)), 20);
        // A pause of ten seconds makes room for the whole burst, and a longer one for no more.
        assert_eq!(admitted(&mut limit, start + Duration::from_secs(60)), 200);
    }
}
