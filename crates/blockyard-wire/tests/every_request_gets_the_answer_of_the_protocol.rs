//! The rules of the transmission, one by one, with the mistakes that servers have made.
#![allow(clippy::cast_possible_truncation, reason = "the disks of tests are small")]

mod nbd;

use blockyard_wire::nbd::number::{cmd, cmd_flag};
use blockyard_wire::nbd::{
    BASE_ALLOCATION, BlockSizes, Command, Errno, Event, Export, ExportFlags, Exports, Headers,
    Limits, REQUEST_BYTES_MAX,
};
use nbd::client::{Ask, Reply, replies};
use nbd::server::{Server, server, server_of};
use nbd::{agree, export};

const EPERM: u32 = 1;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const SIZE: u64 = 1 << 20;
const HEADERS: [Headers; 3] = [Headers::Simple, Headers::Structured, Headers::Extended];

/// READs that succeed, and READs that fail in every way.
#[test]
fn a_read_has_a_reply_of_the_agreed_form_even_for_an_early_error() {
    for headers in HEADERS {
        let mut server = server(headers);
        let simple = headers == Headers::Simple;
        let read = Ask::new(cmd::READ, 4096, 8192).cookie(77);
        let reply = server.ask(read);
        assert_eq!((reply.error, reply.simple, reply.messages), (0, simple, 1));
        let offset = if simple { 0 } else { 4096 };
        assert_eq!(reply.data, [(offset, server.disk[4096..12288].to_vec())]);
        for wrong in [
            read.flags(1 << 15),
            read.flags(cmd_flag::NO_HOLE),
            Ask { offset: SIZE, ..read },
            Ask { offset: u64::MAX, ..read },
            Ask { len: 0xffff_ffff, ..read },
        ] {
            let reply = server.ask(wrong);
            assert_eq!((reply.error, reply.simple), (EINVAL, simple), "{headers:?} {wrong:?}");
            assert!(reply.data.is_empty());
        }
        server.fails = Some(Errno::Io);
        assert_eq!((server.ask(read).error, server.ask(read).simple), (5, simple));
    }
}

/// Only the eight numbers of the protocol are sent.
#[test]
fn errors_are_the_eight_of_the_protocol() {
    let numbers = Errno::ALL.map(Errno::number);
    assert_eq!(numbers, [1, 5, 12, 22, 28, 75, 95, 108]);
}

#[test]
fn enotsup_is_sent_only_for_fast_zero() {
    for headers in HEADERS {
        let mut server = server(headers);
        server.fails = Some(Errno::NotSupported);
        let zero = Ask::new(cmd::WRITE_ZEROES, 0, 4096);
        assert_eq!(server.error(zero.flags(cmd_flag::FAST_ZERO)), 95);
        assert_eq!(server.error(zero.flags(cmd_flag::FAST_ZERO | cmd_flag::NO_HOLE)), 95);
        for other in [zero, zero.flags(cmd_flag::NO_HOLE), Ask::new(cmd::TRIM, 0, 4096)] {
            assert_eq!(server.error(other), EINVAL);
        }
    }
}

/// Returns the error of `ask` on an export without the capability `without`.
fn lacking(without: ExportFlags, headers: Headers, ask: Ask) -> u32 {
    let flags = [
        ExportFlags::FLUSH,
        ExportFlags::FUA,
        ExportFlags::TRIM,
        ExportFlags::CACHE,
        ExportFlags::WRITE_ZEROES,
        ExportFlags::FAST_ZERO,
    ];
    let mut flags = flags
        .into_iter()
        .filter(|flag: &ExportFlags| *flag != without)
        .fold(ExportFlags::NONE, |all, flag| all | flag);
    if without == ExportFlags::WRITE_ZEROES {
        flags = ExportFlags::FLUSH | ExportFlags::FUA | ExportFlags::TRIM | ExportFlags::CACHE;
    }
    server_of(Export { flags, ..export("disk") }, headers).error(ask)
}

