//! Holding the traffic: a freeze keeps bios out, a quiesce keeps requests from the driver.
//!
//! Both nest. A quiesced queue does not drain, frozen or not.
//!
//! # Rules
//!
//! - **[frozen-admits-none]** While a queue is frozen no bio enters. Requests that are inside continue to
//!   their end, also out of plugs. Refused submitters are woken when the last freeze ends.
//! - **[quiesced-sends-none]** From the return of [`RequestQueue::quiesce`] on, nothing is offered to the
//!   driver; completions may still come. When the last quiesce ends every hardware queue is run, so that
//!   no request that came meanwhile is forgotten.

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
        let frozen = &mut self.pauses.frozen;
        *frozen = frozen.checked_sub(1).expect("unfreeze of a queue that is not frozen");
        if *frozen == 0 {
            self.woken.extend(self.pauses.waiters.drain(..));
        }
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
