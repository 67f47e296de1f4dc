//! A lane: a thread with its own request queues, io_uring and connections.
//!
//! ```text
//! wait ─► now ─► received: parse, submit ─► run, complete ─► answer each bio that ended
//!   ▲                                                                      │
//!   └──────────── one send and one receive for each connection ◄───────────┘
//! ```
//!
//! # Rules (cited by number in the code)
//!
//! - **L1.** What a turn sends and receives goes to the kernel in one call, which also waits; I/O of
//!   files goes before (I4 of the ring).
//! - **L2.** A connection whose client does not read holds nothing but itself: it is not received
//!   from while its limits are reached, and its answers wait with it.
//! - **L3.** A connection is forgotten when the kernel has nothing of it and no disk has a request of
//!   it; until then its number is not used again.
//! - **L4.** Data under way in a lane has a limit; who would go beyond it is not parsed until some is
//!   given back. Where nothing is for as long as a lane has patience, clients that hold some are cut
//!   off: who left a reply unread, or a write unfinished, for that long. So are they when a server
//!   that ends waits for nothing else.
//! - **L5.** The payload of a long write is received to where it belongs, where the disk says that
//!   nothing can refuse the write any more. A connection that breaks in the middle leaves it done
//!   in part, as a write that nobody answered may be; nothing around it is touched.
//! - **L6.** Once a client asked for TLS, nothing that came before it runs is looked at, and nothing
//!   it sends is taken for said under TLS but what came out of it.

mod answer;
mod connection;
mod parse;
mod queue;
mod tls;

use crate::bell;
use crate::clock;
use crate::disk::Disk;
use crate::entrance::Message;
use crate::event::{ClientEvent, ENDING, Happened, name_of};
use crate::job::{Job, Jobs, Owner, Transfer};
use crate::meter::{Counts, Meter, Metered};
use crate::pool::Pool;
use crate::ring::{Done, Landing, Memory, Ring, Token};
use crate::slab::Slab;
use crate::traffic::Traffic;
use crate::watcher::{LaneWatcher, Watcher};
use crate::words::error_words;
use blockyard::bio::{Bio, Op};
use blockyard::time::Instant;
use blockyard_wire::nbd::{Exports, Tls};
use connection::{Connection, Receiving, Stage, Target, Write};
use core::sync::atomic::{AtomicUsize, Ordering};
use queue::DiskQueue;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Spare buffers that a lane keeps, in bytes.
const SPARE_BYTES_MAX: usize = 64 << 20;

/// What all lanes share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// What wakes each lane, by its number: for a message, or some of a shared depth.
    pub(crate) bells: Vec<Arc<OwnedFd>>,
    pub(crate) exports: Exports,
    pub(crate) tls: Option<TlsShared>,
    pub(crate) disks: Vec<Arc<Disk>>,
    pub(crate) handshake_deadline: Duration,
    /// L4.
    pub(crate) patience: Duration,
    /// L4, in bytes.
    pub(crate) lane_bytes_max: usize,
    /// Never sleep.
    pub(crate) polls: bool,
    /// Whom to tell what happens to clients.
    pub(crate) events: Option<mpsc::SyncSender<ClientEvent>>,
    /// Somebody can ask what was counted.
    pub(crate) is_metered: bool,
    /// Who is told every step of every request.
    pub(crate) watcher: Option<Arc<dyn Watcher>>,
    /// Connections there are, of all lanes.
    pub(crate) connections: Arc<AtomicUsize>,
    /// Rung when the last connection ends, if the server is to end with it.
    pub(crate) ends_with_last: Option<Arc<OwnedFd>>,
}

/// How clients may use TLS.
#[derive(Debug)]
pub(crate) struct TlsShared {
    pub(crate) config: Arc<rustls::ServerConfig>,
    pub(crate) is_required: bool,
}

/// What a lane is made of.
#[derive(Debug)]
pub(crate) struct LaneParts {
    /// Which lane it is.
    pub(crate) number: u32,
    pub(crate) shared: Arc<Shared>,
    pub(crate) messages: mpsc::Receiver<Message>,
    /// Rings when there is a message.
    pub(crate) bell: Arc<OwnedFd>,
    /// Connections of this lane.
    pub(crate) load: Arc<AtomicUsize>,
}

