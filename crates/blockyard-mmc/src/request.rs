//! MMC requests: command, data and stop as one unit.

use super::command::packed::MAX_ENTRIES;
use super::command::{Command, Data, Direction};
use blockyard::time::Duration;
use core::fmt;

/// A place for one request, from its acceptance to its end. Its number is below the number of slots
/// that the controller was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u8);

impl SlotId {
    /// Returns the number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The memory of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing is transferred.
    None,
    /// The memory of the request in `slot`, from block `skip` on.
    Slot {
        /// The slot.
        slot: SlotId,
        /// Blocks of the request that come before this transfer.
        skip: u32,
    },
    /// The controller's [own block](crate::controller::HostController::block).
    Block,
    /// The memory of several requests, whole and in order; for writes, behind the controller's own
    /// block.
    Packed(Pack),
}

/// The requests of a packed command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pack {
    slots: [SlotId; MAX_ENTRIES as usize],
    count: u8,
}

impl Pack {
    /// The pack of the requests in `slots`.
    ///
    /// # Panics
    ///
    /// Panics if there are more than [`MAX_ENTRIES`].
    #[must_use]
    pub fn new(slots: &[SlotId]) -> Self {
        assert!(
            slots.len() <= usize::from(MAX_ENTRIES),
            "a pack of {} requests: a header lists at most {MAX_ENTRIES}",
            slots.len()
        );
        let mut all = [SlotId(0); MAX_ENTRIES as usize];
        all[..slots.len()].copy_from_slice(slots);
        let count = u8::try_from(slots.len()).expect("length of a pack that fits its array");
        Self { slots: all, count }
    }

    /// Returns the slots of the requests, in order.
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

/// A unit of traffic on the bus: commands around at most one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmcRequest {
    /// The command that announces the transfer: CMD23.
    pub announce: Option<Command>,
    /// The command, and its transfer if it has one.
    pub command: Command,
    /// The command that ends the transfer: CMD12.
    pub stop: Option<Command>,
    /// The transfer before was left open, and [`Self::command`] is not sent: its data passes as
    /// more of that transfer. Without [`Self::announce`].
    pub continues: bool,
    /// The transfer is neither announced nor stopped. The card waits for more of it, and is not
    /// busy afterwards.
    pub stays_open: bool,
    /// The memory of the transfer.
    pub payload: Payload,
    /// The longest time for which the card may keep the host waiting: before a block that is read,
    /// before the card takes a block that is written, and with busy; counted anew for each. The
    /// time comes from the card's registers. A controller with a coarser counter rounds up. A
    /// controller whose counter does not reach that far turns it off: the request path has a limit
    /// of its own. Zero if the card neither moves data nor is busy. A response has its own limit,
    /// 64 clocks.
    pub limit: Duration,
}

impl MmcRequest {
    /// A command by itself, which may keep the host waiting for up to `limit` if it moves data or
    /// the card may be busy after it.
    #[must_use]
    pub const fn plain(command: Command, limit: Duration) -> Self {
        let waits = command.data.is_some() || command.response.has_busy();
        let limit = if waits { limit } else { Duration::ZERO };
        Self {
            announce: None,
            command,
            stop: None,
            continues: false,
            stays_open: false,
            payload: Payload::None,
            limit,
        }
    }

    /// As [`Self::plain`], with the controller's block for the data of the command, if it has any.
    #[must_use]
    pub const fn by_block(command: Command, limit: Duration) -> Self {
        let payload = if command.data.is_some() { Payload::Block } else { Payload::None };
        Self { payload, ..Self::plain(command, limit) }
    }

    /// Returns the parts of the request, in order. The controller reports the end of each, one by
    /// one or at once.
    pub fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let parts = [
            (Part::Announce, self.announce.is_some()),
            (Part::Command, !self.continues),
            (Part::Data, self.data().is_some()),
            (Part::Stop, self.stop.is_some()),
            (Part::Busy, self.ends_busy()),
        ];
        parts.into_iter().filter_map(|(part, is_there)| is_there.then_some(part))
    }

    /// Returns the transfer.
    #[must_use]
    pub const fn data(&self) -> Option<Data> {
        self.command.data
    }

    /// Returns whether the card may be busy when everything else is done: after a write that is not
    /// left open, and after a command whose response says so.
    #[must_use]
    pub fn ends_busy(&self) -> bool {
        let writes = self.data().is_some_and(|data| data.direction == Direction::Write);
        let stops_busy = self.stop.is_some_and(|stop| stop.response.has_busy());
        (writes && !self.stays_open) || stops_busy || self.command.response.has_busy()
    }
}

/// A part of an MMC request, in the order in which the parts are done.
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

/// An error on the bus or in the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostError {
    /// Nothing arrived in time.
    Timeout,
    /// Something arrived damaged: CRC, end bit, or command index.
    Damaged,
    /// The controller could not reach the memory.
    Memory,
}
