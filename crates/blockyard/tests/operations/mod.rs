//! Interprets bytes as a system and operations on it, and checks the results against slow accounts.
//!
//! The first bytes draw the system ([`input`]), the others its operations ([`world`]). A [`device`] checks its requests
//! against an [`account`] of every bio: the pieces tile the bio, the bio ends once and with their status, and the
//! promises of its flags about durable data hold. After the last byte the faults stop, and every bio must end through
//! completions and the retry delay alone.
//!
//! The fuzzer and a proptest call this module. If `BLOCKYARD_OPERATIONS_LOG` is set, the [`journal`] is printed.

mod account;
mod device;
mod input;
mod journal;
mod world;

use blockyard::policy::ElevatorKind;
use core::cell::RefCell;
#[allow(unused_imports, reason = "the fuzz target shares this file and keeps no journal")]
pub(crate) use journal::Journal;
use std::rc::Rc;
pub(crate) use world::Summary;

/// The environment variable that turns the log on.
const LOG: &str = "BLOCKYARD_OPERATIONS_LOG";

/// Plays `bytes`. Panics if a contract is broken.
pub(crate) fn play(bytes: &[u8]) -> Summary {
    let mut input = input::Input::new(bytes);
    let system = input::System::draw(&mut input);
    let mut journal = Journal::default();
    if std::env::var_os(LOG).is_some() {
        println!("{system:#?}");
        journal = Journal::new(Some(Rc::new(RefCell::new(journal::Printer))));
    }
    world::World::new(&system, journal).play(&mut input)
}

/// Plays `bytes` on queues with the elevator `elevator`, or, without one, with those that the bytes say.
#[allow(dead_code, reason = "the fuzz target shares this file and keeps no journal")]
pub(crate) fn play_to(bytes: &[u8], elevator: Option<ElevatorKind>, journal: Journal) -> Summary {
    let mut input = input::Input::new(bytes);
    let mut system = input::System::draw(&mut input);
    for queue in &mut system.queues {
        queue.policies.elevator = elevator.unwrap_or(queue.policies.elevator);
    }
    world::World::new(&system, journal).play(&mut input)
}
