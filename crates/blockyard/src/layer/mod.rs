//! Layers: devices over devices.
//!
//! A layer takes the calls of a [`Driver`](crate::driver::Driver), changes or records some of them, and
//! passes them on to the [`Device`](crate::driver::Device) below, whose completions it passes up.
//! Layers stack in any order; each is one value in the type of the next:
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
//! - [`checked`]: asserts the contract between driver and core.
//! - [`fault`]: injects faults by named rules.
//! - [`delay`]: adds latency to that of the device.
//! - [`rate`]: limits bytes and requests per second; `rate` and `delay` are policies of [`late`].
//! - [`trace`]: reports every call to a sink.
//!
//! To the device below, a layer is the core: the layer must keep every promise of a
//! [`Driver`](crate::driver::Driver)'s caller. All memory is reserved at construction, by the tags of
//! the host: a layer holds no more requests than there are tags. A layer refuses nothing that the device below would
//! accept, unless a fault says so; a limit delays completions. It reports a completion that it holds back itself, at
//! the instant that its [`poll_at`](crate::driver::Device::poll_at) returns.
//!
//! # Rules
//!
//! - **[let-go-ends-held]** A layer that lets go fails every request whose completion it holds or has lost, and holds and
//!   loses none from then on. A write that fails so may have reached the device below.

pub mod checked;
pub mod delay;
pub mod fault;
mod held;
pub mod late;
pub mod rate;
mod tagged;
pub mod trace;

#[cfg(test)]
mod tests;

/// Passes calls of [`Driver`](crate::driver::Driver) or [`Device`](crate::driver::Device) on
/// unchanged to the device below, which is in the named field.
///
/// ```
/// use blockyard::driver::{Accept, Device, Driver, Issue};
/// use blockyard::pass_on;
///
/// /// Counts the requests that the device below accepts.
/// struct Counted<D> {
///     below: D,
///     accepted: u64,
/// }
///
/// impl<D: Driver> Driver for Counted<D> {
///     pass_on!(below: take_budget, return_budget, prepare, unprepare, commit, timed_out, finish);
///
///     fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
///         let answer = self.below.queue_rq(issue);
///         self.accepted += u64::from(answer == Accept::Queued);
///         answer
///     }
/// }
///
/// impl<D: Device> Device for Counted<D> {
///     pass_on!(below: next_finished, poll_at);
/// }
/// ```
///
/// In an enum of devices, `Self::{...}` names all variants in place of the field:
///
/// ```
/// use blockyard::device::null::NullDevice;
/// use blockyard::driver::{Device, Driver};
/// use blockyard::layer::delay::Delayed;
/// use blockyard::pass_on;
///
/// enum Disk {
///     Fast(NullDevice),
///     Slow(Box<Delayed<NullDevice>>),
/// }
///
/// impl Driver for Disk {
///     pass_on!(Self::{Fast, Slow}: take_budget, return_budget, prepare, unprepare, queue_rq);
///     pass_on!(Self::{Fast, Slow}: commit, timed_out, finish);
/// }
///
/// impl Device for Disk {
///     pass_on!(Self::{Fast, Slow}: next_finished, poll_at);
/// }
/// ```
#[macro_export]
macro_rules! pass_on {
    (Self::$variants:tt: $($call:ident),+ $(,)?) => {
        $($crate::pass_on!(@$call $variants);)+
    };
    ($below:ident: $($call:ident),+ $(,)?) => { $($crate::pass_on!(@$call $below);)+ };
    (@take_budget $to:tt) => {
        #[inline]
        fn take_budget(&mut self, queue: $crate::unit::QueueId) -> Option<$crate::unit::Budget> {
            $crate::pass_on!(@to self $to take_budget(queue))
        }
    };
    (@return_budget $to:tt) => {
        #[inline]
        fn return_budget(&mut self, queue: $crate::unit::QueueId, budget: $crate::unit::Budget) {
            $crate::pass_on!(@to self $to return_budget(queue, budget))
        }
    };
    (@prepare $to:tt) => {
        #[inline]
        fn prepare(&mut self, issue: &$crate::driver::Issue<'_>) {
            $crate::pass_on!(@to self $to prepare(issue))
        }
    };
    (@unprepare $to:tt) => {
        #[inline]
        fn unprepare(&mut self, issue: &$crate::driver::Issue<'_>) {
            $crate::pass_on!(@to self $to unprepare(issue))
        }
    };
    (@queue_rq $to:tt) => {
        #[inline]
        fn queue_rq(&mut self, issue: &$crate::driver::Issue<'_>) -> $crate::driver::Accept {
            $crate::pass_on!(@to self $to queue_rq(issue))
        }
    };
    (@commit $to:tt) => {
        #[inline]
        fn commit(
            &mut self,
            queue: $crate::unit::QueueId,
            hctx: $crate::unit::HctxId,
            now: $crate::time::Instant,
        ) {
            $crate::pass_on!(@to self $to commit(queue, hctx, now))
        }
    };
    (@timed_out $to:tt) => {
        #[inline]
        fn timed_out(
            &mut self,
            queue: $crate::unit::QueueId,
            hctx: $crate::unit::HctxId,
            tag: $crate::unit::DriverTag,
            request: &$crate::request::Request,
            now: $crate::time::Instant,
        ) -> $crate::driver::TimedOut {
            $crate::pass_on!(@to self $to timed_out(queue, hctx, tag, request, now))
        }
    };
    (@finish $to:tt) => {
        #[inline]
        fn finish(
            &mut self,
            queue: $crate::unit::QueueId,
            hctx: $crate::unit::HctxId,
            tag: $crate::unit::DriverTag,
            request: &$crate::request::Request,
        ) {
            $crate::pass_on!(@to self $to finish(queue, hctx, tag, request))
        }
    };
    (@next_finished $to:tt) => {
        #[inline]
        fn next_finished(
            &mut self,
            now: $crate::time::Instant,
        ) -> Option<$crate::driver::Finished> {
            $crate::pass_on!(@to self $to next_finished(now))
        }
    };
    (@poll_at $to:tt) => {
        #[inline]
        fn poll_at(&self) -> Option<$crate::time::Instant> {
            $crate::pass_on!(@to self $to poll_at())
        }
    };
    (@to $me:tt {$($(#[$attr:meta])* $variant:ident),+} $call:ident $args:tt) => {
        match $me { $($(#[$attr])* Self::$variant(below) => below.$call $args,)+ }
    };
    (@to $me:tt $below:ident poll_at()) => { $crate::driver::Device::poll_at(&$me.$below) };
    (@to $me:tt $below:ident next_finished($now:ident)) => {
        $crate::driver::Device::next_finished(&mut $me.$below, $now)
    };
    (@to $me:tt $below:ident $call:ident($($arg:ident),+)) => {
        $crate::driver::Driver::$call(&mut $me.$below, $($arg),+)
    };
}
