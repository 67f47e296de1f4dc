//! A disk in memory on a unix socket, with a thread for each connection: the loop around the state
//! machines, with sockets. For real use there is `blockyard serve`.
//!
//! ```text
//! cargo run --release -p blockyard-wire --example nbd_memory -- /tmp/disk.sock 64
//! nbdinfo 'nbd+unix:///?socket=/tmp/disk.sock'
//! ```

use blockyard_wire::nbd::transmission::STATUS_BYTES_MIN;
use blockyard_wire::nbd::{
    ANSWER_BYTES_MAX, Agreed, BASE_ALLOCATION, Command, Event, Export, ExportFlags, Exports,
    Handshake, Limits, Request, STATE_HOLE, STATE_ZERO, Step, Tls, Transmission,
};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, RwLock};

type Disk = Arc<RwLock<Vec<u8>>>;

const RECEIVE_BYTES: usize = 256 << 10;
const STATUS_UNIT_BYTES: usize = 4096;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some((socket, mebibytes)) = arguments.next().zip(arguments.next()) else {
        return Err(io::Error::other("usage: nbd_memory SOCKET MEBIBYTES"));
    };
    let mebibytes: usize = mebibytes.parse().map_err(io::Error::other)?;
    let disk = Arc::new(RwLock::new(vec![0; mebibytes << 20]));
    let flags = ExportFlags::FLUSH
        | ExportFlags::FUA
        | ExportFlags::TRIM
        | ExportFlags::WRITE_ZEROES
        | ExportFlags::CACHE
        | ExportFlags::CAN_MULTI_CONN; // all connections write to the same memory
    let exports = Exports::new(vec![Export {
        size_bytes: (mebibytes as u64) << 20,
        flags,
        contexts: vec![BASE_ALLOCATION.into()],
        ..Export::default()
    }]);
    let exports = Arc::new(exports.map_err(io::Error::other)?);
    for stream in UnixListener::bind(socket)?.incoming() {
        let stream = stream?;
        let exports = Arc::clone(&exports);
        let disk = Arc::clone(&disk);
        std::thread::spawn(move || {
            if let Err(error) = Connection::new(stream).serve(&exports, &disk) {
                eprintln!("connection: {error}");
            }
        });
    }
    Ok(())
}

/// A socket, the received bytes that were not taken, and the bytes to send.
struct Connection {
    stream: UnixStream,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    out: Vec<u8>,
}

impl Connection {
    fn new(stream: UnixStream) -> Self {
        Self { stream, buffer: vec![0; RECEIVE_BYTES], from: 0, to: 0, out: Vec::new() }
    }

    fn serve(&mut self, exports: &Exports, disk: &Disk) -> io::Result<()> {
        self.out.extend(Handshake::greeting());
        match self.negotiate(exports)? {
            Some(agreed) => self.transmit(agreed, disk),
            None => Ok(()),
        }
    }

    /// Sends what is to be sent, and then receives after the bytes that were not taken. Returns
    /// whether any came.
    fn receive(&mut self) -> io::Result<bool> {
        self.send()?;
        // Less than one request remains.
        self.buffer.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        let received = self.stream.read(&mut self.buffer[self.to..])?;
        self.to += received;
        Ok(received > 0)
    }

    fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn negotiate(&mut self, exports: &Exports) -> io::Result<Option<Agreed>> {
        let mut handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
        loop {
            let bytes = &self.buffer[self.from..self.to];
            let received = handshake.receive(bytes, exports, &mut self.out);
            self.from += received.taken;
            match received.step {
                Step::Receive if !self.receive()? => return Ok(None),
                Step::Receive => {}
                Step::Answer => self.send()?,
                Step::Transmit(agreed) => return Ok(Some(agreed)),
                Step::StartTls | Step::End(_) => return self.send().map(|()| None),
            }
        }
    }

    fn transmit(&mut self, agreed: Agreed, disk: &Disk) -> io::Result<()> {
        let mut transmission = Transmission::new(agreed, Limits::DEFAULT);
        let mut write: Option<Request> = None;
        loop {
            let next = transmission.next(&self.buffer[self.from..self.to]);
            self.from += next.taken;
            match next.event {
                Event::More { .. } if !self.receive()? => return Ok(()),
                Event::More { .. } => {}
                Event::Request(request) if request.command() == Some(Command::Write) => {
                    write = Some(request);
                }
                Event::Payload { left } => {
                    let request = write.take().expect("WRITE before its payload");
                    let mut payload = vec![0; usize::try_from(left).map_err(io::Error::other)?];
                    self.payload(&mut payload)?;
                    transmission.payload_taken(left);
                    let at = usize::try_from(request.offset()).map_err(io::Error::other)?;
                    disk.write().expect("no panic while locked")[at..at + payload.len()]
                        .copy_from_slice(&payload);
                    self.answer(&mut transmission, request, Ok(()), disk);
                }
                Event::Request(request) => self.carry_out(&mut transmission, request, disk),
                Event::Settled(request, result) => {
                    self.answer(&mut transmission, request, result, disk);
                }
                Event::Wait => unreachable!("each request is answered at once"),
                Event::End(_) => return self.send(),
            }
        }
    }

    /// Reads the payload: what was received of it, then the rest straight from the socket.
    fn payload(&mut self, payload: &mut [u8]) -> io::Result<()> {
        let here = payload.len().min(self.to - self.from);
        payload[..here].copy_from_slice(&self.buffer[self.from..self.from + here]);
        self.from += here;
        self.stream.read_exact(&mut payload[here..])
    }

    fn carry_out(&mut self, transmission: &mut Transmission, mut request: Request, disk: &Disk) {
        let range = range(&request, request.len());
        match request.command() {
            Some(Command::Trim | Command::WriteZeroes { .. }) => {
                disk.write().expect("no panic while locked")[range].fill(0);
            }
            Some(Command::BlockStatus) => {
                let disk = disk.read().expect("no panic while locked");
                for context in request.contexts_left().iter() {
                    let mut status = vec![0; STATUS_BYTES_MIN + (64 << 10)];
                    let mut chunk = transmission.status(&mut request, context, &mut status);
                    for unit in disk[range.start..].chunks(STATUS_UNIT_BYTES) {
                        let zero = unit.iter().all(|byte| *byte == 0);
                        let state = if zero { STATE_HOLE | STATE_ZERO } else { 0 };
                        if !chunk.push(unit.len() as u64, state) {
                            break;
                        }
                    }
                    let len = chunk.finish();
                    self.out.extend(&status[..len]);
                }
            }
            _ => {}
        }
        self.answer(transmission, request, Ok(()), disk);
    }

    fn answer(
        &mut self,
        transmission: &mut Transmission,
        request: Request,
        result: Result<(), blockyard_wire::nbd::Errno>,
        disk: &Disk,
    ) {
        let mut header = [0; ANSWER_BYTES_MAX];
        let range = range(&request, if result.is_ok() { request.len() } else { 0 });
        let answer = transmission.answer(request, result, &mut header);
        self.out.extend(&header[..answer.header_bytes]);
        if answer.data_bytes > 0 {
            self.out.extend(&disk.read().expect("no panic while locked")[range]);
        }
        transmission.sent(answer.charge);
    }
}

/// Returns the range of memory of `request`, which is empty if the request was refused.
fn range(request: &Request, len: u64) -> core::ops::Range<usize> {
    match request.command() {
        Some(_) => offset_of(request.offset())..offset_of(request.offset() + len),
        None => 0..0,
    }
}

fn offset_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("offset within memory")
}
