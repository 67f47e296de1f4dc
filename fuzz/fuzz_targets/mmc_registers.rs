//! Any bytes as what a card could send: its registers are read or refused by name, never a panic. What
//! the bytes mean, and what is asked of them, is in the core's tests, which play random ones too.
#![no_main]

#[path = "../../crates/blockyard-mmc/tests/registers/mod.rs"]
mod registers;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = registers::play(bytes);
});
