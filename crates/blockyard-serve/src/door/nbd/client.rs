//! One client: its socket, its unparsed input, and its unsent replies.
//!
//! TCP resets a connection that is closed with received bytes unread, or that receives bytes after
//! it was closed, and a reset destroys replies on their way. So when the server ends a session, it
//! lingers: it sends the end of the stream and then discards what arrives, until the client hangs
//! up. It waits for a second, and for as long as the client receives more of its replies.

use super::batch::Batch;
use super::input::{Input, Receiving};
use super::newcomers::Ticket;
use super::session::{Choosing, Payload, Serving, Session, Target};
use super::shared::Shared;
use super::tls::TlsSession;
use crate::clients::peer::Peer;
use crate::clients::reserve::{self, NO_MEMORY};
use crate::lane::door::Door;
use crate::lane::lent::Lent;
use crate::lane::memory::Account;
use crate::lane::services::{Kept, Services};
use crate::observation::event::Happened;
use crate::observation::overview::ClientView;
use blockyard::time::{Duration, Instant};
use blockyard_std::parts::map::Span;
use blockyard_std::parts::ring::SPANS_MAX;
use blockyard_std::parts::words::error_words;
use blockyard_wire::nbd::{Handshake, Limits};
use core::sync::atomic::Ordering;
use rustix::net::Shutdown;
use std::borrow::Cow;
use std::io;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::Arc;

/// How long a connection lingers after the client has received something.
const LINGER: Duration = Duration::from_ms(1000);
/// The bytes of one receive that are discarded.
const DISCARDED_BYTES: usize = 64 << 10;

#[derive(Debug)]
enum Life {
    Open,
    /// No more input is read, for this reason. Requests in flight are answered, then the connection
    /// is closed, or lingers.
    Ending {
        why: Cow<'static, str>,
        lingers: bool,
    },
    /// All replies were handed to the kernel, which had `unreceived` bytes of them left when it was
    /// asked last. What the client still sends is discarded until it hangs up, but not after
    /// `until`.
    Lingering {
        why: Cow<'static, str>,
        until: Instant,
        unreceived: u32,
    },
    /// The connection is broken, for this reason: nothing is sent or received.
    Dead(Cow<'static, str>),
}

/// The send that is in progress.
#[derive(Debug)]
enum Sending {
    /// No send; `spare` is an empty batch that can be reused.
    Nothing { spare: Option<Box<Batch>> },
    /// The send of a batch, which last made progress at `since`.
    Batch { since: Instant },
}

/// One client. See the [module](self).
#[derive(Debug)]
pub(crate) struct Client {
    pub(super) peer: Peer,
    /// The number of the client, for an operator.
    pub(super) id: u64,
    /// When the client came.
    pub(super) came_at: Instant,
    pub(super) shared: Arc<Shared>,
    pub(super) session: Session,
    /// TLS, once it has started.
    pub(super) tls: Option<Box<TlsSession>>,
    pub(super) input: Input,
    /// The replies of the next send.
    pub(super) batch: Box<Batch>,
    sending: Sending,
    life: Life,
    pub(super) account: Account,
    /// The registration of a client that has not chosen an export.
    pub(super) newcomer: Option<Ticket>,
}

impl Client {
    /// Returns a client that has come `now`, gets the greeting first and must choose an export
    /// before `deadline`.
    pub(super) fn new(peer: Peer, shared: &Arc<Shared>, now: Instant, deadline: Instant) -> Self {
        let handshake = Handshake::new(shared.offer(), Limits::DEFAULT);
        let choosing = Choosing { handshake, deadline, exports: None, waits: false, chosen: None };
        let id = shared.next_client.fetch_add(1, Ordering::Relaxed);
        Self::with_session(
            peer,
            shared,
            id,
            now,
            Session::Handshake(choosing),
            &Handshake::greeting(),
        )
    }

    /// Returns a client that has had the number `id` since it came, and gets `bytes` first.
    pub(super) fn with_session(
        peer: Peer,
        shared: &Arc<Shared>,
        id: u64,
        came_at: Instant,
        session: Session,
        bytes: &[u8],
    ) -> Self {
        let mut batch = Box::<Batch>::default();
        batch.push_head(|out| out.extend(bytes));
        Self {
            peer,
            id,
            came_at,
            shared: Arc::clone(shared),
            input: Input::default(),
            session,
            tls: None,
            batch,
            sending: Sending::Nothing { spare: None },
            life: Life::Open,
            account: Account::default(),
            newcomer: None,
        }
    }

