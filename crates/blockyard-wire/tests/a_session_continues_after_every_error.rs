//! The course of a transmission, with the mistakes that servers have made: payload of refused
//! requests, errors, limits, replies in any order and in parts, and the end.
#![allow(clippy::cast_possible_truncation, reason = "the disks of tests are small")]

mod nbd;

use blockyard_wire::nbd::number::{cmd, cmd_flag};
use blockyard_wire::nbd::{
    ANSWER_BYTES_MAX, BlockSizes, Command, Errno, Event, Export, Headers, Limits, Part, Request,
    Transmission, TransmissionEnd,
};
use nbd::client::{Ask, Reply, replies};
use nbd::server::{Server, server, server_of};
use nbd::{agree, export};

const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EOVERFLOW: u32 = 75;
const SIZE: u64 = 1 << 20;
const HEADERS: [Headers; 3] = [Headers::Simple, Headers::Structured, Headers::Extended];

#[test]
fn the_payload_of_a_refused_write_is_read() {
    for headers in HEADERS {
        let mut server = server(headers);
        let long = Ask::new(cmd::WRITE, 0, 32 << 20);
        for (wrong, error) in [
            (Ask::new(cmd::WRITE, SIZE - 512, 1024), ENOSPC),
            (Ask::new(cmd::WRITE, u64::MAX - 511, 1024), ENOSPC),
            (Ask::new(cmd::WRITE, 0, 4096).flags(1 << 9), EINVAL),
            (Ask::new(cmd::WRITE, 0, 4096).flags(cmd_flag::NO_HOLE), EINVAL),
            (long, ENOSPC),
        ] {
            assert_eq!(server.error(wrong), error, "{headers:?} {wrong:?}");
            assert_eq!(server.error(Ask::new(cmd::READ, 0, 512)), 0, "the next request");
        }
        assert_eq!(server.asked.len(), 5, "no refused request reached the disk");
        assert!(!server.disk.contains(&0xab) || server.disk[0] != 0xab);
    }
}

#[test]
fn a_write_error_does_not_end_the_session() {
    for headers in HEADERS {
        for errno in Errno::ALL {
            let mut server = server(headers);
            server.fails = Some(errno);
            let error = server.error(Ask::new(cmd::WRITE, 0, 4096));
            let number = if errno == Errno::NotSupported { EINVAL } else { errno.number() };
            assert_eq!(error, number);
            server.fails = None;
            assert_eq!(server.error(Ask::new(cmd::WRITE, 0, 4096)), 0);
            assert_eq!(server.disk[..4096], [0xab; 4096]);
        }
    }
}

#[test]
fn thirty_two_mebibytes_are_written_and_read() {
    let export = Export { size_bytes: 40 << 20, ..export("disk") };
    for headers in HEADERS {
        let mut server = server_of(export.clone(), headers);
        assert_eq!(server.error(Ask::new(cmd::WRITE, 4096, 32 << 20)), 0);
        let reply = server.ask(Ask::new(cmd::READ, 4096, 32 << 20));
        assert!(
            reply.data[0].1.len() == 32 << 20 && reply.data[0].1.iter().all(|byte| *byte == 0xab)
        );
        // One byte more.
        let more = (32 << 20) + 1;
        let too_long = if headers == Headers::Simple { EINVAL } else { EOVERFLOW };
        assert_eq!(server.error(Ask::new(cmd::READ, 0, more)), too_long);
        // As payload, this is too much to be discarded.
        server.send(Ask::new(cmd::WRITE, 0, more));
        assert_eq!(server.end, Some(TransmissionEnd::TooLong));
    }
}

#[test]
fn a_write_longer_than_the_maximum_is_refused_and_its_payload_read() {
    let blocks = BlockSizes { maximum: 1 << 16, ..BlockSizes::DEFAULT };
    for headers in HEADERS {
        let mut server = server_of(Export { blocks, ..export("disk") }, headers);
        assert_eq!(server.error(Ask::new(cmd::WRITE, 0, 1 << 16)), 0);
        assert_eq!(server.error(Ask::new(cmd::WRITE, 0, (1 << 16) + 1)), EINVAL);
        assert_eq!(server.error(Ask::new(cmd::FLUSH, 0, 0)), 0);
    }
}

#[test]
fn a_disconnect_ends_reading_but_not_the_requests_in_flight() {
    for headers in HEADERS {
        let mut server = server(headers);
        let read = Ask::new(cmd::READ, 0, 4096).bytes(headers);
        let Event::Request(request) = server.transmission.next(&read).event else { panic!() };
        let disconnect = Ask::new(cmd::DISC, 0, 0).bytes(headers);
        server.receive(&[disconnect, read.clone(), vec![1; 1000]].concat());
        assert_eq!(server.end, Some(TransmissionEnd::Disconnected));
        let next = server.transmission.next(&read);
        assert!(matches!(next.event, Event::End(TransmissionEnd::Disconnected)));
        assert_eq!(next.taken, read.len(), "all further bytes are discarded");
        assert!(server.sent.is_empty(), "neither DISC nor the bytes after it have a reply");
        assert_eq!(server.transmission.in_flight(), 1);
        server.answer(request, Ok(()));
        assert_eq!(replies(&server.sent, headers, |_| 4096).len(), 1);
        assert_eq!(server.transmission.in_flight(), 0);
    }
}

