//! A client that costs less than the servers under test.
//!
//! After each receive, one send carries all the requests for which there is room again. The client
//! discards the data of reads, and always writes the same data. It accepts simple replies only.

use super::shape::{Direction, Shape};
use super::word_at;
use blockyard::stats::Histogram;
use blockyard_wire::nbd::number::{
    FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, IHAVEOPT, INIT_PASSWD, REPLY_MAGIC, REQUEST_MAGIC,
    SIMPLE_REPLY_MAGIC, STRING_BYTES_MAX, cmd, info, opt, rep,
};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

/// How long a server may send nothing, or receive nothing, before the client gives it up.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest receive, in bytes.
const RECEIVE_BYTES: usize = 512 << 10;
const REQUEST_BYTES: usize = 28;
const REPLY_BYTES: usize = 16;
/// The largest number of pieces in one send: Linux's `UIO_MAXIOV`.
const PIECES_MAX: usize = 1024;

/// The progress of a connection, for the thread that watches it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Replies received.
    pub ios: AtomicU64,
    /// Whether latencies count already.
    pub(crate) measuring: AtomicBool,
    /// Whether the client must stop sending requests.
    pub(crate) stopping: AtomicBool,
}

/// A connection in its transmission phase.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    size_bytes: u64,
}

impl Client {
    /// Connects to the export with the given name.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no server or the server refuses.
    pub fn connect(socket: &Path, export: &str) -> io::Result<Self> {
        Self::enter(UnixStream::connect(socket)?, export)
    }

    /// Chooses the export of this name over a connected socket.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refuses, or does not answer.
    pub fn enter(mut stream: UnixStream, export: &str) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let size_bytes = handshake(&mut stream, export).map_err(silence)?;
        Ok(Self { stream, size_bytes })
    }

    /// Writes the whole export once, so that no server reads holes.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection breaks or a write fails.
    pub fn fill(self) -> io::Result<()> {
        let shape = Shape { direction: Direction::Write, bytes: 1 << 20, depth: 8 };
        let mut session = Session::new(self, shape, Offsets::All { next: 0 })?;
        let progress = Progress::default();
        while session.turn(&progress)? {}
        session.end()
    }

    /// Keeps the depth with requests at random offsets until asked to stop. Returns the latencies,
    /// in nanoseconds.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection breaks or a request fails.
    pub fn load(self, shape: Shape, seed: u64, progress: &Progress) -> io::Result<Histogram> {
        let offsets = Offsets::Random(seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut session = Session::new(self, shape, offsets)?;
        while session.turn(progress)? {}
        let latencies = core::mem::take(&mut session.latencies);
        session.end()?;
        Ok(latencies)
    }

    /// Sends `ios` requests at random offsets in rounds. One send carries the requests of a round,
    /// and the next round begins when all replies have come, so every run gives the server the same
    /// turns.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection breaks, or a request is refused.
    pub fn rounds(self, shape: Shape, ios: u64) -> io::Result<()> {
        let mut session = Session::new(self, shape, Offsets::Random(0x2545_f491_4f6c_dd1d))?;
        let progress = Progress::default();
        for _ in 0..ios / shape.depth as u64 {
            session.refill();
            session.send()?;
            while session.free.len() < shape.depth || session.skip > 0 {
                session.receive(&progress)?;
            }
        }
        session.end()
    }
}

