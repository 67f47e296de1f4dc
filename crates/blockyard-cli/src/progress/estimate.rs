//! The time that runs still take: what each has left of its virtual time, at the speed at which
//! virtual time passes, and what preparing the devices of later runs takes.
//!
//! Times are those of a clock, from the start of all runs. Nothing here reads a clock.

#![expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]

use core::time::Duration;

use blockyard_text::number::approximate;

/// Several runs of one job file, so many at a time.
#[derive(Debug)]
pub(super) struct Runs {
    /// The virtual time of one run in ns; `None` if time does not end it.
    run_ns: Option<u64>,
    count: usize,
    at_a_time: usize,
    /// The runs that have begun.
    begun: Vec<Run>,
    /// Runs that have ended and whose begin was not told.
    untold: usize,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    begun: Duration,
    /// When its device was prepared, which may mean that it was filled and overwritten.
    prepared: Option<Duration>,
    /// The virtual time that it had reached, in ns, when it last told.
    reached_ns: u64,
    told: Duration,
    is_over: bool,
}

impl Run {
    /// Returns how long the preparation took in seconds.
    fn preparation(&self) -> Option<f64> {
        Some(self.prepared?.saturating_sub(self.begun).as_secs_f64())
    }

    /// Returns how long it has simulated in seconds.
    fn simulated(&self) -> f64 {
        self.prepared.map_or(0.0, |since| self.told.saturating_sub(since).as_secs_f64())
    }
}

impl Runs {
    pub(super) fn new(run_ns: Option<u64>, count: usize, at_a_time: usize) -> Self {
        Self { run_ns, count, at_a_time: at_a_time.max(1), begun: Vec::new(), untold: 0 }
    }

    /// Notes that a run begins, and returns its number.
    pub(super) fn begin(&mut self, at: Duration) -> usize {
        let run = Run { begun: at, prepared: None, reached_ns: 0, told: at, is_over: false };
        self.begun.push(run);
        self.begun.len() - 1
    }

    /// Notes that the device of a run is prepared: virtual time passes from now on.
    pub(super) fn prepared(&mut self, run: usize, at: Duration) {
        self.begun[run].prepared = Some(at);
        self.begun[run].told = at;
    }

    /// Notes the virtual time that a run has reached.
    pub(super) fn reached(&mut self, run: usize, ns: u64, at: Duration) {
        self.begun[run].reached_ns = ns;
        self.begun[run].told = at;
    }

    pub(super) fn end(&mut self, run: usize, at: Duration) {
        self.begun[run].told = at;
        self.begun[run].is_over = true;
    }

    /// Notes that a run has ended of which nothing was told before.
    pub(super) const fn end_untold(&mut self) {
        self.untold += 1;
    }

    /// Returns how much is done, and about how long the rest takes.
    pub(super) fn words(&self, at: Duration) -> String {
        let ended = self.begun.iter().filter(|run| run.is_over).count() + self.untold;
        let so_far = match self.run_ns {
            Some(run_ns) => format!("{:.0} % done", 100.0 * self.share(run_ns)),
            None => format!("{ended} of {} runs done", self.count),
        };
        match self.left(at) {
            Some(left) => format!("{so_far}, about {left:.0} s left"),
            None if !self.begun.is_empty()
                && self.begun.iter().all(|run| run.prepared.is_none()) =>
            {
                format!("{so_far}, preparing the device")
            }
            None => so_far,
        }
    }

    /// Returns the share of all virtual time that has passed.
    fn share(&self, run_ns: u64) -> f64 {
        let told: f64 = self
            .begun
            .iter()
            .map(|run| if run.is_over { run_ns } else { run.reached_ns.min(run_ns) })
            .map(approximate)
            .sum();
        let untold = approximate(run_ns) * approximate(self.untold as u64);
        (told + untold) / (approximate(run_ns) * approximate(self.count as u64)).max(1.0)
    }

    /// Returns about how many seconds the rest takes; `None` while too little is known.
    fn left(&self, at: Duration) -> Option<f64> {
        if self.begun.is_empty() {
            let rest = self.count.saturating_sub(self.untold);
            let each = at.as_secs_f64() / approximate(self.untold as u64);
            return (self.untold > 0).then(|| each * approximate(rest as u64));
        }
        let whole = self.whole_run()?;
        let under_way = self.begun.iter().filter(|run| !run.is_over);
        let mut busy: Vec<f64> = under_way.map(|run| self.rest_of(run, whole, at)).collect();
        busy.resize(busy.len().max(self.at_a_time), 0.0);
        for _ in self.begun.len()..self.count {
            let next = busy.iter_mut().min_by(|a, b| a.total_cmp(b))?;
            *next += whole;
        }
        busy.into_iter().max_by(f64::total_cmp)
    }

