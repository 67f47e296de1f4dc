//! Decides whether an answer is a success.

use blockyard_sim::answer::Outcome;

use crate::message::Failure;

/// Fails if verification found an error in `outcomes`.
pub(crate) fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Result<(), Failure> {
    let verified = outcomes.into_iter().filter_map(|outcome| outcome.verified.as_ref());
    match verified.map(|verified| verified.violation_count).sum::<u64>() {
        0 => Ok(()),
        1 => Err(Failure::Run("verification failed: 1 place is wrong".to_owned())),
        count => Err(Failure::Run(format!("verification failed: {count} places are wrong"))),
    }
}
