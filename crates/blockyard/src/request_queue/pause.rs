//! Holding the traffic: freezing keeps bios out, quiescing keeps requests from the driver.
//!
//! # Rules
//!
//! - **Z1.** While a queue is frozen no bio enters; what is inside goes on to its end, also out of
//!   plugs. Who was refused is woken when the last freeze ends.
//! - **Z2.** While a queue is quiesced nothing is offered to the driver, from the return of
//!   [`RequestQueue::quiesce`] on; completions may still come. When the last quiesce ends every
//!   hardware queue is run, so that nothing that came meanwhile is forgotten.
//! - **Z3.** Both nest. A queue that is quiesced does not drain, frozen or not.

use super::{RequestQueue, hctx_id};
use crate::driver::Driver;
use crate::host::Host;
use crate::time::Instant;
use crate::trace::Sink;
use crate::unit::CpuId;

impl RequestQueue {
    /// Keeps bios out until [`Self::unfreeze`] (Z1). Drain [`Self::next_run`] afterwards; the queue
    /// has come to rest when [`Self::is_empty`].
    pub fn freeze<D: Driver, S: Sink>(&mut self, host: &mut Host<D, S>, now: Instant) {
        self.pauses.frozen += 1;
        for cpu in 0..self.plugs.len() {
            let cpu = CpuId(u16::try_from(cpu).expect("a processor's number is 16 bits"));
            self.release_plug(host, cpu, true, now);
        }
        self.mark_all();
    }

    /// Undoes one [`Self::freeze`]. Drain [`Self::next_woken`] afterwards.
    ///
    /// # Panics
    ///
    /// If the queue is not frozen.
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

    /// Keeps requests from the driver until [`Self::unquiesce`] (Z2).
    pub const fn quiesce(&mut self) {
        self.pauses.quiesced += 1;
    }

    /// Undoes one [`Self::quiesce`]. Drain [`Self::next_run`] afterwards.
    ///
    /// # Panics
    ///
    /// If the queue is not quiesced.
    pub fn unquiesce(&mut self) {
        let quiesced = &mut self.pauses.quiesced;
        *quiesced = quiesced.checked_sub(1).expect("unquiesce of a queue that is not quiesced");
        if *quiesced == 0 {
            self.mark_all();
        }
    }

    /// Whether requests are kept from the driver.
    #[must_use]
    pub const fn is_quiesced(&self) -> bool {
        self.pauses.quiesced > 0
    }

    fn mark_all(&mut self) {
        for at in 0..self.hctxs.len() {
            self.mark_run(hctx_id(at), true);
        }
    }
}
