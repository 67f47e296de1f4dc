//! TLS of one connection: it decrypts received records and encrypts replies.
//!
//! The lane's ring receives and sends records like any other bytes.

use super::batch::Batch;
use crate::clients::reserve;
use rustls::pki_types::CertificateDer;
use rustls::{ProtocolVersion, ServerConfig, ServerConnection};
use std::io::{self, BufRead, Write};
use std::rc::Rc;
use std::sync::Arc;

/// The size of the buffer for received records, in bytes.
const RECEIVED_BYTES: usize = 128 << 10;
/// The number of bytes that are encrypted before they are sent. The kernel then copies them while
/// they are in the processor's cache, and the client decrypts them while the next ones are
/// encrypted.
const PIECE_BYTES: usize = 256 << 10;
const RECORD_BYTES: usize = 16 << 10;

/// TLS of one connection. See the [module](self).
#[derive(Debug)]
pub(super) struct TlsSession {
    session: ServerConnection,
    /// Received records; `None` while the kernel writes to the buffer.
    received: Option<Rc<[u8]>>,
    /// The records that have not been decrypted are at `from..to`.
    from: usize,
    to: usize,
    /// The plain text of the next record.
    clear: Vec<u8>,
}

/// TLS of a client on its way to another lane: no buffer is shared.
#[derive(Debug)]
pub(super) struct TlsOnItsWay {
    session: ServerConnection,
    /// Records that have not been decrypted.
    records: Vec<u8>,
}

impl TlsOnItsWay {
    /// Returns the session in its new lane, or `None` if there is no memory
    /// ([session-fails-without-memory]).
    pub(super) fn unpack(self) -> Option<TlsSession> {
        let Self { session, records } = self;
        let to = records.len();
        debug_assert!(to <= RECEIVED_BYTES, "the records were in a buffer of this size");
        let received = Some(reserve::copied_buffer(&records, RECEIVED_BYTES)?);
        let clear = Vec::with_capacity(RECORD_BYTES);
        Some(TlsSession { session, received, from: 0, to, clear })
    }
}

impl TlsSession {
    /// Returns the session in the form in which it moves to another lane.
    pub(super) fn pack(self) -> TlsOnItsWay {
        let Self { session, received, from, to, .. } = self;
        let received = received.expect("record buffer that the kernel returned");
        TlsOnItsWay { session, records: received[from..to].to_vec() }
    }

    /// Returns a session with a new client, or `None` if there is no memory
    /// ([session-fails-without-memory]).
    pub(super) fn new(config: Arc<ServerConfig>) -> Option<Self> {
        let received = Some(reserve::zeroed_buffer(RECEIVED_BYTES)?);
        let session = ServerConnection::new(config);
        let mut session = session.expect("TLS configuration of a server");
        session.set_buffer_limit(None); // records are sent as soon as they are made
        let clear = Vec::with_capacity(RECORD_BYTES);
        Some(Self { session, received, from: 0, to: 0, clear })
    }

    /// Returns the buffer to receive records into. [`Self::received`] takes it back.
    pub(super) fn room(&mut self) -> Rc<[u8]> {
        assert_eq!(
            self.from, self.to,
            "all received records must be decrypted before more are received"
        );
        self.received.take().expect("record buffer that the kernel returned")
    }

    /// Returns whether received records of the handshake wait for [`Self::open`].
    pub(super) fn awaits_step(&self) -> bool {
        self.from < self.to && self.session.is_handshaking()
    }

    /// Takes the buffer back, with `bytes` of records in it.
    pub(super) fn received(&mut self, records: Rc<[u8]>, bytes: usize) {
        self.received = Some(records);
        self.from = 0;
        self.to = bytes;
    }

    /// Decrypts records, up to `room` bytes, and passes the plain text to `take` with its offset
    /// from the first byte. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// The client does not speak TLS, is not allowed in, or has ended TLS.
    pub(super) fn open(
        &mut self,
        room: usize,
        mut take: impl FnMut(usize, &[u8]),
    ) -> io::Result<usize> {
        let mut opened = 0;
        while opened < room {
            let mut reader = self.session.reader();
            match reader.fill_buf() {
                Ok([]) if opened == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok([]) => break,
                Ok(bytes) => {
                    let bytes = &bytes[..bytes.len().min(room - opened)];
                    take(opened, bytes);
                    let len = bytes.len();
                    reader.consume(len);
                    opened += len;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let received =
                        self.received.as_ref().expect("record buffer that the kernel returned");
                    let mut records = &received[self.from..self.to];
                    if records.is_empty() {
                        break;
                    }
                    self.from += self.session.read_tls(&mut records)?;
                    self.session.process_new_packets().map_err(io::Error::other)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(opened)
    }

    /// Decrypts records into `room`. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// As for [`Self::open`].
    pub(super) fn open_to(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.open(room.len(), |at, bytes| room[at..at + bytes.len()].copy_from_slice(bytes))
    }

    /// Returns the client's own certificate, once it has shown one that an authority of the server
    /// signed.
    pub(super) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.session.peer_certificates()?.first()
    }

    pub(super) fn version(&self) -> &'static str {
        match self.session.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            _ => "TLS",
        }
    }

    /// Returns whether TLS itself has records to send.
    pub(super) fn wants_to_send(&self) -> bool {
        self.session.wants_write()
    }

    /// Ends TLS in this direction: no data follows.
    pub(super) fn say_end(&mut self) {
        self.session.send_close_notify();
    }

    /// Encrypts the next bytes of `batch`, after the records that TLS itself has to send.
    pub(super) fn seal(&mut self, batch: &mut Batch) {
        for _ in 0..PIECE_BYTES / RECORD_BYTES {
            self.clear.clear();
            batch.take(RECORD_BYTES, &mut self.clear);
            if self.clear.is_empty() {
                break;
            }
            let sealed = self.session.writer().write_all(&self.clear);
            sealed.expect("record buffer without a limit");
        }
        batch.seal(|records| {
            while self.session.wants_write() {
                self.session.write_tls(records).expect("write of records to memory");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::reserve::tests::without_memory;
    use rustls::crypto::ring::default_provider;
    use rustls::pki_types::PrivateKeyDer;

    fn config() -> Arc<ServerConfig> {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(default_provider().into());
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        config.with_single_cert(vec![own.cert.der().clone()], key).unwrap().into()
    }

    /// TLS of a client that has sent three bytes of a record.
    fn packed() -> TlsOnItsWay {
        let mut session = TlsSession::new(config()).expect("there is memory");
        let mut room = session.room();
        Rc::get_mut(&mut room).expect("one owner")[..3].copy_from_slice(&[1, 2, 3]);
        session.received(room, 3);
        session.pack()
    }

    /// [session-fails-without-memory]: 128 KiB would still fit, but only in the reserve of 1 MiB.
    #[test]
    fn tls_of_a_moved_client_does_not_take_the_reserve() {
        let session = packed().unpack().expect("there is memory");
        assert_eq!((session.from, session.to), (0, 3));
        assert_eq!(session.received.unwrap()[..4], [1, 2, 3, 0]);
        let packed = packed();
        let test = "door::nbd::tls::tests::tls_of_a_moved_client_does_not_take_the_reserve";
        without_memory(test, || assert!(packed.unpack().is_none()));
    }
}
