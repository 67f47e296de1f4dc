//! Doors: each is one client's way into a lane, by some protocol.
//!
//! A lane owns its doors by number. It calls a door when something has come for it, when a request of it
//! has ended, and at the end of a turn; the door asks the lane's [`Services`] for disks, buffers and the
//! ring. What a request means to its client only the door knows, under a token of its choice.

#[cfg(any(test, feature = "memory-door"))]
pub(crate) mod memory;
pub(crate) mod nbd;

use crate::job::Transfer;
use crate::services::Services;
use blockyard::status::Status;
use blockyard::time::Instant;
use std::io;

/// One client's way into a lane. See the [module](self).
///
/// Each call names the door by the number that it has in its lane. The lane calls [`Door::settle`] in the
/// turn of every call of [`Door::returned`] and [`Door::ended`], and after [`Services::list`].
pub(crate) trait Door: Sized {
    /// What comes in to a lane to be made a door of.
    type Arrival: Send + 'static;
    /// What all doors of a server share.
    type Shared: Clone + Send + 'static;
    /// Memory that a door lends to the kernel, with what the door did with it.
    type Memory;

    /// A door for what has come. It is listed.
    fn open(
        arrival: Self::Arrival,
        shared: &Self::Shared,
        lane: &mut Services<Self::Memory>,
    ) -> Self;

    /// Something has come, or a door that was held may go on: understands what there is, and submits it.
    fn ready(&mut self, number: u32, lane: &mut Services<Self::Memory>);

    /// The kernel is done with `memory`; with `more`, there is more to be received already.
    fn returned(
        &mut self,
        number: u32,
        memory: Self::Memory,
        result: io::Result<usize>,
        more: bool,
        lane: &mut Services<Self::Memory>,
    );

    /// The request that the door knows by `token` is over, and its memory comes back.
    fn ended(
        &mut self,
        token: u32,
        status: Status,
        transfer: Transfer,
        lane: &mut Services<Self::Memory>,
    );

    /// The end of a turn: gives the kernel what there is for it to do. Whether the door is done: neither the
    /// kernel nor a disk has anything of it, and nothing will come.
    fn settle(&mut self, number: u32, lane: &mut Services<Self::Memory>) -> bool;

    /// An instant has come that some door had asked for by [`Services::wake_at`]; one that waits for a later
    /// one asks again.
    fn wake(&mut self, number: u32, lane: &mut Services<Self::Memory>);

    /// Since when the client leaves memory of the lane in use, by a reply that it does not take or a
    /// write that it does not finish; with `anything`, also one that uses none.
    fn holds_since(&self, anything: bool) -> Option<Instant>;

    /// Its client kept others waiting for too long: nothing more is sent or received.
    fn cut_off(&mut self, number: u32, lane: &mut Services<Self::Memory>);

    /// The server ends: nothing new is taken, what is under way is answered, then the door is done.
    fn end(&mut self, number: u32, lane: &mut Services<Self::Memory>);

    /// The door is done and forgotten: gives back what it holds of the lane.
    fn close(self, lane: &mut Services<Self::Memory>);
}
