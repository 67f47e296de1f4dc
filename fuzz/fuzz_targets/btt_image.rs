//! Any bytes as damage to an image of a BTT: it is opened or refused, checked, repaired and opened again,
//! never a panic. What the bytes mean, and what must hold, is in the core's tests, which play random ones too.
#![no_main]

#[path = "../../crates/blockyard-btt/tests/images/mod.rs"]
mod images;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = images::play::play(bytes);
});