/// A lane. See the [module](self).
pub(crate) struct Lane {
    parts: LaneParts,
    ring: Ring,
    pool: Pool,
    jobs: Jobs,
    disks: Vec<DiskQueue>,
    connections: Slab<Connection>,
    /// Connections to look after in this turn: parse, send, receive, close.
    listed: Vec<u32>,
    /// Connections that wait for memory (L4).
    held: VecDeque<u32>,
    /// The earliest deadline of a handshake.
    deadline: Instant,
    /// When to look for clients that keep others, or the end, waiting (L4).
    impatient_at: Instant,
    is_draining: bool,
    is_leaving: bool,
    /// Flushes before the end that have not ended; none before they are submitted.
    flushes_left: Option<usize>,
    flush_failed: bool,
    traffic: Traffic,
    now: Instant,
}

impl Lane {
    /// A lane of this thread.
    ///
    /// # Errors
    ///
    /// There is no io_uring.
    pub(crate) fn new(parts: LaneParts) -> io::Result<Self> {
        let jobs = Jobs::new(RefCell::new(Slab::new()));
        let (shared, now) = (&parts.shared, clock::now());
        let watcher = shared.watcher.as_ref().map(|all| all.lane(parts.number, now));
        let watcher = watcher.map(LaneWatcher::new);
        let is_metered = shared.is_metered || watcher.is_some();
        let disks = (0..).zip(&shared.disks).map(|(number, disk)| {
            let meter = Meter(is_metered.then(|| {
                let watcher = watcher.clone().map(|watcher| (number, watcher));
                Box::new(Metered { counts: Counts::new(), watcher })
            }));
            DiskQueue::new(disk, parts.number, &jobs, meter)
        });
        let disks = disks.collect();
        Ok(Self {
            parts,
            ring: Ring::new()?,
            pool: Pool::new(SPARE_BYTES_MAX),
            jobs,
            disks,
            connections: Slab::new(),
            listed: Vec::new(),
            held: VecDeque::new(),
            deadline: Instant::MAX,
            impatient_at: Instant::MAX,
            is_draining: false,
            is_leaving: false,
            flushes_left: None,
            flush_failed: false,
            traffic: Traffic::default(),
            now,
        })
    }

