//! Layers: devices over devices.
//!
//! A layer takes the calls of a [`Driver`](crate::driver::Driver), changes or watches some of them,
//! and passes them on to the [`Device`](crate::driver::Device) below, whose completions it passes
//! up. Layers stack in any order; each is one value in the type of the next:
//!
//! ```
//! use blockyard::device::null::NullDevice;
//! use blockyard::layer::delay::{Delayed, Extra};
//! use blockyard::layer::rate::{Limited, Rates};
//! use blockyard::prng::Prng;
//! use blockyard::tag::TagSetConfig;
//! use blockyard::time::Duration;
//!
//! let tags = TagSetConfig::single(32);
//! // As slow as a card: 100 us more for each request, and 20 MB/s at most.
//! let slow = Extra::fixed(Duration::from_us(100));
//! let card = Delayed::new(NullDevice::new(1, 32), slow, Prng::new(1), &tags);
//! let card = Limited::new(card, Rates { bytes_per_s: Some(20_000_000), ..Rates::NONE }, &tags);
//! # let _ = card;
//! ```
//!
//! - [`checked`]: asserts what driver and core owe each other.
//! - [`fault`]: injects faults by named rules.
//! - [`delay`]: a latency of its own on top of the device's.
//! - [`rate`]: bytes and requests per second, at most; it and `delay` are policies of [`late`].
//! - [`trace`]: tells a sink of every call.
//!
//! # Rules
//!
//! - **L1.** A layer refuses nothing that the device below would take, but where a fault says so; a
//!   limit delays completions.
//! - **L2.** What a layer holds back it names itself, at the instant that its
//!   [`poll_at`](crate::driver::Device::poll_at) tells.
//! - **L3.** To the device below a layer is the core: it owes it what a
//!   [`Driver`](crate::driver::Driver) is promised.
//!
//! All memory is reserved at construction, by the tags of the host: a layer holds no more requests
//! than there are tags.

pub mod checked;
pub mod delay;
pub mod fault;
mod held;
pub mod late;
pub mod rate;
mod tagged;
pub mod trace;

/// Calls of [`Driver`](crate::driver::Driver) that a layer passes on as they are to `self.below`.
macro_rules! pass_on {
    ($($call:ident),+ $(,)?) => { $($crate::layer::pass_on!(@$call);)+ };
    (@take_budget) => {
        fn take_budget(&mut self, queue: $crate::unit::QueueId) -> Option<$crate::unit::Budget> {
            self.below.take_budget(queue)
        }
    };
    (@return_budget) => {
        fn return_budget(
            &mut self,
            queue: $crate::unit::QueueId,
            budget: $crate::unit::Budget,
        ) {
            self.below.return_budget(queue, budget);
        }
    };
    (@prepare) => {
        fn prepare(&mut self, issue: &$crate::driver::Issue<'_>) {
            self.below.prepare(issue);
        }
    };
    (@unprepare) => {
        fn unprepare(&mut self, issue: &$crate::driver::Issue<'_>) {
            self.below.unprepare(issue);
        }
    };
    (@queue_rq) => {
        fn queue_rq(&mut self, issue: &$crate::driver::Issue<'_>) -> $crate::driver::Accept {
            self.below.queue_rq(issue)
        }
    };
    (@commit) => {
        fn commit(
            &mut self,
            queue: $crate::unit::QueueId,
            hctx: $crate::unit::HctxId,
            now: $crate::time::Instant,
        ) {
            self.below.commit(queue, hctx, now);
        }
    };
    (@finish) => {
        fn finish(
            &mut self,
            queue: $crate::unit::QueueId,
            hctx: $crate::unit::HctxId,
            tag: $crate::unit::DriverTag,
            request: &$crate::request::Request,
        ) {
            self.below.finish(queue, hctx, tag, request);
        }
    };
}
use pass_on;
