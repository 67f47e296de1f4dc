//! Turns received bytes into requests of the lane.

use super::client::Client;
use super::input::Receiving;
use super::session::{AtDisk, INLINE_BYTES, Payload, Scan, Serving, Session, Target};
use super::words::words_of_transmission;
use crate::clients::reserve::NO_MEMORY;
use crate::lane::memory::SMALL_BYTES;
use crate::lane::services::Services;
use blockyard::bio::{Flags, Op};
use blockyard_std::parts::job::{Owner, Place, Transfer};
use blockyard_std::parts::queue::Asked;
use blockyard_std::parts::slab::Slab;
use blockyard_wire::nbd::{Command, Errno, Event, Request};
use std::io;

/// The maximum number of runs in one status. The client asks again from their end on.
pub(super) const RUNS_MAX: usize = 500;

/// A status waits while this many bytes of other answers wait to be sent
/// ([unread-status-is-short]).
const UNSENT_BYTES_MAX: usize = 32 << 10;

/// The next step after a look at the input.
enum Parsed {
    /// Some input was parsed: look again.
    More,
    /// No progress is possible until another event.
    Nothing,
    /// A request whose data has arrived, or that has none.
    Request(Request, Place),
    /// A request that has ended already.
    Settled(Request, Result<(), Errno>),
}

impl Client {
    pub(super) fn process_input(&mut self, number: u32, lane: &mut Services) {
        if self.is_dead() {
            // It takes no more memory. What it holds is given back when its requests at the disk
            // have ended.
            lane.memory.remove_client(number);
            if let Session::Transmission(serving) = &mut self.session {
                serving.abandoned += lane.abandon_requests(number); // [last-flush-in-time]
                serving.at_disk = Slab::default();
            }
            return;
        }
        if self.lingers_until().is_some() || self.input.receiving == Receiving::Input {
            return;
        }
        self.parse_requests(number, lane);
        while self.decrypt_more(number, lane) {
            self.parse_requests(number, lane);
        }
    }

    /// Decrypts more records, unless another event must come first. Returns whether there were any
    /// bytes.
    fn decrypt_more(&mut self, number: u32, lane: &mut Services) -> bool {
        let is_choosing = matches!(self.session, Session::Handshake(_));
        if self.session.waits() || self.is_over() || (is_choosing && self.is_answering()) {
            return false;
        }
        let opened = match &self.tls {
            // Other clients of the lane keep nine tenths of its time.
            Some(tls) if tls.awaits_step() => {
                let now = lane.now;
                match lane.handshakes.take_step(number, now, || self.decrypt()) {
                    Some(opened) => opened,
                    None => return false,
                }
            }
            _ => self.decrypt(),
        };
        match opened {
            Ok(has_more) => has_more,
            Err(error) => {
                match error.kind() {
                    io::ErrorKind::UnexpectedEof => self.stop_reading("it ended TLS"),
                    io::ErrorKind::OutOfMemory => self.kill(NO_MEMORY),
                    _ => self.stop_reading(format!("TLS: {error}")),
                }
                false
            }
        }
    }

    fn parse_requests(&mut self, number: u32, lane: &mut Services) {
        if matches!(self.session, Session::Handshake(_)) && !self.negotiate(lane) {
            return;
        }
        // The limits of the connection bound this loop ([no-request-past-limits]).
        loop {
            match self.parse_next(number, lane) {
                Parsed::More => {}
                Parsed::Nothing => return,
                Parsed::Request(request, place) => {
                    self.session.serving().requests += 1;
                    self.start_request(number, request, place, lane);
                }
                Parsed::Settled(request, result) => {
                    self.session.serving().requests += 1;
                    self.answer_at_once(number, request, result, lane);
                }
            }
        }
    }