#[test]
fn a_command_that_is_not_offered_is_invalid() {
    let zero = Ask::new(cmd::WRITE_ZEROES, 0, 4096);
    for headers in HEADERS {
        for (flag, ask) in [
            (ExportFlags::FLUSH, Ask::new(cmd::FLUSH, 0, 0)),
            (ExportFlags::TRIM, Ask::new(cmd::TRIM, 0, 4096)),
            (ExportFlags::CACHE, Ask::new(cmd::CACHE, 0, 4096)),
            (ExportFlags::WRITE_ZEROES, zero),
            (ExportFlags::FAST_ZERO, zero.flags(cmd_flag::FAST_ZERO)),
            (ExportFlags::FUA, Ask::new(cmd::WRITE, 0, 4096).flags(cmd_flag::FUA)),
        ] {
            assert_eq!(lacking(flag, headers, ask), EINVAL, "{ask:?}");
            assert_eq!(lacking(ExportFlags::CAN_MULTI_CONN, headers, ask), 0, "{ask:?}");
        }
        for kind in [8, 9, 100, 0xffff] {
            assert_eq!(server(headers).error(Ask::new(kind, 0, 4096)), EINVAL);
        }
    }
    // DF and block status need structured replies.
    let df = Ask::new(cmd::READ, 0, 4096).flags(cmd_flag::DF);
    let status = Ask::new(cmd::BLOCK_STATUS, 0, 4096);
    assert_eq!(server(Headers::Simple).error(df), EINVAL);
    assert_eq!(server(Headers::Simple).error(status), EINVAL);
    for headers in [Headers::Structured, Headers::Extended] {
        assert_eq!(server(headers).error(df), 0);
        assert_eq!(server(headers).error(status), 0);
        let mut without = Server::new(agree(export("disk"), headers, &[]));
        assert_eq!(without.error(status), EINVAL, "no context was set");
    }
}

#[test]
fn each_flag_is_valid_for_its_commands_and_fua_for_all() {
    let kinds: [(u16, u16); 7] = [
        (cmd::READ, cmd_flag::DF),
        (cmd::WRITE, 0),
        (cmd::FLUSH, 0),
        (cmd::TRIM, 0),
        (cmd::CACHE, 0),
        (cmd::WRITE_ZEROES, cmd_flag::NO_HOLE | cmd_flag::FAST_ZERO),
        (cmd::BLOCK_STATUS, cmd_flag::REQ_ONE),
    ];
    for headers in [Headers::Structured, Headers::Extended] {
        let mut server = server(headers);
        for (kind, own) in kinds {
            let len = if kind == cmd::FLUSH { 0 } else { 4096 };
            // Another test covers PAYLOAD_LEN, bit 5.
            for bit in (0..16).filter(|bit| *bit != 5) {
                let flag = 1 << bit;
                let legal = (own | cmd_flag::FUA) & flag != 0;
                let error = if legal { 0 } else { EINVAL };
                let ask = Ask::new(kind, 0, len).flags(flag);
                assert_eq!(server.error(ask), error, "{headers:?} {kind} bit {bit}");
                let fua = server.asked.last().filter(|_| legal).is_some_and(|asked| asked.3);
                assert_eq!(fua, flag == cmd_flag::FUA);
            }
        }
    }
}

#[test]
fn a_range_beyond_the_end_is_no_space_for_writes_and_invalid_for_others() {
    for headers in HEADERS {
        let mut server = server(headers);
        let status = if headers == Headers::Simple { cmd::CACHE } else { cmd::BLOCK_STATUS };
        for (offset, len) in
            [(SIZE - 512, 513), (SIZE + 1, 0), (SIZE, 1), (u64::MAX, 1), (1 << 63, 4096)]
        {
            for kind in [cmd::WRITE, cmd::WRITE_ZEROES] {
                assert_eq!(server.error(Ask::new(kind, offset, len)), ENOSPC, "{kind} {offset}");
            }
            for kind in [cmd::READ, cmd::TRIM, cmd::CACHE, status] {
                assert_eq!(server.error(Ask::new(kind, offset, len)), EINVAL, "{kind} {offset}");
            }
        }
        for kind in [cmd::WRITE, cmd::WRITE_ZEROES, cmd::READ, cmd::TRIM, cmd::CACHE, status] {
            assert_eq!(server.error(Ask::new(kind, SIZE - 513, 513)), 0, "{kind}");
        }
    }
}

