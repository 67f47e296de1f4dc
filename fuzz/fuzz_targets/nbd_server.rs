//! Reads any bytes as an NBD connection: handshake, TLS boundary and requests. Nothing panics, the
//! result does not depend on where the bytes are cut, and a strict client can read every answer.
//! The crate's tests define the exports, and play sessions with errors too.
#![no_main]

#[path = "../../crates/blockyard-wire/tests/nbd/mod.rs"]
mod nbd;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = nbd::play::play(bytes);
});
