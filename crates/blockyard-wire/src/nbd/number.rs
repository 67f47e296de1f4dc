//! The numbers of the protocol, under the names of the specification without the prefix `NBD_`. All
//! are sent with the most significant byte first.

/// The first eight bytes that a server sends.
pub const INIT_PASSWD: u64 = 0x4e42_444d_4147_4943;
/// The next eight bytes of a newstyle server, and the first of each option of a client.
pub const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
/// The first bytes of a reply to an option.
pub const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// The first bytes of a compact request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// The first bytes of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// The first bytes of a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// The first bytes of an extended request.
pub const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// The first bytes of a chunk of an extended reply.
pub const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// Handshake flag of the server, and of a client that accepts it: options have replies.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag of the server, and of a client that accepts it: no zeroes after `EXPORT_NAME`.
pub const FLAG_NO_ZEROES: u16 = 1 << 1;
/// The number of zero bytes after the flags in the answer to `EXPORT_NAME`, unless `NO_ZEROES` is
/// agreed on.
pub const EXPORT_NAME_ZEROES: usize = 124;

/// Options.
pub mod opt {
    #![allow(missing_docs, reason = "the names are those of the specification")]
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Replies to options. Numbers from [`ERR`](rep::ERR) on are errors.
pub mod rep {
    #![allow(missing_docs, reason = "the names are those of the specification")]
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR: u32 = 1 << 31;
    pub const ERR_UNSUP: u32 = ERR + 1;
    pub const ERR_POLICY: u32 = ERR + 2;
    pub const ERR_INVALID: u32 = ERR + 3;
    pub const ERR_TLS_REQD: u32 = ERR + 5;
    pub const ERR_UNKNOWN: u32 = ERR + 6;
    pub const ERR_SHUTDOWN: u32 = ERR + 7;
    pub const ERR_TOO_BIG: u32 = ERR + 9;
    pub const ERR_EXT_HEADER_REQD: u32 = ERR + 10;
}

/// Kinds of information about an export that `INFO` and `GO` request.
pub mod info {
    #![allow(missing_docs, reason = "the names are those of the specification")]
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Types of requests.
pub mod cmd {
    #![allow(missing_docs, reason = "the names are those of the specification")]
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests.
pub mod cmd_flag {
    #![allow(missing_docs, reason = "the names are those of the specification")]
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
    pub const PAYLOAD_LEN: u16 = 1 << 5;
}

/// The flag of a chunk that ends its reply.
pub const REPLY_FLAG_DONE: u16 = 1 << 0;

/// Types of chunks.
pub mod chunk {
    #![allow(missing_docs, reason = "the names are those of the specification")]
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const BLOCK_STATUS_EXT: u16 = 6;
    pub const ERROR: u16 = (1 << 15) + 1;
}

/// The length of the longest string, in bytes.
pub const STRING_BYTES_MAX: usize = 4096;
/// The maximum number of descriptors in one chunk of block status.
pub const DESCRIPTORS_MAX: u32 = 1 << 20;
/// The longest payload, in bytes, that a server without limits of its own should accept.
pub const PAYLOAD_BYTES_DEFAULT: u32 = 1 << 25;
