//! The seam between a lane and its doors. A door is the way of one client into a lane, through some protocol.
//!
//! A lane owns its doors by number. It calls a door when input has come for it, when one of its requests has
//! ended, and at the end of a turn. The door uses the disks, buffers and ring of the lane's [`Services`].
//! Only the door knows the client's view of a request; the lane knows the request by a token that the door
//! chose.

use crate::lane::services::Services;
use crate::observation::overview::Visitor;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard_std::parts::job::Transfer;
use std::io;

/// What becomes of a door at the end of a turn.
#[must_use = "a door that is done or leaves must be removed from its lane"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The door stays.
    Stays,
    /// The door is done: the kernel holds no memory of it, no disk holds a request of it, and no input will come.
    Done,
    /// The door is as quiet, and its client goes on in the lane with this number: [`Door::leave`].
    Leaves(usize),
}

/// The way of one client into a lane. See the [module](self).
///
/// Each call names the door by the number that it has in its lane. The lane calls [`Door::settle`] in the
/// turn of every call of [`Door::returned`] and [`Door::ended`], and after [`Services::list`].
pub(crate) trait Door: Sized {
    /// The thing that a door is made from, such as a socket.
    type Arrival: Send + 'static;
    /// The state that all doors of a server share.
    type Shared: Clone + Send + 'static;
    /// Memory that a door lends to the kernel, with its purpose.
    type Memory;

    /// Opens a door for `arrival`. The lane lists the door. Returns `None` if the client comes from another lane, and its
    /// disk has been removed since.
    fn open(
        arrival: Self::Arrival,
        shared: &Self::Shared,
        lane: &mut Services<Self::Memory>,
    ) -> Option<Self>;

    /// Returns what the lane that the door [leaves for](Settled::Leaves) opens it from. This lane has forgotten the door.
    fn leave(self, lane: &mut Services<Self::Memory>) -> Self::Arrival;

    /// Turns `arrival` away, since there is no memory for a door.
    fn turn_away(arrival: Self::Arrival, shared: &Self::Shared);

    /// Parses the input and submits its requests. The lane calls this when input has arrived, or when a door that
    /// waited may continue.
    fn ready(&mut self, number: u32, lane: &mut Services<Self::Memory>);

    /// Takes back `memory` from the kernel. With `more`, the socket already holds more input.
    fn returned(
        &mut self,
        number: u32,
        memory: Self::Memory,
        result: io::Result<usize>,
        more: bool,
        lane: &mut Services<Self::Memory>,
    );

    /// Handles the end of the request with this `token`; `transfer` returns its memory.
    fn ended(
        &mut self,
        token: u32,
        status: Status,
        transfer: Transfer,
        lane: &mut Services<Self::Memory>,
    );

    /// Ends a turn: starts the sends and receives that are due.
    fn settle(&mut self, number: u32, lane: &mut Services<Self::Memory>) -> Settled;

    /// Reacts to the time: an instant that some door passed to [`Services::wake_at`] has come. A door that waits for a
    /// later instant calls that function again.
    fn wake(&mut self, number: u32, lane: &mut Services<Self::Memory>);

    /// Returns the instant since which the client has kept memory of the lane in use, by an unread reply or an
    /// unfinished write. With `anything`, a reply or a write counts even if it uses no such memory.
    fn holds_since(&self, anything: bool) -> Option<Instant>;

    /// Returns the number of the disk that the client has chosen, if any.
    fn disk(&self) -> Option<usize>;

    /// Returns the client as an operator sees it, if it came through a socket.
    fn visitor(&self, now: Instant) -> Option<Visitor>;

    /// Breaks the connection to a client that kept others waiting or that an operator disconnects, for the reason `why`.
    fn cut_off(&mut self, number: u32, why: &'static str, lane: &mut Services<Self::Memory>);

    /// Drains the door, for the reason `why`: it takes no new request, answers those in flight, and is then done.
    fn end(&mut self, number: u32, why: &'static str, lane: &mut Services<Self::Memory>);

    /// Gives back all memory of the lane. The lane has forgotten the door.
    fn close(self, lane: &mut Services<Self::Memory>);
}