#[test]
fn a_read_only_export_does_not_permit_writes() {
    let flags = nbd::all_flags() | ExportFlags::READ_ONLY;
    for headers in HEADERS {
        let mut server = server_of(Export { flags, ..export("disk") }, headers);
        for kind in [cmd::WRITE, cmd::TRIM, cmd::WRITE_ZEROES] {
            assert_eq!(server.error(Ask::new(kind, 512, 4096)), EPERM);
            assert_eq!(server.error(Ask::new(kind, 512, 0)), EPERM);
        }
        for (kind, len) in [(cmd::READ, 4096), (cmd::CACHE, 4096), (cmd::FLUSH, 0)] {
            assert_eq!(server.error(Ask::new(kind, 0, len)), 0);
        }
        assert!(server.asked.iter().all(|(command, ..)| !command.writes()));
    }
}

#[test]
fn a_command_without_data_may_be_as_long_as_the_disk() {
    let size_bytes = 1 << 40;
    for headers in HEADERS {
        let lens: &[u64] = match headers {
            Headers::Extended => &[0xffff_ffff, 1 << 32, 1 << 40],
            _ => &[0xffff_ffff],
        };
        let agreed = agree(Export { size_bytes, ..export("disk") }, headers, &[]);
        for len in lens {
            for kind in [cmd::TRIM, cmd::CACHE, cmd::WRITE_ZEROES] {
                let mut transmission =
                    blockyard_wire::nbd::Transmission::new(agreed, Limits::DEFAULT);
                let next = transmission.next(&Ask::new(kind, 0, *len).bytes(headers));
                let Event::Request(request) = next.event else { panic!("{next:?}") };
                assert_eq!((request.len(), transmission.bytes_in_flight()), (*len, 0));
            }
        }
    }
}

#[test]
fn a_request_for_no_bytes_is_answered() {
    for headers in HEADERS {
        let mut server = server(headers);
        for kind in [cmd::READ, cmd::WRITE, cmd::TRIM, cmd::CACHE, cmd::WRITE_ZEROES] {
            for offset in [0, 77, SIZE] {
                let reply = server.ask(Ask::new(kind, offset, 0));
                assert_eq!((reply.error, reply.data.len(), reply.messages), (0, 0, 1));
            }
        }
        assert_eq!(server.asked, []);
        assert_eq!(server.error(Ask::new(cmd::BLOCK_STATUS, 0, 0)), EINVAL);
        assert_eq!(server.error(Ask::new(cmd::FLUSH, 0, 0)), 0);
        assert_eq!(server.error(Ask::new(cmd::FLUSH, 0, 512)), EINVAL);
        assert_eq!(server.error(Ask::new(cmd::FLUSH, 512, 0)), EINVAL);
    }
}

#[test]
fn an_unaligned_range_is_invalid_where_blocks_cannot_be_parted() {
    for (headers, partial_zeroes) in HEADERS.into_iter().flat_map(|h| [(h, false), (h, true)]) {
        let blocks = BlockSizes { minimum: 512, partial_zeroes, ..BlockSizes::DEFAULT };
        let mut server = server_of(Export { blocks, ..export("disk") }, headers);
        for kind in [cmd::READ, cmd::WRITE, cmd::CACHE, cmd::WRITE_ZEROES] {
            let is_legal = partial_zeroes && kind == cmd::WRITE_ZEROES;
            let partial = if is_legal { 0 } else { EINVAL };
            assert_eq!(server.error(Ask::new(kind, 512, 1024)), 0);
            assert_eq!(server.error(Ask::new(kind, 511, 1024)), partial);
            assert_eq!(server.error(Ask::new(kind, 512, 1023)), partial);
        }
    }
}

