//! The smallest family, which shows what a family needs: a device whose commands take a fixed time.
//! Tests have it alone.
//!
//! It took this file, a line in [`families`](crate::families) and one in the crate's root.

use crate::activity::Activity;
use crate::charges::Resource;
use crate::compare::{RunLoad, RunTotals, USED_UP};
use crate::data::event::ReportsData;
use crate::family::{
    Explained, FamilyModel, FamilyProfile, Limit, LimitingPart, NoHost, Queues, RunFigures, Setup,
};
use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Count, Time};
use crate::tables::FigureTable;
use crate::terms::{DeviceEvent, Events};
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::policy::HostPolicy;
use core::fmt;
use serde::Serialize;
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
    type Figures = FixedFigures;
    type Limit = FixedLimit;

    const TABLES: &'static [&'static str] = &["fixed"];
    const SIGN_WORDS: &'static str = ""; // no message names a family of tests

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        fixed(top)
    }

    fn kind(&self) -> &'static str {
        "a device of fixed latency"
    }

    fn disk_condition(&self) -> &'static str {
        r#"KERNEL=="fixed[0-9]*""#
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

    fn limit(&self, figures: Option<&FixedFigures>, load: &RunLoad) -> Option<Limit<FixedLimit>> {
        let commands = figures?.commands;
        (load.device_busy_percent >= USED_UP).then_some(Limit::Part(FixedLimit { commands }))
    }
}

/// The figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FixedFigures {
    /// Commands that began.
    pub commands: u64,
}

impl RunFigures for FixedFigures {
    type Model = Fixed;
    type Report = u64;
    type Evidence = FixedEvidence;

    fn report(model: &Fixed, _now: Instant) -> u64 {
        model.commands
    }

    fn of(report: &u64, _totals: &RunTotals) -> Option<Self> {
        Some(Self { commands: *report })
    }

    fn tables(runs: &[&Self]) -> Vec<FigureTable> {
        let mut table = FigureTable::new("Commands of fixed latency:");
        table.column("commands", runs, |of| of.commands.to_string());
        vec![table]
    }

    fn command_rates(&self, high: &Self) -> Option<FixedEvidence> {
        Some(FixedEvidence { more: high.commands - self.commands })
    }
}

impl Explained for FixedFigures {}

/// The device as the limit of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FixedLimit {
    commands: u64,
}

impl LimitingPart for FixedLimit {
    fn resources(&self, _load: &RunLoad) -> Vec<Resource> {
        vec![Resource::Device]
    }
}

impl fmt::Display for FixedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} commands of fixed latency are the bottleneck", self.commands)
    }
}

/// Why the rates of two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FixedEvidence {
    more: u64,
}

impl fmt::Display for FixedEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The device began {} commands more.", self.more)
    }
}

/// The model.
#[derive(Debug, Default)]
pub struct Fixed {
    latency: Duration,
    /// Commands that began.
    commands: u64,
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
            self.commands += 1;
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
    use crate::families::{FamilyFigures, Model};
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
            sd_cache: true,
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

    /// The figures of an idle run in which `commands` began, by way of the model and its report.
    fn figures(commands: u64) -> FamilyFigures {
        let model = Model::Fixed(Fixed { commands, ..Fixed::default() });
        let totals = RunTotals {
            span: Duration::from_ms(1),
            ios: commands,
            device_busy: Duration::ZERO,
            cpu: Duration::ZERO,
            interrupts: 0,
            wakeups: 0,
            interprocessor_interrupts: 0,
            context_switches: 0,
        };
        FamilyFigures::of(&model.report(Instant::ZERO), &totals)
    }

    fn load(device_busy_percent: f64) -> RunLoad {
        RunLoad {
            commands: 4,
            bytes: 0,
            read_bytes: 0,
            written_bytes: 0,
            bytes_per_s: 0,
            device_busy_percent,
            pausing_percent: 0.0,
        }
    }

    #[test]
    fn a_family_of_one_file_has_figures_and_tables() {
        let runs = [&figures(4), &figures(7)];
        let only =
            FamilyFigures { fixed: Some(FixedFigures { commands: 4 }), ..Default::default() };
        assert_eq!(*runs[0], only);
        let tables = FamilyFigures::tables(&runs);
        assert_eq!(tables[0].columns, [("commands".into(), vec!["4".into(), "7".into()])]);
        assert_eq!(FamilyFigures::tables(&[&FamilyFigures::default()]), []);
    }

    #[test]
    fn a_family_of_one_file_has_a_limit_and_evidence() {
        let device = Profile::parse("small", FILE).unwrap();
        assert_eq!(device.model.limit(&figures(4), &load(50.0)), None);
        let Some(Limit::Part(limit)) = device.model.limit(&figures(4), &load(99.0)) else {
            panic!("a device that is always busy should be a limit");
        };
        assert_eq!(limit.to_string(), "4 commands of fixed latency are the bottleneck");
        let part = limit.part();
        assert_eq!(part.resources(&load(99.0)), [Resource::Device]);
        assert_eq!((part.is_of_disk(), part.is_told_by_command_rates()), (false, false));
        assert_eq!(device.model.last_limit(&figures(4), &load(99.0)), None);
        let evidence = figures(4).command_rates(&figures(7)).unwrap();
        assert_eq!(evidence.to_string(), "The device began 3 commands more.");
        assert_eq!(figures(4).whole_difference(&figures(7)), None);
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
