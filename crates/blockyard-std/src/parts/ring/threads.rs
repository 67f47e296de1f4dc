//! The engine of a ring without io_uring: `epoll` for sockets, and threads for files.
//!
//! A socket is watched for its edges from its first operation until it is
//! [forgotten](Threads::forget): a wait costs no system call to arm it. What the edges have told is
//! kept in [`Socket`]. A receive that gets less than it asked for has emptied the socket, epoll(7),
//! and the next one waits for an edge without a try.
//!
//! A send is tried immediately. Only a send that must wait asks for edges of writing: a socket of
//! the unix domain has one whenever its peer reads.

use super::files::{Call, Files, Memory};
use super::ops::{FileIo, Message, Ops, Pieces, iovec};
use crate::parts::bell;
use crate::parts::map::Span;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// The largest number of events that one call returns. The others come with the next one.
const EVENTS_MAX: usize = 64;
/// A time limit that has passed.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// The edges of a socket whose operations are receives.
const RECEIVING: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);
/// The edges of a socket that waits until it can send.
const SENDING: EventFlags = RECEIVING.union(EventFlags::OUT);

/// The engine of a ring without io_uring. See the [module](self).
pub(super) struct Threads {
    epoll: OwnedFd,
    sockets: BTreeMap<RawFd, Socket>,
    /// The sockets whose operations have not been tried.
    pushed: Vec<RawFd>,
    files: Files,
    /// Quick sends of this turn, and how much each sent: they end no wait
    /// ([quick-send-never-waits]).
    sent: Vec<(u32, usize)>,
    /// Reads that the page cache has answered, and results of [`Files`], on their way to the
    /// owners.
    results: Vec<(u32, io::Result<usize>)>,
    events: Vec<Event>,
}

/// A socket or bell, as far as its edges have told, and its operations.
#[derive(Debug, Default)]
struct Socket {
    /// The error because of which it is not watched, such as ENOSPC for the limit of
    /// `fs.epoll.max_user_watches`. An operation that would have to wait fails with it.
    refusal: Option<Errno>,
    /// Whether there may be bytes to receive.
    may_receive: bool,
    /// Whether no more bytes will come: a short receive does not mean that an edge will follow.
    has_ended: bool,
    receive: Option<Receive>,
    send: Option<Send>,
    /// The operation that is done when the socket is readable.
    readable: Option<u32>,
}

#[derive(Debug)]
struct Receive {
    at: u32,
    span: Span,
    whole: bool,
    received: usize,
}

#[derive(Debug)]
struct Send {
    at: u32,
    quick: bool,
    /// Whether it waits until the socket has room.
    waits: bool,
}