/// The size of the export, in bytes.
fn handshake(stream: &mut UnixStream, export: &str) -> io::Result<u64> {
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting)?;
    if greeting[..8] != INIT_PASSWD.to_be_bytes() || greeting[8..16] != IHAVEOPT.to_be_bytes() {
        return Err(protocol("no newstyle NBD server"));
    }
    let flags = u16::from_be_bytes([greeting[16], greeting[17]]);
    let flags = flags & (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
    stream.write_all(&u32::from(flags).to_be_bytes())?;

    let name_bytes = u32::try_from(export.len()).map_err(|_| protocol("the name is too long"))?;
    let mut go = IHAVEOPT.to_be_bytes().to_vec();
    go.extend(opt::GO.to_be_bytes());
    go.extend((4 + name_bytes + 2).to_be_bytes());
    go.extend(name_bytes.to_be_bytes());
    go.extend(export.as_bytes());
    go.extend([0; 2]);
    stream.write_all(&go)?;

    let mut size_bytes = None;
    loop {
        let mut head = [0; 20];
        stream.read_exact(&mut head)?;
        let kind = word_at(&head, 12);
        let len = word_at(&head, 16) as usize;
        if head[..8] != REPLY_MAGIC.to_be_bytes() || len > 2 * STRING_BYTES_MAX {
            return Err(protocol("the reply to an option is malformed"));
        }
        let mut data = vec![0; len];
        stream.read_exact(&mut data)?;
        match kind {
            rep::ACK => return size_bytes.ok_or_else(|| protocol("the export has no size")),
            rep::INFO if data.starts_with(&info::EXPORT.to_be_bytes()) && len >= 10 => {
                let size = core::array::from_fn(|byte| data[2 + byte]);
                size_bytes = Some(u64::from_be_bytes(size));
            }
            kind if kind & rep::ERR != 0 => return Err(protocol("the export is refused")),
            _ => {}
        }
    }
}

/// Names the error of a wait that [`PATIENCE`] ended.
fn silence(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock => {
            let words = format!("the server did nothing for {} s", PATIENCE.as_secs());
            io::Error::new(ErrorKind::TimedOut, words)
        }
        _ => error,
    }
}

