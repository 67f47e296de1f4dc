//! From received bytes to bios.

use super::Lane;
use super::connection::{INLINE_BYTES, Receiving, Stage, Target, Write};
use super::tls::Session;
use crate::event::{words_of_handshake, words_of_transmission};
use crate::job::{Job, Owner, Place, SECTOR, Transfer};
use crate::map::Pages;
use blockyard::bio::{Bio, Flags, Op};
use blockyard_wire::nbd::{Command, Errno, Event, Limits, Request, Step, Transmission};
use std::io;
use std::rc::Rc;

/// A buffer, and where in it the data begins.
type Room = (Rc<Pages>, usize);

/// What is to be done with one request.
enum Found {
    /// Go on: something was understood.
    More,
    /// Nothing can be, until something else happened.
    Nothing,
    /// A request whose data is there, or that has none.
    Request(Request, Place),
    /// A request that is over already.
    Settled(Request, Result<(), Errno>),
}

impl Lane {
    /// Understands what was received from `at`, and submits it.
    pub(super) fn parse(&mut self, at: u32) {
        let connection = &self.connections[at];
        if connection.is_dead || connection.receiving == Receiving::Input {
            return;
        }
        self.understand(at);
        while self.open(at) {
            self.understand(at);
        }
    }

    /// Opens more of what came through TLS, unless something must happen before; whether there was
    /// something.
    fn open(&mut self, at: u32) -> bool {
        let connection = &mut self.connections[at];
        let is_handshake = matches!(connection.stage, Stage::Handshake { .. });
        let is_answering = is_handshake && (connection.is_sending || !connection.batch.is_empty());
        if connection.waits || connection.is_over || is_answering {
            return false;
        }
        match connection.open() {
            Ok(has_more) => has_more,
            Err(error) => {
                match error.kind() {
                    io::ErrorKind::UnexpectedEof => connection.end("it ended TLS"),
                    _ => connection.end(format!("TLS: {error}")),
                }
                false
            }
        }
    }

    fn understand(&mut self, at: u32) {
        let connection = &self.connections[at];
        if matches!(connection.stage, Stage::Handshake { .. }) && !self.haggle(at) {
            return;
        }
        // The limits of the connection bound it ([no-request-past-limits]).
        loop {
            match self.find(at) {
                Found::More => {}
                Found::Nothing => return,
                Found::Request(request, place) => {
                    self.connections[at].requests += 1;
                    self.start(at, request, place);
                }
                Found::Settled(request, result) => {
                    self.connections[at].requests += 1;
                    self.answer(at, request, result, Place::Nowhere);
                }
            }
        }
    }

    /// The handshake; whether it is over, and requests follow.
    fn haggle(&mut self, at: u32) -> bool {
        let connection = &mut self.connections[at];
        loop {
            let Stage::Handshake { handshake, .. } = &mut connection.stage else { return true };
            if connection.is_over || connection.is_sending || !connection.batch.is_empty() {
                return false; // the answer first
            }
            let input = connection.input.as_ref().expect("the kernel gave it back");
            let bytes = &input[connection.from..connection.to];
            let mut out = Vec::new();
            let received = handshake.receive(bytes, &self.parts.shared.exports, &mut out);
            connection.from += received.taken;
            if !out.is_empty() {
                connection.batch.head(|heads| heads.extend(&out));
            }
            match received.step {
                Step::Receive => return false,
                Step::Answer => {}
                Step::Transmit(agreed) => {
                    let disk = agreed.export.0;
                    let transmission = Transmission::new(agreed, Limits::DEFAULT);
                    connection.stage = Stage::Transmission { disk, transmission };
                    self.entered(at, disk);
                    return true;
                }
                Step::StartTls if !connection.batch.is_empty() => return false, // the answer first
                Step::StartTls => {
                    let config = &self.parts.shared.tls.as_ref().expect("it was offered").config;
                    handshake.tls_started();
                    connection.start_tls(Session::new(config));
                }
                Step::End(end) => {
                    connection.end(words_of_handshake(end));
                    return false;
                }
            }
        }
    }

