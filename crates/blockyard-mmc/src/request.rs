//! MMC requests: command, data and stop as one unit.

use super::command::packed::MAX_ENTRIES;
use super::command::{Command, Data, Direction};
use blockyard::time::Duration;
use core::fmt;

/// A place for one request, from its acceptance to its end: below the number of slots that the
/// controller was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u8);

impl SlotId {
    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whose memory a transfer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing is transferred.
    None,
    /// That of the request in `slot`, from block `skip` on.
    Slot {
        /// The slot.
        slot: SlotId,
        /// Blocks of the request that come before.
        skip: u32,
    },
    /// The controller's [own block](crate::controller::HostController::block).
    Block,
    /// That of several requests, whole and in order; behind the controller's own block where they write.
    Packed(Pack),
}

/// The requests of a packed command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pack {
    slots: [SlotId; MAX_ENTRIES as usize],
    count: u8,
}

impl Pack {
    /// That of the requests in `slots`.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_ENTRIES`].
    #[must_use]
    pub fn new(slots: &[SlotId]) -> Self {
        let mut pack = Self { slots: [SlotId(0); MAX_ENTRIES as usize], count: 0 };
        pack.slots[..slots.len()].copy_from_slice(slots);
        pack.count = u8::try_from(slots.len()).expect("no more than the array has");
        pack
    }

    /// Their slots, in order.
    #[must_use]
    pub fn slots(&self) -> &[SlotId] {
        &self.slots[..usize::from(self.count)]
    }
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.slots()).finish()
    }
}

/// What goes over the bus in one: commands around at most one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmcRequest {
    /// What announces the transfer: CMD23.
    pub announce: Option<Command>,
    /// The command, with the transfer if it has one.
    pub command: Command,
    /// What ends the transfer: CMD12.
    pub stop: Option<Command>,
    /// The memory of the transfer.
    pub payload: Payload,
    /// The longest that the card may keep the host waiting: before a block that is read, before it takes one
    /// that is written, and with busy; counted anew for each. Whole nanoseconds, from what the card's
    /// registers grant it. A controller whose counter is coarser rounds up, and one whose counter does not
    /// reach so far leaves it off: the request path has a limit of its own. Zero where the card neither
    /// moves data nor is busy. A response has its own limit, 64 clocks.
    pub limit: Duration,
}

impl MmcRequest {
    /// A command by itself, which may keep the host waiting up to `limit`, if it moves data or the card may be
    /// busy with it.
    #[must_use]
    pub const fn plain(command: Command, limit: Duration) -> Self {
        let waits = command.data.is_some() || command.response.has_busy();
        let limit = if waits { limit } else { Duration::ZERO };
        Self { announce: None, command, stop: None, payload: Payload::None, limit }
    }

    /// What it consists of, in order: what a controller tells the end of, one by one or at once.
    pub fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let parts = [
            (Part::Announce, self.announce.is_some()),
            (Part::Command, true),
            (Part::Data, self.data().is_some()),
            (Part::Stop, self.stop.is_some()),
            (Part::Busy, self.ends_busy()),
        ];
        parts.into_iter().filter_map(|(part, is_there)| is_there.then_some(part))
    }

    /// The transfer.
    #[must_use]
    pub const fn data(&self) -> Option<Data> {
        self.command.data
    }

    /// Whether the card may be busy when all else is done: after a write, and after a command whose
    /// response says so.
    #[must_use]
    pub fn ends_busy(&self) -> bool {
        let writes = self.data().is_some_and(|data| data.direction == Direction::Write);
        let stops_busy = self.stop.is_some_and(|stop| stop.response.has_busy());
        writes || stops_busy || self.command.response.has_busy()
    }
}

/// A part of a transaction, in the order in which they are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// [`MmcRequest::announce`].
    Announce,
    /// [`MmcRequest::command`].
    Command,
    /// The transfer.
    Data,
    /// [`MmcRequest::stop`].
    Stop,
    /// The card is busy.
    Busy,
}

/// What went wrong on the bus or in the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostError {
    /// Nothing came in time.
    Timeout,
    /// It came damaged: CRC, end bit, or index of the command.
    Damaged,
    /// The controller could not reach the memory.
    Memory,
}