fn protocol(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// The order of a connection's requests.
#[derive(Debug)]
enum Offsets {
    /// Random: the state of a xorshift generator.
    Random(u64),
    /// Sequential, to the end of the export.
    All { next: u64 },
}

impl Offsets {
    /// The next block, below `blocks`.
    fn draw(&mut self, blocks: u64) -> Option<u64> {
        match self {
            Self::Random(state) => Some(crate::xorshift(state) % blocks),
            Self::All { next } => {
                let block = *next;
                *next += 1;
                (block < blocks).then_some(block)
            }
        }
    }
}

/// One connection under load.
struct Session {
    stream: UnixStream,
    shape: Shape,
    blocks: u64,
    offsets: Offsets,
    payload: Vec<u8>,
    /// The instant at which each slot's request was sent.
    begun: Vec<Instant>,
    free: Vec<usize>,
    /// Headers of the next requests.
    headers: Vec<[u8; REQUEST_BYTES]>,
    received: Vec<u8>,
    /// Bytes of an incomplete reply at the front of `received`.
    have: usize,
    /// Bytes of data that are still to be discarded.
    skip: usize,
    latencies: Histogram,
}

impl Session {
    fn new(client: Client, shape: Shape, offsets: Offsets) -> io::Result<Self> {
        let blocks = client.size_bytes / shape.bytes as u64;
        if blocks == 0 {
            return Err(protocol("the export is smaller than one request"));
        }
        Ok(Self {
            stream: client.stream,
            shape,
            blocks,
            offsets,
            payload: (0..=250).cycle().take(shape.bytes).collect(),
            begun: vec![Instant::now(); shape.depth],
            free: (0..shape.depth).collect(),
            headers: Vec::with_capacity(shape.depth),
            received: vec![0; RECEIVE_BYTES],
            have: 0,
            skip: 0,
            latencies: Histogram::new(),
        })
    }

    /// Sends requests for which there is room, and receives. Returns false when every request is
    /// answered and the client must stop.
    fn turn(&mut self, progress: &Progress) -> io::Result<bool> {
        if !progress.stopping.load(Ordering::Relaxed) {
            self.refill();
            self.send()?;
        }
        if self.free.len() == self.shape.depth {
            return Ok(false);
        }
        self.receive(progress)?;
        Ok(true)
    }

    fn refill(&mut self) {
        let now = Instant::now();
        while let Some(&slot) = self.free.last() {
            let Some(block) = self.offsets.draw(self.blocks) else { return };
            self.free.pop();
            self.begun[slot] = now;
            let command = match self.shape.direction {
                Direction::Read => cmd::READ,
                Direction::Write => cmd::WRITE,
            };
            let offset = block * self.shape.bytes as u64;
            self.headers.push(header(command, slot as u64, offset, self.shape.bytes));
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let writes = self.shape.direction == Direction::Write;
        for some in self.headers.chunks(PIECES_MAX / 2) {
            let mut pieces = Vec::with_capacity(2 * some.len());
            for header in some {
                pieces.push(IoSlice::new(header));
                pieces.extend(writes.then(|| IoSlice::new(&self.payload)));
            }
            write_all(&mut self.stream, &mut pieces).map_err(silence)?;
        }
        self.headers.clear();
        Ok(())
    }

    fn receive(&mut self, progress: &Progress) -> io::Result<()> {
        let came = match self.stream.read(&mut self.received[self.have..]).map_err(silence)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            came => came,
        };
        let now = Instant::now();
        let measuring = progress.measuring.load(Ordering::Relaxed);
        let mut at = 0;
        let end = self.have + came;
        let mut ios = 0;
        loop {
            let here = self.skip.min(end - at);
            at += here;
            self.skip -= here;
            let Some(reply) = self.received[at..end].first_chunk::<REPLY_BYTES>() else { break };
            let slot = answered(reply)?;
            let begun = *self
                .begun
                .get(slot)
                .ok_or_else(|| protocol("the cookie of a reply is unknown"))?;
            at += REPLY_BYTES;
            if self.shape.direction == Direction::Read {
                self.skip = self.shape.bytes;
            }
            if measuring {
                let latency = now.saturating_duration_since(begun);
                self.latencies.record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
            }
            self.free.push(slot);
            ios += 1;
        }
        self.received.copy_within(at..end, 0);
        self.have = end - at;
        progress.ios.fetch_add(ios, Ordering::Relaxed);
        Ok(())
    }

    /// Receives the last data and disconnects.
    fn end(mut self) -> io::Result<()> {
        while self.skip > 0 {
            let here = self.skip.min(RECEIVE_BYTES);
            self.stream.read_exact(&mut self.received[..here]).map_err(silence)?;
            self.skip -= here;
        }
        self.stream.write_all(&header(cmd::DISC, 0, 0, 0))
    }
}

fn header(command: u16, cookie: u64, offset: u64, bytes: usize) -> [u8; REQUEST_BYTES] {
    let mut header = [0; REQUEST_BYTES];
    header[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    header[6..8].copy_from_slice(&command.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header[16..24].copy_from_slice(&offset.to_be_bytes());
    let bytes = u32::try_from(bytes).expect("length of a request below 4 GiB");
    header[24..].copy_from_slice(&bytes.to_be_bytes());
    header
}

/// Returns the slot of a successful reply.
fn answered(reply: &[u8; REPLY_BYTES]) -> io::Result<usize> {
    if reply[..4] != SIMPLE_REPLY_MAGIC.to_be_bytes() {
        return Err(protocol("the reply is not a simple reply"));
    }
    if reply[4..8] != [0; 4] {
        return Err(protocol("the server reports an error"));
    }
    let cookie = u64::from_be_bytes(core::array::from_fn(|byte| reply[8 + byte]));
    usize::try_from(cookie).map_err(|_| protocol("the cookie of a reply is unknown"))
}

/// Writes all the pieces, with as many sends as the socket needs.
pub(super) fn write_all(stream: &mut UnixStream, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !pieces.is_empty() {
        match stream.write_vectored(pieces) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(sent) => IoSlice::advance_slices(&mut pieces, sent),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until a server accepts connections at the socket.
///
/// # Errors
///
/// Returns an error after ten seconds without a server.
pub fn wait_for(socket: &Path) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(_) => return Ok(()),
            Err(error) if begun.elapsed() > Duration::from_secs(10) => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
