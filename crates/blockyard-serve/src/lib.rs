//! Real disks over NBD, with the block layer of [`blockyard`] inside. Linux only.
//!
//! A [`Server`] opens disks, listens, and deals clients to *lanes*. A lane is a thread with a request
//! queue of the core for each disk, an io_uring, and a *door* for each of its clients:
//!
//! ```text
//! socket ─► door::nbd::parse ─► RequestQueue ─► disk::Medium ─► file, memory
//! socket ◄─ door::nbd::answer ◄─ bio end ◄──── completion ◄───────┘
//! ```
//!
//! What a client says is understood by [`blockyard_wire`], how requests are queued is [`blockyard`]'s;
//! here are the clock, the sockets, the memory and the files.
//!
//! # What there is
//!
//! - [`server`](Server): configuration, the thread that accepts, and the end.
//! - `lane`: the loop, which knows no protocol.
//! - `door`: a client's way into a lane; `door::nbd` is NBD over sockets and TLS.
//! - `services`: what a lane does for its doors; `queue` drives the core.
//! - `disk`: where data is kept: `memory`, `null`, `file` (with `overlap` for writes that are no
//!   whole blocks); `limited` holds a file to a depth that all lanes share, [`depth`]; `layers`
//!   lie over these, `live` among them: a disk that behaves as a model.
//! - `entrance`: what a lane is told and asked by the threads around it.
//! - `metrics`: what lanes counted by their `meter`s, over HTTP.
//! - `event`: what happens to clients, for a log; `watcher`: who is told every step of every request;
//!   `gauge`: their `traffic`, for who looks on.
//! - `ring` and `map`: io_uring and mappings. All `unsafe` code is in these two.
//! - `pool`, `job`, `bios`, `slab`: buffers; requests on their way.
//!
//! # Why lanes
//!
//! Nothing on the way of a request is shared between threads, but for the depth of a file: no locks, no
//! wake-ups of others, and one system call for all that a turn of the loop sends and receives. The work
//! that others do in a thread for each request is here a turn for whatever has come.
//!
//! # Example
//!
//! ```no_run
//! use blockyard::policy::Policies;
//! use blockyard_serve::{Config, DiskConfig, Layers, Server, Source};
//!
//! let disk = DiskConfig {
//!     name: String::new(),
//!     source: Source::Memory { bytes: 1 << 30, huge_pages: false },
//!     read_only: false,
//!     policies: Policies::mq_deadline(),
//!     depth: 32,
//!     depth_bytes: 64 << 20,
//!     layers: Layers::default(),
//! };
//! let server = Server::start(&Config::new(vec![disk], vec!["127.0.0.1:10809".parse()?]))?;
//! server.join()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod bell;
mod bios;
mod clock;
pub mod depth;
mod disk;
mod door;
mod entrance;
mod event;
mod gauge;
mod job;
mod lane;
#[cfg(any(test, feature = "memory-door"))]
#[doc(hidden)]
pub mod lane_alone;
mod lane_memory;
mod listen;
mod map;
mod meter;
mod metrics;
mod numbers;
mod pool;
mod queue;
mod ring;
mod server;
mod services;
mod slab;
mod tls;
mod traffic;
mod watcher;
mod words;

pub use disk::{
    Behaviour, DiskConfig, FaultCounts, LATE, Lateness, Layers, OpenError, Source, Timing,
};
pub use event::{ClientEvent, Happened};
pub use gauge::Gauge;
pub use listen::{Address, ListenError};
pub use metrics::question as http;
pub use server::{Config, Server, StartError, Stopper};
pub use tls::{TlsConfig, TlsError};
pub use traffic::Traffic;
pub use watcher::{Tell, Watcher};
