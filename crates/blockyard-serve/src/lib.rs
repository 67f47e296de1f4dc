//! Real disks over NBD, with the block layer of [`blockyard`] inside. Linux only.
//!
//! A [`Server`] opens disks, listens, and assigns each client to a *lane*. A lane is a thread with a
//! request queue of the core for each disk, an io_uring, and a *door* for each of its clients. The
//! README has an example.
//!
//! ```text
//! socket ─► door::nbd::parse ─► RequestQueue ─► disk::Medium ─► file, memory
//! socket ◄─ door::nbd::answer ◄─ bio end ◄──── completion ◄───────┘
//! ```
//!
//! [`blockyard_wire`] understands the protocol, [`blockyard`] queues the requests, and
//! [`blockyard_std`] has the io_uring, the memory and the files. This crate adds the sockets and the disks' layers.
//!
//! # Modules
//!
//! - [`server`](Server): configuration, the thread that accepts clients, and shutdown.
//! - `lane`: the loop, which knows no protocol.
//! - `door`: a client's way into a lane; `door::nbd` is NBD over sockets and TLS.
//! - `services`: the disks, buffers and ring that a lane offers its doors; `queue` drives the core.
//! - `disk`: the places where data is kept: memory and files of [`blockyard_std`], `null`, `btt`. `layers` lie over these;
//!   one of them is `live`, which makes a disk behave like a model.
//! - `entrance`: messages of other threads to a lane.
//! - `metrics`: the counts of each lane's `meter`, over HTTP. [`control`]: an operator's commands.
//! - `event`: events of clients and disks, for a log; `watcher`: every step of every request, for a trace;
//!   `gauge`: `traffic` so far, for a progress line.
//! - Queue, jobs, buffers, plain devices and io_uring are those of [`blockyard_std`].
//!
//! # Why lanes
//!
//! Threads share nothing on the path of a request except the depth of a file. A lane therefore takes no
//! lock and wakes no other thread, and one system call sends and receives everything of a turn. Other
//! servers use a thread for each request; a lane takes one turn for all requests that have arrived.

mod acceptor;
mod admission;
mod callers;
pub mod control;
mod descriptors;
mod disk;
mod disks;
mod door;
mod entrance;
mod event;
mod gauge;
mod handshakes;
mod lane;
#[cfg(any(test, feature = "memory-door"))]
#[doc(hidden)]
pub mod lane_alone;
mod lane_memory;
mod listen;
mod meter;
mod metrics;
mod newcomers;
mod numbers;
mod overview;
mod peer;
mod queue;
mod reloader;
mod reserve;
mod roster;
mod server;
mod services;
mod tls;
mod traffic;
mod watcher;

use blockyard_std::parts::{bell, clock, discards, job, map, pool, ring, slab, words};

pub use admission::{Admission, Place};
pub use blockyard_std::parts::words::counted;
pub use blockyard_std::{IoEngine, OpenError as StoreError};
pub use disk::{
    Behaviour, DiskConfig, FaultCounts, LATE, Lateness, Layers, OpenError, Source, Timing,
};
pub use event::{ClientEvent, DiskEvent, Event, Happened, Harm};
pub use gauge::Gauge;
pub use listen::{Address, ListenError};
pub use metrics::question as http;
pub use reloader::Reloader;
pub use rustls::pki_types::ServerName;
pub use server::{Config, Io, Server, StartError, Stopper, automatic_lanes};
pub use tls::{TlsConfig, TlsError, Untimely};
pub use traffic::Traffic;
pub use watcher::{Tell, Watcher};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
