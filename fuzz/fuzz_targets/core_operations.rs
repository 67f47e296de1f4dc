//! Reads any bytes as a system and operations on it. No contract of the core is broken, and every
//! bio ends. The core's tests define what the bytes mean and what watches the run, and play random
//! bytes too.
#![no_main]

#[path = "../../crates/blockyard/tests/durability/mod.rs"]
mod durability;
#[path = "../../crates/blockyard/tests/operations/mod.rs"]
mod operations;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = operations::play(bytes);
});