    /// Continues the request that waits.
    fn continue_waiting(&mut self, number: u32, lane: &mut Services) -> Parsed {
        let serving = self.session.serving();
        match serving.payload.take() {
            Payload::Landing { request, target, .. }
                if serving.transmission.payload_left() == 0 =>
            {
                lane.memory.release_turn(number);
                if let Target::Buffer { pages, .. } = &target {
                    lane.mark_charged(pages);
                }
                return Parsed::Request(request, target.place());
            }
            Payload::Status(scan) => return self.scan_runs(number, scan, lane),
            Payload::Read { request } => return self.prepare_read(number, request, lane),
            payload => serving.payload = payload,
        }
        if let Payload::Landing { received, granted, since, .. } = &mut serving.payload {
            // Memory for as much again as has arrived: when 8 KiB have come, 16 KiB are granted. A
            // client that announces 32 MiB and sends nothing more holds almost none.
            if received == granted {
                let more = (*received).min(bytes(serving.transmission.payload_left()));
                match lane.take_memory(number, &mut self.account, *granted, more) {
                    true => (*granted, *since) = (*granted + more, lane.now),
                    false => serving.waits = true,
                }
            }
        }
        Parsed::Nothing
    }

    /// Continues the request that waits, or else parses the next one.
    fn parse_next(&mut self, number: u32, lane: &mut Services) -> Parsed {
        let Session::Transmission(serving) = &mut self.session else {
            unreachable!("the handshake is over")
        };
        serving.waits = false;
        if !matches!(serving.payload, Payload::None | Payload::Announced { .. }) {
            return self.continue_waiting(number, lane);
        }
        let next = serving.transmission.next(self.input.unread());
        self.input.take(next.taken);
        match next.event {
            Event::Request(request) => match request.command() {
                Some(Command::Write) => {
                    serving.writes_long = request.len() > INLINE_BYTES;
                    serving.payload = Payload::Announced { request };
                    Parsed::More
                }
                Some(Command::Read) => {
                    serving.writes_long = false;
                    self.prepare_read(number, request, lane)
                }
                Some(Command::BlockStatus) => {
                    let offset = request.offset();
                    self.scan_runs(
                        number,
                        Box::new(Scan { request, runs: Vec::new(), offset }),
                        lane,
                    )
                }
                _ => Parsed::Request(request, Place::NoBuffer),
            },
            Event::Payload { left } => self.receive_payload(number, left, lane),
            Event::Settled(request, result) => Parsed::Settled(request, result),
            Event::More { .. } => Parsed::Nothing,
            Event::Wait => {
                serving.waits = true;
                Parsed::Nothing
            }
            Event::End(end) => {
                self.stop_reading(words_of_transmission(end));
                Parsed::Nothing
            }
        }
    }

    /// Handles the payload of a WRITE, of which `left` bytes have not been taken. Takes it from the
    /// input, waits for the rest, or gets a [`Target`] into which it is received.
    fn receive_payload(&mut self, number: u32, left: u64, lane: &mut Services) -> Parsed {
        let Serving { disk, transmission, payload, waits, .. } = self.session.serving();
        let disk = *disk;
        let wanted = bytes(left);
        let here = self.input.unread().len().min(wanted);
        let is_all = here == wanted;
        if !is_all && left <= INLINE_BYTES {
            return Parsed::Nothing;
        }
        let Payload::Announced { request } = payload.take() else {
            unreachable!("the header of a write came before its payload")
        };
        if is_all && lane.disk(disk).is_done_at_once() {
            transmission.payload_taken(left);
            let (bytes, start) = self.input.take_shared(here);
            return Parsed::Request(request, Place::Door(bytes, start));
        }
        let (target, granted) =
            if let Some((map, start)) = lane.disk(disk).place_in_memory(request.offset()) {
                (Target::Disk { map, start }, wanted) // [payload-received-in-place]
            } else {
                // The rest of the memory follows as the payload arrives.
                let granted = here.max(wanted.min(SMALL_BYTES));
                if !lane.take_memory(number, &mut self.account, 0, granted) {
                    *payload = Payload::Announced { request };
                    *waits = true;
                    return Parsed::Nothing;
                }
                let Ok((pages, lead)) =
                    lane.take_buffer(disk, request.offset(), left, granted == wanted)
                else {
                    lane.memory.return_bytes(&mut self.account, granted);
                    lane.memory.release_turn(number);
                    transmission.skip_payload();
                    return Parsed::Settled(request, Err(Errno::NoMemory));
                };
                (Target::Buffer { pages, lead }, granted)
            };
        target.write(0, &self.input.unread()[..here]);
        *payload = Payload::Landing { request, since: lane.now, target, received: here, granted };
        transmission.payload_taken(here as u64);
        self.input.take(here);
        Parsed::More
    }

