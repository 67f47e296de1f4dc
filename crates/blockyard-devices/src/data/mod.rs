//! The data on a device, as stamps of the writes that put it there, and its checks.
//!
//! ```text
//! submitter ──► History ◄── data of reads           which stamps may be found, and where
//!     │ bio        ▲
//!  queues          │ an image
//!     │ request    │
//!  Medium ─────► Image, live and durable            which stamps are there
//!     │
//!  any model of a device
//! ```
//!
//! No bytes are moved. Every bio that changes data has its own [`Stamp`](image::Stamp) in place of
//! bytes. A stamp that is found names its write and the sector for which it was written. [`medium`]
//! keeps the data of a device and loses it, by its own model or by the [data events](event) of a
//! device that keeps its own data. [`history`] knows neither the medium nor the queues: it sees
//! bios as their submitter does, and says which data may be found. [`verify`] joins the two for a
//! simulation. [`spans`] is the map that all of them use.

pub mod event;
pub mod history;
pub mod image;
pub mod medium;
pub mod spans;
pub mod verify;
