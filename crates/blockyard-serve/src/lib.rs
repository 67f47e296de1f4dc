//! Real disks over NBD, with the block layer of [`blockyard`] inside. Linux only.
//!
//! A [`Server`] opens disks, listens, and assigns each client to a *lane*. A lane is a thread with
//! a request queue of the core for each disk, an io_uring, and a *door* for each of its clients.
//! The README has an example.
//!
//! ```text
//! socket ─► door::nbd::parse ─► RequestQueue ─► disk::Medium ─► file, memory
//! socket ◄─ door::nbd::answer ◄─ bio end ◄──── completion ◄───────┘
//! ```
//!
//! [`blockyard_wire`] understands the protocol, [`blockyard`] queues the requests, and
//! [`blockyard_std`] has the io_uring, the memory and the files. This crate adds the sockets and
//! the disks' layers.
//!
//! # Modules
//!
//! A module uses only those below it.
//!
//! - [`server`](Server): configuration, the thread that accepts clients, live traffic, and
//!   shutdown.
//! - `metrics`: the counts of each lane over HTTP. [`control`]: an operator's commands.
//! - `door`: the kinds of door; `door::nbd` is NBD over sockets and TLS.
//! - `lane`: the loop, which knows no protocol; its seam to doors (`lane::door`); the disks,
//!   buffers and ring that it offers them (`lane::services`); messages of other threads to it
//!   (`lane::entrance`).
//! - `disk`: the places where data is kept: memory and files of [`blockyard_std`], `null`, `btt`.
//!   `layers` are stacked on these; one of them is `live`, which makes a disk behave like a model.
//!   `disk::roster` has the exported disks by number.
//! - `observation`: events of clients and disks for a log, counts, and every step of every request
//!   for a trace.
//! - `clients`: sockets, certificates, and the clients that may use a disk.
//! - Queue, jobs, buffers, plain devices and io_uring are those of [`blockyard_std`].
//!
//! # Why lanes
//!
//! Threads share nothing on the path of a request except the depth of a file. A lane therefore
//! takes no lock and wakes no other thread, and one system call sends and receives everything of a
//! turn. Other servers use a thread for each request; a lane takes one turn for all requests that
//! have arrived.

mod clients;
pub mod control;
mod disk;
mod door;
mod lane;
#[cfg(any(test, feature = "memory-door"))]
#[doc(hidden)]
pub mod lane_alone;
mod metrics;
mod observation;
mod server;

pub use blockyard_std::parts::words::counted;
pub use blockyard_std::{IoEngine, OpenError as StoreError};
pub use clients::admission::{Admission, Place};
pub use clients::listen::{Address, ListenError};
pub use clients::tls::{TlsConfig, TlsError, Untimely};
pub use clients::weight::Weight;
pub use disk::{
    Behaviour, DiskConfig, FaultCounts, LATE, Lateness, Layers, OpenError, Source, Timing,
};
pub use metrics::question as http;
pub use observation::event::{ClientEvent, DiskEvent, Event, Happened, Harm};
pub use observation::traffic::Traffic;
pub use observation::watcher::{Tell, Watcher};
pub use rustls::pki_types::ServerName;
pub use server::gauge::Gauge;
pub use server::reloader::Reloader;
pub use server::{Config, Io, Server, StartError, Stopper, automatic_lanes};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
