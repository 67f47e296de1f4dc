//! Freeze, quiesce and drain: keeping out bios, holding back requests, and ending a queue.
//!
//! Freezes and quiesces nest. A quiesced queue does not drain, frozen or not.
//!
//! # Rules
//!
//! - **[frozen-admits-none]** While a queue is frozen no bio enters. Requests that are inside
//!   continue to their end, also out of plugs. Refused submitters are woken when the last freeze
//!   ends.
//! - **[quiesced-sends-none]** From the return of [`RequestQueue::quiesce`] on, nothing is offered
//!   to the driver; completions may still come. When the last quiesce ends every hardware queue is
//!   run, so that no request that came meanwhile is forgotten.
//!
//! From the first [`RequestQueue::drain`] on no bio enters, whoever unfreezes, and no submitter
//! waits: those that do are woken, to be refused. Requests that are inside continue to their end.

use super::RequestQueue;
use super::turn::Turn;
use crate::driver::Driver;
use crate::host::Host;
use crate::time::Instant;
use crate::trace::Sink;
use crate::unit::CpuId;

impl RequestQueue {
    /// Keeps bios out until [`Self::unfreeze`] ([frozen-admits-none]). Drain [`Self::next_run`]
    /// afterwards. The queue is at rest when [`Self::is_empty`].
    pub fn freeze<D: Driver, S: Sink>(&mut self, host: &mut Host<D, S>, now: Instant) {
        Turn::new(self, host, now).freeze();
    }

    /// Undoes one [`Self::freeze`]. Drain [`Self::next_woken`] afterwards.
    ///
    /// # Panics
    ///
    /// Panics if the queue is not frozen.
    pub fn unfreeze(&mut self) {
        // A drain holds a freeze of its own, which nobody undoes.
        let of_drain = u32::from(self.pauses.draining);
        let frozen = &mut self.pauses.frozen;
        assert!(*frozen > of_drain, "unfreeze of a queue that is not frozen");
        *frozen -= 1;
        if *frozen == 0 {
            self.woken.extend(self.pauses.waiters.drain(..));
        }
    }

    /// Ends the queue, step by step, so that it can be dropped. The first call closes the queue:
    /// [`Self::submit`] answers [`SubmitError::Draining`](crate::status::SubmitError) from then on,
    /// plugs are released, and [`Self::next_woken`] names every waiter. Each call runs what is due.
    ///
    /// Returns whether the queue holds nothing: every bio that entered has ended, and
    /// [`Self::next_ended`] has returned it. Until then continue as before: complete requests, wait
    /// until [`Self::poll_at`] at most, drain the other calls ([`Host::next_starved`] too), and
    /// call this again.
    ///
    /// A quiesced queue does not drain. Data in a volatile cache of the device stays there:
    /// submit a flush first.
    ///
    /// ```
    /// # use blockyard::{bio::Bio, device::null::NullDevice, host::Host, limits::Limits};
    /// # use blockyard::policy::Policies;
    /// # use blockyard::request_queue::{QueueConfig, RequestQueue};
    /// # use blockyard::status::SubmitError;
    /// # use blockyard::{tag::TagSetConfig, time::{Duration, Instant}, unit::{CpuId, QueueId}};
    /// # let mut host = Host::new(NullDevice::new(1, 1), (), TagSetConfig::single(1));
    /// # let config = QueueConfig::new(1, 1, Limits::new(1 << 21), Policies::mq_deadline());
    /// # let mut queue = RequestQueue::new(QueueId(0), config, &host);
    /// # let mut now = Instant::ZERO;
    /// # queue.submit(&mut host, CpuId(0), Bio::read(0, 8, 1), now).unwrap();
    /// while !queue.drain(&mut host, now) {
    ///     now = now + Duration::from_us(10); // here a real loop waits for its device
    ///     queue.turn(&mut host, now);
    ///     while let Some(ended) = queue.next_ended() {
    ///         println!("{} has ended", ended.bio.cookie);
    ///     }
    /// }
    /// let late = queue.submit(&mut host, CpuId(0), Bio::read(8, 8, 2), now);
    /// assert_eq!(late, Err(SubmitError::Draining));
    /// drop(queue);
    /// ```
    pub fn drain<D: Driver, S: Sink>(&mut self, host: &mut Host<D, S>, now: Instant) -> bool {
        if !core::mem::replace(&mut self.pauses.draining, true) {
            self.freeze(host, now);
            self.wake_all(host);
        }
        while let Some(run) = self.next_run(host, now) {
            let _ = self.run(host, run.hctx, now);
        }
        self.is_empty()
    }

    /// Wakes every waiter: for the end of a freeze, for a tag, or for a place of writeback.
    fn wake_all<D, S>(&mut self, host: &mut Host<D, S>) {
        self.woken.extend(self.pauses.waiters.drain(..));
        for tags in &mut self.sched_tags {
            tags.wake_all();
            self.woken.extend(core::iter::from_fn(|| tags.next_woken()));
        }
        if let Some(wbt) = &mut self.wbt {
            wbt.wake_all(&mut self.woken);
        }
        host.tags.wake_all();
    }

    /// Whether bios are kept out.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.pauses.frozen > 0
    }

    /// Keeps requests from the driver until [`Self::unquiesce`] ([quiesced-sends-none]).
    pub const fn quiesce(&mut self) {
        self.pauses.quiesced += 1;
    }

    /// Undoes one [`Self::quiesce`]. Drain [`Self::next_run`] afterwards.
    ///
    /// # Panics
    ///
    /// Panics if the queue is not quiesced.
    pub fn unquiesce(&mut self) {
        let quiesced = &mut self.pauses.quiesced;
        *quiesced = quiesced.checked_sub(1).expect("unquiesce of a queue that is not quiesced");
        if *quiesced == 0 {
            self.runs.mark_all();
        }
    }

    /// Whether requests are kept from the driver.
    #[must_use]
    pub const fn is_quiesced(&self) -> bool {
        self.pauses.quiesced > 0
    }
}

impl<D: Driver, S: Sink> Turn<'_, D, S> {
    fn freeze(&mut self) {
        self.queue.pauses.frozen += 1;
        for cpu in 0..self.queue.plugs.len() {
            let cpu = CpuId(u16::try_from(cpu).expect("a processor's number is 16 bits"));
            self.release_plug(cpu, true);
        }
        self.queue.runs.mark_all();
    }
}
