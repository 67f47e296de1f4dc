//! A small number for each thread, its own while it lives.

use std::cell::OnceCell;
use std::sync::{Mutex, PoisonError};

/// Numbers that threads had that are gone, and the first that none ever had.
static SEATS: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));

struct Seat(usize);

impl Seat {
    fn take() -> Self {
        let mut seats = SEATS.lock().unwrap_or_else(PoisonError::into_inner);
        let seat = seats.0.pop().unwrap_or_else(|| {
            seats.1 += 1;
            seats.1 - 1
        });
        Self(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        SEATS.lock().unwrap_or_else(PoisonError::into_inner).0.push(self.0);
    }
}

thread_local! {
    static MINE: OnceCell<Seat> = const { OnceCell::new() };
}

/// This thread's number; `None` while it ends.
pub(crate) fn mine() -> Option<usize> {
    MINE.try_with(|mine| mine.get_or_init(Seat::take).0).ok()
}
