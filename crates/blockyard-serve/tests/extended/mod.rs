//! A client with extended headers, which sends one request at a time and no READs.
#![allow(dead_code, reason = "each test uses a part of it")]

use super::nbd;
use blockyard_wire::nbd::number::{EXTENDED_REPLY_MAGIC, EXTENDED_REQUEST_MAGIC};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub(crate) const CACHE: u16 = 5;
const STATUS: u16 = 7;
pub(crate) const HOLE: u64 = 1;

/// A client of the default export with the context `base:allocation`.
pub(crate) struct Extended(UnixStream);

impl Extended {
    pub(crate) fn connect(socket: &Path) -> Self {
        let mut client = Self(nbd::greeted(UnixStream::connect(socket).unwrap()).unwrap());
        client.option(11, b"");
        client.option(10, b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation");
        client.option(7, &[0; 6]);
        client
    }

    /// Sends an option and reads replies up to the ACK.
    fn option(&mut self, number: u32, data: &[u8]) {
        let len = u32::try_from(data.len()).unwrap();
        let head = [&b"IHAVEOPT"[..], &number.to_be_bytes(), &len.to_be_bytes(), data].concat();
        self.0.write_all(&head).unwrap();
        loop {
            let reply = self.take(20);
            let kind = u32::from_be_bytes(reply[12..16].try_into().unwrap());
            assert!(kind < 1 << 31, "the server refused option {number}");
            self.take(u32::from_be_bytes(reply[16..].try_into().unwrap()).into());
            if kind == 1 {
                return;
            }
        }
    }

    fn take(&mut self, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(len).unwrap()];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Sends a request without data.
    fn send(&mut self, kind: u16, flags: u16, offset: u64, len: u64) {
        let mut request = EXTENDED_REQUEST_MAGIC.to_be_bytes().to_vec();
        request.extend([flags.to_be_bytes(), kind.to_be_bytes()].concat());
        request.extend([77, offset, len].map(u64::to_be_bytes).concat());
        self.0.write_all(&request).unwrap();
    }

    /// Requests the status of a range and does not wait for the reply.
    pub(crate) fn ask_status(&mut self, offset: u64, len: u64) {
        self.send(STATUS, 0, offset, len);
    }

    /// Sends a command without data and does not wait for the reply.
    pub(crate) fn ask_for(&mut self, kind: u16, offset: u64, len: u64) {
        self.send(kind, 0, offset, len);
    }

    /// Returns the number of received bytes that were not read.
    pub(crate) fn arrived_bytes(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.0).unwrap()
    }

    /// Ends the stream of requests.
    pub(crate) fn shut_down(&self) {
        self.0.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Sends a request and returns its answer.
    fn ask(&mut self, kind: u16, flags: u16, offset: u64, len: u64) -> Result<Vec<u8>, u32> {
        self.send(kind, flags, offset, len);
        self.answer()
    }

    /// Reads one reply. Returns the payload of its chunks, or its error.
    pub(crate) fn answer(&mut self) -> Result<Vec<u8>, u32> {
        let mut answer = Vec::new();
        loop {
            let head = self.take(32);
            assert_eq!(head[..4], EXTENDED_REPLY_MAGIC.to_be_bytes());
            let payload = self.take(u64::from_be_bytes(head[24..].try_into().unwrap()));
            if head[6] & 0x80 != 0 {
                return Err(u32::from_be_bytes(payload[..4].try_into().unwrap()));
            }
            answer.extend(payload);
            if head[5] & 1 != 0 {
                return Ok(answer);
            }
        }
    }

    /// Sends a command without data and returns its error, 0 for none.
    pub(crate) fn call(&mut self, kind: u16, offset: u64, len: u64) -> u32 {
        self.ask(kind, 0, offset, len).err().unwrap_or(0)
    }

    /// Requests status until the whole range is covered. Returns lengths and states.
    pub(crate) fn status(&mut self, offset: u64, len: u64) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        let mut told = 0;
        while told < len {
            let payload = self.ask(STATUS, 0, offset + told, len - told).unwrap();
            for extent in payload[8..].chunks_exact(16) {
                fn number(at: usize, extent: &[u8]) -> u64 {
                    u64::from_be_bytes(extent[at..at + 8].try_into().unwrap())
                }
                all.push((number(0, extent), number(8, extent)));
                told += number(0, extent);
            }
        }
        all
    }
}
