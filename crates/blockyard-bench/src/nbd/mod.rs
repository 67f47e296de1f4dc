//! Compares NBD servers in turns under the same load from one client. The program is `--bin peers`.
//!
//! [`client`] speaks the protocol and keeps a depth, [`shape`] describes its requests, [`load`] is
//! one measurement with its results, [`cpu`] reads the server's processor time, [`peer`] starts the
//! servers, [`bare`] is the bare loop, [`table`] takes turns and prints, [`scale`] measures our
//! server as its load grows, and [`mod@file`] compares it with fio on a file.

pub mod bare;
pub mod client;
pub mod cpu;
pub mod file;
pub mod load;
pub mod peer;
pub mod scale;
pub mod shape;
pub mod table;

/// The big-endian word of a message at byte `at`.
fn word_at(message: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(core::array::from_fn(|byte| message[at + byte]))
}
