//! Decides whether an answer is a success.

use blockyard_sim::answer::Outcome;
use blockyard_sim::answer::goal::GoalResult;

use crate::interrupt;
use crate::message::Failure;

/// The exit code after a signal to end, as shells have it.
const INTERRUPTED: u8 = 130;

/// Fails if verification found an error in `outcomes`, or if a signal ended a run.
pub(crate) fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Result<(), Failure> {
    if interrupt::has_come() {
        return Err(Failure::Verdict(INTERRUPTED));
    }
    let verified = outcomes.into_iter().filter_map(|outcome| outcome.verified.as_ref());
    match verified.map(|verified| verified.violation_count).sum::<u64>() {
        0 => Ok(()),
        1 => Err(Failure::Run("verification failed: 1 place is wrong".to_owned())),
        count => Err(Failure::Run(format!("verification failed: {count} places are wrong"))),
    }
}

/// Fails if no design meets all `goals`.
pub(crate) fn on_goals(goals: &[GoalResult]) -> Result<(), Failure> {
    let count = goals.first().map_or(0, |goal| goal.designs.len());
    let one_meets_all = (0..count).any(|at| goals.iter().all(|goal| goal.designs[at].met));
    if one_meets_all { Ok(()) } else { Err(Failure::Verdict(1)) }
}