/// [one-final-reply].
#[test]
fn cookies_repeat_and_replies_come_in_any_order() {
    for headers in HEADERS {
        let mut server = server(headers);
        let mut requests = Vec::new();
        for (cookie, at) in [(9, 0), (8, 1), (7, 2)] {
            let Event::Request(request) =
                server.transmission.next(&read_at(headers, cookie, at)).event
            else {
                panic!()
            };
            requests.push(request);
        }
        requests.into_iter().rev().for_each(|request| server.answer(request, Ok(())));
        let order: Vec<_> =
            replies(&server.sent, headers, |_| 4096).iter().map(|(cookie, _)| *cookie).collect();
        assert_eq!(order, [7, 8, 9]);
        for at in 0u64..3 {
            let again = server.ask(Ask::new(cmd::READ, at * 4096, 4096).cookie(9));
            assert_eq!(again.data[0].1, server.disk[at as usize * 4096..][..4096]);
        }
    }
}

fn read_at(headers: Headers, cookie: u64, at: u64) -> Vec<u8> {
    Ask::new(cmd::READ, at * 4096, 4096).cookie(cookie).bytes(headers)
}

/// [no-request-past-limits].
#[test]
fn past_a_limit_no_request_is_taken_until_replies_are_sent() {
    let blocks = BlockSizes { maximum: 8192, ..BlockSizes::DEFAULT };
    for headers in HEADERS {
        let agreed = agree(Export { blocks, ..export("disk") }, headers, &[]);
        let limits = Limits { requests: 3, request_bytes: 12288, ..Limits::DEFAULT };
        let mut server = Server::limited(agreed, limits);
        let transmission = &mut server.transmission;
        let first = take_next(headers, transmission, cmd::READ, 8192).unwrap();
        let second = take_next(headers, transmission, cmd::READ, 4096).unwrap();
        assert!(take_next(headers, transmission, cmd::READ, 1).is_none(), "too many bytes");
        let third = take_next(headers, transmission, 99, 1).unwrap();
        assert!(
            take_next(headers, transmission, cmd::FLUSH, 0).is_none(),
            "too many requests, even refused ones"
        );
        let mut out = [0; ANSWER_BYTES_MAX];
        let answer = transmission.answer(first, Ok(()), &mut out);
        assert!(
            take_next(headers, transmission, cmd::FLUSH, 0).is_none(),
            "an answered request is not yet sent"
        );
        transmission.sent(answer.charge);
        let fourth = take_next(headers, transmission, cmd::READ, 8192).unwrap();
        assert_eq!((transmission.in_flight(), transmission.bytes_in_flight()), (3, 12288));
        let end = transmission.next(&Ask::new(cmd::DISC, 0, 0).bytes(headers)).event;
        assert!(matches!(end, Event::End(TransmissionEnd::Disconnected)), "DISC never waits");
        for request in [second, third, fourth] {
            server.answer(request, Err(Errno::Io));
        }
        assert_eq!(server.transmission.bytes_in_flight(), 0);
    }
}

fn take_next(
    headers: Headers,
    transmission: &mut Transmission,
    kind: u16,
    len: u64,
) -> Option<Request> {
    let next = transmission.next(&Ask::new(kind, 0, len).bytes(headers));
    match next.event {
        Event::Request(request) | Event::Settled(request, _) => Some(request),
        Event::Wait => {
            assert_eq!(next.taken, 0);
            None
        }
        event => panic!("{event:?}"),
    }
}

/// [read-chunks-contiguous].
#[test]
fn a_read_in_parts_covers_all_of_it() {
    for headers in [Headers::Structured, Headers::Extended] {
        let mut server = server(headers);
        let mixed =
            read_in_parts(&mut server, headers, &[Part::Hole(1024), Part::Data(512)], Ok(()), 0);
        assert_eq!(lens(&mixed), [(512, 1024), (1536, 512), (2048, 2560)]);
        let whole = read_in_parts(&mut server, headers, &[Part::Hole(4096)], Ok(()), cmd_flag::DF);
        assert_eq!((lens(&whole), whole.messages), (vec![(512, 4096)], 2));
        let failed = read_in_parts(&mut server, headers, &[Part::Data(512)], Err(Errno::Io), 0);
        assert_eq!((failed.error, lens(&failed)), (5, vec![(512, 512)]));
    }
}

fn read_in_parts(
    server: &mut Server,
    headers: Headers,
    parts: &[Part],
    result: Result<(), Errno>,
    flags: u16,
) -> Reply {
    let ask = Ask::new(cmd::READ, 512, 4096).flags(flags);
    let Event::Request(mut request) = server.transmission.next(&ask.bytes(headers)).event else {
        panic!()
    };
    server.sent.clear();
    for part in parts {
        let mut out = [0; ANSWER_BYTES_MAX];
        let len = server.transmission.part(&mut request, *part, &mut out);
        server.sent.extend(&out[..len]);
        if let Part::Data(len) = part {
            server.sent.extend(vec![1; *len as usize]);
        }
    }
    server.answer(request, result);
    replies(&server.sent, headers, |_| unreachable!()).remove(0).1
}

