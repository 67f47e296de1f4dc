//! Work without the interpreter lock, which a signal can end.

use core::time::Duration;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use blockyard_sim::simulate::Stop;
use pyo3::prelude::*;

use crate::refusal::caught;

/// How often Python looks for signals, such as that of Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Calls `work` in a thread without the interpreter lock. A signal whose handler raises (Ctrl-C)
/// stops the work, and the exception is returned. Python handles signals only in its main thread,
/// so elsewhere the work runs to its end.
///
/// A panic becomes an exception.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> T + Send,
) -> PyResult<T> {
    let stop = Stop::default();
    let (result, signal) = py.detach(|| {
        thread::scope(|scope| {
            let (working, ended) = channel::<()>();
            let worker = scope.spawn(|| {
                let _working = working; // dropped at the end, which ends the wait below
                caught(|| work(&stop))
            });
            let mut signal = Ok(());
            while ended.recv_timeout(SIGNALS_EVERY) == Err(RecvTimeoutError::Timeout) {
                if let Err(raised) = Python::attach(|py| py.check_signals()) {
                    stop.stop();
                    signal = Err(raised);
                }
            }
            (worker.join().expect("every panic should be caught"), signal)
        })
    });
    signal?;
    result.map_err(|refusal| refusal.raise(py))
}
