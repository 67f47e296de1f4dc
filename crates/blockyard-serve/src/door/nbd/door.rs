//! A client as a door of its lane.

use super::client::{Client, Lane, Lent};
use super::moved::Arrival;
use super::session::{AtDisk, Choosing, Session};
use super::shared::Shared;
use crate::lane::door::{Door, Settled};
use crate::observation::event::Happened;
use crate::observation::overview::Visitor;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard_std::parts::job::Transfer;
use blockyard_wire::nbd::Command;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

impl Door for Client {
    type Arrival = Arrival;
    type Shared = Arc<Shared>;
    type Memory = Lent;

    fn open(arrival: Arrival, shared: &Arc<Shared>, lane: &mut Lane) -> Option<Self> {
        match arrival {
            Arrival::New(peer) => {
                let deadline = lane.now + shared.handshake_deadline;
                lane.wake_at(deadline);
                Some(Self::new(peer, shared, lane.now, deadline))
            }
            Arrival::Moved(moved) => moved.arrive(shared, lane),
        }
    }

    fn leave(self, lane: &mut Lane) -> Arrival {
        lane.ring.forget(self.peer.fd.as_raw_fd());
        Arrival::Moved(Box::new(self.depart()))
    }

    fn turn_away(arrival: Arrival, shared: &Arc<Shared>) {
        match arrival {
            Arrival::New(peer) => shared.tell(&peer, || Happened::NoMemory),
            Arrival::Moved(moved) => moved.turn_away(shared, Happened::NoMemory),
        }
    }

    fn ready(&mut self, number: u32, lane: &mut Lane) {
        self.parse(number, lane);
    }

    fn returned(
        &mut self,
        number: u32,
        memory: Lent,
        result: io::Result<usize>,
        more: bool,
        lane: &mut Lane,
    ) {
        match memory {
            Lent::Batch(batch) => self.sent(number, batch, result, lane),
            received => {
                self.input.arrived = lane.turn;
                self.received(received, result, more, lane.now);
            }
        }
    }

    #[inline]
    fn ended(&mut self, token: u32, status: Status, transfer: Transfer, lane: &mut Lane) {
        let serving = self.session.serving();
        let AtDisk { request, arrived } = serving.at_disk.remove(token);
        let is_range =
            || matches!(request.command(), Some(Command::Trim | Command::WriteZeroes { .. }));
        // A long range takes many turns.
        if lane.is_metered && !is_range() {
            lane.disks[serving.disk].count_turns(lane.turn - arrived);
        }
        self.reply(request, status, transfer, lane);
    }

    fn settle(&mut self, number: u32, lane: &mut Lane) -> Settled {
        if let Session::Handshake(Choosing { chosen: Some(chosen), .. }) = &self.session {
            return Settled::Leaves(chosen.home);
        }
        self.end_tls();
        self.send(number, lane);
        self.linger(lane);
        if self.is_done() {
            return Settled::Done;
        }
        self.receive(number, lane);
        Settled::Stays
    }

    fn wake(&mut self, number: u32, lane: &mut Lane) {
        let deadline = match &self.session {
            Session::Handshake(choosing) if !self.is_dead() => Some(choosing.deadline),
            _ => self.lingers_until(),
        };
        let Some(deadline) = deadline else { return };
        let later = if lane.now < deadline { Some(deadline) } else { self.linger_on(lane.now) };
        match later {
            Some(later) => lane.wake_at(later),
            None => {
                self.kill("it took too long to choose an export");
                lane.list(number);
            }
        }
    }

    fn holds_since(&self, anything: bool) -> Option<Instant> {
        self.idles_since(anything)
    }

    fn disk(&self) -> Option<usize> {
        match &self.session {
            Session::Handshake(_) => None,
            Session::Transmission(serving) => Some(serving.disk),
        }
    }

    fn visitor(&self, now: Instant) -> Option<Visitor> {
        Some(self.seen(now))
    }

    fn cut_off(&mut self, number: u32, why: &'static str, lane: &mut Lane) {
        self.kill(why);
        lane.list(number);
    }

    fn end(&mut self, number: u32, why: &'static str, lane: &mut Lane) {
        match &mut self.session {
            Session::Handshake(_) => self.kill(why),
            Session::Transmission(serving) => {
                serving.transmission.shut_down();
                self.end_receiving(why);
            }
        }
        lane.list(number);
    }

    fn close(self, lane: &mut Lane) {
        self.tell_gone(lane);
        if let Some(disk) = self.disk() {
            lane.disk(disk).gate.leave();
        }
        lane.ring.forget(self.peer.fd.as_raw_fd());
        self.give_back(lane);
    }
}
