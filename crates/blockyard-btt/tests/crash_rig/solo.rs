//! A [`Recorder`] for one thread at a time, which keeps the moments at which the power may fail.

use super::crash::Moment;
use super::recorder::Recorder;
use super::shape::Shape;
use blockyard_btt::{MediaError, Memory};
use core::cell::{Cell, RefCell};

/// The memory.
#[derive(Debug)]
pub(crate) struct Solo {
    shape: Shape,
    recorder: RefCell<Recorder>,
    moments: RefCell<Vec<Moment>>,
    keeps_moments: Cell<bool>,
    stores: Cell<u64>,
    thread: Cell<usize>,
}

impl Solo {
    pub(crate) fn new(shape: Shape, recorder: Recorder) -> Self {
        Self {
            shape,
            recorder: RefCell::new(recorder),
            moments: RefCell::default(),
            keeps_moments: Cell::new(false),
            stores: Cell::new(0),
            thread: Cell::new(0),
        }
    }

    /// The following calls are made by another thread.
    pub(crate) fn set_thread(&self, thread: usize) {
        self.thread.set(thread);
    }

    /// Keeps moments from now on.
    pub(crate) fn keep_moments(&self) {
        self.keeps_moments.set(true);
    }

    /// Returns the moments since the last call, and the present one.
    pub(crate) fn take_moments(&self) -> Vec<Moment> {
        self.moment();
        self.moments.take()
    }

    /// The number of calls that stored or wrote something.
    pub(crate) fn stores(&self) -> u64 {
        self.stores.get()
    }

    pub(crate) fn recorder(&self) -> core::cell::Ref<'_, Recorder> {
        self.recorder.borrow()
    }

    fn moment(&self) {
        if self.keeps_moments.get() {
            let moment = Moment::of(self.shape, &self.recorder.borrow());
            let mut moments = self.moments.borrow_mut();
            moments.push(moment);
        }
    }

    fn change(&self, act: impl FnOnce(&mut Recorder)) -> Result<(), MediaError> {
        self.moment();
        self.stores.set(self.stores.get() + 1);
        act(&mut self.recorder.borrow_mut());
        Ok(())
    }
}

impl Memory for Solo {
    fn len(&self) -> u64 {
        self.recorder.borrow().regions().len
    }

    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        if self.recorder().is_bad(at, to.len() as u64) {
            return Err(MediaError::Bad);
        }
        self.recorder().read(at, to);
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        if self.recorder().refuses(at, from.len() as u64) {
            return Err(MediaError::Bad);
        }
        self.change(|recorder| recorder.write(self.thread.get(), at, from))
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        self.change(|recorder| recorder.zero(self.thread.get(), at, len))
    }

    fn load(&self, at: u64) -> Result<u32, MediaError> {
        let mut bytes = [0; 4];
        self.recorder.borrow().read(at, &mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        self.change(|recorder| recorder.store(self.thread.get(), at, &word.to_le_bytes()))
    }

    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        self.change(|recorder| recorder.store(self.thread.get(), at, &word.to_le_bytes()))
    }

    fn write_back(&self, at: u64, len: u64) {
        self.moment();
        self.recorder.borrow_mut().write_back(self.thread.get(), at, len);
    }

    fn fence(&self) -> Result<(), MediaError> {
        self.moment();
        self.recorder.borrow_mut().fence(self.thread.get());
        Ok(())
    }
}
