//! The request path of a host: from [`Driver::queue_rq`] to MMC requests on a bus and back.
//!
//! An [`Mmc`] is the driver of one card behind one [`HostController`]. All its work on a processor
//! is divided into [`Act`]s. A context ([`Context`]) [begins](Mmc::begin) an act and
//! [finishes](Mmc::finish) it; in between the caller may charge for the act, or lose the processor.
//! [`Mmc::step`] does both, for callers that need neither. The table in [`policy`](crate::policy)
//! says which acts each context has, in which order.
//!
//! ```text
//! queue_rq ► fresh ─prepare─► ready ─start─► on the bus ─settle─► ended ─post─► posted ─complete─►
//!                                                ▲  └─ error ─► recovery ─┐  next_finished
//!                                                └────── again ◄──────────┘
//! ```
//!
//! # The loop
//!
//! - The interrupt handler passes events to [`Mmc::interrupt`], then does the acts of
//!   [`Context::Interrupt`].
//! - A context runs while [`Mmc::pending`] says that it has something to do. Wake it when that
//!   turns true.
//! - Finished requests come out of [`Device::next_finished`]. Call it at the latest at
//!   [`Device::poll_at`].
//!
//! # Rules
//!
//! - **[one-claim-on-bus]** One request at a time holds the claim on the bus, from its start until
//!   the card is ready for the next one, busy and recovery included. Nothing else is started
//!   meanwhile. A command queue engine that is on has the bus for all its tasks, until it has no
//!   task and is turned off.
//! - **[memory-prepared-once]** A request's memory is prepared once, and posted once, after its
//!   last transfer.
//! - **[one-act-per-request]** A request is in one stage, and at most one context has begun an act
//!   for it.
//! - **[no-intake-in-recovery]** During the recovery from an error, no request is accepted, and
//!   none is given to the command queue engine.
//!
//! If memory is prepared while its read transfers, all of it is prepared before anything follows
//! the end of the transfer: a read that is tried again has all its memory. The blocks that a read
//! has transferred before it failed are reported as done, if no bounce buffer keeps them.
//!
//! `late_error` has the rules of late write errors, `exclusive` those of operations that transfer
//! nothing (flushes, erases), `recovery` those of failed transfers, `background` those of urgent
//! background operations, and `packed` those of packed commands. [`Driver::queue_rq`] refuses
//! commands of the driver's own.
//!
//! [`Driver::queue_rq`]: blockyard::driver::Driver::queue_rq
//! [`Device::next_finished`]: blockyard::driver::Device::next_finished
//! [`Device::poll_at`]: blockyard::driver::Device::poll_at
//! [`HostController`]: crate::controller::HostController

mod act;
mod background;
mod bus;
mod cache;
mod claim;
mod counts;
mod cqe;
mod driver;
mod error;
mod exclusive;
mod late_error;
mod left_open;
mod mmc;
mod open;
mod operation;
mod order;
mod pack_limit;
mod packed;
mod power;
mod recovery;
mod schedule;
mod self_check;
mod slot;
mod suspend;
mod tasks;
#[cfg(test)]
mod tests;
mod unconfirmed;
mod verdict;

pub use super::target::Target;
pub use act::{Act, ActKind, Context};
pub use claim::{BUSY_LIMIT, FIRST_PAUSE, LONGEST_PAUSE, REQUEST_LIMIT};
pub use counts::Counts;
pub use cqe::{CLEAR_LIMIT, HALT_LIMIT, LAST_HALT_LIMIT, TASK_LIMIT};
pub use error::Unsupported;
pub use exclusive::NoSanitize;
pub use mmc::Mmc;
pub use power::{DISABLE_LIMIT, Idle, StillEnabled};
pub use tasks::direct_command::{DirectEnd, NotDirect};
pub use verdict::{DATA_RETRIES, RETRIES_MAX, SECTOR_TRIES};