/// TRIM below the minimum block got EINVAL, and QEMU 10 then failed a discard.
#[test]
fn a_trim_of_parts_of_blocks_succeeds_and_trims_the_whole_ones() {
    let blocks = BlockSizes { minimum: 512, ..BlockSizes::DEFAULT };
    for headers in HEADERS {
        let mut server = server_of(Export { blocks, ..export("disk") }, headers);
        for (offset, len, whole) in [
            (512, 512, Some((512, 512))),
            (1, 511, None),
            (0, 511, None),
            (1, 1022, None),
            (1, 1023, Some((512, 512))),
            (511, 514, Some((512, 512))),
            (100, 2048, Some((512, 1536))),
            (server.disk.len() as u64 - 511, 511, None),
            (server.disk.len() as u64, 0, None),
        ] {
            server.asked.clear();
            assert_eq!(server.error(Ask::new(cmd::TRIM, offset, len)), 0, "{len} at {offset}");
            let asked: Vec<_> = server.asked.iter().map(|asked| (asked.1, asked.2)).collect();
            assert_eq!(asked, whole.into_iter().collect::<Vec<_>>(), "{len} at {offset}");
        }
        let end = server.disk.len() as u64;
        assert_eq!(server.error(Ask::new(cmd::TRIM, end - 511, 512)), EINVAL, "beyond the end");
    }
}

#[test]
fn a_compact_request_has_no_flag_for_payload() {
    for headers in [Headers::Simple, Headers::Structured] {
        let mut server = server(headers);
        let flag = cmd_flag::PAYLOAD_LEN;
        assert_eq!(server.error(Ask::new(cmd::WRITE, 0, 512).flags(flag)), EINVAL);
        for kind in [cmd::READ, cmd::BLOCK_STATUS] {
            assert_eq!(server.error(Ask::new(kind, 0, 512).flags(flag)), EINVAL);
        }
        assert_eq!(server.error(Ask::new(cmd::READ, 0, 512)), 0);
    }
}

#[test]
fn an_extended_request_declares_its_payload() {
    let mut server = server(Headers::Extended);
    // Unexpected payload is read.
    for kind in [cmd::READ, cmd::TRIM, cmd::FLUSH, 99] {
        let ask = Ask::new(kind, 0, 512).flags(cmd_flag::PAYLOAD_LEN);
        server.receive(&[ask.bytes(Headers::Extended), vec![0x21; 512]].concat());
    }
    let replies = replies(&server.sent, Headers::Extended, |_| unreachable!());
    let errors: Vec<_> = replies.iter().map(|(_, reply)| reply.error).collect();
    assert_eq!(errors, [EINVAL; 4]);
    assert_eq!(server.error(Ask::new(cmd::READ, 0, 512)), 0);
}

/// qemu-img 10.0 sent an extended WRITE with FUA and without PAYLOAD_LEN. The server took the
/// payload for the next request and ended the session. A WRITE has a payload whatever its flags.
#[test]
fn an_extended_write_without_the_payload_flag_is_carried_out() {
    let mut server = server(Headers::Extended);
    let write = Ask::new(cmd::WRITE, 512, 512).flags(cmd_flag::FUA);
    server.receive(&[write.bytes(Headers::Extended), vec![0x5a; 512]].concat());
    let replies = replies(&server.sent, Headers::Extended, |_| unreachable!());
    assert_eq!(replies[0].1.error, 0);
    assert_eq!(server.disk[512..1024], [0x5a; 512]);
    assert_eq!(server.error(Ask::new(cmd::READ, 0, 512)), 0);
}

/// Sends a BLOCK_STATUS at 512 with `payload`, and returns its reply.
fn ask_with(server: &mut Server, payload: &[u8]) -> Reply {
    server.sent.clear();
    let head = Ask::new(cmd::BLOCK_STATUS, 512, payload.len() as u64);
    server.receive(&head.flags(cmd_flag::PAYLOAD_LEN).bytes(Headers::Extended));
    server.receive(payload);
    replies(&server.sent, Headers::Extended, |_| unreachable!()).remove(0).1
}

/// The payload of a BLOCK_STATUS: 64 bits of length, and 32 bits for each context.
fn list(len: u64, contexts: &[u32]) -> Vec<u8> {
    let contexts = contexts.iter().flat_map(|context| context.to_be_bytes());
    len.to_be_bytes().into_iter().chain(contexts).collect()
}

