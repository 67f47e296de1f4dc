//! Reads any bytes as damage to a BTT image. The image is opened or refused, checked, repaired and
//! opened again, and nothing panics. The crate's tests define what the bytes mean and what must
//! hold, and play random bytes too.
#![no_main]

#[path = "../../crates/blockyard-btt/tests/images/mod.rs"]
mod images;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = images::play::play(bytes);
});
