//! Interprets bytes as a system and operations on it, and checks the results against slow accounts.
//!
//! The first bytes draw the system ([`input`]), the others its operations ([`world`]). A [`device`]
//! checks its requests against an [`account`] of every bio: the pieces tile the bio, the bio ends
//! once and with their status, and the promises of its flags about durable data hold. After the
//! last byte the faults stop, and every bio must end through completions and the retry delay alone.
//!
//! The fuzzer and a proptest call this module. If `BLOCKYARD_OPERATIONS_LOG` is set, each event is
//! printed.

mod account;
mod device;
mod input;
mod world;

pub(crate) use world::Summary;

/// The environment variable that turns the log on.
const LOG: &str = "BLOCKYARD_OPERATIONS_LOG";

/// Plays `bytes`. Panics if a contract is broken.
pub(crate) fn play(bytes: &[u8]) -> Summary {
    let mut input = input::Input::new(bytes);
    let system = input::System::draw(&mut input);
    world::World::new(&system).play(&mut input)
}