fn lens(reply: &Reply) -> Vec<(u64, usize)> {
    reply.data.iter().map(|(offset, data)| (*offset, data.len())).collect()
}

#[test]
fn a_server_that_shuts_down_answers_further_requests() {
    for headers in HEADERS {
        let mut server = server(headers);
        server.transmission.shut_down();
        for kind in [cmd::READ, cmd::WRITE, cmd::FLUSH, 99] {
            assert_eq!(server.error(Ask::new(kind, 0, 4096)), 108);
        }
        server.send(Ask::new(cmd::DISC, 0, 0));
        assert_eq!(server.end, Some(TransmissionEnd::Disconnected));
    }
}

#[test]
fn a_bad_magic_number_ends_the_session() {
    for headers in HEADERS {
        let other = if headers == Headers::Extended { Headers::Simple } else { Headers::Extended };
        let mut server = server(headers);
        server.receive(&Ask::new(cmd::READ, 0, 512).bytes(other)[..4]);
        assert_eq!(server.end, Some(TransmissionEnd::BadMagic));
    }
}

/// Bytes after the end are ignored, in the same call and in later ones.
#[test]
fn an_ended_session_takes_all_bytes() {
    for headers in HEADERS {
        let long = Ask::new(cmd::WRITE, 0, (32 << 20) + 1).bytes(headers);
        for (bytes, end) in [
            (Ask::new(cmd::DISC, 0, 0).bytes(headers), TransmissionEnd::Disconnected),
            (vec![0; 4], TransmissionEnd::BadMagic),
            (long, TransmissionEnd::TooLong),
        ] {
            let mut transmission = server(headers).transmission;
            for bytes in [[&bytes[..], &[7; 100]].concat(), bytes] {
                let next = transmission.next(&bytes);
                assert!(matches!(next.event, Event::End(found) if found == end));
                assert_eq!(next.taken, bytes.len(), "{headers:?} {end:?}");
            }
        }
    }
}

/// A connection has room for at least one request, with the longest data of its export.
#[test]
fn limits_below_one_request_are_an_error_of_the_caller() {
    let agreed = agree(export("disk"), Headers::Simple, &[]);
    for (requests, request_bytes, legal) in
        [(1, 32 << 20, true), (0, 32 << 20, false), (1, (32 << 20) - 1, false)]
    {
        let limits = Limits { requests, request_bytes, ..Limits::DEFAULT };
        let new = std::panic::catch_unwind(|| Transmission::new(agreed, limits));
        assert_eq!(new.is_ok(), legal, "{limits:?}");
    }
}

/// Reads up to the shortest possible one, and what parts have left of them.
#[test]
fn a_read_may_end_with_one_byte() {
    for headers in HEADERS {
        let mut server = server(headers);
        for len in 1..4 {
            let reply = server.ask(Ask::new(cmd::READ, 511, len));
            let data: Vec<u8> = reply.data.into_iter().flat_map(|(_, data)| data).collect();
            assert_eq!(data, server.disk[511..][..len as usize]);
        }
    }
    for headers in [Headers::Structured, Headers::Extended] {
        let mut server = server(headers);
        for hole in 1..=4 {
            let read = Ask::new(cmd::READ, 510, 4).bytes(headers);
            let Event::Request(mut request) = server.transmission.next(&read).event else {
                panic!()
            };
            let mut out = [0; ANSWER_BYTES_MAX];
            let len = server.transmission.part(&mut request, Part::Hole(hole), &mut out);
            server.sent = out[..len].to_vec();
            server.answer(request, Ok(()));
            let (_, reply) = replies(&server.sent, headers, |_| unreachable!()).remove(0);
            let mut expected = vec![(510, vec![0; hole as usize])];
            if hole < 4 {
                let from = 510 + u64::from(hole);
                expected.push((from, server.disk[from as usize..514].to_vec()));
            }
            assert_eq!((reply.data, reply.messages), (expected, 2));
        }
    }
}

/// A WRITE whose payload has no buffer in the server.
#[test]
fn payload_can_be_discarded() {
    let headers = Headers::Simple;
    let mut server = server(headers);
    let bytes = [Ask::new(cmd::WRITE, 0, 600).bytes(headers), vec![0; 100]].concat();
    let next = server.transmission.next(&bytes);
    let Event::Request(request) = next.event else { panic!() };
    assert_eq!(request.command(), Some(Command::Write));
    assert!(matches!(server.transmission.next(&bytes[28..]).event, Event::Payload { left: 600 }));
    server.transmission.payload_taken(50);
    server.transmission.skip_payload();
    server.answer(request, Err(Errno::NoMemory));
    let rest = [&[0; 550][..], &Ask::new(cmd::FLUSH, 0, 0).bytes(headers)].concat();
    server.receive(&rest);
    assert_eq!(server.asked.len(), 1);
}