    /// What is next in what was received.
    fn find(&mut self, at: u32) -> Found {
        // Who has its memory goes on, so that it comes back.
        let has_target = |write: &Write| write.target.is_some();
        let connection = &self.connections[at];
        let is_asking = connection.from < connection.to || connection.write.is_some();
        if self.is_full() && is_asking && !connection.write.as_ref().is_some_and(has_target) {
            self.hold(at);
            return Found::Nothing;
        }
        let connection = &mut self.connections[at];
        connection.waits = false;
        let Stage::Transmission { transmission, disk } = &mut connection.stage else {
            unreachable!("the handshake is over")
        };
        if connection.write.as_ref().is_some_and(has_target) {
            if transmission.payload_left() > 0 {
                return Found::Nothing;
            }
            let Write { request, target, .. } = connection.write.take().expect("it was there");
            return Found::Request(request, target.expect("it was there").place());
        }
        let input = connection.input.as_ref().expect("the kernel gave it back");
        let next = transmission.next(&input[connection.from..connection.to]);
        connection.from += next.taken;
        match next.event {
            Event::Request(request) => match request.command() {
                Some(Command::Write) => {
                    connection.writes_long = request.len() > INLINE_BYTES;
                    connection.write =
                        Some(Write { request, target: None, received: 0, since: self.now });
                    Found::More
                }
                Some(Command::Read) => {
                    connection.writes_long = false;
                    let disk = *disk;
                    match self.room_for(disk, &request) {
                        Ok(None) => Found::Request(request, Place::Nowhere),
                        Ok(Some((pages, lead))) => {
                            Found::Request(request, Place::Pages { pages, lead })
                        }
                        Err(errno) => Found::Settled(request, Err(errno)),
                    }
                }
                _ => Found::Request(request, Place::Nowhere),
            },
            Event::Payload { left } => self.payload(at, left),
            Event::Settled(request, result) => Found::Settled(request, result),
            Event::More { .. } => Found::Nothing,
            Event::Wait => {
                connection.waits = true;
                Found::Nothing
            }
            Event::End(end) => {
                connection.end(words_of_transmission(end));
                Found::Nothing
            }
        }
    }

    /// Payload comes: it is taken from what was received, waited for, or given a place of its own
    /// to be received to.
    fn payload(&mut self, at: u32, left: u64) -> Found {
        let connection = &self.connections[at];
        let Stage::Transmission { disk, .. } = connection.stage else {
            unreachable!("the handshake is over")
        };
        let wanted = usize::try_from(left).expect("payload is short");
        let here = (connection.to - connection.from).min(wanted);
        let is_all = here == wanted;
        if !is_all && left <= INLINE_BYTES {
            return Found::Nothing;
        }
        let write = connection.write.as_ref().expect("it came before its payload");
        let offset = write.request.offset();
        let target = match is_all && self.disks[disk].disk.is_done_at_once() {
            true => Ok(None),
            false => self.target(disk, offset, left).map(Some),
        };
        let connection = &mut self.connections[at];
        let Stage::Transmission { transmission, .. } = &mut connection.stage else {
            unreachable!("the handshake is over")
        };
        let input = connection.input.as_ref().expect("the kernel gave it back");
        let start = connection.from;
        match target {
            Err(errno) => {
                transmission.skip_payload();
                let write = connection.write.take().expect("it came before its payload");
                return Found::Settled(write.request, Err(errno));
            }
            Ok(None) => {
                let place = Place::Input(Rc::clone(input), start);
                connection.from += here;
                transmission.payload_taken(left);
                let write = connection.write.take().expect("it came before its payload");
                return Found::Request(write.request, place);
            }
            Ok(Some(target)) => {
                target.write(0, &input[start..start + here]);
                let write = connection.write.as_mut().expect("it came before its payload");
                write.target = Some(target);
                write.received = here;
            }
        }
        connection.from += here;
        transmission.payload_taken(here as u64);
        Found::More
    }

    /// Where the payload of a write is received to: home (L5), or a buffer.
    fn target(&mut self, disk: usize, offset: u64, len: u64) -> Result<Target, Errno> {
        if let Some((map, start)) = self.disks[disk].disk.home(offset) {
            return Ok(Target::Home { map, start });
        }
        let (pages, lead) = self.room(disk, offset, len)?;
        Ok(Target::Pages { pages, lead })
    }

    /// A buffer for the data of a read, where the disk wants one.
    fn room_for(&mut self, disk: usize, request: &Request) -> Result<Option<Room>, Errno> {
        if !self.disks[disk].disk.needs_pages() {
            return Ok(None);
        }
        self.room(disk, request.offset(), request.len()).map(Some)
    }

    /// A buffer for `len` bytes at `offset` of the disk, and for the rest of the blocks at its ends.
    fn room(&mut self, disk: usize, offset: u64, len: u64) -> Result<Room, Errno> {
        let block = self.disks[disk].disk.block_bytes();
        let lead = offset % block;
        let all = (lead + len).next_multiple_of(block);
        let bytes = |count| usize::try_from(count).expect("requests are short");
        let pages = self.pool.take(bytes(all)).map_err(|_| Errno::NoMemory)?;
        Ok((pages, bytes(lead)))
    }

