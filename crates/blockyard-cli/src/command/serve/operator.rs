//! Signals of the operator: SIGHUP reads the certificates again, SIGUSR1 logs the server's load.

use std::io;
use std::time::Instant;

use blockyard_serve::{Gauge, Reloader, Server, Traffic};
use signal_hook::consts::{SIGHUP, SIGUSR1};
use signal_hook::iterator::Signals;

use super::ticker::rates;
use crate::message::{note, warning};

/// The signals that have arrived since its creation.
pub(super) struct Operator(Signals);

impl Operator {
    /// Starts to receive the signals, so that none ends the program.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self(Signals::new([SIGHUP, SIGUSR1])?))
    }

    /// Starts the thread that handles the signals until the program ends.
    pub(super) fn obey(mut self, server: &Server) {
        let (gauge, reloader) = (server.gauge(), server.reloader());
        std::thread::spawn(move || {
            let mut before = (Instant::now(), Traffic::default());
            for signal in self.0.forever() {
                match signal {
                    SIGHUP => reload(&reloader),
                    _ => report(&gauge, &mut before),
                }
            }
        });
    }
}

fn reload(reloader: &Reloader) {
    match reloader.reload() {
        Ok(true) => note("SIGHUP: new TLS sessions use the certificates that were read now"),
        Ok(false) => note("SIGHUP: nothing to reload, as the server has no TLS"),
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
