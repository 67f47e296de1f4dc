//! The devices of the crate pass the public conformance test of drivers, and a device that breaks a
//! rule fails it.

use blockyard::conformance;
use blockyard::device::null::NullDevice;
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome};
use blockyard::layer::delay::{Delayed, Extra};
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::DriverTag;
use std::panic::catch_unwind;

const DEPTH: u16 = 4;

fn limits() -> Limits {
    Limits { max_sectors: 16, max_discard_sectors: 64, write_cache: true, ..Limits::new(1 << 10) }
}

fn tags() -> TagSetConfig {
    TagSetConfig { hctxs: 2, ..TagSetConfig::single(DEPTH) }
}

#[test]
fn devices_and_layers_conform() {
    let extra = Extra { min: Duration::ZERO, max: Duration::from_ms(3), op: None };
    for seed in 0..100 {
        println!("seed {seed}");
        conformance::driver(seed, tags(), limits(), |_| NullDevice::new(2, DEPTH));
        conformance::driver(seed, tags(), limits(), |tags| {
            Delayed::new(NullDevice::new(2, DEPTH), extra, Prng::new(seed), tags)
        });
    }
}

/// What a device does wrong, from its hundredth request on.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    /// It reports the request twice.
    Twice,
    /// It never reports it.
    Never,
    /// It reports another tag.
    OtherTag,
    /// It is busy until a request completes, and there is none.
    BusyAlone,
    /// It reports that a part was transferred which is more than all.
    MoreThanAll,
}

/// A device that does one thing wrong.
struct Broken {
    below: NullDevice,
    wrong: Wrong,
    taken: u32,
    in_flight: u32,
    again: Option<Finished>,
}

impl Driver for Broken {
    blockyard::pass_on!(below: take_budget, return_budget, prepare, unprepare, commit, timed_out, finish);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        if matches!(self.wrong, Wrong::BusyAlone) && self.taken >= 100 && self.in_flight == 0 {
            return Accept::Busy(Busy::Device);
        }
        let accept = self.below.queue_rq(issue);
        self.taken += u32::from(accept == Accept::Queued);
        self.in_flight += u32::from(accept == Accept::Queued);
        accept
    }
}

impl Device for Broken {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        if let Some(again) = self.again.take() {
            return Some(again);
        }
        let mut finished = self.below.next_finished(now)?;
        self.in_flight -= 1;
        if self.taken >= 100 {
            match self.wrong {
                Wrong::Twice => self.again = Some(finished),
                Wrong::Never => {
                    self.taken = 0;
                    return self.next_finished(now);
                }
                Wrong::OtherTag => finished.tag = DriverTag((finished.tag.0 + 1) % DEPTH),
                Wrong::BusyAlone => {}
                Wrong::MoreThanAll => {
                    let status = Status::Medium;
                    finished.outcome = Outcome::Partial { sectors: 1 << 20, status };
                }
            }
        }
        Some(finished)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.below.poll_at()
    }
}

#[test]
fn a_device_that_breaks_a_rule_fails() {
    for (wrong, rule) in [
        (Wrong::Twice, "[owned-until-completed]"),
        (Wrong::Never, "never end"),
        (Wrong::OtherTag, "[owned-until-completed]"),
        (Wrong::BusyAlone, "[busy-promise-kept]"),
        (Wrong::MoreThanAll, "[partial-completion-valid]"),
    ] {
        let failed = catch_unwind(|| {
            conformance::driver(1, tags(), limits(), |_| {
                let below = NullDevice::new(2, DEPTH);
                Broken { below, wrong, taken: 0, in_flight: 0, again: None }
            });
        });
        let words = failed.expect_err("a broken device fails");
        let words = words
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| words.downcast_ref::<&str>().map(|words| (*words).to_owned()));
        assert!(words.as_ref().is_some_and(|words| words.contains(rule)), "{wrong:?}: {words:?}");
    }
}
