//! The end of a server, by signals or by itself.
//!
//! Signals in quick succession count as one. `timeout` signals the program and then its group,
//! which must not abandon requests in flight.

use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM, SIGXCPU};
use signal_hook::iterator::Signals;

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
    /// SIGTERM.
    Signal,
    /// SIGINT or SIGQUIT, which a terminal sends to the command of `--run` as well.
    Terminal,
    /// SIGXCPU, which the kernel repeats each second.
    Processor,
    /// The command to drain.
    Drain,
    /// The end of the command that ran along with the server.
    Run,
    /// The end of the parent process.
    Parent,
    /// A lane that failed.
    Failure,
}

impl Cause {
    /// Returns whether this is somebody's signal, which counts as the second one at a server that
    /// drains.
    fn is_signal(self) -> bool {
        matches!(self, Self::Signal | Self::Terminal)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signal | Self::Terminal => "a signal to end",
            Self::Processor => "SIGXCPU: the limit of processor time (RLIMIT_CPU)",
            Self::Drain => "a command to drain",
            Self::Run => "the end of the command of --run",
            Self::Parent => "the end of the parent process",
            Self::Failure => "the failure of a lane",
        })
    }
}

/// A message to [`Ending`].
#[derive(Clone, Copy, Debug)]
enum Told {
    Asked(Cause),
    End,
}

/// Receives the causes to end, signals from its creation on, and the end of the server.
#[derive(Debug)]
pub(super) struct Ending {
    told: Receiver<Told>,
    last: Option<Instant>,
    is_asked: bool,
}

/// The sender to an [`Ending`].
#[derive(Clone, Debug)]
pub(super) struct Bell(Sender<Told>);

impl Bell {
    /// Asks the server to end. Unlike a second signal, another cause changes nothing at a server
    /// that drains.
    pub(super) fn ask(&self, cause: Cause) {
        // This fails only if nobody waits for the end any more.
        let _ = self.0.send(Told::Asked(cause));
    }

    /// The server has ended.
    pub(super) fn ring(&self) {
        let _ = self.0.send(Told::End);
    }
}

impl Ending {
    pub(super) fn listen() -> io::Result<(Self, Bell)> {
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGQUIT, SIGXCPU])?;
        let (ending, bell) = Self::new();
        let asks = bell.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                asks.ask(match signal {
                    SIGTERM => Cause::Signal,
                    SIGXCPU => Cause::Processor,
                    _ => Cause::Terminal,
                });
            }
        })?;
        Ok((ending, bell))
    }

    fn new() -> (Self, Bell) {
        let (tell, told) = channel();
        (Self { told, last: None, is_asked: false }, Bell(tell))
    }

    /// Waits for an event, for at most `time` if given.
    pub(super) fn wait(&mut self, time: Option<Duration>) -> Heard {
        let until = time.map(|time| Instant::now() + time);
        while let Some(told) = self.next(until) {
            let Told::Asked(cause) = told else { return Heard::End };
            let is_new = if cause.is_signal() { self.is_another() } else { !self.is_asked };
            if is_new {
                self.is_asked = true;
                return Heard::Asked(cause);
            }
        }
        Heard::Nothing
    }

    /// Waits for the end of the command of `--run` until `until`, or until another signal.
    pub(super) fn wait_for_run(&mut self, until: Instant) {
        while let Some(told) = self.next(Some(until)) {
            match told {
                Told::Asked(Cause::Run) => return,
                Told::Asked(cause) if cause.is_signal() && self.is_another() => return,
                Told::Asked(_) | Told::End => {}
            }
        }
    }

    /// Returns the next message, or `None` if there is none before `until`.
    fn next(&self, until: Option<Instant>) -> Option<Told> {
        match until {
            None => self.told.recv().ok(),
            Some(until) => {
                self.told.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
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
        let (mut ending, bell) = Ending::new();
        (0..3).for_each(|_| bell.ask(Cause::Signal));
        assert_eq!(ending.wait(None), Heard::Asked(Cause::Signal));
        assert_eq!(ending.wait(Some(TOGETHER / 2)), Heard::Nothing);
        assert_eq!(ending.wait(Some(Duration::ZERO)), Heard::Nothing);
        std::thread::sleep(TOGETHER);
        (0..2).for_each(|_| bell.ask(Cause::Terminal));
        assert_eq!(ending.wait(None), Heard::Asked(Cause::Terminal));
        bell.ring();
        assert_eq!(ending.wait(None), Heard::End);
    }

    #[test]
    fn other_causes_end_a_server_and_change_nothing_while_it_drains() {
        use Cause::{Drain, Failure, Parent, Processor, Run};
        for cause in [Drain, Run, Parent, Processor, Failure] {
            let (mut ending, bell) = Ending::new();
            bell.ask(cause);
            assert_eq!(ending.wait(None), Heard::Asked(cause));
            [Drain, Run, Parent, Processor, Failure].into_iter().for_each(|other| bell.ask(other));
            assert_eq!(ending.wait(Some(TOGETHER)), Heard::Nothing);
            bell.ask(Cause::Signal);
            assert_eq!(ending.wait(None), Heard::Asked(Cause::Signal));
        }
    }

    #[test]
    fn a_command_is_awaited_until_its_end_or_another_signal() {
        let (mut ending, bell) = Ending::new();
        let late = Instant::now() + Duration::from_secs(60);
        bell.ask(Cause::Terminal);
        assert_eq!(ending.wait(None), Heard::Asked(Cause::Terminal));
        [Cause::Drain, Cause::Terminal, Cause::Run].into_iter().for_each(|cause| bell.ask(cause));
        ending.wait_for_run(late);
        std::thread::sleep(TOGETHER);
        bell.ask(Cause::Signal);
        ending.wait_for_run(late);
        assert!(Instant::now() < late);
    }
}
