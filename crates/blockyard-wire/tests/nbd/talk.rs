//! A handshake, option by option.

use super::client::{OptionReply, flags, go, option, option_replies};
use super::exports;
use blockyard_wire::nbd::number::rep;
use blockyard_wire::nbd::{Agreed, Exports, Handshake, Limits, Step, Tls};

/// A handshake and the bytes it sent.
pub(crate) struct Talk {
    pub(crate) handshake: Handshake,
    pub(crate) exports: Exports,
    pub(crate) out: Vec<u8>,
}

impl Talk {
    pub(crate) fn new(tls: Tls) -> Self {
        Self::limited(tls, Limits::DEFAULT)
    }

    pub(crate) fn limited(tls: Tls, limits: Limits) -> Self {
        let handshake = Handshake::new(tls, limits);
        let mut talk = Self { handshake, exports: exports(), out: Vec::new() };
        assert_eq!(talk.say(&flags(3)), Step::Receive);
        talk
    }

    /// Passes bytes until all are taken, whatever the steps.
    pub(crate) fn say(&mut self, bytes: &[u8]) -> Step {
        let received = self.handshake.receive(bytes, &self.exports, &mut self.out);
        assert_eq!(received.taken, bytes.len());
        received.step
    }

    /// Sends an option, and returns its replies.
    pub(crate) fn ask(&mut self, kind: u32, data: &[u8]) -> Vec<OptionReply> {
        self.out.clear();
        let _ = self.say(&option(kind, data));
        option_replies(&self.out)
    }

    /// Sends an option, and returns the type of its last reply.
    pub(crate) fn last(&mut self, kind: u32, data: &[u8]) -> u32 {
        let replies = self.ask(kind, data);
        assert!(replies.iter().all(|(of, ..)| *of == kind), "under its own number");
        let finals = replies.iter().filter(|(_, kind, _)| *kind == rep::ACK || *kind >= rep::ERR);
        assert_eq!(finals.count(), 1, "[one-final-option-reply]");
        replies.last().unwrap().1
    }

    pub(crate) fn go(&mut self, name: &str) -> Agreed {
        match self.say(&go(name)) {
            Step::Transmit(agreed) => agreed,
            step => panic!("{step:?}"),
        }
    }
}
