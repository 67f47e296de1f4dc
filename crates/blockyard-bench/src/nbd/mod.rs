//! NBD servers beside each other: the same load from one client, in turns.
//!
//! [`client`] speaks the protocol and keeps a depth, [`shape`] is what it asks for, [`load`] is one
//! measurement and what it found, [`cpu`] is what the server spent on it, [`peer`] starts the servers, [`bare`] is
//! one that knows nothing, and [`table`] takes turns and prints. The program is `--bin peers`.

pub mod bare;
pub mod client;
pub mod cpu;
pub mod load;
pub mod peer;
pub mod shape;
pub mod table;