#[test]
fn a_status_may_be_requested_for_some_contexts() {
    let agreed = agree(export("disk"), Headers::Extended, &[BASE_ALLOCATION, "x-test:dirty"]);
    let mut server = Server::new(agreed);
    for contexts in [&[0][..], &[1], &[1, 0]] {
        let reply = ask_with(&mut server, &list(4096, contexts));
        let mut expected = contexts.to_vec();
        expected.sort_unstable();
        assert_eq!(reply.status.keys().copied().collect::<Vec<_>>(), expected);
        assert_eq!(server.asked.last().unwrap().2, 4096, "the length is in the payload");
    }
    let all = ask_with(&mut server, &list(4096, &[0, 1]));
    server.sent.clear();
    assert_eq!(server.ask(Ask::new(cmd::BLOCK_STATUS, 512, 4096)).status, all.status);
    for wrong in [
        list(4096, &[]),
        list(4096, &[2]),
        list(4096, &[0, 0]),
        list(4096, &[256]),
        list(0, &[0]),
        list(SIZE, &[0]),
        list(4096, &[0])[..11].to_vec(),
        list(4096, &[0])[..7].to_vec(),
        list(4096, &[0; 40]),
    ] {
        assert_eq!(ask_with(&mut server, &wrong).error, EINVAL, "{wrong:?}");
        assert_eq!(server.error(Ask::new(cmd::READ, 0, 512)), 0);
    }
}

/// A list has at most as many contexts as an export, and ends with a whole one. After any other
/// payload, the next request is understood.
#[test]
fn a_status_may_name_all_32_contexts() {
    let names: Vec<_> = (0..32).map(|n| format!("x-test:{n}")).collect();
    let set: Vec<_> = names.iter().map(String::as_str).collect();
    let export = Export { contexts: names.clone(), ..export("disk") };
    let mut server = Server::new(agree(export, Headers::Extended, &set));
    let numbers: Vec<u32> = (0..32).rev().chain([32]).collect();
    let longer = list(4096, &numbers);
    for payload_bytes in 1..=longer.len() {
        let reply = ask_with(&mut server, &longer[..payload_bytes]);
        let named = (payload_bytes / 4).saturating_sub(2);
        let legal = payload_bytes % 4 == 0 && (1..=32).contains(&named);
        assert_eq!(reply.error, if legal { 0 } else { EINVAL }, "{payload_bytes}");
        let expected: Vec<u32> = if legal { (32 - named as u32..32).collect() } else { vec![] };
        assert_eq!(reply.status.into_keys().collect::<Vec<_>>(), expected);
        assert_eq!(server.error(Ask::new(cmd::READ, 0, 512)), 0, "after {payload_bytes}");
    }
    assert_eq!(REQUEST_BYTES_MAX, 32 + list(0, &[0; 32]).len());
}

#[test]
fn a_zeroing_says_whether_holes_are_allowed_and_whether_it_must_be_fast() {
    for (no_hole, fast) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut server = server(Headers::Extended);
        let flags = flag_if(no_hole, cmd_flag::NO_HOLE) | flag_if(fast, cmd_flag::FAST_ZERO);
        assert_eq!(server.error(Ask::new(cmd::WRITE_ZEROES, 4096, 512).flags(flags)), 0);
        assert_eq!(server.asked, [(Command::WriteZeroes { no_hole, fast }, 4096, 512, false)]);
    }
}

fn flag_if(set: bool, flag: u16) -> u16 {
    if set { flag } else { 0 }
}

/// A client that wants to send one more byte of a payload that is discarded is not made to wait.
#[test]
fn a_discarded_payload_goes_on_with_one_byte() {
    let mut server = server(Headers::Simple);
    let wrong = Ask::new(cmd::WRITE, SIZE, 512).bytes(Headers::Simple);
    let next = server.transmission.next(&wrong);
    assert!(matches!(next.event, Event::Settled(..)), "{:?}", next.event);
    let next = server.transmission.next(&[0; 100]);
    assert!(matches!(next.event, Event::More { at_least: 1 }), "{:?}", next.event);
}

#[test]
fn a_context_has_a_name_on_both_sides_of_its_colon() {
    assert!(is_legal("x:y") && is_legal("base:allocation"));
    for name in ["", ":", "x", "x:", ":y"] {
        assert!(!is_legal(name), "{name:?}");
    }
}

fn is_legal(name: &str) -> bool {
    Exports::new(vec![Export { contexts: vec![name.into()], ..export("disk") }]).is_ok()
}
