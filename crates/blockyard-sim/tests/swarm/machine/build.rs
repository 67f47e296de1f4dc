//! The system of a plan, whole or with a flaw.

use super::{Machine, Summary};
use crate::anticipatory::Anticipatory;
use crate::check::Checkers;
use crate::device::Target;
use crate::draw::Plan;
use crate::flaw::{Flaw, Meddler, Stack, Striker};
use crate::reads_first::ReadsFirst;
use crate::recorder::Recorder;
use crate::submitter::Submitter;
use crate::tally::Tally;
use blockyard::bio::Op;
use blockyard::elevator::Elevator;
use blockyard::elevator::adios::Adios;
use blockyard::elevator::bfq::{Audited, Bfq};
use blockyard::elevator::checked::Checked as CheckedElevator;
use blockyard::elevator::deadline::Deadline;
use blockyard::elevator::kyber::Kyber;
use blockyard::host::Host;
use blockyard::layer::checked::{Checked, Terms};
use blockyard::layer::fault::{Action, FaultRule, Faulty, Turns, When};
use blockyard::layer::trace::Traced;
use blockyard::limits::Limits;
use blockyard::policy::{BfqTunables, Dispatch, ElevatorKind, Policies};
use blockyard::prng::Prng;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::QueueId;
use blockyard_devices::data::medium::{Media, Medium};
use blockyard_devices::event::EventHeap;
use std::collections::BTreeSet;

impl Machine {
    /// Returns the system of `plan` with `flaw`, driven by `seed`.
    pub(crate) fn new(seed: u64, plan: Plan, flaw: Option<Flaw>) -> Self {
        let draws = Prng::new(seed);
        let tags = spoil_tags(plan.tags, flaw);
        let driver =
            Meddler { inner: stack(&plan, &tags, &draws, flaw), striker: Striker::new(flaw) };
        let host = Host::new(driver, Tally::default(), tags);
        let queues: Vec<_> = (0..)
            .zip(&plan.queues)
            .map(|(id, config)| queue(&plan, QueueId(id), spoil(config.clone(), flaw), &host, flaw))
            .collect();
        Self {
            prng: draws.fork(2),
            now: Instant::ZERO,
            events: EventHeap::new(),
            polls: BTreeSet::new(),
            device_at: None,
            deferred: BTreeSet::new(),
            submitters: plan.submitters.iter().cloned().map(Submitter::new).collect(),
            pauses: plan.pauses.len(),
            draining: Vec::new(),
            next_cookie: 0,
            faulty: true,
            striker: Striker::new(flaw),
            checkers: Checkers::new(&plan, flaw, draws.fork(5)),
            summary: Summary::default(),
            host,
            queues,
            plan,
        }
    }
}

/// Returns a queue of `plan`.
fn queue(
    plan: &Plan,
    id: QueueId,
    config: QueueConfig,
    host: &Host<Meddler, Tally>,
    flaw: Option<Flaw>,
) -> RequestQueue {
    let tags = host.tags().config();
    let requests = config.requests(tags);
    let checked: Box<dyn Elevator + Send> = match config.policies.elevator {
        ElevatorKind::Other if plan.idles => Box::<Anticipatory>::default(),
        ElevatorKind::Other => Box::<ReadsFirst>::default(),
        ElevatorKind::Deadline(tunables) if plan.checks_elevators => {
            Box::new(Deadline::new(requests, tunables))
        }
        ElevatorKind::Kyber(tunables) if plan.checks_elevators => {
            Box::new(Kyber::new(&config.map, tunables))
        }
        ElevatorKind::Adios(tunables) if plan.checks_elevators => {
            Box::new(Adios::new(requests, config.limits.rotational, tunables))
        }
        ElevatorKind::Bfq(tunables) if plan.checks_elevators => {
            Box::new(audited(requests, config.limits.rotational, tunables, flaw))
        }
        _ => return RequestQueue::new(id, config, host),
    };
    let policies = Policies { elevator: ElevatorKind::Other, ..config.policies };
    let config = QueueConfig { policies, ..config };
    let elevator = Box::new(CheckedElevator::new(checked, requests));
    let mut queue = RequestQueue::with_elevator(id, config, host, elevator);
    for (group, weight) in &plan.weights {
        assert!(queue.weigh_group(*group, *weight), "group {group}");
    }
    queue
}

