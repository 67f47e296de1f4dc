//! The traits of `embedded-hal`, blocking and async, over an emulated card; and a small executor.

use super::model::Model;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A slot with a card.
#[derive(Clone)]
pub(crate) struct Slot(pub(crate) Rc<RefCell<Model>>);

/// The bus or the delay of a slot. Async calls are pending every few times.
#[derive(Clone)]
pub(crate) struct Wire {
    slot: Slot,
    calls: Rc<Cell<u32>>,
}

/// The chip select of a slot.
pub(crate) struct Select(Slot);

impl Slot {
    pub(crate) fn new(model: Model) -> Self {
        Self(Rc::new(RefCell::new(model)))
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire { slot: self.clone(), calls: Rc::default() }
    }

    pub(crate) fn select(&self) -> Select {
        Select(self.clone())
    }
}

impl Wire {
    pub(crate) fn set_hz(&mut self, hz: u32) {
        self.slot.0.borrow_mut().hz = hz;
    }

    fn exchange(&self, words: &mut [u8]) {
        super::super::heap::uncounted(|| {
            let mut model = self.slot.0.borrow_mut();
            words.iter_mut().for_each(|word| *word = model.exchange(*word));
            model.unflushed = true;
        });
    }

    /// Every third call is pending once.
    fn sometimes_pending(&self) -> Pending {
        self.calls.set(self.calls.get() + 1);
        Pending(self.calls.get().is_multiple_of(3))
    }
}

struct Pending(bool);

impl Future for Pending {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !std::mem::take(&mut self.0) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl embedded_hal::spi::ErrorType for Wire {
    type Error = Infallible;
}

impl embedded_hal::spi::SpiBus for Wire {
    fn read(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        words.fill(0); // what a bus sends while it reads is its own affair
        self.transfer_in_place(words)
    }

    fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        words.iter().for_each(|word| self.exchange(&mut [*word]));
        Ok(())
    }

    fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        assert_eq!(read.len(), write.len(), "a transfer of the same length both ways");
        read.copy_from_slice(write);
        self.transfer_in_place(read)
    }

    fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        self.exchange(words);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        self.slot.0.borrow_mut().unflushed = false;
        Ok(())
    }
}

impl embedded_hal_async::spi::SpiBus for Wire {
    async fn read(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        self.sometimes_pending().await;
        embedded_hal::spi::SpiBus::read(self, words)
    }

    async fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        // A future that is dropped in the middle has sent a part.
        let (first, rest) = words.split_at(words.len() / 2);
        embedded_hal::spi::SpiBus::write(self, first)?;
        self.sometimes_pending().await;
        embedded_hal::spi::SpiBus::write(self, rest)
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        self.sometimes_pending().await;
        embedded_hal::spi::SpiBus::transfer(self, read, write)
    }

    async fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        let (first, rest) = words.split_at_mut(words.len() / 2);
        embedded_hal::spi::SpiBus::transfer_in_place(self, first)?;
        self.sometimes_pending().await;
        embedded_hal::spi::SpiBus::transfer_in_place(self, rest)
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        self.sometimes_pending().await;
        embedded_hal::spi::SpiBus::flush(self)
    }
}

impl embedded_hal::delay::DelayNs for Wire {
    fn delay_ns(&mut self, ns: u32) {
        let mut model = self.slot.0.borrow_mut();
        assert!(!model.unflushed || model.rough, "a delay before the last bit");
        model.now_ns += u64::from(ns);
    }
}

impl embedded_hal_async::delay::DelayNs for Wire {
    async fn delay_ns(&mut self, ns: u32) {
        self.sometimes_pending().await;
        embedded_hal::delay::DelayNs::delay_ns(self, ns);
    }
}

impl embedded_hal::digital::ErrorType for Select {
    type Error = Infallible;
}

impl embedded_hal::digital::OutputPin for Select {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.0.0.borrow_mut().select(true);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.0.0.borrow_mut().select(false);
        Ok(())
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls `future` at most `times`, and only when it was woken. Returns its output and the number of
/// polls; the future is dropped.
pub(crate) fn poll_times<F: Future>(future: F, times: u32) -> (Option<F::Output>, u32) {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    for polls in 1..=times {
        assert!(woken.0.swap(false, Ordering::Relaxed), "a pending future wakes its task");
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (Some(output), polls);
        }
    }
    (None, times)
}

/// An executor for one future. Returns its output and the number of polls.
pub(crate) fn block_on<F: Future>(future: F) -> (F::Output, u32) {
    let (output, polls) = poll_times(future, u32::MAX);
    (output.expect("a future that ends"), polls)
}
