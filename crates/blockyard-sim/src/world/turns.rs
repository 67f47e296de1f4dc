//! Jobs that take turns: the tasks of a flow issue I/Os in the proportion of their weights.
//!
//! A task that is ahead of its share issues nothing. fio lets its thread check again and again, at
//! the cost of a processor. Here the task sleeps, and costs nothing.
//!
//! The flow counts one I/O more than its tasks have issued, so at least one of them is not ahead of
//! its share.

use super::{Event, World};
use crate::task::Share;
use blockyard_trace::observe::TaskId;
use std::collections::BTreeMap;

/// The flows by number, each with the I/Os and the weights of its tasks.
#[derive(Debug, Default)]
pub(super) struct Flows(BTreeMap<u32, Flow>);

#[derive(Debug, Default)]
struct Flow {
    issued: u64,
    weight: u64,
}

impl Flow {
    /// Whether a task with this share is not ahead of it. At least one task of the flow is not.
    fn gives_turn(&self, share: &Share) -> bool {
        debug_assert!(share.issued <= self.issued, "a flow must count the I/Os of its tasks");
        // A task of weight 1 among weights of 4 has issued 3 of 11 I/Os: 3 * 4 is not above 1 * 12,
        // so it has a turn. With 4 of them it has none.
        let own = u128::from(share.issued) * u128::from(self.weight);
        let all = u128::from(self.issued) + 1;
        own <= u128::from(share.weight) * all
    }
}

impl World<'_> {
    /// Whether the task may issue an I/O now. The first call of a task adds it to its flow.
    #[inline(always)] // one test for the tasks of no flow, which are most
    pub(super) fn has_turn(&mut self, id: TaskId) -> bool {
        self.tasks[id.0 as usize].share.is_none() || self.has_turn_in_flow(id)
    }

    #[inline(never)] // few jobs take turns
    fn has_turn_in_flow(&mut self, id: TaskId) -> bool {
        let share = self.tasks[id.0 as usize].share.as_mut().expect("a task of a flow");
        let flow = self.flows.0.entry(share.flow).or_default();
        debug_assert!(share.weight > 0, "a task of a flow has a part of it");
        if !core::mem::replace(&mut share.joined, true) {
            flow.weight += share.weight;
        }
        flow.gives_turn(share)
    }

    /// Notes that the task has issued an I/O: others of its flow may have a turn.
    pub(super) fn count_turn(&mut self, id: TaskId) {
        let Some(share) = &mut self.tasks[id.0 as usize].share else { return };
        debug_assert!(share.joined, "{id:?} must be in its flow");
        let number = share.flow;
        share.issued += 1;
        self.flows.0.entry(number).or_default().issued += 1;
        self.wake_for_turns(number);
    }

    /// Takes the task, which has ended, out of its flow.
    pub(super) fn leave_flow(&mut self, id: TaskId) {
        let Some(share) = self.tasks[id.0 as usize].share.take().filter(|share| share.joined)
        else {
            return;
        };
        let flow = self.flows.0.entry(share.flow).or_default();
        // The others continue as if this task had never been in the flow: their shares of what is
        // left are as before.
        debug_assert!(share.weight <= flow.weight, "a flow has the weights of its tasks");
        flow.issued -= share.issued;
        flow.weight -= share.weight;
        self.wake_for_turns(share.flow);
    }

    /// Wakes the tasks that wait for a turn in a flow and have one.
    fn wake_for_turns(&mut self, number: u32) {
        let Some(flow) = self.flows.0.get(&number) else { return };
        for task in self.tasks.iter_mut().filter(|task| task.waits_for_turn()) {
            // A task whose flow gives it a turn is woken now, and costs its waker nothing.
            if task.share.is_some_and(|share| share.flow == number && flow.gives_turn(&share)) {
                task.wake();
                self.events.push(self.now, Event::Wake(task.id));
            }
        }
    }
}