/// Returns bfq under its auditor, who knows nothing of the flaw.
fn audited(
    requests: usize,
    rotational: bool,
    tunables: BfqTunables,
    flaw: Option<Flaw>,
) -> Audited {
    let mut own = tunables;
    if flaw == Some(Flaw::IdleOn) {
        own.slice_idle = Duration::from_ms(50);
    }
    let mut bfq = Bfq::new(requests, rotational, own);
    if flaw == Some(Flaw::ForgetGroup) {
        assert!(bfq.weigh_group(1, 1), "a group");
    }
    Audited::new(bfq, tunables)
}

/// Returns the device of `plan` under its layers.
fn stack(plan: &Plan, tags: &TagSetConfig, draws: &Prng, flaw: Option<Flaw>) -> Stack {
    let lies = plan.device.empty_promises > 0;
    let mut device = plan.device;
    if flaw == Some(Flaw::EmptyPromise) {
        device.empty_promises = 5;
    }
    let mut rules = plan.faults.clone();
    if flaw == Some(Flaw::LoseWrites) {
        let when = When { ops: vec![Op::Write], turns: Turns::Every(3), ..When::default() };
        rules.insert(0, FaultRule { name: "delayed".to_owned(), when, then: Action::LoseWrite });
    }
    if flaw == Some(Flaw::HideFlushError) {
        let when = When { ops: vec![Op::Flush], turns: Turns::Every(2), ..When::default() };
        let then = Action::Error(Status::IoError);
        rules.insert(0, FaultRule { name: "failed later".to_owned(), when, then });
    }
    let terms = |config: &QueueConfig| Terms {
        limits: config.limits.clone(),
        ..Terms::of(&spoil(config.clone(), flaw), tags)
    };
    let terms: Vec<_> = plan.queues.iter().map(terms).collect();
    let limits: Vec<_> = plan.queues.iter().map(|config| on_medium(config, flaw)).collect();
    let media = Media::new(&limits, tags, draws.fork(4));
    let target = Target::new(device, plan.queues.len(), draws.fork(1));
    let filled = Medium { below: target, media };
    let filled = Checked::new(filled, terms.clone(), tags).trusting_promises(lies);
    let faulty = Faulty::new(filled, rules, draws.fork(3), tags);
    let below = Checked::new(faulty, terms, tags).trusting_promises(lies);
    Traced { below, sink: Recorder::default() }
}

fn on_medium(config: &QueueConfig, flaw: Option<Flaw>) -> Limits {
    let mut limits = config.limits.clone();
    limits.write_cache |= flaw == Some(Flaw::LyingCache);
    limits
}

fn spoil_tags(mut tags: TagSetConfig, flaw: Option<Flaw>) -> TagSetConfig {
    if flaw == Some(Flaw::DoubleTags) {
        tags.depth *= 2;
    }
    tags
}

fn spoil(mut config: QueueConfig, flaw: Option<Flaw>) -> QueueConfig {
    match flaw {
        Some(Flaw::WrongLimits) => config.limits.max_sectors *= 2,
        Some(Flaw::StarveWrites) => {
            if let ElevatorKind::Deadline(tunables) = &mut config.policies.elevator {
                tunables.writes_starved = u32::MAX;
                tunables.write_expire = Duration::MAX;
            }
        }
        Some(Flaw::DenyFua) => config.limits.fua = false,
        Some(Flaw::AskEarly) => config.timeout = Duration::ZERO,
        Some(Flaw::AskLate) => config.timeout += Duration::from_secs(3),
        Some(Flaw::PullOverLeftovers) if config.policies.dispatch != Dispatch::Budget => {
            config.policies.dispatch = Dispatch::DrainAll;
        }
        Some(Flaw::KeepTags) => config.policies.elevator = ElevatorKind::None,
        _ => {}
    }
    config
}
