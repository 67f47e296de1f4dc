//! A client that sends messages, and reads replies strictly by the specification.

use blockyard_wire::nbd::Headers;
use blockyard_wire::nbd::number::{
    EXTENDED_REPLY_MAGIC, EXTENDED_REQUEST_MAGIC, IHAVEOPT, REPLY_MAGIC, REQUEST_MAGIC,
    SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk, opt,
};
use std::collections::BTreeMap;

pub(crate) fn flags(flags: u32) -> Vec<u8> {
    flags.to_be_bytes().to_vec()
}

pub(crate) fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let len = u32::try_from(data.len()).unwrap();
    [&IHAVEOPT.to_be_bytes()[..], &option.to_be_bytes(), &len.to_be_bytes(), data].concat()
}

pub(crate) fn counted(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

/// Returns the data of INFO or GO.
pub(crate) fn info_data(name: &str, wants: &[u16]) -> Vec<u8> {
    let mut data = counted(name.as_bytes());
    data.extend(u16::try_from(wants.len()).unwrap().to_be_bytes());
    wants.iter().for_each(|want| data.extend(want.to_be_bytes()));
    data
}

pub(crate) fn go(name: &str) -> Vec<u8> {
    option(opt::GO, &info_data(name, &[]))
}

pub(crate) fn context_data(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = counted(name.as_bytes());
    data.extend(u32::try_from(queries.len()).unwrap().to_be_bytes());
    queries.iter().for_each(|query| data.extend(counted(query.as_bytes())));
    data
}

pub(crate) fn set_contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    option(opt::SET_META_CONTEXT, &context_data(name, queries))
}

/// Reads numbers and pieces from the front.
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (piece, rest) = self.0.split_at(len);
        self.0 = rest;
        piece
    }
    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.bytes(2).try_into().unwrap())
    }
    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes(4).try_into().unwrap())
    }
    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.bytes(8).try_into().unwrap())
    }
}

/// A reply to an option: the option, its type, its data.
pub(crate) type OptionReply = (u32, u32, Vec<u8>);

pub(crate) fn option_replies(bytes: &[u8]) -> Vec<OptionReply> {
    let mut rest = Take(bytes);
    let mut replies = Vec::new();
    while !rest.0.is_empty() {
        assert_eq!(rest.u64(), REPLY_MAGIC);
        let option = rest.u32();
        let kind = rest.u32();
        let len = rest.u32();
        replies.push((option, kind, rest.bytes(len as usize).to_vec()));
    }
    replies
}

/// A request without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Ask {
    pub(crate) flags: u16,
    pub(crate) kind: u16,
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Ask {
    pub(crate) fn new(kind: u16, offset: u64, len: u64) -> Self {
        Self { kind, offset, len, ..Self::default() }
    }

    pub(crate) fn flags(self, flags: u16) -> Self {
        Self { flags, ..self }
    }

    pub(crate) fn cookie(self, cookie: u64) -> Self {
        Self { cookie, ..self }
    }

    pub(crate) fn bytes(self, headers: Headers) -> Vec<u8> {
        let extended = headers == Headers::Extended;
        let magic = if extended { EXTENDED_REQUEST_MAGIC } else { REQUEST_MAGIC };
        let mut bytes = magic.to_be_bytes().to_vec();
        bytes.extend(self.flags.to_be_bytes());
        bytes.extend(self.kind.to_be_bytes());
        bytes.extend(self.cookie.to_be_bytes());
        bytes.extend(self.offset.to_be_bytes());
        match extended {
            true => bytes.extend(self.len.to_be_bytes()),
            false => bytes.extend(u32::try_from(self.len).unwrap().to_be_bytes()),
        }
        bytes
    }
}