    /// Returns the client as an operator sees it.
    pub(super) fn view(&self, now: Instant) -> ClientView {
        let (requests, moved_bytes, weight) = match &self.session {
            Session::Handshake(_) => (0, 0, None),
            Session::Transmission(Serving { requests, moved_bytes, weight, .. }) => {
                (*requests, *moved_bytes, *weight)
            }
        };
        ClientView {
            id: self.id,
            peer: self.peer.name.clone(),
            disk: self.disk(),
            tls: self.tls_version(),
            age: now.since(self.came_at),
            requests,
            moved_bytes,
            weight,
            in_flight: self.session.at_disk(),
        }
    }

    /// Returns whether no more input is read.
    pub(super) fn is_over(&self) -> bool {
        !matches!(self.life, Life::Open)
    }

    /// Returns whether the connection is broken: nothing is sent or received any more.
    #[inline]
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.life, Life::Dead(_))
    }

    fn is_sending(&self) -> bool {
        matches!(self.sending, Sending::Batch { .. })
    }

    /// Returns whether an answer has not been sent yet.
    pub(super) fn is_answering(&self) -> bool {
        self.is_sending() || !self.batch.is_empty()
    }

    /// Stops reading from the client. The log gets the first reason.
    pub(super) fn stop_reading(&mut self, why: impl Into<Cow<'static, str>>) {
        if matches!(self.life, Life::Open) {
            self.life = Life::Ending { why: why.into(), lingers: false };
        }
    }

    /// Stops reading as [`Self::stop_reading`] does, from a client that may continue to send.
    pub(super) fn stop_receiving(&mut self, why: &'static str) {
        let lingers = self.peer.is_reset_by_unread_bytes();
        if !lingers {
            let _ = rustix::net::shutdown(&self.peer.fd, Shutdown::Read);
        }
        if matches!(self.life, Life::Open) {
            self.life = Life::Ending { why: why.into(), lingers };
        }
    }

    /// Starts to linger once every reply was sent, if it has to.
    pub(super) fn start_lingering(&mut self, lane: &mut Services) {
        let has_answered_all =
            self.session.at_disk() == 0 && !self.is_sending() && self.has_sent_all();
        if let Life::Ending { why, lingers: true } = &mut self.life
            && has_answered_all
        {
            let until = lane.now + LINGER;
            let why = core::mem::take(why);
            self.life = Life::Lingering { why, until, unreceived: u32::MAX };
            let _ = rustix::net::shutdown(&self.peer.fd, Shutdown::Write);
            lane.schedule_wake(until);
        }
    }

    /// Lets a client that lingers, and whose time is over, linger on if it has received more of its
    /// replies. Returns until when.
    pub(super) fn extend_lingering(&mut self, now: Instant) -> Option<Instant> {
        let Life::Lingering { until, unreceived, .. } = &mut self.life else { return None };
        let left = self.peer.unreceived_bytes();
        if left == 0 || left >= core::mem::replace(unreceived, left) {
            return None;
        }
        *until = now + LINGER;
        Some(*until)
    }

    /// The instant at which to stop lingering.
    pub(super) fn lingers_until(&self) -> Option<Instant> {
        match self.life {
            Life::Lingering { until, .. } => Some(until),
            Life::Open | Life::Ending { .. } | Life::Dead(_) => None,
        }
    }

    /// Breaks the connection: nothing more is sent or received.
    pub(super) fn kill(&mut self, why: impl Into<Cow<'static, str>>) {
        self.life = match core::mem::replace(&mut self.life, Life::Open) {
            Life::Open => Life::Dead(why.into()),
            Life::Ending { why, .. } | Life::Lingering { why, .. } | Life::Dead(why) => {
                Life::Dead(why)
            }
        };
        // This ends the kernel's operations on the socket. It fails harmlessly if the peer has
        // closed the socket.
        let _ = rustix::net::shutdown(&self.peer.fd, Shutdown::Both);
    }

    /// Starts TLS, and discards all bytes that arrived before it ([nothing-before-tls]). Without
    /// memory for TLS the connection breaks ([session-fails-without-memory]).
    pub(super) fn start_tls(&mut self) {
        assert!(!self.is_answering(), "the answer to STARTTLS must be sent before TLS starts");
        self.input.clear();
        let tls = self.shared.tls.as_ref().expect("TLS that was offered");
        match TlsSession::new(tls.config()) {
            Some(tls) => self.tls = Some(Box::new(tls)),
            None => self.kill(NO_MEMORY),
        }
    }

    pub(super) fn tls_version(&self) -> Option<&'static str> {
        self.tls.as_ref().map(|tls| tls.version())
    }

    /// Decrypts received records into the awaited payload, if there is one, or else into the input.
    /// Returns whether there were any bytes.
    ///
    /// # Errors
    ///
    /// TLS failed or has ended.
    pub(super) fn decrypt(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        if let Session::Transmission(Serving { transmission, payload, .. }) = &mut self.session
            && let Payload::Landing { target, received, granted, .. } = payload
        {
            let start = *received;
            let bytes = tls.open(*granted - start, |at, bytes| target.write(start + at, bytes))?;
            *received += bytes;
            transmission.payload_taken(bytes as u64);
            return Ok(bytes > 0);
        }
        if !self.input.make_room(self.session.room_bytes()) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(self.input.fill(|room| tls.open_to(room))? > 0)
    }

    fn has_to_send(&self) -> bool {
        !self.batch.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_to_send())
    }

    /// Returns the instant since which the client has moved no byte of unread replies and an
    /// unfinished write, if there is one. Without `anything`, only a client that holds shared
    /// memory of the lane counts.
    pub(super) fn idles_since(&self, anything: bool) -> Option<Instant> {
        if self.is_dead() || (!anything && !self.account.holds_shared()) {
            return None;
        }
        let sends = match self.sending {
            Sending::Batch { since } => Some(since),
            Sending::Nothing { .. } => None,
        };
        let receives = match &self.session {
            Session::Transmission(serving) => serving.payload.idles_since(),
            Session::Handshake(_) => None,
        };
        receives.into_iter().chain(sends).max()
    }

    /// Returns whether the lane can forget the client: nothing is in flight, and nothing will come.
    pub(super) fn is_done(&self) -> bool {
        let is_receiving = !matches!(self.input.receiving, Receiving::Nothing { .. });
        let is_quiet = !is_receiving && !self.is_sending() && self.session.at_disk() == 0;
        let is_closing = matches!(self.life, Life::Ending { lingers: false, .. });
        is_quiet && (self.is_dead() || (is_closing && self.has_sent_all()))
    }

    fn has_sent_all(&self) -> bool {
        !self.has_to_send() && !self.session.waits()
    }

    /// Sends TLS's close_notify once every reply has been sent.
    pub(super) fn close_tls(&mut self) {
        let has_said_all = self.session.at_disk() == 0 && !self.is_answering();
        if self.is_over()
            && has_said_all
            && let Some(tls) = &mut self.tls
        {
            tls.say_end();
        }
    }

    /// Sends the replies that are ready, unless a send is in progress or the connection is broken.
    pub(super) fn start_send(&mut self, number: u32, lane: &mut Services) {
        if self.is_dead() || !self.has_to_send() {
            return;
        }
        let Sending::Nothing { spare } = &mut self.sending else { return };
        let next = spare.take().unwrap_or_default();
        let mut batch = core::mem::replace(&mut self.batch, next);
        if let Some(tls) = &mut self.tls {
            tls.seal(&mut batch);
        }
        self.sending = Sending::Batch { since: lane.now };
        // The end of a quick send wakes no one, so nothing may wait for it.
        let has_more = self.tls.is_some() && !batch.is_taken();
        let others_wait = lane.memory.is_awaited();
        let is_awaited = has_more || self.session.waits() || self.is_over() || others_wait;
        let is_open = matches!(self.session, Session::Transmission(_));
        self.send_batch(number, batch, is_open && !is_awaited, lane);
    }

    fn send_batch(&self, number: u32, mut batch: Box<Batch>, quick: bool, lane: &mut Services) {
        let mut message = lane.ring.message();
        batch.spans(SPANS_MAX, &mut message.spans);
        let kept = Kept::Door { door: number, memory: Lent::Own(batch) };
        lane.ring.send(self.peer.fd.as_raw_fd(), message, quick, kept);
    }

    /// Takes back a batch that the kernel has sent, in part or as a whole, or has failed to send.
    pub(super) fn finish_send(
        &mut self,
        number: u32,
        mut batch: Box<Batch>,
        result: io::Result<usize>,
        lane: &mut Services,
    ) {
        let would_wait = matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        let is_all = match &result {
            Ok(bytes) => batch.advance(*bytes),
            Err(_) => false,
        };
        if !self.is_dead() && !is_all && (would_wait || result.is_ok()) {
            if let Some(tls) = self.tls.as_mut().filter(|_| batch.is_sent()) {
                tls.seal(&mut batch);
            }
            if result.is_ok()
                && let Sending::Batch { since } = &mut self.sending
            {
                *since = lane.now;
            }
            return self.send_batch(number, batch, false, lane); // [unread-replies-hold-one-client]
        }
        let session = &mut self.session;
        batch.clear(
            |charge| session.serving().transmission.sent(charge),
            |pages, bytes| lane.return_buffer(&mut self.account, pages, bytes),
        );
        self.sending = Sending::Nothing { spare: Some(batch) };
        if let Session::Transmission(serving) = &mut self.session {
            serving.waits = false;
        }
        if !is_all {
            let words = result.err().map_or("it hung up".to_owned(), |error| error_words(&error));
            self.kill(words);
        }
    }

    /// Receives more, unless a receive is in progress or no input is wanted.
    pub(super) fn start_receive(&mut self, number: u32, lane: &mut Services) {
        let Receiving::Nothing { has_more: expected } = self.input.receiving else { return };
        let fd = self.peer.fd.as_raw_fd();
        if let Life::Lingering { .. } = self.life {
            let Some(room) = reserve::zeroed_buffer(DISCARDED_BYTES) else {
                return self.fail_without_memory(number, lane);
            };
            self.input.receiving = Receiving::Input;
            let (span, discarded) = lend(room, 0..DISCARDED_BYTES);
            lane.ring.receive(
                fd,
                span,
                false,
                expected,
                Kept::Door { door: number, memory: discarded },
            );
            return;
        }
        // In the handshake each answer is sent before the next option is read.
        let is_choosing = matches!(self.session, Session::Handshake(_));
        if self.session.waits() || self.is_over() || (is_choosing && self.is_sending()) {
            return;
        }
        if let Some(tls) = &mut self.tls {
            if tls.awaits_step() {
                return; // it reads on after the step
            }
            let room = tls.room();
            let all = 0..room.len();
            self.input.receiving = Receiving::Input;
            let (span, room) = lend(room, all);
            lane.ring.receive(fd, span, false, expected, Kept::Door { door: number, memory: room });
            return;
        }
        if let Session::Transmission(Serving { payload, .. }) = &self.session
            && let Payload::Landing { target, received, granted, .. } = payload
        {
            // [idle-holder-cut-off]: a receive into memory of the lane completes with each arrival,
            // which counts.
            let is_whole = matches!(target, Target::Disk { .. });
            let span = target.span(*received..*granted);
            let memory = target.lend();
            self.input.receiving = Receiving::Payload;
            lane.ring.receive(fd, span, is_whole, expected, Kept::Door { door: number, memory });
            return;
        }
        if !self.input.make_room(self.session.room_bytes()) {
            return self.fail_without_memory(number, lane);
        }
        let (input, room) = self.input.lend(self.session.receives_at_most());
        self.input.receiving = Receiving::Input;
        let (span, input) = lend(input, room);
        lane.ring.receive(fd, span, false, expected, Kept::Door { door: number, memory: input });
    }

    /// Breaks the connection, since there is no memory to receive into
    /// ([session-fails-without-memory]).
    fn fail_without_memory(&mut self, number: u32, lane: &mut Services) {
        self.kill(NO_MEMORY);
        lane.schedule_door(number);
    }

    /// Takes back memory into which the kernel has received, or has failed to receive.
    pub(super) fn finish_receive(
        &mut self,
        memory: Lent,
        result: io::Result<usize>,
        more: bool,
        now: Instant,
    ) {
        self.input.receiving = Receiving::Nothing { has_more: more };
        let bytes = result.as_ref().map_or(0, |bytes| *bytes);
        if let Life::Lingering { why, .. } = &mut self.life {
            if bytes == 0 {
                let why = core::mem::take(why);
                self.kill(why);
            }
            return;
        }
        if let Session::Transmission(Serving { payload: Payload::Landing { since, .. }, .. }) =
            &mut self.session
        {
            *since = now;
        }
        match (memory, &mut self.tls) {
            (Lent::Bytes(records), Some(tls)) => tls.received(records, bytes),
            (Lent::Bytes(input), None) => self.input.received(input, bytes),
            (Lent::Pages { .. } | Lent::Map { .. }, _) => {
                let Serving { transmission, payload, .. } = self.session.serving();
                let Payload::Landing { received, .. } = payload else {
                    unreachable!("payload that is received has a target")
                };
                *received += bytes;
                transmission.payload_taken(bytes as u64);
            }
            (Lent::Own(_), _) => unreachable!("a batch is sent, not received"),
        }
        match result {
            Ok(0) => self.stop_reading("it hung up"),
            Ok(_) => {}
            Err(error) => self.kill(error_words(&error)),
        }
    }

    /// Begins to serve the client, whose session has an export: reports it, and gives it the weight
    /// of the place that it comes from.
    pub(super) fn begin_serving(&mut self, lane: &mut Services) {
        self.report_entry(lane);
        let disk = lane.disk(self.session.serving().disk);
        if let Some(weight) = disk.weight_of(&self.peer)
            && let Err(why) = self.weigh(weight, lane)
        {
            self.report(|| Happened::NoWeight { weight, why });
        }
    }

    fn report_entry(&self, lane: &Services) {
        let disk = self.disk().expect("the disk of a client that is served");
        let export = lane.disk(disk).name.clone();
        let tls = self.tls_version();
        self.report(|| Happened::Entered { export, tls });
    }

    pub(super) fn report_departure(&self, lane: &Services) {
        let (Life::Ending { why, .. } | Life::Dead(why)) = &self.life else {
            unreachable!("a client that goes has a reason")
        };
        self.report(|| match &self.session {
            Session::Handshake(choosing) => {
                let unknown = choosing.handshake.unknown_export();
                let unknown = unknown.map(|name| String::from_utf8_lossy(name).into_owned());
                Happened::Gone { export: None, unknown, requests: 0, why: why.clone() }
            }
            Session::Transmission(serving) => {
                let export = Some(lane.disk(serving.disk).name.clone());
                let requests = serving.requests;
                Happened::Gone { export, unknown: None, requests, why: why.clone() }
            }
        });
    }

    fn report(&self, happened: impl FnOnce() -> Happened) {
        self.shared.report(&self.peer, happened);
    }

    pub(super) fn return_memory(self, lane: &mut Services) {
        let Self { mut batch, mut account, session, .. } = self;
        batch.clear(drop, |pages, bytes| lane.return_buffer(&mut account, pages, bytes));
        let Session::Transmission(serving) = session else { return };
        if let Payload::Landing { request, target, granted, .. } = serving.payload {
            match target {
                Target::Buffer { pages, .. } => lane.return_buffer(&mut account, pages, granted),
                Target::Disk { .. } => {
                    // [payload-received-in-place]
                    lane.disk(serving.disk).mark_written(request.offset(), request.len());
                }
            }
        }
        debug_assert!(account.is_empty(), "memory that a client holds when it has gone");
    }
}

/// Lends `range` of `input` to the kernel, which receives into it. Nothing else holds the buffer
/// ([kernel-writes-alone]).
fn lend(mut input: Rc<[u8]>, range: core::ops::Range<usize>) -> (Span, Lent) {
    let room = &mut Rc::get_mut(&mut input).expect("input buffer with one owner")[range];
    let span = Span { start: room.as_mut_ptr(), len: room.len() };
    (span, Lent::Bytes(input))
}
