//! The reasons for which a session ends, as text for the log.

use crate::observation::event::ENDING;
use blockyard_wire::nbd::{HandshakeEnd, TransmissionEnd};

pub(super) const fn words_of_handshake(end: HandshakeEnd) -> &'static str {
    match end {
        HandshakeEnd::Aborted => "it was done with asking",
        HandshakeEnd::NotNewstyle => "it speaks the old style of NBD, or something else",
        HandshakeEnd::BadMagic => "what should be an option does not begin like one",
        HandshakeEnd::NotFixed => "it sent options without fixed newstyle",
        HandshakeEnd::TooLong => "an option was too long",
        HandshakeEnd::NoSuchExport => "EXPORT_NAME cannot be refused",
        HandshakeEnd::TlsRequired => "it did not ask for TLS, which is required",
        HandshakeEnd::ExtendedHeaders => "EXPORT_NAME cannot follow extended headers",
        HandshakeEnd::ShuttingDown => ENDING,
    }
}

pub(super) const fn words_of_transmission(end: TransmissionEnd) -> &'static str {
    match end {
        TransmissionEnd::Disconnected => "it disconnected",
        TransmissionEnd::BadMagic => "what should be a request does not begin like one",
        TransmissionEnd::TooLong => "a refused request had too much payload",
    }
}
