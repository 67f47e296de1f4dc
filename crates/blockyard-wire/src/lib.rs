//! Storage protocols as state machines without sockets.
//!
//! Received bytes go in; requests to carry out and bytes to send come out. Nothing here reads a
//! clock, makes a system call or starts a thread, so the same code serves over any socket, in a
//! simulation and under a fuzzer.
//!
//! - [`nbd`]: the server's side of NBD.
//!
//! # The whole loop
//!
//! A disk of 8 KiB in memory. The client sends three messages: it names the export, reads 4 KiB
//! from its middle, and disconnects.
//!
//! ```
//! use blockyard_wire::nbd::{
//!     ANSWER_BYTES_MAX, Command, Errno, Event, Export, Exports, Handshake, Limits, Step, Tls,
//!     Transmission,
//! };
//! use blockyard_wire::nbd::number::{IHAVEOPT, REQUEST_MAGIC, cmd, opt};
//!
//! let disk = [7; 8192];
//! let size_bytes = disk.len() as u64;
//! let exports = Exports::new(vec![Export { size_bytes, ..Export::default() }])?;
//!
//! # fn request(kind: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
//! #     [&REQUEST_MAGIC.to_be_bytes()[..], &[0, 0], &kind.to_be_bytes(), &cookie.to_be_bytes(),
//! #         &offset.to_be_bytes(), &len.to_be_bytes()].concat()
//! # }
//! // The bytes that the server receives.
//! let mut received = [0, 0, 0, 3].to_vec();                            // the client's flags
//! let option = [&IHAVEOPT.to_be_bytes()[..], &opt::EXPORT_NAME.to_be_bytes(), &[0; 4]];
//! received.extend(option.concat());
//! received.extend(request(cmd::READ, 5, 4096, 4096));
//! received.extend(request(cmd::DISC, 6, 0, 0));
//!
//! // The bytes that the server sends.
//! let mut sent = Handshake::greeting().to_vec();
//! let mut at = 0;
//!
//! let mut handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
//! let agreed = loop {
//!     let done = handshake.receive(&received[at..], &exports, &mut sent);
//!     at += done.taken;
//!     match done.step {
//!         Step::Transmit(agreed) => break agreed,
//!         Step::Answer => {}                                           // send, and continue
//!         Step::Receive => panic!("here a server would receive more"),
//!         Step::StartTls | Step::End(_) => panic!("this client does neither"),
//!     }
//! };
//! assert_eq!(sent.len(), 18 + 10);
//!
//! let mut transmission = Transmission::new(agreed, Limits::DEFAULT);
//! let mut header = [0; ANSWER_BYTES_MAX];
//! loop {
//!     let next = transmission.next(&received[at..]);
//!     at += next.taken;
//!     let (request, result) = match next.event {
//!         Event::Request(request) if request.command() == Some(Command::Read) => {
//!             (request, Ok(()))
//!         }
//!         Event::Request(request) => (request, Err(Errno::Io)),            // a read-only disk
//!         Event::Settled(request, result) => (request, result),
//!         Event::Payload { left } => {
//!             // A server would keep the WRITE until its whole payload has arrived.
//!             transmission.payload_taken(left);
//!             at += left as usize;
//!             continue;
//!         }
//!         Event::More { .. } | Event::Wait => panic!("here a server would receive, or send"),
//!         Event::End(_) => break,
//!     };
//!     let range = request.offset() as usize..(request.offset() + request.len()) as usize;
//!     let answer = transmission.answer(request, result, &mut header);
//!     sent.extend(&header[..answer.header_bytes]);
//!     if answer.data_bytes > 0 {
//!         sent.extend(&disk[range]);
//!     }
//!     transmission.sent(answer.charge);
//! }
//! assert_eq!(transmission.in_flight(), 0);
//! assert_eq!(sent.len(), 18 + 10 + 16 + 4096);
//! # Ok::<(), blockyard_wire::nbd::ExportError>(())
//! ```
//!
//! # Features
//!
//! The crate has no features. It is always `no_std` with `alloc`, has no dependencies, and contains
//! no `unsafe` code.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod nbd;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
