//! A small number for each thread, which is unique among the running threads.

use std::cell::OnceCell;
use std::sync::{Mutex, PoisonError};

/// The numbers of ended threads, and the first number that was never used.
static SEATS: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));

struct Seat(usize);

impl Seat {
    fn take() -> Self {
        let mut seats = SEATS.lock().unwrap_or_else(PoisonError::into_inner);
        let seat = seats.0.pop().unwrap_or_else(|| {
            seats.1 += 1;
            seats.1 - 1
        });
        debug_assert!(seat < seats.1 && !seats.0.contains(&seat), "a seat has one owner");
        Self(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = SEATS.lock().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(self.0 < seats.1, "a seat that was taken");
        seats.0.push(self.0);
    }
}

thread_local! {
    static MINE: OnceCell<Seat> = const { OnceCell::new() };
}

/// Returns this thread's number, or `None` while the thread ends.
pub(crate) fn thread_number() -> Option<usize> {
    MINE.try_with(|mine| mine.get_or_init(Seat::take).0).ok()
}
