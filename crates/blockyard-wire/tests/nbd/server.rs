//! A server over a disk in memory, which carries out each request at once, in order.

use super::client::{Ask, Reply, replies};
use super::{agree, export};
use blockyard_wire::nbd::number::{cmd, cmd_flag};
use blockyard_wire::nbd::transmission::STATUS_BYTES_MIN;
use blockyard_wire::nbd::{
    ANSWER_BYTES_MAX, Agreed, BASE_ALLOCATION, Command, Errno, Event, Export, Headers, Limits,
    REQUEST_BYTES_MAX, Request, STATE_HOLE, STATE_ZERO, Transmission, TransmissionEnd,
};

/// A session, its disk, and the bytes it sent.
pub(crate) struct Server {
    pub(crate) transmission: Transmission,
    pub(crate) disk: Vec<u8>,
    pub(crate) sent: Vec<u8>,
    /// The error with which every request to the disk is answered, if any.
    pub(crate) fails: Option<Errno>,
    /// The bytes of data of each successful answer, in order.
    pub(crate) data_lens: Vec<u64>,
    /// The requests that reached the disk.
    pub(crate) asked: Vec<(Command, u64, u64, bool)>,
    /// The WRITE whose payload is arriving, and the bytes so far.
    write: Option<(Request, Vec<u8>)>,
    /// Bytes that were not taken yet.
    pending: Vec<u8>,
    /// Why nothing more is read.
    pub(crate) end: Option<TransmissionEnd>,
}

impl Server {
    pub(crate) fn new(agreed: Agreed) -> Self {
        Self::limited(agreed, Limits::DEFAULT)
    }

    pub(crate) fn limited(agreed: Agreed, limits: Limits) -> Self {
        let disk = (0..agreed.size_bytes).map(|at| (at / 512 % 251) as u8 + 1).collect();
        Self {
            transmission: Transmission::new(agreed, limits),
            disk,
            sent: Vec::new(),
            fails: None,
            data_lens: Vec::new(),
            asked: Vec::new(),
            write: None,
            pending: Vec::new(),
            end: None,
        }
    }

    /// Receives bytes from the client, split anywhere.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        let mut bytes = [&core::mem::take(&mut self.pending)[..], bytes].concat();
        let mut at = 0;
        loop {
            let next = self.transmission.next(&bytes[at..]);
            at += next.taken;
            match next.event {
                Event::More { at_least } => {
                    assert!(at_least > bytes.len() - at, "more bytes than there are");
                    assert!(at_least <= REQUEST_BYTES_MAX, "a request fits into a buffer");
                    break;
                }
                Event::Payload { left } => {
                    let here = usize::try_from(left).unwrap().min(bytes.len() - at);
                    self.payload(&bytes[at..at + here]);
                    at += here;
                    if self.transmission.payload_left() > 0 {
                        break;
                    }
                }
                Event::Request(request) if request.command() == Some(Command::Write) => {
                    self.write = Some((request, Vec::new()));
                }
                Event::Request(request) => self.carry_out(request, &[]),
                Event::Settled(request, result) => self.answer(request, result),
                Event::Wait => panic!("every request is answered at once"),
                Event::End(end) => {
                    self.end = Some(end);
                    break;
                }
            }
        }
        self.pending = bytes.split_off(at);
    }

    fn payload(&mut self, bytes: &[u8]) {
        self.transmission.payload_taken(bytes.len() as u64);
        let (request, mut data) = self.write.take().unwrap();
        data.extend(bytes);
        if self.transmission.payload_left() > 0 {
            self.write = Some((request, data));
        } else {
            assert_eq!(data.len() as u64, request.len());
            self.carry_out(request, &data);
        }
    }

    fn carry_out(&mut self, request: Request, payload: &[u8]) {
        let command = request.command().unwrap();
        self.asked.push((command, request.offset(), request.len(), request.fua()));
        if let Some(errno) = self.fails {
            return self.answer(request, Err(errno));
        }
        let range = request.offset() as usize..(request.offset() + request.len()) as usize;
        match command {
            Command::Write => self.disk[range].copy_from_slice(payload),
            Command::WriteZeroes { .. } | Command::Trim => self.disk[range].fill(0),
            Command::BlockStatus => return self.status(request),
            Command::Read | Command::Flush | Command::Cache => {}
        }
        self.answer(request, Ok(()));
    }

    /// Reports the status in blocks of 512: blocks of zeroes are holes.
    fn status(&mut self, mut request: Request) {
        for context in request.contexts_left().iter() {
            let mut out = vec![0; STATUS_BYTES_MIN + 1024];
            let offset = request.offset() as usize;
            let mut chunk = self.transmission.status(&mut request, context, &mut out);
            for block in self.disk[offset..].chunks(512) {
                let zero = block.iter().all(|byte| *byte == 0);
                let state = if zero { STATE_HOLE | STATE_ZERO } else { 0 };
                if !chunk.push(block.len() as u64, state) {
                    break;
                }
            }
            let len = chunk.finish();
            self.sent.extend(&out[..len]);
        }
        self.answer(request, Ok(()));
    }

    pub(crate) fn answer(&mut self, request: Request, result: Result<(), Errno>) {
        let mut header = [0; ANSWER_BYTES_MAX];
        let end = request.offset().saturating_add(request.len());
        let answer = self.transmission.answer(request, result, &mut header);
        self.sent.extend(&header[..answer.header_bytes]);
        if result.is_ok() {
            self.data_lens.push(answer.data_bytes);
        }
        if answer.data_bytes > 0 {
            let from = end - answer.data_bytes;
            self.sent.extend(&self.disk[from as usize..end as usize]);
        }
        self.transmission.sent(answer.charge);
    }

    pub(crate) fn headers(&self) -> Headers {
        self.transmission.agreed().headers
    }

    /// Sends a request. A WRITE gets the flag that its headers need, and its payload.
    pub(crate) fn send(&mut self, ask: Ask) {
        let mut ask = ask;
        let write = ask.kind == cmd::WRITE;
        if write && self.headers() == Headers::Extended {
            ask.flags |= cmd_flag::PAYLOAD_LEN;
        }
        let mut bytes = ask.bytes(self.headers());
        if write {
            bytes.extend(vec![0xab; ask.len as usize]);
        }
        self.receive(&bytes);
    }

    /// Sends a request, and returns its only reply.
    pub(crate) fn ask(&mut self, ask: Ask) -> Reply {
        self.sent.clear();
        self.send(ask);
        assert_eq!(self.end, None);
        let len = if ask.kind == cmd::READ { ask.len } else { 0 };
        let mut replies = replies(&self.sent, self.headers(), |_| len);
        assert_eq!(replies.len(), 1, "{ask:?}");
        assert_eq!((self.transmission.in_flight(), self.transmission.bytes_in_flight()), (0, 0));
        let (cookie, reply) = replies.remove(0);
        assert_eq!(cookie, ask.cookie);
        reply
    }

    pub(crate) fn error(&mut self, ask: Ask) -> u32 {
        self.ask(ask).error
    }
}

/// A server of "disk".
pub(crate) fn server(headers: Headers) -> Server {
    server_of(export("disk"), headers)
}

/// Serves `export`, with these headers, and with `base:allocation` if possible.
pub(crate) fn server_of(export: Export, headers: Headers) -> Server {
    let contexts = if headers == Headers::Simple { &[][..] } else { &[BASE_ALLOCATION] };
    Server::new(agree(export, headers, contexts))
}
