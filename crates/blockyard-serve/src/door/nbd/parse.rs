//! From received bytes to requests of the lane.

use super::client::{Client, Lane};
use super::input::Receiving;
use super::session::{INLINE_BYTES, Payload, Serving, Session, Target};
use super::words::words_of_transmission;
use crate::job::{Owner, Place, Transfer};
use blockyard::bio::Op;
use blockyard_wire::nbd::{Command, Errno, Event, Request};
use std::io;

/// The next step after a look at the input.
enum Found {
    /// Look again: some input was parsed.
    More,
    /// No progress is possible until something else happens.
    Nothing,
    /// A request whose data has arrived, or that has none.
    Request(Request, Place),
    /// A request that has ended already.
    Settled(Request, Result<(), Errno>),
}

impl Client {
    /// Parses the input, and submits its requests.
    pub(super) fn parse(&mut self, number: u32, lane: &mut Lane) {
        if self.is_dead() || self.input.receiving == Receiving::Input {
            return;
        }
        self.understand(number, lane);
        while self.open() {
            self.understand(number, lane);
        }
    }

    /// Decrypts more records, unless another event must come first. Returns whether there were any bytes.
    fn open(&mut self) -> bool {
        let is_choosing = matches!(self.session, Session::Handshake(_));
        if self.session.waits() || self.is_over() || (is_choosing && self.is_answering()) {
            return false;
        }
        match self.open_tls() {
            Ok(has_more) => has_more,
            Err(error) => {
                match error.kind() {
                    io::ErrorKind::UnexpectedEof => self.end("it ended TLS"),
                    _ => self.end(format!("TLS: {error}")),
                }
                false
            }
        }
    }

    fn understand(&mut self, number: u32, lane: &mut Lane) {
        if matches!(self.session, Session::Handshake(_)) && !self.choose(lane) {
            return;
        }
        // The limits of the connection bound it ([no-request-past-limits]).
        loop {
            match self.find(number, lane) {
                Found::More => {}
                Found::Nothing => return,
                Found::Request(request, place) => {
                    self.session.serving().requests += 1;
                    self.start(number, request, place, lane);
                }
                Found::Settled(request, result) => {
                    self.session.serving().requests += 1;
                    self.answer(number, request, result, lane);
                }
            }
        }
    }

    /// What is next in what was received.
    fn find(&mut self, number: u32, lane: &mut Lane) -> Found {
        let Session::Transmission(serving) = &mut self.session else {
            unreachable!("the handshake is over")
        };
        // A write that has its memory goes on, so that the memory comes back.
        let is_landing = matches!(serving.payload, Payload::Landing { .. });
        let is_asking = !self.input.is_empty() || !matches!(serving.payload, Payload::None);
        if lane.is_full() && is_asking && !is_landing {
            serving.waits = true;
            lane.hold(number);
            return Found::Nothing;
        }
        serving.waits = false;
        if is_landing {
            if serving.transmission.payload_left() > 0 {
                return Found::Nothing;
            }
            let Payload::Landing { request, target, .. } = serving.payload.take() else {
                unreachable!("payload was landing")
            };
            return Found::Request(request, target.place());
        }
        let next = serving.transmission.next(self.input.unread());
        self.input.take(next.taken);
        match next.event {
            Event::Request(request) => match request.command() {
                Some(Command::Write) => {
                    serving.writes_long = request.len() > INLINE_BYTES;
                    serving.payload = Payload::Announced { request, since: lane.now };
                    Found::More
                }
                Some(Command::Read) => {
                    serving.writes_long = false;
                    match room_for(serving.disk, &request, lane) {
                        Ok(place) => Found::Request(request, place),
                        Err(errno) => Found::Settled(request, Err(errno)),
                    }
                }
                _ => Found::Request(request, Place::Nowhere),
            },
            Event::Payload { left } => self.payload(left, lane),
            Event::Settled(request, result) => Found::Settled(request, result),
            Event::More { .. } => Found::Nothing,
            Event::Wait => {
                serving.waits = true;
                Found::Nothing
            }
            Event::End(end) => {
                self.end(words_of_transmission(end));
                Found::Nothing
            }
        }
    }

    /// Payload comes: it is taken from what was received, waited for, or given a place of its own
    /// to be received to.
    fn payload(&mut self, left: u64, lane: &mut Lane) -> Found {
        let Serving { disk, transmission, payload, .. } = self.session.serving();
        let disk = *disk;
        let wanted = usize::try_from(left).expect("payload is short");
        let here = self.input.unread().len().min(wanted);
        let is_all = here == wanted;
        if !is_all && left <= INLINE_BYTES {
            return Found::Nothing;
        }
        let Payload::Announced { request, since } = payload.take() else {
            unreachable!("the header of a write came before its payload")
        };
        if is_all && lane.disk(disk).is_done_at_once() {
            transmission.payload_taken(left);
            let (bytes, start) = self.input.take_shared(here);
            return Found::Request(request, Place::Door(bytes, start));
        }
        match target(disk, request.offset(), left, lane) {
            Err(errno) => {
                transmission.skip_payload();
                Found::Settled(request, Err(errno))
            }
            Ok(target) => {
                target.write(0, &self.input.unread()[..here]);
                *payload = Payload::Landing { request, since, target, received: here };
                transmission.payload_taken(here as u64);
                self.input.take(here);
                Found::More
            }
        }
    }

    /// Starts a request.
    fn start(&mut self, number: u32, request: Request, place: Place, lane: &mut Lane) {
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
                lane.disk(disk).cache(request.offset(), request.len());
                return self.answer(number, request, Ok(()), lane);
            }
            Command::BlockStatus => return self.tell_status(number, request, lane),
        };
        let transfer = match op {
            Op::Flush => Transfer::new(0, 0),
            _ => {
                Transfer { place, no_hole, fast, ..Transfer::new(request.offset(), request.len()) }
            }
        };
        let fua = request.fua();
        let token = serving.at_disk.insert(request);
        lane.submit(Owner::Door { door: number, token }, disk, op, transfer, fua);
    }
}

/// Where the payload of a write is received to: home ([payload-received-in-place]), or a buffer.
fn target(disk: usize, offset: u64, len: u64, lane: &mut Lane) -> Result<Target, Errno> {
    if let Some((map, start)) = lane.disk(disk).home(offset) {
        return Ok(Target::Disk { map, start });
    }
    let (pages, lead) = lane.buffer(disk, offset, len).map_err(|_| Errno::NoMemory)?;
    Ok(Target::Buffer { pages, lead })
}

/// A buffer for the data of a read, where the disk wants one.
fn room_for(disk: usize, request: &Request, lane: &mut Lane) -> Result<Place, Errno> {
    if !lane.disk(disk).needs_pages() {
        return Ok(Place::Nowhere);
    }
    let buffer = lane.buffer(disk, request.offset(), request.len());
    let (pages, lead) = buffer.map_err(|_| Errno::NoMemory)?;
    Ok(Place::Buffer { pages, lead })
}
