//! The actors of the world itself: the one that each piece of work belongs to.

use super::World;
use super::actor::Actor;
use super::buffered::PageCopy;
use super::device::{CompletionHandler, VectorHandler};
use super::mmc::{DriverContext, DriverTimer};
use super::polling::Poller;
use super::queue::Worker;
use super::step::Job;
use blockyard::time::Duration;
use blockyard::unit::{CpuId, QueueId};
use blockyard_trace::observe::Work;

/// Each piece of work belongs to one actor. This is the list of the world's own.
impl Actor for Work {
    fn queue_to_lock(&self, world: &World<'_>) -> Option<QueueId> {
        match *self {
            Self::Complete { finished, interrupt } => {
                CompletionHandler { finished, interrupt }.queue_to_lock(world)
            }
            Self::Vector(hctx) => VectorHandler(hctx).queue_to_lock(world),
            Self::Run { by, queue, hctx } => Worker { by, queue, hctx }.queue_to_lock(world),
            Self::Step(task) => Job(task).queue_to_lock(world),
            Self::Actor(id) => world.queue_to_lock_for(id),
            _ => None,
        }
    }

    fn begin_paying(&mut self, world: &mut World<'_>, cpu: CpuId) -> bool {
        match *self {
            Self::Interrupt | Self::MmcDriver(_) => {
                DriverContext::of(self).begin_paying(world, cpu)
            }
            _ => false,
        }
    }

    fn act(&mut self, world: &mut World<'_>, cpu: CpuId) -> Duration {
        match *self {
            Self::Complete { finished, interrupt } => {
                CompletionHandler { finished, interrupt }.act(world, cpu)
            }
            Self::Vector(hctx) => VectorHandler(hctx).act(world, cpu),
            Self::Run { by, queue, hctx } => Worker { by, queue, hctx }.act(world, cpu),
            Self::Step(task) => Job(task).act(world, cpu),
            Self::Copy(task) => PageCopy(task).act(world, cpu),
            Self::Poll(task) => Poller(task).act(world, cpu),
            Self::Actor(id) => world.let_act(id, cpu),
            Self::Timer => DriverTimer.act(world, cpu),
            Self::Interrupt | Self::MmcDriver(_) | Self::MmcDriverStep(..) => {
                unreachable!("{self:?} changes the world when it has been paid for")
            }
        }
    }

    fn plan_next(&mut self, world: &mut World<'_>, cpu: CpuId, cost: Duration) -> Duration {
        match *self {
            Self::Step(task) => Job(task).plan_next(world, cpu, cost),
            Self::Copy(task) => PageCopy(task).plan_next(world, cpu, cost),
            Self::Poll(task) => Poller(task).plan_next(world, cpu, cost),
            Self::Run { by, queue, hctx } => Worker { by, queue, hctx }.plan_next(world, cpu, cost),
            Self::Actor(id) => world.let_plan(id, cpu, cost),
            _ => Duration::ZERO,
        }
    }
}
