//! The event stream equals that of blktrace: one letter for each step, in order. A bio of n parts
//! is queued once and split n - 1 times. Traces of Linux 6.12 are in the simulator's
//! `tests/null_blk`.

use blockyard::bio::Bio;
use blockyard::device::null::NullDevice;
use blockyard::driver::Device;
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::{Plugging, Policies};
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::trace::{Action, Event, Sink};
use blockyard::unit::{CpuId, QueueId};

/// Actions with their ranges.
#[derive(Default)]
struct Steps(Vec<(Action, u64, u32)>);

impl Sink for Steps {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push((event.action, event.sector, event.sectors));
    }
}

/// Returns the letters of the events of `bios`, without events that have no letter.
fn letters(bios: &[Bio], plugged: bool, policies: Policies) -> String {
    steps(bios, plugged, policies).iter().filter_map(|(action, ..)| action.letter()).collect()
}

/// Returns the events of `bios`, submitted as one batch or one by one, until all have ended.
fn steps(bios: &[Bio], plugged: bool, policies: Policies) -> Vec<(Action, u64, u32)> {
    let tags = TagSetConfig {
        hctxs: 1,
        depth: 8,
        reserved: 0,
        shared_over_hctxs: false,
        queues: 1,
        max_waiters: 1,
    };
    let mut host = Host::new(NullDevice::new(1, 8), Steps::default(), tags);
    let limits = Limits { max_sectors: 16, ..Limits::new(1 << 20) };
    let config = QueueConfig::new(1, 1, limits, policies);
    let mut queue = RequestQueue::new(QueueId(0), config, &host);
    let cpu = CpuId(0);
    let now = Instant::ZERO;
    if plugged {
        queue.plug(cpu);
    }
    for bio in bios {
        queue.submit(&mut host, cpu, *bio, now).unwrap();
    }
    if plugged {
        queue.unplug(&mut host, cpu, now);
    }
    while let Some(run) = queue.next_run(&mut host, now) {
        let _ = queue.run(&mut host, run.hctx, now);
    }
    while let Some(finished) = host.driver.next_finished(now) {
        queue.conclude(&mut host, &finished, now).unwrap();
    }
    while queue.next_ended().is_some() {}
    assert!(queue.is_empty());
    host.sink.0
}

/// Returns `policies` under which a lone bio is a batch of one.
fn every_bio(policies: Policies) -> Policies {
    Policies { plug: Plugging::EveryBio, ..policies }
}

#[test]
fn a_lone_read_is_issued_directly_without_an_elevator_and_inserted_with_one() {
    let read = [Bio::read(0, 8, 0)];
    assert_eq!(letters(&read, false, every_bio(Policies::NONE)), "QGPUDC");
    assert_eq!(letters(&read, false, every_bio(Policies::mq_deadline())), "QGPUIDC");
    assert_eq!(letters(&read, false, Policies::NONE), "QGDC");
    assert_eq!(letters(&read, false, Policies::mq_deadline()), "QGIDC");
}

#[test]
fn a_bio_in_three_parts_is_queued_once_and_split_twice() {
    let read = [Bio::read(0, 48, 0)];
    assert_eq!(letters(&read, false, every_bio(Policies::NONE)), "QXGPUDXGPUDGPUDCCC");
    assert_eq!(letters(&read, false, Policies::NONE), "QXGDXGDGDCCC");
}

#[test]
fn neighbours_of_a_batch_merge_on_the_plug() {
    let batch = [Bio::read(8, 8, 0), Bio::read(16, 8, 1), Bio::read(100, 8, 2)];
    assert_eq!(letters(&batch, true, Policies::NONE), "QGPQMQGUDDCC");
    let fronts = [Bio::read(8, 8, 0), Bio::read(0, 8, 1)];
    assert_eq!(letters(&fronts, true, Policies::mq_deadline()), "QGPQFUIDC");
}

#[test]
fn requests_in_the_elevator_merge_until_the_queue_runs() {
    let writes = [Bio::write(8, 8, 0), Bio::write(16, 8, 1)];
    assert_eq!(letters(&writes, false, every_bio(Policies::mq_deadline())), "QGPUIQMDC");
    assert_eq!(letters(&writes, false, Policies::mq_deadline()), "QGIQMDC");
}

#[test]
fn a_merge_names_the_bio_and_a_join_the_request_that_ends() {
    let bios =
        [Bio::write(8, 4, 0), Bio::write(16, 2, 1), Bio::write(4, 4, 2), Bio::write(12, 4, 3)];
    let merges = |(action, ..): &(Action, u64, u32)| {
        matches!(action, Action::BackMerge | Action::FrontMerge | Action::Join | Action::Issue)
    };
    let steps = steps(&bios, false, Policies::mq_deadline());
    let expected = [
        (Action::FrontMerge, 4, 4),
        (Action::BackMerge, 12, 4),
        (Action::Join, 16, 2),
        (Action::Issue, 4, 14),
    ];
    assert_eq!(steps.into_iter().filter(merges).collect::<Vec<_>>(), expected);
}

#[test]
fn an_unplug_reports_how_many_requests_it_releases() {
    let batch = [Bio::read(8, 8, 0), Bio::read(16, 8, 1), Bio::read(100, 8, 2)];
    let steps = steps(&batch, true, Policies::NONE);
    let released = Action::Unplug { requests: 2, sleeping: false };
    assert!(steps.iter().any(|(action, ..)| *action == released), "{steps:?}");
}