impl Threads {
    /// Returns an engine without sockets.
    ///
    /// # Errors
    ///
    /// Fails if no descriptor is left.
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let files = Files::new()?;
        let bell = files.bell();
        epoll::add(&epoll, bell, data(bell.as_raw_fd()), EventFlags::IN)?;
        Ok(Self {
            epoll,
            sockets: BTreeMap::new(),
            pushed: Vec::new(),
            files,
            sent: Vec::new(),
            results: Vec::new(),
            events: Vec::with_capacity(EVENTS_MAX),
        })
    }

    pub(super) fn receive(&mut self, at: u32, fd: RawFd, span: Span, whole: bool) {
        let socket = self.pushed(fd);
        debug_assert!(socket.receive.is_none(), "a socket has one receive at a time");
        socket.receive = Some(Receive { at, span, whole, received: 0 });
    }

    pub(super) fn send(&mut self, at: u32, fd: RawFd, quick: bool) {
        let socket = self.pushed(fd);
        debug_assert!(socket.send.is_none(), "a socket has one send at a time");
        socket.send = Some(Send { at, quick, waits: false });
    }

    pub(super) fn readable(&mut self, at: u32, fd: RawFd) {
        let socket = self.pushed(fd);
        debug_assert!(socket.readable.is_none(), "a socket is awaited once at a time");
        socket.readable = Some(at);
    }

    /// Returns the socket of an operation that is pushed.
    fn pushed(&mut self, fd: RawFd) -> &mut Socket {
        self.pushed.push(fd);
        self.sockets.entry(fd).or_insert_with(|| {
            // The first edge tells what the socket has already.
            let watched = epoll::add(&self.epoll, borrowed(fd), data(fd), RECEIVING);
            // A socket that cannot be watched shows by its calls what it has.
            Socket { may_receive: watched.is_err(), refusal: watched.err(), ..Socket::default() }
        })
    }

    pub(super) fn file<K>(&mut self, ops: &mut Ops<K>, io: FileIo, kept: K) {
        let FileIo { fd: file, backing, op, spans } = io;
        let iovecs: Vec<_> = spans.iter().map(iovec).collect();
        let memory = Memory::of(&iovecs);
        let at = ops.begin(kept, Pieces::File { _iovecs: iovecs, _fd: Arc::clone(&file) });
        let call = Call { at, file, op, memory };
        match call.at_once(backing) {
            Some(result) => self.results.push((at, result)),
            None => self.files.begin(call),
        }
    }

    pub(super) fn forget(&mut self, fd: RawFd) {
        if let Some(socket) = self.sockets.remove(&fd) {
            debug_assert!(socket.is_quiet(), "a socket is forgotten without operations");
            // It fails if the socket could not be watched.
            let _ = epoll::delete(&self.epoll, borrowed(fd));
        }
    }

    pub(super) fn has_pushed(&self) -> bool {
        !self.pushed.is_empty()
    }

    pub(super) fn enter<K>(&mut self, ops: &mut Ops<K>, wait: Option<Duration>) -> io::Result<()> {
        for fd in core::mem::take(&mut self.pushed) {
            self.advance(ops, fd)?;
        }
        let wait = wait.filter(|_| !ops.has_done() && self.results.is_empty());
        let wait = wait.filter(|_| self.files.may_sleep());
        self.wait(wait)?;
        let mut events = core::mem::take(&mut self.events);
        for event in events.drain(..) {
            let fd = RawFd::try_from(event.data.u64()).expect("descriptor that was added");
            if fd == self.files.bell().as_raw_fd() {
                bell::silence(self.files.bell());
            } else {
                self.notice(ops, fd, event.flags)?;
            }
        }
        self.events = events;
        for (at, bytes) in self.sent.drain(..) {
            ops.end(at, Ok(bytes), false);
        }
        self.files.collect(&mut self.results);
        for (at, result) in self.results.drain(..) {
            ops.end(at, result, false);
        }
        Ok(())
    }

    /// Waits for events.
    fn wait(&mut self, wait: Option<Duration>) -> io::Result<()> {
        let limit = match wait {
            None => Some(NOW),
            Some(Duration::MAX) => None,
            // epoll_wait(2) counts milliseconds, and sandboxes may lack epoll_pwait2(2); poll(2)
            // counts nanoseconds.
            Some(wait) => {
                let limit =
                    Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
                match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&limit)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                Some(NOW)
            }
        };
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, room, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes note of an event of a socket, and tries its operations.
    fn notice<K>(&mut self, ops: &mut Ops<K>, fd: RawFd, flags: EventFlags) -> io::Result<()> {
        // An event may have been collected before its socket was forgotten.
        let Some(socket) = self.sockets.get_mut(&fd) else { return Ok(()) };
        let is_over = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        socket.has_ended |= is_over;
        socket.may_receive |= is_over || flags.contains(EventFlags::IN);
        self.advance(ops, fd)
    }

    /// Tries the operations of a socket.
    ///
    /// # Errors
    ///
    /// Fails if a bell cannot be watched: the lane would hear of nothing.
    fn advance<K>(&mut self, ops: &mut Ops<K>, fd: RawFd) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(&fd) else { return Ok(()) };
        if let (Some(_), Some(refusal)) = (socket.readable, socket.refusal) {
            return Err(refusal.into());
        }
        if let Some(at) = socket.readable.filter(|_| socket.may_receive) {
            socket.readable = None;
            socket.may_receive = false; // the owner empties it
            ops.end(at, Ok(0), false);
        }
        if let Some((at, result)) = socket.try_receive(fd) {
            ops.end(at, result, socket.may_receive);
        }
        let Some(Send { at, quick, waits }) = socket.send else { return Ok(()) };
        match send(fd, ops.message(at)).map_err(|error| lasting(error, socket.refusal)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !quick => {
                if !waits {
                    socket.send = Some(Send { at, quick, waits: true });
                    self.watch(fd, SENDING);
                }
            }
            Ok(bytes) if quick && bytes == ops.message(at).len() => {
                socket.send = None;
                self.sent.push((at, bytes));
            }
            result => {
                socket.send = None;
                ops.end(at, result, false);
                if waits {
                    self.watch(fd, RECEIVING);
                }
            }
        }
        Ok(())
    }

    /// Watches a socket for other edges. The next wait reports immediately what is already there.
    fn watch(&self, fd: RawFd, edges: EventFlags) {
        let watched = epoll::modify(&self.epoll, borrowed(fd), data(fd), edges);
        debug_assert!(
            watched.is_ok(),
            "a socket that is watched can be watched for something else"
        );
    }
}

