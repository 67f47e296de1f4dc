//! The seam between a lane and its doors: each is the way of one client into the lane.
//!
//! A lane owns its doors by number; they may be of several kinds. It calls a door when input has
//! come for it, when one of its requests has ended, and at the end of a turn. The door uses the
//! disks, buffers and ring of the lane's [`Services`]. Only the door knows the client's view of a
//! request; the lane knows the request by a token that the door chose.
//!
//! # Rules (cited by name)
//!
//! - **[abandoned-request-keeps-memory]** A door that abandons its requests gets no result of them.
//!   Each keeps its data and its tag until the device has ended it; then the door takes its memory
//!   back. The door stays ([`AfterTurn::Keep`]) until the last of them has ended.

use super::lent::Lent;
use super::services::Services;
use crate::clients::weight::Weight;
use crate::observation::overview::ClientView;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard_std::parts::job::Transfer;
use core::fmt;
use std::io;

/// A client that arrives at a lane, such as a socket with what its protocol shares among clients.
pub(crate) trait Arrival: fmt::Debug + Send {
    /// Opens a door for the client. The lane lists the door. Returns `None` if the client comes
    /// from another lane, and its disk has been removed since.
    fn open_door(self: Box<Self>, lane: &mut Services) -> Option<Box<dyn Door>>;

    /// Turns the client away, since there is no memory for a door.
    fn turn_away(self: Box<Self>);
}

/// The next step of a door at the end of a turn.
#[must_use = "a door that closes or moves must be removed from its lane"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterTurn {
    /// The door stays.
    Keep,
    /// The door is done: the kernel holds no memory of it, no disk holds a request of it, and no
    /// input will come.
    Close,
    /// The door is as quiet, and its client continues in the lane with this number:
    /// [`Door::pack_for_move`].
    MoveTo(usize),
}

/// The way of one client into a lane. See the [module](self).
///
/// Each call names the door by the number that it has in its lane. The lane calls
/// [`Door::end_turn`] in the turn of every call of [`Door::take_back`], [`Door::finish_request`]
/// and [`Door::reclaim_memory`], and after [`Services::schedule_door`].
pub(crate) trait Door {
    /// Returns the client as it arrives at the lane that the door [moves to](AfterTurn::MoveTo).
    /// This lane has forgotten the door.
    fn pack_for_move(self: Box<Self>, _lane: &mut Services) -> Box<dyn Arrival> {
        unreachable!("a client of this kind stays in its lane")
    }

    /// Parses the input and submits its requests. The lane calls this when input has arrived, or
    /// when a door that waited may continue.
    fn process_input(&mut self, number: u32, lane: &mut Services);

    /// Takes back `memory` from the kernel. With `more`, the socket already holds more input.
    fn take_back(
        &mut self,
        number: u32,
        memory: Lent,
        result: io::Result<usize>,
        more: bool,
        lane: &mut Services,
    );

    /// Handles the end of the request with this `token`; `transfer` returns its memory.
    fn finish_request(
        &mut self,
        token: u32,
        status: Status,
        transfer: Transfer,
        lane: &mut Services,
    );

    /// Takes back the memory of a request that the door has [abandoned](Services::abandon_requests)
    /// ([abandoned-request-keeps-memory]).
    fn reclaim_memory(&mut self, _transfer: Transfer, _lane: &mut Services) {
        unreachable!("a door of this kind abandons no request")
    }

    /// Ends a turn: starts the sends and receives that are due.
    fn end_turn(&mut self, number: u32, lane: &mut Services) -> AfterTurn;

    /// Reacts to the time, or to another thread: an instant that some door passed to
    /// [`Services::schedule_wake`] has come, or a thread has sent
    /// [`Message::WakeDoors`](super::entrance::Message::WakeDoors). A door that waits for a later
    /// instant calls `schedule_wake` again.
    fn on_wake(&mut self, _number: u32, _lane: &mut Services) {}

    /// Cuts off the client if it delays others: it has kept memory of the lane, and moved no byte,
    /// for the lane's patience. If it `must_leave`, because the lane or its disk ends, any
    /// unfinished transfer delays others. Returns the instant at which the patience with the client
    /// ends, if it may delay others until then.
    fn cut_off_if_idle(
        &mut self,
        _number: u32,
        _must_leave: bool,
        _lane: &mut Services,
    ) -> Option<Instant> {
        None
    }

    /// Returns the number of the disk that the client has chosen, if any.
    fn disk(&self) -> Option<usize>;

    /// Returns the client as an operator sees it, if it came through a socket.
    fn describe_client(&self, _now: Instant) -> Option<ClientView> {
        None
    }

    /// Gives the client a weight, one of [`GROUP_WEIGHTS`](blockyard::elevator::GROUP_WEIGHTS): its
    /// share of its disk, among the clients of the disk.
    ///
    /// # Errors
    ///
    /// Fails if the disk is not shared by weights, or the client can have none; in words.
    fn weigh(&mut self, _weight: Weight, _lane: &mut Services) -> Result<(), String> {
        Err("a client of this kind has no weight".to_owned())
    }

    /// Breaks the connection to a client that an operator or the end of its disk disconnects, for
    /// the reason `why`.
    fn cut_off(&mut self, number: u32, why: &'static str, lane: &mut Services);

    /// Drains the door, for the reason `why`: it takes no new request, answers those in flight, and
    /// is then done.
    fn start_drain(&mut self, number: u32, why: &'static str, lane: &mut Services);

    /// Gives back all memory of the lane. The lane has forgotten the door.
    fn close(self: Box<Self>, lane: &mut Services);
}
