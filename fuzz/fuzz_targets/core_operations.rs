//! Any bytes as a system and operations on it: no contract of the core is broken, and all ends. What
//! the bytes mean, and what watches, is in the core's tests, which play random ones too.
#![no_main]

#[path = "../../crates/blockyard/tests/durability/mod.rs"]
mod durability;
#[path = "../../crates/blockyard/tests/operations/mod.rs"]
mod operations;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = operations::play(bytes);
});