    /// Returns about how many seconds a whole run takes: its preparation, and its virtual time at
    /// the speed of all runs so far. Without a virtual time it takes as long as those that have
    /// ended.
    fn whole_run(&self) -> Option<f64> {
        let Some(run_ns) = self.run_ns else {
            let over = self.begun.iter().filter(|run| run.is_over);
            return mean(over.map(|run| run.told.saturating_sub(run.begun).as_secs_f64()));
        };
        let preparation = self.preparation()?;
        let reached: f64 = self.begun.iter().map(|run| approximate(run.reached_ns)).sum();
        let simulated: f64 = self.begun.iter().map(Run::simulated).sum();
        (reached > 0.0).then(|| preparation + approximate(run_ns) * simulated / reached)
    }

    fn preparation(&self) -> Option<f64> {
        mean(self.begun.iter().filter_map(Run::preparation))
    }

    /// Returns about how many seconds `run` still takes, if a `whole` one takes that long.
    fn rest_of(&self, run: &Run, whole: f64, at: Duration) -> f64 {
        let passed = at.saturating_sub(run.begun).as_secs_f64();
        let Some(run_ns) = self.run_ns.filter(|_| run.reached_ns > 0) else {
            return (whole - passed).max(0.0);
        };
        let rest_ns = approximate(run_ns.saturating_sub(run.reached_ns));
        rest_ns * run.simulated() / approximate(run.reached_ns)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<_> = values.collect();
    let sum: f64 = values.iter().sum();
    (!values.is_empty()).then(|| sum / approximate(values.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// A run of 10 s whose device took 12 s to prepare once began with "about 2798 s left": its
    /// 0.04 s of virtual time in 0.1 s were divided by all 12.1 s. They are 1 s in 2.5 s, so 9.96 s
    /// take 24.9 s.
    #[test]
    fn preparation_is_no_part_of_the_speed() {
        let mut runs = Runs::new(Some(10 * S), 1, 2);
        let run = runs.begin(at(0.0));
        assert_eq!(runs.words(at(6.0)), "0 % done, preparing the device");
        runs.prepared(run, at(12.0));
        assert_eq!(runs.words(at(12.0)), "0 % done");
        runs.reached(run, S / 25, at(12.1));
        assert_eq!(runs.words(at(12.1)), "0 % done, about 25 s left");
        runs.reached(run, 5 * S, at(24.5));
        assert_eq!(runs.words(at(24.5)), "50 % done, about 12 s left");
        runs.end(run, at(37.0));
        assert_eq!(runs.words(at(37.0)), "100 % done, about 0 s left");
    }

    /// Three runs on two processors, each 4 s of preparation and 10 s of virtual time at twice the
    /// speed of the clock: the third begins when the first has ended, at 9 s, and ends at 18 s.
    #[test]
    fn preparation_of_later_runs_counts() {
        let mut runs = Runs::new(Some(10 * S), 3, 2);
        for run in [runs.begin(at(0.0)), runs.begin(at(0.0))] {
            runs.prepared(run, at(4.0));
            runs.reached(run, 2 * S, at(5.0));
        }
        assert_eq!(runs.words(at(5.0)), "13 % done, about 13 s left");
        for run in [0, 1] {
            runs.reached(run, 10 * S, at(9.0));
            runs.end(run, at(9.0));
        }
        let third = runs.begin(at(9.0));
        assert_eq!(runs.words(at(10.0)), "67 % done, about 8 s left");
        runs.prepared(third, at(13.0));
        runs.reached(third, 5 * S, at(15.5));
        assert_eq!(runs.words(at(15.5)), "83 % done, about 2 s left");
    }

    #[test]
    fn runs_that_time_does_not_end_take_as_long_as_those_before() {
        let mut runs = Runs::new(None, 3, 1);
        let run = runs.begin(at(0.0));
        runs.prepared(run, at(1.0));
        runs.reached(run, S, at(2.0));
        assert_eq!(runs.words(at(2.0)), "0 of 3 runs done");
        runs.end(run, at(10.0));
        let run = runs.begin(at(10.0));
        assert_eq!(runs.words(at(14.0)), "1 of 3 runs done, about 16 s left");
        assert_eq!(runs.words(at(30.0)), "1 of 3 runs done, about 10 s left");
        runs.end(run, at(31.0));
    }

    #[test]
    fn runs_of_which_only_the_end_is_told_are_counted() {
        let mut runs = Runs::new(Some(S), 4, 2);
        assert_eq!(runs.words(at(3.0)), "0 % done");
        runs.end_untold();
        assert_eq!(runs.words(at(3.0)), "25 % done, about 9 s left");
    }
}