    /// What a request asks for begins.
    fn start(&mut self, at: u32, request: Request, place: Place) {
        let connection = &mut self.connections[at];
        let Stage::Transmission { disk, .. } = connection.stage else {
            unreachable!("the handshake is over")
        };
        let command = request.command().expect("others are settled");
        let (op, no_hole, fast) = match command {
            Command::Read => (Op::Read, false, false),
            Command::Write => (Op::Write, false, false),
            Command::Flush => (Op::Flush, false, false),
            Command::Trim => (Op::Discard, false, false),
            Command::WriteZeroes { no_hole, fast } => (Op::WriteZeroes, no_hole, fast),
            Command::Cache => {
                self.disks[disk].disk.cache(request.offset(), request.len());
                return self.answer(at, request, Ok(()), Place::Nowhere);
            }
            Command::BlockStatus => return self.tell_status(at, disk, request),
        };
        let transfer = match op {
            Op::Flush => Transfer::new(0, 0),
            _ => {
                Transfer { place, no_hole, fast, ..Transfer::new(request.offset(), request.len()) }
            }
        };
        let mut bio = first_bio(op, &transfer, self.disks[disk].disk.block_bytes());
        if request.fua() {
            bio = bio.with_flags(Flags::FUA);
        }
        connection.jobs += 1;
        let job = Job { transfer, owner: Owner::Client { connection: at, request } };
        let cookie = u64::from(self.jobs.borrow_mut().insert(job));
        self.disks[disk].submit(Bio { cookie, ..bio }, self.now);
    }
}

/// Longest bio: a range that is longer is done piece by piece, one after the other.
const BIO_SECTORS_MAX: u32 = 1 << 31;

/// A bio over the blocks of `transfer`, or over as many of the first ones as a bio can have.
fn first_bio(op: Op, transfer: &Transfer, block_bytes: u64) -> Bio {
    let Transfer { offset, len, .. } = *transfer;
    let block = block_bytes.max(SECTOR);
    let start = offset / block * block / SECTOR;
    let bio = Bio::new(op, start, sectors_from(start, transfer, block_bytes), 0);
    // Its neighbours' data does not continue its own; or nobody else shall fail with it for not being fast.
    let is_whole = (offset | len).is_multiple_of(block);
    if is_whole && !transfer.fast { bio } else { bio.with_flags(Flags::NO_MERGE) }
}

/// What of `transfer` follows on `bio`, which is done; nothing where that was all.
#[inline]
pub(super) fn next_bio(bio: &Bio, transfer: &Transfer, block_bytes: u64) -> Option<Bio> {
    let sector = bio.sector + u64::from(bio.sectors);
    if sector * SECTOR >= transfer.offset + transfer.len {
        return None;
    }
    Some(Bio { sector, sectors: sectors_from(sector, transfer, block_bytes), ..*bio })
}

/// How many sectors a bio of `transfer` has from `sector` on.
fn sectors_from(sector: u64, transfer: &Transfer, block_bytes: u64) -> u32 {
    let end = (transfer.offset + transfer.len).next_multiple_of(block_bytes.max(SECTOR));
    u32::try_from(end / SECTOR - sector).map_or(BIO_SECTORS_MAX, |left| left.min(BIO_SECTORS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bio_covers_every_byte_with_whole_blocks() {
        let covers = |offset, len, block| {
            let bio = first_bio(Op::Write, &Transfer::new(offset, len), block);
            (bio.sector, bio.sectors, bio.flags.contains(Flags::NO_MERGE))
        };
        assert_eq!(covers(4096, 4096, 1), (8, 8, false));
        assert_eq!(covers(511, 2, 1), (0, 2, true));
        assert_eq!(covers(512, 512, 4096), (0, 8, true));
        assert_eq!(covers(4095, 4098, 4096), (0, 24, true));
    }

    #[test]
    fn bios_of_a_long_range_follow_each_other_to_its_end() {
        let most = u64::from(BIO_SECTORS_MAX);
        for (offset, len) in [(512, most * SECTOR), (4097, (3 * most + 1) * SECTOR), (0, 1 << 62)] {
            let transfer = Transfer::new(offset, len);
            let mut bio = first_bio(Op::Discard, &transfer, 4096);
            assert_eq!(bio.sector, offset / 4096 * 8);
            for _ in 0..3 {
                let Some(next) = next_bio(&bio, &transfer, 4096) else { break };
                assert_eq!(next.sector, bio.sector + u64::from(bio.sectors));
                assert!(next.sectors.is_multiple_of(8) && bio.sectors == BIO_SECTORS_MAX);
                bio = next;
            }
            let end = (bio.sector + u64::from(bio.sectors)) * SECTOR;
            let is_end = next_bio(&bio, &transfer, 4096).is_none();
            assert_eq!(is_end, end == (offset + len).next_multiple_of(4096));
        }
    }
}
