//! Memory that a caller lends to an I/O: its own buffer, without a copy.
//!
//! ```text
//! caller ── Ticket (owns the memory) or Seat (waits) ── Loan ─► lane, device, kernel
//!    ▲                                                │
//!    └──────────── the loan is dropped ◄──────────────┘
//! ```
//!
//! A call ends when its [`Loan`] is dropped, not when its request ends. So whoever still uses the
//! memory, such as the kernel after a request has timed out, keeps the call from ending.
//!
//! # Rules (cited by name)
//!
//! - **[lender-waits]** From the creation of a loan to its drop, its memory is valid, stays in
//!   place, and is not touched by its lender. A `Ticket` keeps the memory that it owns to itself
//!   for that long, and `lend` and `lend_mut` do not return before, not even by a panic.
//! - **[borrower-alone]** Between these moments, only one holder of the loan at a time uses the
//!   memory: first the lane and its device, or the kernel at their command, and then nobody.
//!
//! # Safety
//!
//! Safety depends only on these two rules.
#![allow(
    unsafe_code,
    reason = "the memory belongs to a caller of another thread; see Safety above"
)]

use crate::error::Error;
use crate::parts::map::{Map, Span};
use blockyard::status::Status;
use core::cell::Cell;
use core::fmt;
use core::ops::Range;
use core::ptr;
use core::task::Waker;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::thread::{self, Thread};
use std::time::Instant;

/// Memory that a caller has lent. See the [module](self).
pub struct Loan {
    span: Span,
    /// Whether the borrower may write to the memory.
    is_writable: bool,
    status: Cell<Option<Status>>,
    lender: Arc<dyn Lender>,
}

/// A caller that waits for its loan.
trait Lender: Send + Sync {
    /// Takes the loan back, with the result of its request; `None` if the request was dropped.
    fn take_back(&self, status: Option<Status>);
}

// SAFETY: the memory is the loan's alone ([lender-waits]), and other threads may reach it: it is
// bytes.
unsafe impl Send for Loan {}

impl Loan {
    /// Notes the result of the request, which the lender gets when the loan is dropped.
    pub fn end(&self, status: Status) {
        self.status.set(Some(status));
    }

    /// Returns the result that was noted, if there is one.
    #[must_use]
    pub const fn status(&self) -> Option<Status> {
        self.status.get()
    }

    /// Returns the length of the memory, in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.span.len
    }

    /// Returns whether no memory was lent.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the memory begins at a multiple of `bytes`, a power of two.
    #[must_use]
    pub fn is_aligned(&self, bytes: usize) -> bool {
        self.span.start.addr() & (bytes - 1) == 0
    }

    /// Returns `range` as a span for the kernel.
    ///
    /// # Panics
    ///
    /// Panics if the range ends beyond the memory, as do the functions below.
    #[must_use]
    pub fn span(&self, range: Range<usize>) -> Span {
        assert!(range.start <= range.end && range.end <= self.span.len, "beyond the memory");
        Span { start: self.span.start.wrapping_add(range.start), len: range.end - range.start }
    }

    /// Copies the `len` bytes at `from` to `map`, from `at` on.
    pub fn copy_to(&self, from: usize, map: &Map, at: usize, len: usize) {
        let from = self.span(from..from + len);
        let to = map.span(at..at + len);
        // SAFETY: the memory is valid and nobody writes to it ([lender-waits], [borrower-alone]);
        // no reference into a map exists, so the two do not overlap.
        unsafe { ptr::copy_nonoverlapping(from.start, to.start, len) };
    }

    /// Copies `range` of `map` to `to`.
    ///
    /// # Panics
    ///
    /// Panics if the memory may only be read.
    pub fn copy_from(&self, to: usize, map: &Map, range: Range<usize>) {
        assert!(self.is_writable, "a write lends its memory for reading");
        let len = range.end - range.start;
        let from = map.span(range);
        let to = self.span(to..to + len);
        // SAFETY: as above, and the lender may not even read the memory.
        unsafe { ptr::copy_nonoverlapping(from.start, to.start, len) };
    }

    /// Passes the bytes of `range` to `use_bytes`. Meanwhile, no other call about this memory may
    /// be made, and the kernel must not use it ([borrower-alone]).
    pub(crate) fn read<R>(&self, range: Range<usize>, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        let span = self.span(range);
        // SAFETY: valid memory that nobody writes to while the reference exists ([lender-waits],
        // [borrower-alone]).
        use_bytes(unsafe { core::slice::from_raw_parts(span.start, span.len) })
    }

    /// As [`Self::read`], for writing.
    ///
    /// # Panics
    ///
    /// Panics if the memory may only be read.
    pub(crate) fn fill<R>(&self, range: Range<usize>, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        assert!(self.is_writable, "a write lends its memory for reading");
        let span = self.span(range);
        // SAFETY: as above, and nobody else reads it.
        fill(unsafe { core::slice::from_raw_parts_mut(span.start, span.len) })
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").field("span", &self.span).finish_non_exhaustive()
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.lender.take_back(self.status.get());
    }
}

/// A caller's side of an I/O: its result when it has ended, and the memory that the ticket owns
/// meanwhile. It has no `Debug`, which would look at lent memory.
pub(crate) struct Ticket<B> {
    state: Mutex<State>,
    /// Nobody locks this while a loan of it exists ([lender-waits]).
    memory: Mutex<Option<B>>,
}

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    Ended(Result<(), Error>),
}

