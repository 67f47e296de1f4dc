//! The bounds of a job whose violation ends the run: `rate_min`, `rate_iops_min`, `max_latency`.

use blockyard::time::{Duration, Instant};
use blockyard_fio::job::{Bounds, Job, Op};
use blockyard_fio::measure::Taken;

/// The time at the start of a job in which its rates are not judged, as in fio.
const SETTLING: Duration = Duration::from_secs(2);

/// A bound that was violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An I/O took this long.
    Latency {
        /// Its latency.
        took: Duration,
        /// The bound.
        most: Duration,
    },
    /// The job moved this many bytes per second.
    Bandwidth {
        /// The rate.
        got: u64,
        /// The bound.
        least: u64,
    },
    /// The job did this many I/Os per second.
    Iops {
        /// The rate.
        got: u64,
        /// The bound.
        least: u64,
    },
}

#[derive(Debug)]
pub(super) struct Watch {
    bounds: Bounds,
    begun: Instant,
    /// Of reads, writes and trims.
    ops: [Progress; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    bytes: u64,
    ios: u64,
    /// The bytes and I/Os at the last look, and when that was.
    last: Option<(u64, u64, Instant)>,
}

impl Watch {
    /// Returns the watch of `job`, if it has bounds.
    pub(super) fn of(job: &Job) -> Option<Self> {
        let bounds = &job.targets.bounds;
        bounds.any().then(|| Self {
            bounds: bounds.clone(),
            begun: Instant::ZERO,
            ops: [Progress::default(); 3],
        })
    }

    pub(super) const fn begin(&mut self, now: Instant) {
        self.begun = now;
    }

    /// Notes an I/O that was reaped at `now`.
    pub(super) fn check(&mut self, op: Op, taken: &Taken, now: Instant) -> Option<Violation> {
        let took = taken.lat();
        // A bound of 0 is none.
        let most = Duration::from_ns(*self.bounds.latency_max_ns.of(op));
        if most > Duration::ZERO && took > most {
            return Some(Violation::Latency { took, most });
        }
        let progress = &mut self.ops[op as usize];
        progress.bytes += u64::from(taken.len_bytes);
        progress.ios += 1;
        self.judge(op, now)
    }

    /// Judges the rates of a cycle that is over at `now`.
    fn judge(&mut self, op: Op, now: Instant) -> Option<Violation> {
        let bytes_min = *self.bounds.bytes_per_s_min.of(op);
        let ios_min = *self.bounds.ios_per_s_min.of(op);
        if (bytes_min == 0 && ios_min == 0) || now.since(self.begun) < SETTLING {
            return None;
        }
        // The first look only begins a cycle. Each later one judges the rate since the look before
        // it.
        let progress = &mut self.ops[op as usize];
        let Progress { bytes, ios, last } = *progress;
        if let Some((bytes_then, ios_then, then)) = last {
            let spent = now.since(then).as_ns();
            if spent == 0 || spent < self.bounds.cycle_ns {
                return None;
            }
            let bytes_got = per_second(bytes - bytes_then, spent);
            if bytes_got < bytes_min {
                return Some(Violation::Bandwidth { got: bytes_got, least: bytes_min });
            }
            let ios_got = per_second(ios - ios_then, spent);
            if ios_got < ios_min {
                return Some(Violation::Iops { got: ios_got, least: ios_min });
            }
        }
        progress.last = Some((bytes, ios, now));
        None
    }
}

/// Returns the rate of `count` in `spent_ns`, which is not zero.
fn per_second(count: u64, spent_ns: u64) -> u64 {
    debug_assert!(spent_ns > 0, "a rate of {count} in no time");
    let rate = u128::from(count) * 1_000_000_000 / u128::from(spent_ns);
    u64::try_from(rate).unwrap_or(u64::MAX)
}
