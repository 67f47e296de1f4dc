//! The block layer as a library.
//!
//! The path from a submitter of reads and writes to a device: bios are split to the device's
//! limits, merged, sorted by an elevator, given tags, passed to a driver, and ended exactly once.
//! In a kernel this is the block layer. Here it is a value with one owner, in `no_std` with
//! `alloc`: it reads no clock, starts no thread, makes no system call, and allocates nothing after
//! construction. The same code runs over real descriptors and in virtual time.
//!
//! ```text
//! bio ─► split ─► plug ─► software queue ─► elevator ─► budget ─► driver tag ─► Driver::queue_rq
//!           │      (merging is tried at these three)    ▲                            │ Busy
//!           │                        requeue, refused: dispatch list, goes first ◄───┘
//! bio end ◄─┴──── end ◄──── completion ◄───────────────────────── in flight
//! ```
//!
//! # Modules
//!
//! - [`request_queue`] owns the stages and is the one place that names them all. Start there; five
//!   calls drive it (below).
//! - [`bio`], [`limits`]: what a submitter hands in, and the limits of one request.
//! - [`policy`]: the choices in which designs differ. Historical mechanisms stay selectable along
//!   with today's.
//! - The stages: [`software_queue`]; [`elevator`] with mq-deadline in [`elevator::deadline`] and
//!   others in their own modules, or one from outside, which [`conformance`] tests;
//!   [`hardware_queue`]; [`tag`]; [`flush`]; [`merge`] decides whether two pieces of I/O may become
//!   one, and [`end_index`] and [`sector_hash`] find the candidates; [`request`] holds the requests
//!   that pass through them.
//! - [`driver`] is the only seam to a device, and [`device`] has the smallest one. A [`layer`] is a
//!   device over a device: fault rules, delays, rates, a record of calls, a check of every call.
//!   [`host`] holds the parts that the queues of one host share: driver, driver tags, and event
//!   sink.
//! - [`trace`], [`stats`]: an event for each step, named as in blktrace; histograms with a stated
//!   error. The sink `()` compiles them away.
//!
//! # The five calls
//!
//! - [`submit`](request_queue::RequestQueue::submit): a bio enters, or is refused and nothing
//!   changed
//! - [`run`](request_queue::RequestQueue::run): pass requests to the driver;
//!   [`next_run`](request_queue::RequestQueue::next_run) and
//!   [`Host::next_starved`](host::Host::next_starved) name the hardware queues
//! - [`complete`](request_queue::RequestQueue::complete): the driver is done with a request
//! - [`next_ended`](request_queue::RequestQueue::next_ended): returns a bio that has ended
//! - [`poll_at`](request_queue::RequestQueue::poll_at): when to call `next_run` if nothing happens
//!   before
//!
//! Each is given the time, in nanoseconds from a zero that the caller chose.
//!
//! # The whole loop
//!
//! Four times as many reads as the device accepts, over a device that completes every request at
//! once:
//!
//! ```
//! use blockyard::bio::Bio;
//! use blockyard::device::null::NullDevice;
//! use blockyard::driver::Device;
//! use blockyard::host::Host;
//! use blockyard::limits::Limits;
//! use blockyard::policy::Policies;
//! use blockyard::request_queue::{QueueConfig, RequestQueue};
//! use blockyard::status::{Status, SubmitError};
//! use blockyard::tag::TagSetConfig;
//! use blockyard::time::{Duration, Instant};
//! use blockyard::unit::{CpuId, QueueId};
//!
//! let tags = TagSetConfig::single(8);
//! let mut host = Host::new(NullDevice::new(1, 8), (), tags);
//! let config = QueueConfig::new(1, 1, Limits::new(1 << 21), Policies::mq_deadline());
//! let mut queue = RequestQueue::new(QueueId(0), config, &host);
//!
//! let mut now = Instant::ZERO;
//! let mut bios = (0..32).map(|at| Bio::read(at * 4096, 8, at)).peekable();
//! let mut ended = 0;
//! while ended < 32 {
//!     // Submit until the tags are used up.
//!     while let Some(&bio) = bios.peek() {
//!         match queue.submit(&mut host, CpuId(0), bio, now) {
//!             Ok(()) => bios.next(),
//!             Err(SubmitError::NoTag) => break,
//!             Err(refused) => panic!("{refused}"),
//!         };
//!     }
//!     while let Some(run) = queue.next_run(&mut host, now) {
//!         let _ = queue.run(&mut host, run.hctx, now);
//!     }
//!     // Here a real loop waits for its device, until `poll_at` at most.
//!     now = now + Duration::from_us(10);
//!     while let Some(finished) = host.driver.next_finished(now) {
//!         queue.conclude(&mut host, &finished, now).expect("the device owned it");
//!         while let Some((_, hctx)) = host.next_starved() {
//!             let _ = queue.run(&mut host, hctx, now);
//!         }
//!     }
//!     while let Some(end) = queue.next_ended() {
//!         assert_eq!(end.status, Status::Ok);
//!         ended += 1;
//!     }
//! }
//! assert!(queue.is_empty());
//! ```
//!
//! # Left to the caller
//!
//! Memory for the payload (a bio carries the caller's cookie, never bytes), page caches, file
//! systems, partitions, and sleeping: a submitter that finds no tag registers with
//! [`wait`](request_queue::RequestQueue::wait), and a later call names it when it should try again.
//!
//! # Features
//!
//! - `std`, off by default, for programs with std: a debug build panics if a
//!   [`RequestQueue`](request_queue::RequestQueue) is dropped while its driver owns requests,
//!   unless the thread is panicking already.
//!
//! All else is `no_std` with `alloc` always. The crate has no dependencies and contains no
//! `unsafe`.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod bio;
pub mod conformance;
pub mod device;
pub mod driver;
pub mod elevator;
pub mod end_index;
pub mod flush;
pub mod hardware_queue;
pub mod host;
pub mod layer;
pub mod limits;
pub mod merge;
mod plug;
pub mod policy;
pub mod prng;
pub mod request;
pub mod request_queue;
pub mod sector_hash;
pub mod software_queue;
pub mod stats;
pub mod status;
pub mod tag;
pub mod time;
pub mod trace;
pub mod unit;
mod wbt;
