//! Reads any bytes as the answers of a card. Its registers are read or refused by name, and nothing
//! panics. The crate's tests define what the bytes mean and what is checked, and play random bytes
//! too.
#![no_main]

#[path = "../../crates/blockyard-mmc/tests/registers/mod.rs"]
mod registers;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = registers::play(bytes);
});
