//! After the handshake nothing allocates: requests of every kind, refused requests, and their
//! replies.

#[path = "../../blockyard/tests/allocations/mod.rs"]
mod allocations;
mod nbd;

use allocations::allocations;
use blockyard_wire::nbd::number::cmd;
use blockyard_wire::nbd::transmission::STATUS_BYTES_MIN;
use blockyard_wire::nbd::{
    ANSWER_BYTES_MAX, BASE_ALLOCATION, Command, Event, Handshake, Headers, Limits, Part, Tls,
    Transmission,
};
use nbd::client::Ask;
use nbd::{agree, export};

/// Answers every request in `bytes`.
fn serve(transmission: &mut Transmission, bytes: &[u8]) -> u32 {
    let mut at = 0;
    let mut answered = 0;
    let mut header = [0; ANSWER_BYTES_MAX];
    let mut status = [0; STATUS_BYTES_MIN];
    loop {
        let next = transmission.next(&bytes[at..]);
        at += next.taken;
        let (mut request, result) = match next.event {
            Event::Request(request) => (request, Ok(())),
            Event::Settled(request, result) => (request, result),
            Event::Payload { left } => {
                transmission.payload_taken(left);
                at += usize::try_from(left).unwrap();
                continue;
            }
            Event::More { .. } | Event::End(_) | Event::Wait => return answered,
        };
        match request.command() {
            Some(Command::Read) if transmission.agreed().headers != Headers::Simple => {
                let _ = transmission.part(&mut request, Part::Hole(512), &mut header);
            }
            Some(Command::BlockStatus) => {
                let context = request.contexts_left().iter().next().unwrap();
                let mut chunk = transmission.status(&mut request, context, &mut status);
                let _ = chunk.push(512, 0);
                let _ = chunk.finish();
            }
            _ => {}
        }
        let answer = transmission.answer(request, result, &mut header);
        transmission.sent(answer.charge);
        answered += 1;
    }
}

#[test]
fn no_request_allocates() {
    for headers in [Headers::Simple, Headers::Structured, Headers::Extended] {
        let contexts = if headers == Headers::Simple { &[][..] } else { &[BASE_ALLOCATION] };
        let agreed = agree(export("disk"), headers, contexts);
        let mut bytes = Vec::new();
        for kind in [0, 3, 4, 5, 6, 7, 9] {
            for offset in [0, 1 << 20] {
                let len = if kind == cmd::FLUSH { 0 } else { 4096 };
                bytes.extend(Ask::new(kind, offset, len).bytes(headers));
            }
        }
        let flags = if headers == Headers::Extended { 32 } else { 0 };
        for offset in [0, 1 << 20] {
            bytes.extend(Ask::new(cmd::WRITE, offset, 4096).flags(flags).bytes(headers));
            bytes.extend(vec![0; 4096]);
        }
        let before = allocations();
        let mut transmission = Transmission::new(agreed, Limits::DEFAULT);
        let answered = (0..100).map(|_| serve(&mut transmission, &bytes)).sum::<u32>();
        assert_eq!(allocations(), before);
        assert_eq!(answered, 1600);
    }
}

/// A silent peer needs no memory.
#[test]
fn a_silent_peer_allocates_nothing() {
    let before = allocations();
    let handshake = Handshake::new(Tls::Offered, Limits::DEFAULT);
    let greeting = Handshake::greeting();
    assert_eq!(allocations(), before);
    drop((handshake, greeting));
}