impl Socket {
    fn is_quiet(&self) -> bool {
        self.receive.is_none() && self.send.is_none() && self.readable.is_none()
    }

    /// Receives what there is. Returns the number of the receive that is done, with its result.
    fn try_receive(&mut self, fd: RawFd) -> Option<(u32, io::Result<usize>)> {
        while self.may_receive {
            let receive = self.receive.as_mut()?;
            let left = receive.span.len - receive.received;
            match receive_bytes(fd, receive).map_err(|error| lasting(error, self.refusal)) {
                Ok(bytes) => {
                    receive.received += bytes;
                    self.has_ended |= bytes == 0;
                    let tells_edges = !self.has_ended && self.refusal.is_none();
                    self.may_receive = bytes == left || !tells_edges;
                    if bytes == 0 || bytes == left || !receive.whole {
                        return self.receive.take().map(|done| (done.at, Ok(done.received)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_receive = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The next receive fails too, if bytes came before.
                Err(_) if receive.received > 0 => {
                    return self.receive.take().map(|done| (done.at, Ok(done.received)));
                }
                Err(error) => return self.receive.take().map(|done| (done.at, Err(error))),
            }
        }
        None
    }
}

/// Returns the error of a call on a socket. Nobody tells when one that is not watched need not wait
/// any more.
fn lasting(error: io::Error, refusal: Option<Errno>) -> io::Error {
    match refusal {
        Some(refusal) if error.kind() == io::ErrorKind::WouldBlock => refusal.into(),
        _ => error,
    }
}

fn receive_bytes(fd: RawFd, receive: &Receive) -> io::Result<usize> {
    let Receive { span, received, .. } = receive;
    // SAFETY: [kernel-memory-stays], [kernel-writes-alone]: the bytes behind those that came before
    // are within the span.
    let result = unsafe {
        let start = span.start.add(*received);
        libc::recv(fd, start.cast(), span.len - received, libc::MSG_DONTWAIT)
    };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn send(fd: RawFd, message: &Message) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    loop {
        // SAFETY: [kernel-memory-stays]: the header points to the pieces of the message, which stay
        // in place.
        let result = unsafe { libc::sendmsg(fd, &raw const message.header, flags) };
        match usize::try_from(result).map_err(|_| io::Error::last_os_error()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => return sent,
        }
    }
}

fn data(fd: RawFd) -> EventData {
    EventData::new_u64(u64::try_from(fd).expect("descriptor that is open"))
}

fn borrowed<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: the owner of a socket keeps it open until it has told the ring to forget it; a number
    // of a closed one would only make the call fail, or watch a socket without operations.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::map::Map;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    /// Such a socket once waited for an edge that never came.
    #[test]
    fn a_socket_that_cannot_be_watched_fails_where_it_would_wait() {
        let memory = Map::new(8).expect("a mapping of one page should succeed");
        let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets should be left");
        let fd = ours.as_raw_fd();
        let refusal = Some(Errno::NOSPC);
        let mut socket = Socket { may_receive: true, refusal, ..Socket::default() };
        theirs.write_all(b"abc").expect("room in the socket");
        for (number, expected) in [(1, Ok(3)), (2, Err(Some(libc::ENOSPC)))] {
            let span = memory.span(0..8);
            socket.receive = Some(Receive { at: number, span, whole: false, received: 0 });
            let (at, result) = socket.try_receive(fd).expect("it does not wait");
            assert_eq!((at, result.map_err(|error| error.raw_os_error())), (number, expected));
        }
    }

    #[test]
    fn a_bell_that_cannot_be_watched_is_an_error() {
        let file = std::fs::File::open("/proc/self/exe").expect("the program of this test");
        let mut threads = Threads::new().expect("descriptors should be left");
        let mut ops = Ops::default();
        threads.readable(ops.begin((), Pieces::None), file.as_raw_fd());
        let refused = threads.enter(&mut ops, None).expect_err("epoll watches no files");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
    }
}
