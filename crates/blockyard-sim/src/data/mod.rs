//! What is on a device: data as the marks of the writes that put it there, and who checks it.
//!
//! ```text
//! submitter ──► History ◄── what reads found        which marks may be found, and where
//!     │ bio        ▲
//!  queues          │ an image
//!     │ request    │
//!  Medium ─────► Image, live and durable            which marks are there
//!     │
//!  any model of a device
//! ```
//!
//! No bytes are moved. Every bio that changes data has a [`Stamp`](image::Stamp) of its own, which
//! is written in place of them, so that whoever finds it can tell whose it is, and where it was
//! meant to be. [`medium`] keeps what a device holds and loses, decided by itself or, of a device that
//! knows better, by its [`deed`]s; [`history`] knows nothing of it, nor
//! of the queues: it is told of bios alone, as their submitter sees them, and says what may be found.
//! [`verify`] joins both for a simulation. [`spans`] is the map that all of them keep.

pub mod deed;
pub mod history;
pub mod image;
pub mod medium;
pub mod spans;
pub mod verify;