impl<B: Send + 'static> Ticket<B> {
    fn new(memory: B, state: State) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(state), memory: Mutex::new(Some(memory)) })
    }

    /// Returns the ticket of an I/O that ended before it began.
    pub(crate) fn ended(memory: B, result: Result<(), Error>) -> Arc<Self> {
        Self::new(memory, State::Ended(result))
    }

    /// Returns the ticket of an I/O that fills `memory`, and the loan of it.
    pub(crate) fn to_fill(memory: B) -> (Arc<Self>, Loan)
    where
        B: AsMut<[u8]>,
    {
        Self::lend(memory, true, |memory| {
            let bytes = memory.as_mut();
            Span { start: bytes.as_mut_ptr(), len: bytes.len() }
        })
    }

    /// Returns the ticket of an I/O that reads `memory`, and the loan of it.
    pub(crate) fn to_read(memory: B) -> (Arc<Self>, Loan)
    where
        B: AsRef<[u8]>,
    {
        Self::lend(memory, false, |memory| span_of((*memory).as_ref()))
    }

    fn lend(memory: B, is_writable: bool, of: impl FnOnce(&mut B) -> Span) -> (Arc<Self>, Loan) {
        let ticket = Self::new(memory, State::Waiting(None));
        // [lender-waits]: the memory stays where it is in the ticket, and nobody sees it until the
        // loan ends.
        let span = of(lock(&ticket.memory).as_mut().expect("the memory of a new ticket"));
        let lender: Arc<dyn Lender> = Arc::<Self>::clone(&ticket);
        (ticket, Loan { span, is_writable, status: Cell::new(None), lender })
    }

    /// Returns the result and the memory if the I/O has ended. Otherwise wakes `waker` when it
    /// does.
    ///
    /// # Panics
    ///
    /// Panics if it has returned them before.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<(Result<(), Error>, B)> {
        let result = {
            let mut state = lock(&self.state);
            match &mut *state {
                State::Ended(result) => *result,
                State::Waiting(Some(known)) if known.will_wake(waker) => return None,
                State::Waiting(known) => {
                    *known = Some(waker.clone());
                    return None;
                }
            }
        };
        let memory = lock(&self.memory).take();
        Some((result, memory.expect("a future is not polled after it has ended")))
    }

    /// Waits for the result and the memory, until `deadline` at the latest.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Option<(Result<(), Error>, B)> {
        WAKER.with(|waker| {
            loop {
                if let Some(ended) = self.poll(waker) {
                    return Some(ended);
                }
                match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                    None => thread::park(),
                    Some(Duration::ZERO) => return None,
                    Some(left) => thread::park_timeout(left),
                }
            }
        })
    }
}

impl<B: Send> Lender for Ticket<B> {
    fn take_back(&self, status: Option<Status>) {
        let ended = State::Ended(result_of(status));
        let state = core::mem::replace(&mut *lock(&self.state), ended);
        if let State::Waiting(Some(waker)) = state {
            waker.wake();
        }
    }
}

/// Lends `memory` for writing to the I/O that `begin` starts, and waits until it has ended.
pub(crate) fn lend_mut(memory: &mut [u8], begin: impl FnOnce(Loan)) -> Result<(), Error> {
    lend_span(Span { start: memory.as_mut_ptr(), len: memory.len() }, true, begin)
}

/// Lends `memory` for reading to the I/O that `begin` starts, and waits until it has ended.
pub(crate) fn lend(memory: &[u8], begin: impl FnOnce(Loan)) -> Result<(), Error> {
    lend_span(span_of(memory), false, begin)
}

fn lend_span(span: Span, is_writable: bool, begin: impl FnOnce(Loan)) -> Result<(), Error> {
    /// Waits on drop, so that a panic cannot get past the loan ([lender-waits]).
    struct Waits<'a>(&'a Seat);
    impl Drop for Waits<'_> {
        fn drop(&mut self) {
            let _ = self.0.wait(); // the panic continues
        }
    }
    let seat = SEAT
        .take()
        .unwrap_or_else(|| Arc::new(Seat { thread: thread::current(), result: Mutex::new(None) }));
    *lock(&seat.result) = None;
    let waits = Waits(&seat);
    begin(Loan { span, is_writable, status: Cell::new(None), lender: Arc::<Seat>::clone(&seat) });
    core::mem::forget(waits); // the next line waits
    let result = seat.wait();
    SEAT.set(Some(seat));
    result
}

thread_local! {
    /// The seat of this thread, while it does not wait.
    static SEAT: Cell<Option<Arc<Seat>>> = const { Cell::new(None) };
}

/// A thread that waits for its loan.
struct Seat {
    thread: Thread,
    result: Mutex<Option<Result<(), Error>>>,
}

impl Seat {
    /// Waits until the loan has been dropped, and returns its result.
    fn wait(&self) -> Result<(), Error> {
        loop {
            if let Some(result) = *lock(&self.result) {
                return result;
            }
            thread::park();
        }
    }
}

impl Lender for Seat {
    fn take_back(&self, status: Option<Status>) {
        *lock(&self.result) = Some(result_of(status));
        self.thread.unpark();
    }
}

fn result_of(status: Option<Status>) -> Result<(), Error> {
    match status {
        Some(Status::Ok) => Ok(()),
        Some(status) => Err(Error::Failed(status)),
        None => Err(Error::ShutDown),
    }
}

fn span_of(bytes: &[u8]) -> Span {
    Span { start: bytes.as_ptr().cast_mut(), len: bytes.len() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner) // each value is whole
}

thread_local! {
    /// Unparks this thread.
    static WAKER: Waker = Waker::from(Arc::new(Unpark(thread::current())));
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
