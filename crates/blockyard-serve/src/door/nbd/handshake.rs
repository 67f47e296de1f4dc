//! The handshake, in which a client chooses an export: turns received bytes into answers.

use super::client::{Client, Lane};
use super::session::{Choosing, Serving, Session};
use super::words::words_of_handshake;
use crate::lane_memory::Account;
use blockyard_wire::nbd::{Limits, Step, Transmission};

impl Client {
    /// Answers the client's options. Returns whether it has chosen an export, so that requests follow.
    pub(super) fn choose(&mut self, number: u32, lane: &mut Lane) -> bool {
        loop {
            if self.is_over() || self.is_answering() {
                return false; // an answer is sent before the next option is read
            }
            // Not by a method: the session is borrowed.
            let certificate = self.tls.as_ref().and_then(|tls| tls.certificate());
            let Session::Handshake(Choosing { handshake, exports, .. }) = &mut self.session else {
                return true;
            };
            let mut out = Vec::new();
            let exports = self.shared.look_up(exports, &self.peer, certificate);
            let received = handshake.receive(self.input.unread(), exports, &mut out);
            self.input.take(received.taken);
            if !out.is_empty() {
                self.batch.head(|heads| heads.extend(&out));
            }
            match received.step {
                Step::Receive => return false,
                Step::Answer => {}
                Step::Transmit(agreed) if !lane.disk(agreed.export.0).enter() => {
                    self.kill("its export has as many clients as it may have");
                    return false;
                }
                Step::Transmit(agreed) => {
                    let disk = agreed.export.0;
                    let transmission = Transmission::new(agreed, Limits::DEFAULT);
                    self.account = Account::new(disk);
                    self.session = Session::Transmission(Serving::new(disk, transmission));
                    lane.newcomers.remove(number);
                    self.tell_entered(lane);
                    return true;
                }
                Step::StartTls if !self.batch.is_empty() => return false, // the answer is sent before TLS starts
                Step::StartTls => {
                    handshake.tls_started();
                    self.start_tls();
                }
                Step::End(end) => {
                    self.end(words_of_handshake(end));
                    return false;
                }
            }
        }
    }
}
