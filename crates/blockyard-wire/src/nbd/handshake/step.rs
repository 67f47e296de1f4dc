//! The outcome of receiving bytes in the handshake.

use super::agreed::Agreed;

/// The server's policy for TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tls {
    /// TLS is never used.
    Off,
    /// TLS is used if the client asks for it.
    Offered,
    /// TLS is always used.
    Required,
}

/// The next step after [`Handshake::receive`](super::Handshake::receive). Send the appended bytes
/// in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Receive more bytes.
    Receive,
    /// Send the answer and call again, if only with the bytes that were not taken.
    Answer,
    /// Send the answer, start TLS, and then call
    /// [`Handshake::tls_started`](super::Handshake::tls_started). All bytes received before are
    /// discarded.
    StartTls,
    /// Send the answer, and continue with a [`Transmission`](super::super::Transmission).
    Transmit(Agreed),
    /// Send the answer, and close the connection.
    End(HandshakeEnd),
}

/// The reason why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeEnd {
    /// The client sent ABORT.
    Aborted,
    /// The client sent unknown flags: it uses the old style, or another protocol.
    NotNewstyle,
    /// An option does not start with the magic number.
    BadMagic,
    /// A client without fixed newstyle sent an option other than EXPORT_NAME.
    NotFixed,
    /// An option is too long to be read and discarded.
    TooLong,
    /// EXPORT_NAME named an unknown export.
    NoSuchExport,
    /// EXPORT_NAME came without the required TLS.
    TlsRequired,
    /// EXPORT_NAME came after extended headers were agreed on.
    ExtendedHeaders,
    /// EXPORT_NAME came while the server was shutting down.
    ShuttingDown,
}
