//! Any bytes as an NBD connection, handshake, TLS boundary and requests: never a panic, the same
//! wherever they are cut, and what is sent is what a strict client reads. What is served is in the
//! tests of the wire, which play sessions with errors too.
#![no_main]

#[path = "../../crates/blockyard-wire/tests/nbd/mod.rs"]
mod nbd;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = nbd::play::play(bytes);
});
