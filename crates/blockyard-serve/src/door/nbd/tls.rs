//! TLS of one connection: records in and bytes out, and the other way.
//!
//! The lane receives records and sends records by its ring like any other bytes; only here are they
//! opened and sealed.

use super::batch::Batch;
use rustls::{ProtocolVersion, ServerConfig, ServerConnection};
use std::io::{self, BufRead, Write};
use std::rc::Rc;
use std::sync::Arc;

/// Room for what is received at once.
const RECEIVED_BYTES: usize = 128 << 10;
/// Bytes that are sealed before they are sent: what the kernel copies is in the processor's cache still, and
/// the client opens them while the next ones are sealed.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes of a record.
const RECORD_BYTES: usize = 16 << 10;

/// TLS of one connection. See the [module](self).
#[derive(Debug)]
pub(super) struct TlsSession {
    session: ServerConnection,
    /// Records that came; away while the kernel writes to it.
    received: Option<Rc<[u8]>>,
    /// Which of it have not been opened.
    from: usize,
    to: usize,
    /// What the next record is made of.
    clear: Vec<u8>,
}

impl TlsSession {
    /// A session in which nothing has been said.
    pub(super) fn new(config: &Arc<ServerConfig>) -> Self {
        let session = ServerConnection::new(Arc::clone(config));
        let mut session = session.expect("the configuration is for a server");
        session.set_buffer_limit(None); // what is sealed is sent at once
        let received = Some(vec![0; RECEIVED_BYTES].into());
        Self { session, received, from: 0, to: 0, clear: Vec::with_capacity(RECORD_BYTES) }
    }

    /// Memory to receive records into; it comes back by [`Self::received`].
    pub(super) fn room(&mut self) -> Rc<[u8]> {
        assert_eq!(self.from, self.to, "all that came was opened");
        self.received.take().expect("the kernel gave it back")
    }

    /// `bytes` were received.
    pub(super) fn received(&mut self, records: Rc<[u8]>, bytes: usize) {
        self.received = Some(records);
        (self.from, self.to) = (0, bytes);
    }

    /// Opens records, up to `room` bytes, and gives what was in them to `take`, at the offset they
    /// have together. How many they were.
    ///
    /// # Errors
    ///
    /// The client does not speak TLS, may not be served, or says that it ends.
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
                    let received = self.received.as_ref().expect("the kernel gave it back");
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

    /// Opens records to `room`; how many bytes they had.
    ///
    /// # Errors
    ///
    /// As of [`Self::open`].
    pub(super) fn open_to(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.open(room.len(), |at, bytes| room[at..at + bytes.len()].copy_from_slice(bytes))
    }

    /// Its version.
    pub(super) fn version(&self) -> &'static str {
        match self.session.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            _ => "TLS",
        }
    }

    /// Whether TLS itself has something to say.
    pub(super) fn wants_to_send(&self) -> bool {
        self.session.wants_write()
    }

    /// Nothing more is sent after what is sealed now.
    pub(super) fn say_end(&mut self) {
        self.session.send_close_notify();
    }

    /// Makes records of what is next of `batch`, behind those TLS itself has to send.
    pub(super) fn seal(&mut self, batch: &mut Batch) {
        for _ in 0..PIECE_BYTES / RECORD_BYTES {
            self.clear.clear();
            batch.take(RECORD_BYTES, &mut self.clear);
            if self.clear.is_empty() {
                break;
            }
            let sealed = self.session.writer().write_all(&self.clear);
            sealed.expect("there is no limit on what waits to be sent");
        }
        batch.seal(|records| {
            while self.session.wants_write() {
                self.session.write_tls(records).expect("memory takes every record");
            }
        });
    }
}
