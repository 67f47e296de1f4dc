//! Signals that do not end a server: SIGHUP reads the certificates again, SIGUSR1 logs the server's
//! load, and the others are ignored with a line in the log.
//!
//! No signal ends the server without a drain, but SIGKILL and those of a fault in the program
//! (SIGSEGV, SIGABRT and the like). [`ending`](super::ending) has the signals that ask for the end.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use blockyard_serve::{Gauge, Reloader, Server, Traffic};
use nix::libc::{SIGPWR, SIGRTMAX, SIGRTMIN, SIGSTKFLT};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGIO, SIGPROF, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use super::ticker::rates;
use crate::message::{note, warning};

/// The signals whose default is to end the program, and which mean nothing to it. Real-time signals
/// are more of them.
const IGNORED: [i32; 7] = [SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT];
/// The time after a line about a signal in which the same signal has no line: a timer may send
/// thousands each second.
const QUIET: Duration = Duration::from_secs(60);

/// The signals that have arrived since its creation.
pub(super) struct Operator(Signals);

impl Operator {
    /// Starts to receive the signals, so that none ends the program without a drain.
    ///
    /// A write beyond the limit on the size of files raises SIGXFSZ. As the program receives it,
    /// the write fails with EFBIG.
    pub(super) fn listen() -> io::Result<Self> {
        let real_time = SIGRTMIN()..=SIGRTMAX();
        let own = [SIGHUP, SIGUSR1, SIGXFSZ];
        Ok(Self(Signals::new(own.into_iter().chain(IGNORED).chain(real_time))?))
    }

    /// Starts the thread that handles the signals until the program ends.
    pub(super) fn obey(mut self, server: &Server) {
        let gauge = server.gauge();
        let reloader = server.reloader();
        std::thread::spawn(move || {
            let mut before = (Instant::now(), Traffic::default());
            let mut said = BTreeMap::new();
            for signal in self.0.forever() {
                match signal {
                    SIGHUP => reload(&reloader),
                    SIGUSR1 => report(&gauge, &mut before),
                    ignored => mention(ignored, &mut said),
                }
            }
        });
    }
}

/// Logs a signal that is ignored, unless a line about this signal is younger than [`QUIET`].
fn mention(signal: i32, said: &mut BTreeMap<i32, Instant>) {
    let now = Instant::now();
    if said.get(&signal).is_some_and(|last| now - *last < QUIET) {
        return;
    }
    said.insert(signal, now);
    match (signal, signal_name(signal)) {
        (SIGXFSZ, _) => warning(
            "SIGXFSZ: a write beyond the limit on the size of files (RLIMIT_FSIZE, `ulimit -f`) has failed",
        ),
        (_, Some(name)) => note(&format!("{name}: ignored; SIGTERM ends the server")),
        (_, None) => note(&format!("signal {signal}: ignored; SIGTERM ends the server")),
    }
}

fn reload(reloader: &Reloader) {
    match reloader.reload() {
        Ok(Some(untimely)) => {
            note("SIGHUP: new TLS sessions use the certificates that were read now");
            untimely.iter().for_each(|certificate| warning(&certificate.to_string()));
        }
        Ok(None) => note("SIGHUP: nothing to reload, as the server has no TLS"),
        Err(error) => warning(&format!("SIGHUP: the server keeps its certificates: {error}")),
    }
}

/// Logs the rates since the last report, or since the start.
fn report(gauge: &Gauge, before: &mut (Instant, Traffic)) {
    let Some(traffic) = gauge.read() else {
        return warning("SIGUSR1: a lane does not answer");
    };
    let now = Instant::now();
    note(&format!("SIGUSR1: {}", rates(&before.1, &traffic, now - before.0)));
    *before = (now, traffic);
}
