//! Any bytes as a system and a sequence of operations on it, beside a slow account of what must
//! come of them.
//!
//! The first bytes draw the system ([`input`]), the others what happens to it, operation by
//! operation ([`world`]). A [`device`] checks what it is given against an [`account`] of every bio:
//! its pieces tile it, it ends once and as they did, and what its flags promise of the durable image
//! holds. When the bytes are used up, faults stop, and everything must come to its end without
//! anything but completions and the retry delay to move it.
//!
//! Both the fuzzer and a proptest come in here. With `BLOCKYARD_OPERATIONS_LOG` set, what happens is
//! printed.

mod account;
mod device;
mod input;
mod world;

pub(crate) use world::Summary;

/// The variable that asks for a log.
const LOG: &str = "BLOCKYARD_OPERATIONS_LOG";

/// Plays `bytes`; panics where a contract is broken.
pub(crate) fn play(bytes: &[u8]) -> Summary {
    let mut input = input::Input::new(bytes);
    let system = input::System::draw(&mut input);
    world::World::new(&system).play(&mut input)
}