/// A complete reply.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Reply {
    /// The error, or 0 for success.
    pub(crate) error: u32,
    /// Whether it was a simple reply.
    pub(crate) simple: bool,
    /// The data that were read, by offset, with holes as zeroes. Those of a simple reply have
    /// offset 0.
    pub(crate) data: Vec<(u64, Vec<u8>)>,
    /// Status by context.
    pub(crate) status: BTreeMap<u32, Vec<(u64, u64)>>,
    /// The number of messages.
    pub(crate) messages: u32,
}

/// Reads the replies of a server. `read_len` returns the bytes of data of a successful simple
/// reply.
pub(crate) fn replies(
    bytes: &[u8],
    headers: Headers,
    mut read_len: impl FnMut(u64) -> u64,
) -> Vec<(u64, Reply)> {
    let mut rest = Take(bytes);
    let mut done = Vec::new();
    let mut open = BTreeMap::<u64, Reply>::new();
    while !rest.0.is_empty() {
        let magic = rest.u32();
        if magic == SIMPLE_REPLY_MAGIC {
            assert!(headers != Headers::Extended, "a simple reply in spite of extended headers");
            let error = rest.u32();
            let cookie = rest.u64();
            assert!(!open.contains_key(&cookie), "a simple reply among chunks");
            let len = if error == 0 { read_len(cookie) } else { 0 };
            let data = if len > 0 { vec![(0, rest.bytes(len as usize).to_vec())] } else { vec![] };
            let reply = Reply { error, simple: true, data, messages: 1, ..Reply::default() };
            done.push((cookie, reply));
            continue;
        }
        let expected = match headers {
            Headers::Simple => panic!("a chunk without structured replies"),
            Headers::Structured => STRUCTURED_REPLY_MAGIC,
            Headers::Extended => EXTENDED_REPLY_MAGIC,
        };
        assert_eq!(magic, expected);
        let flags = rest.u16();
        let kind = rest.u16();
        let cookie = rest.u64();
        let len = match headers {
            Headers::Extended => {
                rest.u64();
                rest.u64()
            }
            _ => u64::from(rest.u32()),
        };
        let reply = open.entry(cookie).or_default();
        reply.messages += 1;
        read_chunk(reply, kind, Take(rest.bytes(len as usize)), headers);
        assert!(flags <= 1 && (flags == 1 || kind != chunk::NONE));
        if flags == 1 {
            done.push((cookie, open.remove(&cookie).unwrap()));
        }
    }
    assert!(open.is_empty(), "unfinished replies: {open:?}");
    done
}

fn read_chunk(reply: &mut Reply, kind: u16, mut payload: Take<'_>, headers: Headers) {
    match kind {
        chunk::NONE => {}
        chunk::OFFSET_DATA => {
            assert!(payload.0.len() > 8, "a chunk without data");
            reply.data.push((payload.u64(), payload.0.to_vec()));
            payload.0 = &[];
        }
        chunk::OFFSET_HOLE => {
            let offset = payload.u64();
            let len = payload.u32();
            assert!(len > 0);
            reply.data.push((offset, vec![0; len as usize]));
        }
        chunk::BLOCK_STATUS | chunk::BLOCK_STATUS_EXT => {
            let extended = headers == Headers::Extended;
            assert_eq!(extended, kind == chunk::BLOCK_STATUS_EXT);
            let context = payload.u32();
            let count = if extended { payload.u32() as usize } else { payload.0.len() / 8 };
            let extents: Vec<_> = (0..count)
                .map(|_| match extended {
                    true => (payload.u64(), payload.u64()),
                    false => (payload.u32().into(), payload.u32().into()),
                })
                .collect();
            assert!(!extents.is_empty() && extents.iter().all(|(len, _)| *len > 0));
            assert!(reply.status.insert(context, extents).is_none(), "a context reported twice");
        }
        chunk::ERROR => {
            reply.error = payload.u32();
            assert!(reply.error != 0 && payload.u16() == 0);
        }
        _ => panic!("chunk of type {kind}"),
    }
    assert!(payload.0.is_empty(), "a chunk with bytes after its contents");
}
