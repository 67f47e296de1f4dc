//! The faults of the device: drawn rules of the fault layer.

use super::{between, one_in};
use blockyard::bio::Op;
use blockyard::driver::Busy;
use blockyard::layer::fault::{Action, FaultRule, Turns, When};
use blockyard::prng::Prng;
use blockyard::status::Status;
use blockyard::time::Duration;

const FAILURES: [Status; 3] = [Status::IoError, Status::Medium, Status::NoSpace];

/// The kinds of fault, by the names of their rules. A completion is lost only if a timeout ends its
/// request. No write is corrupted, as reads would then be wrong; only canaries do that.
pub(crate) const KINDS: [&str; 8] = [
    "busy device",
    "busy host",
    "busy resource",
    "failed at once",
    "failed later",
    "requeued",
    "delayed",
    "given up",
];

/// Draws up to four rules. Completions are lost only if the queue soon `gives_up`.
pub(super) fn draw(prng: &mut Prng, gives_up: bool) -> Vec<FaultRule> {
    let mut rules: Vec<_> = (0..prng.pick(&[0, 1, 2, 4])).map(|_| rule(prng)).collect();
    rules.retain(|rule| gives_up || rule.then != Action::TimeOut);
    rules
}

fn rule(prng: &mut Prng) -> FaultRule {
    let kind = prng.pick(&KINDS);
    let status = prng.pick(&FAILURES);
    let then = match kind {
        "busy device" => Action::Busy(Busy::Device),
        "busy host" => Action::Busy(Busy::Host),
        "busy resource" => Action::Busy(Busy::Resource),
        "failed at once" => Action::Fail(status),
        "failed later" => Action::Error(status),
        "requeued" => Action::Again,
        "delayed" => Action::Delay(Duration::from_us(between(prng, 0, 300))),
        _ => Action::TimeOut,
    };
    let mut when = when(prng);
    if then == Action::TimeOut {
        let first = between(prng, 1, 50);
        when.turns = Turns::Between(first, first + 2); // each takes seconds
    }
    FaultRule { name: kind.to_owned(), when, then }
}

/// Draws when a rule fires: never on every request, so that refusals and requeues end.
fn when(prng: &mut Prng) -> When {
    let first = between(prng, 1, 50);
    let by_turns = [
        Turns::Every(prng.pick(&[2, 3, 20])),
        Turns::Between(first, first),
        Turns::Between(first, first + 30),
    ];
    let one_in = Some(prng.pick(&[2, 3, 5, 50]));
    let by_chance = one_in_two(prng);
    When {
        ops: if one_in_two(prng) { vec![] } else { prng.pick(OPS).to_vec() },
        queue: None,
        sectors: if one_in_two(prng) { None } else { Some(first * 8..first * 8 + 600) },
        during: None,
        turns: if by_chance { Turns::All } else { prng.pick(&by_turns) },
        one_in: if by_chance { one_in } else { None },
    }
}

const OPS: &[&[Op]] =
    &[&[Op::Read], &[Op::Write], &[Op::Read, Op::Write], &[Op::Discard], &[Op::Flush]];

fn one_in_two(prng: &mut Prng) -> bool {
    one_in(prng, 2)
}
