//! A client as a door of its lane.

use super::client::Client;
use super::newcomers::Ticket;
use super::session::{AtDisk, Choosing, Session};
use crate::clients::weight::Weight;
use crate::lane::door::{AfterTurn, Arrival, Door};
use crate::lane::lent::Lent;
use crate::lane::services::Services;
use crate::observation::overview::ClientView;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard_std::parts::job::Transfer;
use blockyard_wire::nbd::Command;
use std::io;
use std::os::fd::AsRawFd;

/// The reason for which a client is cut off that holds memory.
const IDLE: &str = "idle too long while other clients needed its buffers";
/// The reason for which a client is cut off that has not chosen an export.
const SILENT: &str = "it chose no export, and others needed its place";

impl Door for Client {
    fn pack_for_move(self: Box<Self>, lane: &mut Services) -> Box<dyn Arrival> {
        lane.ring.forget(self.peer.fd.as_raw_fd());
        Box::new(self.pack())
    }

    fn process_input(&mut self, number: u32, lane: &mut Services) {
        self.process_input(number, lane);
    }

    fn take_back(
        &mut self,
        number: u32,
        memory: Lent,
        result: io::Result<usize>,
        more: bool,
        lane: &mut Services,
    ) {
        match memory {
            Lent::Own(batch) => {
                let batch = batch.downcast().expect("a batch, the only value that the door lends");
                self.finish_send(number, batch, result, lane);
            }
            received => {
                self.input.arrived = lane.turn;
                self.finish_receive(received, result, more, lane.now);
            }
        }
    }

    #[inline]
    fn finish_request(
        &mut self,
        token: u32,
        status: Status,
        transfer: Transfer,
        lane: &mut Services,
    ) {
        let serving = self.session.serving();
        let disk = serving.disk;
        let AtDisk { request, arrived } = serving.at_disk.remove(token);
        let is_data = matches!(request.command(), Some(Command::Read | Command::Write));
        if is_data && status == Status::Ok {
            serving.moved_bytes += transfer.len;
        }
        // A long range takes many turns, so it says nothing about how long clients wait.
        if lane.is_metered
            && !matches!(request.command(), Some(Command::Trim | Command::WriteZeroes { .. }))
        {
            lane.disks[disk].count_turns(lane.turn - arrived);
        }
        self.answer_ended(request, disk, status, transfer, lane);
    }

    fn reclaim_memory(&mut self, transfer: Transfer, lane: &mut Services) {
        self.session.serving().abandoned -= 1;
        self.return_buffer(transfer, lane); // [abandoned-request-keeps-memory]
    }

    fn end_turn(&mut self, number: u32, lane: &mut Services) -> AfterTurn {
        if let Session::Handshake(Choosing { chosen: Some(chosen), .. }) = &self.session {
            return AfterTurn::MoveTo(chosen.home);
        }
        self.close_tls();
        self.start_send(number, lane);
        self.start_lingering(lane);
        if self.is_done() {
            return AfterTurn::Close;
        }
        self.start_receive(number, lane);
        AfterTurn::Keep
    }

    fn on_wake(&mut self, number: u32, lane: &mut Services) {
        if self.newcomer.as_ref().is_some_and(Ticket::is_cut_off) {
            self.newcomer = None;
            self.cut_off(number, SILENT, lane);
        }
        let deadline = match &self.session {
            Session::Handshake(choosing) if !self.is_dead() => Some(choosing.deadline),
            _ => self.lingers_until(),
        };
        let Some(deadline) = deadline else { return };
        let later =
            if lane.now < deadline { Some(deadline) } else { self.extend_lingering(lane.now) };
        match later {
            Some(later) => lane.schedule_wake(later),
            None => {
                self.kill("it took too long to choose an export");
                lane.schedule_door(number);
            }
        }
    }

    fn cut_off_if_idle(
        &mut self,
        number: u32,
        must_leave: bool,
        lane: &mut Services,
    ) -> Option<Instant> {
        // A client that has the turn delays others even before it holds memory of the pool.
        let counts_all = must_leave || lane.memory.has_turn(number);
        let ends_at = self.idles_since(counts_all)? + lane.patience;
        if ends_at > lane.now {
            return Some(ends_at);
        }
        self.cut_off(number, IDLE, lane); // [idle-holder-cut-off]
        None
    }

    fn disk(&self) -> Option<usize> {
        match &self.session {
            Session::Handshake(_) => None,
            Session::Transmission(serving) => Some(serving.disk),
        }
    }

    fn describe_client(&self, now: Instant) -> Option<ClientView> {
        Some(self.view(now))
    }

    fn weigh(&mut self, weight: Weight, lane: &mut Services) -> Result<(), String> {
        let Session::Transmission(serving) = &mut self.session else {
            return Err("the client has not chosen an export".to_owned());
        };
        lane.disks[serving.disk].weigh(&mut serving.submitter, weight)?;
        serving.weight = Some(weight);
        Ok(())
    }

    fn cut_off(&mut self, number: u32, why: &'static str, lane: &mut Services) {
        self.kill(why);
        lane.schedule_door(number);
    }

    fn start_drain(&mut self, number: u32, why: &'static str, lane: &mut Services) {
        match &mut self.session {
            Session::Handshake(_) => self.kill(why),
            Session::Transmission(serving) => {
                serving.transmission.shut_down();
                self.stop_receiving(why);
            }
        }
        lane.schedule_door(number);
    }

    fn close(self: Box<Self>, lane: &mut Services) {
        self.report_departure(lane);
        if let Session::Transmission(serving) = &self.session {
            lane.disks[serving.disk].forget_weight(serving.submitter);
            lane.disk(serving.disk).gate.leave();
        }
        lane.ring.forget(self.peer.fd.as_raw_fd());
        self.return_memory(lane);
    }
}
