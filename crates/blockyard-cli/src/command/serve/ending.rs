//! The end of a server, by signals or by itself.
//!
//! Signals in quick succession count as one. `timeout` signals the program and then its group, which must not
//! abandon requests in flight.

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

/// The reason for which a server is asked to end, other than a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// The command of `--run` has ended.
    CommandEnded = 1,
    /// An operator drains the server.
    Drain = 2,
}

/// The event that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// SIGTERM or SIGINT.
    Signal,
    /// A request to end, unless the server has been asked to end before.
    Request(Request),
    /// The server has ended.
    End,
    /// The wait timed out.
    Nothing,
}

/// Receives signals from its creation on: a byte for each signal or request, and the end of the stream when the server ends.
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
    /// Asks the server to end. Unlike a second signal, a request to a server that drains changes nothing.
    pub(super) fn ask(&self, request: Request) {
        // It has ended already if this fails.
        let _ = (&*self.0).write(&[request as u8]);
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
                    if let Some(heard) = self.hear(byte[0]) {
                        self.is_asked = true;
                        return Ok(heard);
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// Returns the event that a byte stands for, unless it changes nothing.
    fn hear(&mut self, byte: u8) -> Option<Heard> {
        let requests = [Request::CommandEnded, Request::Drain];
        match requests.into_iter().find(|request| *request as u8 == byte) {
            Some(request) => (!self.is_asked).then_some(Heard::Request(request)),
            None => self.is_another().then_some(Heard::Signal),
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
        assert_eq!(ending.wait(None).unwrap(), Heard::Signal);
        assert_eq!(ending.wait(Some(TOGETHER / 2)).unwrap(), Heard::Nothing);
        assert_eq!(ending.wait(Some(Duration::ZERO)).unwrap(), Heard::Nothing);
        std::thread::sleep(TOGETHER);
        told.write_all(&[0; 2]).unwrap();
        assert_eq!(ending.wait(None).unwrap(), Heard::Signal);
        Bell(told.into()).ring();
        assert_eq!(ending.wait(None).unwrap(), Heard::End);
    }

    #[test]
    fn a_request_to_a_server_that_drains_changes_nothing() {
        let (heard, told) = UnixStream::pair().unwrap();
        let mut ending = Ending { heard, last: None, is_asked: false };
        let bell = Bell(told.into());
        bell.ask(Request::Drain);
        assert_eq!(ending.wait(None).unwrap(), Heard::Request(Request::Drain));
        bell.ask(Request::CommandEnded);
        assert_eq!(ending.wait(Some(TOGETHER)).unwrap(), Heard::Nothing);
        (&*bell.0).write_all(&[0]).unwrap();
        assert_eq!(ending.wait(None).unwrap(), Heard::Signal);
    }
}