    /// Looks up the runs of a range, and reports them once they are complete. Stops when the
    /// lookups of this turn are used up, or while other answers wait ([unread-status-is-short]).
    fn scan_runs(&mut self, number: u32, mut scan: Box<Scan>, lane: &mut Services) -> Parsed {
        let serving = self.session.serving();
        let is_full = self.batch.heads_bytes() >= UNSENT_BYTES_MAX;
        let end = scan.request.offset() + scan.request.len();
        let runs_max = if scan.request.wants_one() { 1 } else { RUNS_MAX };
        while scan.runs.len() < runs_max && scan.offset < end {
            if is_full || !lane.take_lookup(number) {
                serving.payload = Payload::Status(scan);
                serving.waits = true;
                return Parsed::Nothing;
            }
            let (len, is_data) = lane.disk(serving.disk).run_at(scan.offset);
            scan.runs.push((len, is_data));
            scan.offset += len;
        }
        let Scan { request, runs, .. } = *scan;
        Parsed::Settled(self.write_status(request, &runs), Ok(()))
    }

    /// Prepares a READ, which waits if the disk needs memory for its data and the lane has none.
    #[inline]
    fn prepare_read(&mut self, number: u32, request: Request, lane: &mut Services) -> Parsed {
        let serving = self.session.serving();
        if !lane.disk(serving.disk).needs_pages() {
            return Parsed::Request(request, Place::NoBuffer);
        }
        let len = bytes(request.len());
        if !lane.take_memory(number, &mut self.account, 0, len) {
            serving.payload = Payload::Read { request };
            serving.waits = true;
            return Parsed::Nothing;
        }
        lane.memory.release_turn(number);
        if let Ok((pages, lead)) =
            lane.take_buffer(serving.disk, request.offset(), request.len(), true)
        {
            return Parsed::Request(request, Place::Buffer { pages, lead });
        }
        lane.memory.return_bytes(&mut self.account, len);
        Parsed::Settled(request, Err(Errno::NoMemory))
    }

    /// Submits a request to the disk, or answers it if the disk is not needed.
    fn start_request(&mut self, number: u32, request: Request, place: Place, lane: &mut Services) {
        let serving = self.session.serving();
        let disk = serving.disk;
        let command = request.command().expect("command of a request that was not settled");
        let (op, no_hole, fast) = match command {
            Command::Read => (Op::Read, false, false),
            Command::Write => (Op::Write, false, false),
            Command::Flush => (Op::Flush, false, false),
            Command::Trim => (Op::Discard, false, false),
            Command::WriteZeroes { no_hole, fast } => (Op::WriteZeroes, no_hole, fast),
            Command::Cache => {
                lane.prefetch(disk, request.offset(), request.len());
                return self.answer_at_once(number, request, Ok(()), lane);
            }
            Command::BlockStatus => unreachable!("a status is scanned before it is answered"),
        };
        let transfer = match op {
            Op::Flush => Transfer::new(0, 0),
            _ => {
                Transfer { place, no_hole, fast, ..Transfer::new(request.offset(), request.len()) }
            }
        };
        let durable = if request.fua() { Flags::FUA } else { Flags::NONE };
        // Somebody waits for the answer. In Linux, a server's direct write has REQ_SYNC.
        let sync = if op == Op::Read { Flags::NONE } else { Flags::SYNC };
        let flags = durable | sync;
        let asked = Asked { flags, submitter: serving.submitter, ..Asked::from(op) };
        let token = serving.at_disk.insert(AtDisk { request, arrived: self.input.arrived });
        lane.submit(Owner::Door { door: number, token }, disk, asked, transfer);
    }
}

fn bytes(len: u64) -> usize {
    usize::try_from(len).expect("length of one request")
}
