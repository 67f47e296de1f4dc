//! The handshake, in which a client chooses an export: turns received bytes into answers.
//!
//! A client that chooses an export whose gate is closed waits. Its option is as if it had not been
//! received, and is answered when the lane calls the client again ([gate-decides-once]).

use super::client::Client;
use super::session::{Choosing, Chosen, Session};
use super::words::words_of_handshake;
use crate::disk::Entry;
use crate::lane::memory::Account;
use crate::lane::services::Offered;
use crate::lane::services::Services;
use blockyard_wire::nbd::{Agreed, Step};
use std::sync::Arc;

impl Client {
    /// Answers the client's options. Returns whether it has chosen an export, so that requests
    /// follow.
    pub(super) fn negotiate(&mut self, lane: &mut Services) -> bool {
        loop {
            if self.is_over() || self.is_answering() {
                return false; // an answer is sent before the next option is read
            }
            // Not by a method: the session is borrowed.
            let certificate = self.tls.as_ref().and_then(|tls| tls.certificate());
            let Session::Handshake(Choosing { handshake, exports, waits, .. }) = &mut self.session
            else {
                return true;
            };
            let mut out = Vec::new();
            let edition = self.shared.roster.edition();
            let exports = self.shared.look_up(exports, &self.peer, certificate);
            let before = handshake.clone();
            let received = handshake.receive(self.input.unread(), exports, &mut out);
            let entry = match received.step {
                // A lane has forgotten a disk whose export is being resized.
                Step::Transmit(agreed) => match lane.offered.get(&agreed.export.0) {
                    Some(offered) => offered.disk.gate.enter(),
                    None => Entry::Closed,
                },
                _ => Entry::Entered,
            };
            *waits = entry == Entry::Closed;
            if *waits {
                *handshake = before;
                return false;
            }
            if let Step::Transmit(agreed) = received.step
                && entry == Entry::Entered
                && self.shared.roster.edition() != edition
            {
                // The answer would have the size before a change: look again.
                lane.offered[&agreed.export.0].disk.gate.leave();
                *handshake = before;
                continue;
            }
            self.input.take(received.taken);
            if !out.is_empty() {
                self.batch.push_head(|heads| heads.extend(&out));
            }
            match received.step {
                Step::Receive => return false,
                Step::Answer => {}
                Step::Transmit(_) if entry == Entry::Full => {
                    self.kill("its export has as many clients as it may have");
                    return false;
                }
                Step::Transmit(agreed) => return self.enter_export(agreed, lane),
                // The answer is sent before TLS starts.
                Step::StartTls if !self.batch.is_empty() => return false,
                Step::StartTls => {
                    handshake.tls_started();
                    self.start_tls();
                }
                Step::End(end) => {
                    self.stop_reading(words_of_handshake(end));
                    return false;
                }
            }
        }
    }

    /// Enters the export of `agreed`, through whose gate the client has come, and whose disk this
    /// lane serves or another one. Returns whether requests follow here.
    fn enter_export(&mut self, agreed: Agreed, lane: &mut Services) -> bool {
        let Offered { disk, elsewhere, .. } = &lane.offered[&agreed.export.0];
        let elsewhere = elsewhere.map(|home| (home, Arc::downgrade(disk)));
        self.newcomer = None;
        match (elsewhere, &mut self.session) {
            (Some((home, disk)), Session::Handshake(choosing)) => {
                choosing.chosen = Some(Chosen { agreed, disk, home });
                false
            }
            _ => {
                lane.ensure_queue(agreed.export.0);
                self.account = Account::new(agreed.export.0);
                self.session = Session::serving_under(agreed, self.id);
                self.begin_serving(lane);
                true
            }
        }
    }
}
