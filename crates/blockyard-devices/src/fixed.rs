//! The smallest family, which shows what a family needs: a device whose commands take a fixed time.
//! Tests have it alone.
//!
//! It took this file, a line in [`families`](crate::families) and one in the crate's root.

use crate::activity::Activity;
use crate::data::event::ReportsData;
use crate::family::{FamilyModel, FamilyProfile, NoHost, Queues, Setup};
use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Count, Time};
use crate::terms::{DeviceEvent, Events};
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::policy::HostPolicy;
use std::collections::VecDeque;

/// The figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedProfile {
    /// Commands that the device takes at once.
    pub depth: u16,
    /// The time of each command.
    pub latency: Duration,
}

table_of!(FIXED, fn fixed("fixed") -> FixedProfile {
    depth: "depth" need(Count(1..=1024)),
    latency: "latency" need(Time),
});

impl FamilyProfile for FixedProfile {
    type Model = Fixed;

    const TABLES: &'static [&'static str] = &["fixed"];
    const SIGN_WORDS: &'static str = ""; // no message names a family of tests

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        fixed(top)
    }

    fn kind(&self) -> &'static str {
        "a device of fixed latency"
    }

    fn queues(&self, _host: Option<HostPolicy>) -> Queues {
        Queues {
            hctxs: 1,
            depth: self.depth,
            disks: 1,
            own_tags: false,
            shared: false,
            scsi_depth: None,
        }
    }

    fn build(&self, _setup: Setup<'_>) -> Result<Self::Model, NoHost> {
        Ok(Fixed { latency: self.latency, ..Fixed::default() })
    }
}

/// The model.
#[derive(Debug, Default)]
pub struct Fixed {
    latency: Duration,
    handed_over: Vec<Finished>,
    in_flight: VecDeque<Finished>,
    finished: VecDeque<Finished>,
    activity: Activity,
}

impl FamilyModel for Fixed {
    fn activity(&self) -> &Activity {
        &self.activity
    }

    fn activity_mut(&mut self) -> &mut Activity {
        &mut self.activity
    }

    fn start(&mut self, at: Instant, events: &mut Events) {
        for command in self.handed_over.drain(..) {
            self.activity.begin(at);
            events.push_back((at + self.latency, DeviceEvent(command.tag.0.into())));
            self.in_flight.push_back(command);
        }
    }

    fn event(&mut self, _event: DeviceEvent, now: Instant, _events: &mut Events) {
        self.activity.end(now);
        self.finished.extend(self.in_flight.pop_front());
    }
}

impl Driver for Fixed {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let Issue { queue, hctx, tag, .. } = *issue;
        self.handed_over.push(Finished { queue, hctx, tag, outcome: Outcome::Done(Status::Ok) });
        Accept::Queued
    }
}

impl Device for Fixed {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        self.finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }
}

impl ReportsData for Fixed {}

mod tests {
    use super::*;
    use crate::live::Live;
    use crate::profile::Device as Profile;
    use blockyard::bio::Bio;
    use blockyard::host::Host;
    use blockyard::policy::Policies;
    use blockyard::prng::Prng;
    use blockyard::request_queue::{QueueConfig, RequestQueue};
    use blockyard::tag::TagSetConfig;
    use blockyard::unit::{CpuId, QueueId};

    const FILE: &str = "processors = \"server-2021\"
[fixed]
depth = 4
latency = \"30us\"
[limits]
capacity = \"1MiB\"
[cpu]
cpus = 1
";

    #[test]
    fn a_family_of_one_file_is_read_and_runs() {
        let device = Profile::parse("small", FILE).unwrap();
        assert_eq!((device.model.kind(), device.disks()), ("a device of fixed latency", 1));
        assert_eq!(device.model.queues(None).depth, 4);
        let setup = Setup {
            limits: &device.limits,
            cache: None,
            cpus: 1,
            hctxs: 1,
            polled: 0,
            host: None,
            unmaps: true,
            btt: None,
            draws: Prng::new(1),
        };
        let live = Live::new(device.model.build(setup).unwrap(), &device.machine);
        let mut host = Host::new(live, (), TagSetConfig::single(4));
        let config = QueueConfig::new(1, 1, device.limits.clone(), Policies::NONE);
        let mut queue = RequestQueue::new(QueueId(0), config, &host);
        for bio in (0..4).map(|number| Bio::read(number * 16, 8, number)) {
            queue.submit(&mut host, CpuId(0), bio, Instant::ZERO).unwrap();
        }
        queue.turn(&mut host, Instant::from_ns(29_999));
        assert!(queue.next_ended().is_none(), "a command takes 30 us");
        queue.turn(&mut host, Instant::from_ns(30_000));
        let ended = core::iter::from_fn(|| queue.next_ended());
        assert_eq!(ended.map(|ended| ended.bio.cookie).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn an_unknown_key_of_a_family_is_an_error_with_its_line() {
        let error = Profile::parse("small", &FILE.replace("depth", "death")).unwrap_err();
        assert!(error.to_string().contains("small:3"), "{error}");
    }

    #[test]
    fn a_file_of_two_families_is_refused() {
        let error = Profile::parse("small", &format!("{FILE}\n[null]\n")).unwrap_err();
        assert!(error.to_string().contains("a device is one of `[null]`"), "{error}");
    }
}
