//! The end of a server, by signals or by itself.
//!
//! Signals in quick succession count as one. `timeout` signals the program and then its group, which must not
//! abandon requests in flight.

use core::fmt;
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// Signals within this time count as one.
const TOGETHER: Duration = Duration::from_millis(500);

/// The event that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The server is asked to end: for the first time, or again by a signal.
    Asked(Cause),
    /// The server has ended.
    End,
    /// The wait timed out.
    Nothing,
}

/// What asks the server to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// SIGTERM or SIGINT.
    Signal,
    /// The command to drain.
    Drain,
    /// The end of the command that ran beside the server.
    Run,
    /// A lane that failed.
    Failure,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signal => "a signal to end",
            Self::Drain => "a command to drain",
            Self::Run => "the end of the command of --run",
            Self::Failure => "the failure of a lane",
        })
    }
}

/// The bytes that stand for the causes but for signals, each of which sends a byte that the handler chooses.
const DRAIN: u8 = b'd';
const RUN: u8 = b'r';
const FAILURE: u8 = b'f';

/// Receives signals from its creation on: a byte for each signal, and the end of the stream when the server ends.
#[derive(Debug)]
pub(super) struct Ending {
    heard: UnixStream,
    last: Option<Instant>,
    is_asked: bool,
}

/// The server's end of the stream.
#[derive(Clone, Debug)]
pub(super) struct Bell(Arc<UnixStream>);

impl Bell {
    /// Asks the server to end. Unlike a second signal, another cause changes nothing at a server that drains.
    pub(super) fn ask(&self, cause: Cause) {
        let byte = match cause {
            Cause::Signal => 0,
            Cause::Drain => DRAIN,
            Cause::Run => RUN,
            Cause::Failure => FAILURE,
        };
        // It has ended already if this fails.
        let _ = (&*self.0).write(&[byte]);
    }

    /// The server has ended.
    pub(super) fn ring(&self) {
        // This fails only if the receiver is gone.
        drop(self.0.shutdown(Shutdown::Both));
    }
}

impl Ending {
    pub(super) fn listen() -> io::Result<(Self, Bell)> {
        let (heard, told) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            pipe::register(signal, told.try_clone()?)?;
        }
        Ok((Self { heard, last: None, is_asked: false }, Bell(Arc::new(told))))
    }

    /// Waits for an event, for at most `time` if given.
    pub(super) fn wait(&mut self, time: Option<Duration>) -> io::Result<Heard> {
        let until = time.map(|time| Instant::now() + time);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(Heard::Nothing);
            }
            self.heard.set_read_timeout(left)?;
            let mut byte = [0];
            match self.heard.read(&mut byte) {
                Ok(0) => return Ok(Heard::End),
                Ok(_) => {
                    let (cause, is_new) = match byte {
                        [DRAIN] => (Cause::Drain, !self.is_asked),
                        [RUN] => (Cause::Run, !self.is_asked),
                        [FAILURE] => (Cause::Failure, !self.is_asked),
                        _ => (Cause::Signal, self.is_another()),
                    };
                    if is_new {
                        self.is_asked = true;
                        return Ok(Heard::Asked(cause));
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// Returns whether the signal is new, not the previous one repeated.
    fn is_another(&mut self) -> bool {
        let now = Instant::now();
        let is_another = self.last.is_none_or(|last| now - last >= TOGETHER);
        if is_another {
            self.last = Some(now);
        }
        is_another
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_come_together_are_one() {
        let (heard, mut told) = UnixStream::pair().unwrap();
        let mut ending = Ending { heard, last: None, is_asked: false };
        told.write_all(&[0; 3]).unwrap();
        assert_eq!(ending.wait(None).unwrap(), Heard::Asked(Cause::Signal));
        assert_eq!(ending.wait(Some(TOGETHER / 2)).unwrap(), Heard::Nothing);
        assert_eq!(ending.wait(Some(Duration::ZERO)).unwrap(), Heard::Nothing);
        std::thread::sleep(TOGETHER);
        told.write_all(&[0; 2]).unwrap();
        assert_eq!(ending.wait(None).unwrap(), Heard::Asked(Cause::Signal));
        Bell(told.into()).ring();
        assert_eq!(ending.wait(None).unwrap(), Heard::End);
    }

    #[test]
    fn other_causes_end_a_server_and_change_nothing_while_it_drains() {
        for cause in [Cause::Drain, Cause::Run, Cause::Failure] {
            let (heard, told) = UnixStream::pair().unwrap();
            let mut ending = Ending { heard, last: None, is_asked: false };
            let bell = Bell(told.into());
            bell.ask(cause);
            assert_eq!(ending.wait(None).unwrap(), Heard::Asked(cause));
            bell.ask(Cause::Drain);
            bell.ask(Cause::Run);
            bell.ask(Cause::Failure);
            assert_eq!(ending.wait(Some(TOGETHER)).unwrap(), Heard::Nothing);
            bell.ask(Cause::Signal);
            assert_eq!(ending.wait(None).unwrap(), Heard::Asked(Cause::Signal));
        }
    }
}
