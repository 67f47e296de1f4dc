//! Futures of I/O. They need no runtime: whoever polls them is woken by its waker.

use crate::error::Error;
use crate::parts::loan::Ticket;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// A read or write that has begun, with a buffer of its own. It is a future of the result and of
/// the buffer.
///
/// The I/O begins when this value is made; one of a [`Batch`](crate::Batch) begins when the batch
/// is submitted, and a wait for it before that never returns in the same thread. The I/O continues
/// if the value is dropped; the buffer is kept until it ends.
#[must_use = "the result is known only when it is awaited or waited for"]
pub struct Io<B>(pub(crate) Arc<Ticket<B>>);

impl<B> fmt::Debug for Io<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io").finish_non_exhaustive() // nobody looks at lent memory: [lender-waits]
    }
}

impl<B: Send + 'static> Io<B> {
    /// Blocks this thread until the I/O has ended.
    ///
    /// # Panics
    ///
    /// Panics if the future was polled to its end before, as does [`Self::wait_timeout`].
    pub fn wait(self) -> (Result<(), Error>, B) {
        self.0.wait(None).expect("a wait without a deadline")
    }

    /// Blocks this thread until the I/O has ended or `timeout` has passed.
    ///
    /// # Errors
    ///
    /// Returns the I/O itself after `timeout`. The I/O continues, and the wait may be repeated.
    pub fn wait_timeout(self, timeout: Duration) -> Result<(Result<(), Error>, B), Self> {
        self.0.wait(Instant::now().checked_add(timeout)).ok_or(self)
    }
}

impl<B: Send + 'static> Future for Io<B> {
    type Output = (Result<(), Error>, B);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx.waker()).map_or(Poll::Pending, Poll::Ready)
    }
}

/// A flush, discard or write of zeroes that has begun, which takes no buffer. Otherwise as [`Io`].
#[derive(Debug)]
#[must_use = "the result is known only when it is awaited or waited for"]
pub struct Act(pub(crate) Io<[u8; 0]>);

impl Act {
    /// Blocks this thread until the I/O has ended.
    ///
    /// # Errors
    ///
    /// Fails as the I/O does.
    ///
    /// # Panics
    ///
    /// As [`Io::wait`].
    pub fn wait(self) -> Result<(), Error> {
        self.0.wait().0
    }

    /// Blocks this thread until the I/O has ended or `timeout` has passed.
    ///
    /// # Errors
    ///
    /// Returns the I/O itself after `timeout`. The I/O continues, and the wait may be repeated.
    pub fn wait_timeout(self, timeout: Duration) -> Result<Result<(), Error>, Self> {
        self.0.wait_timeout(timeout).map(|(result, _)| result).map_err(Self)
    }
}

impl Future for Act {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|(result, _)| result)
    }
}
