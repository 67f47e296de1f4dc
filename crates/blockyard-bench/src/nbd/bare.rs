//! The bare loop: a server of memory with one thread for each connection, one receive and one send a turn, and
//! no checks. Its cost is that of sockets and copies, which no server avoids.

use super::client::write_all;
use blockyard_wire::nbd::number::cmd;
use blockyard_wire::nbd::{Export, Exports, Handshake, Limits, Step, Tls};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

const RECEIVE_BYTES: usize = 512 << 10;
const REQUEST_BYTES: usize = 28;

/// Serves memory of the given size at the socket until the process is killed. Each connection has its own
/// memory.
///
/// # Errors
///
/// Returns an error if the socket cannot be bound.
pub fn serve(socket: &Path, size_bytes: usize) -> io::Result<()> {
    for stream in UnixListener::bind(socket)?.incoming() {
        let stream = stream?;
        thread::spawn(move || session(stream, size_bytes));
    }
    Ok(())
}

/// Serves one connection; its memory is freed at its end, whatever the reason.
fn session(mut stream: UnixStream, size_bytes: usize) -> io::Result<()> {
    let mut received = vec![0; RECEIVE_BYTES];
    let (mut have, answer) = enter(&mut stream, &mut received, size_bytes)?;
    // All pages are allocated before the first request, and none for a client that only connects.
    let mut memory = vec![1; size_bytes];
    stream.write_all(&answer)?;
    loop {
        have += match stream.read(&mut received[have..])? {
            0 => return Ok(()),
            came => came,
        };
        let mut at = 0;
        let mut replies = Vec::with_capacity(64);
        while let Some(head) = received[at..have].first_chunk::<REQUEST_BYTES>() {
            let command = u16::from_be_bytes([head[6], head[7]]);
            let offset = ((word_at(head, 16) as usize) << 32) | word_at(head, 20) as usize;
            let len = word_at(head, 24) as usize;
            let mut reply = [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            reply[8..].copy_from_slice(&head[8..16]);
            match command {
                cmd::READ => {
                    at += REQUEST_BYTES;
                    replies.push((reply, Some(offset..offset + len)));
                }
                cmd::WRITE if have - at >= REQUEST_BYTES + len => {
                    at += REQUEST_BYTES;
                    memory[offset..offset + len].copy_from_slice(&received[at..at + len]);
                    at += len;
                    replies.push((reply, None));
                }
                cmd::WRITE if REQUEST_BYTES + len <= RECEIVE_BYTES => break,
                cmd::WRITE => {
                    let here = have - at - REQUEST_BYTES;
                    let (front, rest) = memory[offset..offset + len].split_at_mut(here);
                    front.copy_from_slice(&received[at + REQUEST_BYTES..have]);
                    stream.read_exact(rest)?;
                    at = have;
                    replies.push((reply, None));
                }
                _ => return Ok(()),
            }
        }
        let mut pieces = Vec::with_capacity(2 * replies.len());
        for (reply, data) in &replies {
            pieces.push(IoSlice::new(reply));
            pieces.extend(data.clone().map(|data| IoSlice::new(&memory[data])));
        }
        write_all(&mut stream, &mut pieces)?;
        received.copy_within(at..have, 0);
        have -= at;
    }
}

fn word_at(head: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(core::array::from_fn(|byte| head[at + byte]))
}

/// Does the handshake but for its last answer, which begins the transmission phase. Returns the number of received bytes
/// that belong to that phase, and the answer.
fn enter(
    stream: &mut UnixStream,
    received: &mut [u8],
    size_bytes: usize,
) -> io::Result<(usize, Vec<u8>)> {
    let export = Export { size_bytes: size_bytes as u64, ..Export::default() };
    let exports = Exports::new(vec![export]).map_err(|_| ErrorKind::InvalidInput)?;
    let mut handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
    stream.write_all(&Handshake::greeting())?;
    let mut have = 0;
    let mut at = 0;
    let mut sent = Vec::new();
    loop {
        let done = handshake.receive(&received[at..have], &exports, &mut sent);
        at += done.taken;
        match done.step {
            Step::Answer => {}
            Step::Receive => {
                stream.write_all(&sent)?;
                sent.clear();
                received.copy_within(at..have, 0);
                have -= at;
                at = 0;
                have += match stream.read(&mut received[have..])? {
                    0 => return Err(ErrorKind::UnexpectedEof.into()),
                    came => came,
                };
            }
            Step::Transmit(_) => {
                received.copy_within(at..have, 0);
                return Ok((have - at, sent));
            }
            Step::StartTls | Step::End(_) => return Err(ErrorKind::ConnectionAborted.into()),
        }
    }
}