    /// Serves until it was told to drain and has, or to leave.
    ///
    /// # Errors
    ///
    /// The io_uring or a last flush failed.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        let ended = self.run();
        self.disks.iter().for_each(DiskQueue::tell_faults);
        ended
    }

    fn run(&mut self) -> io::Result<()> {
        self.ring.readable(self.parts.bell.as_raw_fd(), Token::Bell);
        loop {
            let wait = self.wait();
            self.ring.enter(wait)?;
            self.now = clock::now();
            while let Some(done) = self.ring.next_done() {
                self.take_in(done);
            }
            if self.is_leaving {
                return Ok(());
            }
            self.turn();
            if self.has_drained() {
                return match self.flush_failed {
                    true => Err(io::Error::other("the last flush failed")),
                    false => Ok(()),
                };
            }
        }
    }

    /// How long nothing happens by itself.
    fn wait(&self) -> Option<Duration> {
        if self.parts.shared.polls {
            return None;
        }
        let polls = self.disks.iter().filter_map(DiskQueue::poll_at);
        let until = polls.chain([self.deadline, self.impatient_at]).min().unwrap_or(Instant::MAX);
        if until == Instant::MAX {
            return Some(Duration::MAX);
        }
        Some(Duration::from_nanos(until.since(clock::now()).as_ns()))
    }

    /// What the kernel has done.
    fn take_in(&mut self, done: Done) {
        match (done.token, done.memory) {
            (Token::Receive(at), Memory::Landing(landing)) => {
                self.received(at, landing, done.result, done.more);
            }
            (Token::Send(at), Memory::Batch(batch)) => self.sent(at, batch, done.result),
            (Token::Disk { disk, number }, _) => {
                let ended = &self.disks[usize::from(disk)].outbox.ended;
                ended.borrow_mut().push_back((number, done.result));
            }
            (Token::Bell, _) => self.rung(),
            (token, memory) => unreachable!("{token:?} has no {memory:?}"),
        }
    }

    /// Everything that follows from what came in.
    fn turn(&mut self) {
        if self.deadline <= self.now {
            self.end_late_handshakes();
        }
        if self.impatient_at <= self.now {
            self.cut_off_idlers();
        }
        let mut at = 0;
        while at < self.listed.len() {
            self.parse(self.listed[at]);
            at += 1;
        }
        for disk in 0..self.disks.len() {
            self.advance(disk);
        }
        self.release_held();
        for at in core::mem::take(&mut self.listed) {
            self.look_after(at);
        }
        if self.is_draining && self.connections.len() == 0 && self.flushes_left.is_none() {
            self.flush_all();
        }
    }

    /// Lets `disk` do what it can, and answers what has ended.
    fn advance(&mut self, disk: usize) {
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            self.disks[disk].advance(self.now);
            while let Some(ended) = self.disks[disk].next_ended() {
                goes_on |= self.ended(disk, &ended);
            }
        }
        let number_of_disk = u16::try_from(disk).expect("there are 1024 exports at most");
        let outbox = Rc::clone(&self.disks[disk].outbox);
        while let Some((number, io)) = outbox.begun.borrow_mut().pop_front() {
            self.ring.file(Token::Disk { disk: number_of_disk, number }, io);
        }
    }

    /// L4: who was held goes on when there is room.
    fn release_held(&mut self) {
        let mut waiting = self.held.len();
        if waiting == 0 {
            return;
        }
        while waiting > 0 && !self.is_full() {
            waiting -= 1;
            let at = self.held.pop_front().expect("it was counted");
            self.connections[at].is_held = false;
            self.list(at);
            self.parse(at);
            if !self.is_draining {
                self.impatient_at = Instant::MAX;
            }
        }
        if !self.held.is_empty() {
            self.impatient_at = self.impatient_at.min(self.now + self.patience());
        }
        for disk in 0..self.disks.len() {
            self.advance(disk);
        }
    }

    /// L4: `at` waits for memory.
    fn hold(&mut self, at: u32) {
        let patience_ends = self.now + self.patience();
        self.impatient_at = self.impatient_at.min(patience_ends);
        let connection = &mut self.connections[at];
        connection.waits = true;
        if !connection.is_held {
            connection.is_held = true;
            self.held.push_back(at);
        }
    }

    fn is_full(&self) -> bool {
        self.pool.taken_bytes() >= self.parts.shared.lane_bytes_max
    }

    /// There are messages, or some of a depth was given back.
    fn rung(&mut self) {
        bell::silence(&self.parts.bell);
        for disk in &mut self.disks {
            disk.try_again(self.now);
        }
        while let Ok(message) = self.parts.messages.try_recv() {
            match message {
                Message::Connection(fd) => self.adopt(fd),
                Message::Report(answer) => {
                    self.disks.iter().for_each(DiskQueue::tell_faults);
                    let counts = self.disks.iter().filter_map(|disk| disk.counts(self.now));
                    // Who asked may have gone.
                    drop(answer.send(counts.collect()));
                }
                Message::Traffic(answer) => {
                    let in_flight = self.jobs.borrow().len();
                    // As above.
                    let _ = answer.send(Traffic { in_flight, ..self.traffic });
                }
                Message::Drain => self.drain(),
                Message::Leave => self.is_leaving = true,
            }
        }
        self.ring.readable(self.parts.bell.as_raw_fd(), Token::Bell);
    }

    fn adopt(&mut self, fd: OwnedFd) {
        if self.is_draining {
            self.forget_one();
            return;
        }
        let deadline = self.now + clock::duration(self.parts.shared.handshake_deadline);
        self.deadline = self.deadline.min(deadline);
        let tls = match &self.parts.shared.tls {
            None => Tls::Off,
            Some(tls) if tls.is_required => Tls::Required,
            Some(_) => Tls::Offered,
        };
        let at = self.connections.insert(Connection::new(fd, deadline, tls));
        self.list(at);
    }

    fn list(&mut self, at: u32) {
        let connection = &mut self.connections[at];
        if !connection.is_listed {
            connection.is_listed = true;
            self.listed.push(at);
        }
    }

    fn end_late_handshakes(&mut self) {
        self.deadline = Instant::MAX;
        for at in 0..self.connections.end() {
            let Some(connection) = self.connections.find_mut(at) else { continue };
            let Stage::Handshake { deadline, .. } = connection.stage else { continue };
            if connection.is_dead {
                continue;
            }
            if deadline <= self.now {
                self.kill(at, "it took too long to choose an export");
            } else {
                self.deadline = self.deadline.min(deadline);
            }
        }
    }

    fn patience(&self) -> blockyard::time::Duration {
        clock::duration(self.parts.shared.patience)
    }

    /// L4: nothing was given back for long, or the server ends.
    fn cut_off_idlers(&mut self) {
        if self.held.is_empty() && !self.is_draining {
            self.impatient_at = Instant::MAX;
            return;
        }
        let patience = self.patience();
        self.impatient_at = self.now + patience;
        for at in 0..self.connections.end() {
            let Some(connection) = self.connections.find_mut(at) else { continue };
            let Some(since) = connection.idles_since(self.is_draining) else { continue };
            if since + patience <= self.now {
                self.kill(at, "it took too long, and others waited for that");
            } else {
                self.impatient_at = self.impatient_at.min(since + patience);
            }
        }
    }

    /// Sends what is to be sent, receives what may be received, and forgets who is done.
    fn look_after(&mut self, at: u32) {
        let connection = &mut self.connections[at];
        connection.is_listed = false;
        let fd = connection.fd.as_raw_fd();
        let is_quiet =
            connection.jobs == 0 && connection.batch.is_empty() && !connection.is_sending;
        if connection.is_over
            && is_quiet
            && let Some(tls) = &mut connection.tls
        {
            tls.say_end();
        }
        if !connection.is_dead && !connection.is_sending && connection.has_to_send() {
            let next = connection.spare.take().unwrap_or_default();
            let mut batch = core::mem::replace(&mut connection.batch, next);
            if let Some(tls) = &mut connection.tls {
                tls.seal(&mut batch);
            }
            connection.is_sending = true;
            (connection.sends_since, connection.sends_pages) = (self.now, batch.has_pages());
            // Nothing must wait for the end of a quick send, as nobody is woken by it.
            let has_more = connection.tls.is_some() && !batch.is_taken();
            let is_awaited =
                has_more || connection.waits || connection.is_over || !self.held.is_empty();
            let is_open = matches!(connection.stage, Stage::Transmission { .. });
            self.ring.send(fd, Token::Send(at), batch, is_open && !is_awaited);
        }
        if connection.is_done() && !connection.is_held {
            self.forget(at);
        } else {
            self.receive(at);
        }
    }

    /// Receives more, unless something is, or nothing is wanted.
    fn receive(&mut self, at: u32) {
        let connection = &mut self.connections[at];
        let is_idle = connection.receiving == Receiving::Nothing;
        // In the handshake an answer is sent before the next question is read.
        let is_answering =
            matches!(connection.stage, Stage::Handshake { .. }) && connection.is_sending;
        let is_closed = connection.is_dead || connection.is_over;
        if !is_idle || connection.waits || is_closed || is_answering {
            return;
        }
        let fd = connection.fd.as_raw_fd();
        let expected = connection.has_more;
        let token = Token::Receive(at);
        if let Some(tls) = &mut connection.tls {
            let room = tls.room();
            let all = 0..room.len();
            connection.receiving = Receiving::Input;
            self.ring.receive(fd, token, Landing::Input(room), all, false, expected);
            return;
        }
        if let Some(write) = &connection.write
            && let Some(target) = &write.target
        {
            let Stage::Transmission { transmission, .. } = &connection.stage else {
                unreachable!("writes come after the handshake")
            };
            let left = usize::try_from(transmission.payload_left()).expect("payload is short");
            let (landing, start) = target.landing();
            let start = start + write.received;
            connection.receiving = Receiving::Payload;
            self.ring.receive(fd, token, landing, start..start + left, true, expected);
            return;
        }
        connection.make_room();
        let input = connection.input.take().expect("the kernel gave it back");
        connection.receiving = Receiving::Input;
        let room = connection.room(&input);
        self.ring.receive(fd, token, Landing::Input(input), room, false, expected);
    }

    fn received(&mut self, at: u32, landing: Landing, result: io::Result<usize>, more: bool) {
        let connection = &mut self.connections[at];
        connection.receiving = Receiving::Nothing;
        connection.has_more = more;
        let bytes = result.as_ref().map_or(0, |bytes| *bytes);
        match landing {
            Landing::Input(input) => match &mut connection.tls {
                Some(tls) => tls.received(input, bytes),
                None => {
                    connection.input = Some(input);
                    connection.to += bytes;
                }
            },
            Landing::Pages(_) | Landing::Home(_) => {
                let write = connection.write.as_mut().expect("its payload was received");
                write.received += bytes;
                if let Stage::Transmission { transmission, .. } = &mut connection.stage {
                    transmission.payload_taken(bytes as u64);
                }
            }
        }
        match result {
            Ok(0) => connection.end("it hung up"),
            Ok(_) => {}
            Err(error) => self.kill(at, error_words(&error)),
        }
        self.list(at);
    }

    fn sent(&mut self, at: u32, mut batch: Box<crate::batch::Batch>, result: io::Result<usize>) {
        let connection = &mut self.connections[at];
        let would_wait = matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        let is_all = match &result {
            Ok(bytes) => batch.advance(*bytes),
            Err(_) => false,
        };
        if !connection.is_dead && !is_all && (would_wait || result.is_ok()) {
            if let Some(tls) = connection.tls.as_mut().filter(|_| batch.is_sent()) {
                tls.seal(&mut batch);
            }
            if result.is_ok() {
                connection.sends_since = self.now;
            }
            let fd = connection.fd.as_raw_fd();
            self.ring.send(fd, Token::Send(at), batch, false); // L2
            return;
        }
        let pool = &mut self.pool;
        let stage = &mut connection.stage;
        let give_back = |charge| match stage {
            Stage::Transmission { transmission, .. } => transmission.sent(charge),
            Stage::Handshake { .. } => unreachable!("requests come after the handshake"),
        };
        batch.clear(give_back, |pages| pool.give(pages));
        connection.spare = Some(batch);
        connection.is_sending = false;
        connection.waits = false;
        if !is_all {
            let words = result.err().map_or("it hung up".to_owned(), |error| error_words(&error));
            self.kill(at, words);
        }
        self.list(at);
    }

    /// Nobody is at the other end any more, or shall be: nothing is sent or received.
    fn kill(&mut self, at: u32, why: impl Into<Cow<'static, str>>) {
        let connection = &mut self.connections[at];
        connection.end(why);
        connection.is_dead = true;
        // What is under way in the kernel ends by this. A socket that is closed already is no failure.
        let _ = rustix::net::shutdown(&connection.fd, rustix::net::Shutdown::Both);
        self.list(at);
    }

    /// L3.
    fn forget(&mut self, at: u32) {
        self.gone(at);
        let mut connection = self.connections.remove(at);
        let pool = &mut self.pool;
        connection.batch.clear(drop, |pages| pool.give(pages));
        if let Some(Write { request, target: Some(target), .. }) = connection.write {
            match target {
                Target::Pages { pages, .. } => self.pool.give(pages),
                Target::Home { .. } => {
                    let Stage::Transmission { disk, .. } = connection.stage else {
                        unreachable!("writes come after the handshake")
                    };
                    self.disks[disk].disk.touched(request.offset(), request.len()); // L5
                }
            }
        }
        self.forget_one();
    }

    /// Tells that `at` has chosen `disk`.
    fn entered(&self, at: u32, disk: usize) {
        let tls = self.connections[at].tls.as_ref().map(|tls| tls.version());
        self.tell(at, || Happened::Entered { export: self.disks[disk].disk.name.clone(), tls });
    }

    /// Tells that `at` has gone.
    fn gone(&self, at: u32) {
        let connection = &self.connections[at];
        let export = match connection.stage {
            Stage::Handshake { .. } => None,
            Stage::Transmission { disk, .. } => Some(self.disks[disk].disk.name.clone()),
        };
        let requests = connection.requests;
        self.tell(at, || Happened::Gone { export, requests, why: connection.why() });
    }

    fn tell(&self, at: u32, happened: impl FnOnce() -> Happened) {
        if let Some(events) = &self.parts.shared.events {
            let client = name_of(&self.connections[at].fd);
            // A lane does not wait for a log.
            drop(events.try_send(ClientEvent { client, happened: happened() }));
        }
    }

    fn forget_one(&self) {
        self.parts.load.fetch_sub(1, Ordering::Relaxed);
        let shared = &self.parts.shared;
        let were = shared.connections.fetch_sub(1, Ordering::Relaxed);
        if were == 1
            && let Some(stop) = &shared.ends_with_last
        {
            bell::ring(stop);
        }
    }

    /// Nothing new: what was received is answered, and every connection ends.
    fn drain(&mut self) {
        self.is_draining = true;
        self.impatient_at = self.now;
        for at in 0..self.connections.end() {
            let Some(connection) = self.connections.find_mut(at) else { continue };
            match &mut connection.stage {
                Stage::Handshake { .. } => self.kill(at, ENDING),
                Stage::Transmission { transmission, .. } => {
                    transmission.shut_down();
                    connection.end(ENDING);
                    let _ = rustix::net::shutdown(&connection.fd, rustix::net::Shutdown::Read);
                    self.list(at);
                }
            }
        }
    }

    /// The last thing: every disk is flushed.
    fn flush_all(&mut self) {
        self.flushes_left = Some(self.disks.len());
        for disk in 0..self.disks.len() {
            let job = Job { transfer: Transfer::new(0, 0), owner: Owner::Lane };
            let cookie = u64::from(self.jobs.borrow_mut().insert(job));
            self.disks[disk].submit(Bio::new(Op::Flush, 0, 0, cookie), self.now);
            self.advance(disk);
        }
    }

    fn has_drained(&self) -> bool {
        self.is_draining && self.flushes_left == Some(0)
    }
}
