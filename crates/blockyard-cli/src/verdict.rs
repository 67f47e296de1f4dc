//! Decides whether an answer is a success.

use blockyard_answer::{Answer, Outcome};

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

/// Fails if no design meets all goals of `answer`.
pub(crate) fn on_goals(answer: &Answer) -> Result<(), Failure> {
    if answer.has_met_goals() { Ok(()) } else { Err(Failure::Verdict(1)) }
}
