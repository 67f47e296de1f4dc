//! Any bytes from a client, split anywhere, make a session or end it, and a strict client can read
//! everything that was sent. The fuzz target `nbd_server` does the same.
#![allow(clippy::cast_possible_truncation, reason = "the disks of tests are small")]

mod nbd;

use blockyard_wire::nbd::number::{cmd, cmd_flag, info, opt};
use blockyard_wire::nbd::{
    Agreed, BASE_ALLOCATION, Export, Exports, Handshake, Headers, Limits, Step, Tls,
    TransmissionEnd,
};
use nbd::client::{Ask, context_data, flags, go, info_data, option, set_contexts};
use nbd::play::{SETTING_BYTES, play};
use nbd::server::Server;
use proptest::prelude::*;

const HEADERS: [Headers; 3] = [Headers::Simple, Headers::Structured, Headers::Extended];

/// Returns a session with every option and command, with these headers.
fn session(headers: Headers) -> Vec<u8> {
    let mut bytes = [flags(3), option(opt::LIST, &[])].concat();
    bytes.extend(match headers {
        Headers::Simple => vec![],
        Headers::Structured => option(opt::STRUCTURED_REPLY, &[]),
        Headers::Extended => option(opt::EXTENDED_HEADERS, &[]),
    });
    bytes.extend(option(opt::LIST_META_CONTEXT, &context_data("disk", &["base:"])));
    bytes.extend(set_contexts("disk", &[BASE_ALLOCATION, "x-test:dirty"]));
    bytes.extend(option(opt::INFO, &info_data("disk", &[info::BLOCK_SIZE, info::DESCRIPTION])));
    bytes.extend(go("disk"));
    bytes.extend(requests(headers));
    bytes
}

/// Returns every command, and some refused requests.
fn requests(headers: Headers) -> Vec<u8> {
    let mut bytes = Vec::new();
    let payload = if headers == Headers::Extended { cmd_flag::PAYLOAD_LEN } else { 0 };
    for (kind, flags, len) in [
        (cmd::WRITE, payload | cmd_flag::FUA, 700),
        (cmd::READ, 0, 2048),
        (cmd::WRITE, payload, 5000),
        (cmd::TRIM, 0, 4096),
        (cmd::BLOCK_STATUS, 0, 16_384),
        (cmd::WRITE_ZEROES, cmd_flag::FAST_ZERO, 1024),
        (cmd::CACHE, 0, 1),
        (cmd::FLUSH, 0, 0),
        (cmd::READ, cmd_flag::NO_HOLE, 512),
        (cmd::DISC, 0, 0),
    ] {
        let ask = Ask { flags, kind, cookie: u64::from(kind), offset: 0, len };
        bytes.extend(ask.bytes(headers));
        if kind == cmd::WRITE {
            bytes.extend((0..len).map(|at| at as u8));
        }
    }
    bytes
}

/// The fuzzer's seeds (`seeds/` beside `nbd/`) are these sessions, from the first byte to the end.
#[test]
fn the_seeds_are_complete_sessions() {
    for (headers, asked, seed) in [
        (Headers::Simple, 6, &include_bytes!("nbd/seeds/simple")[..]),
        (Headers::Structured, 7, include_bytes!("nbd/seeds/structured")),
        (Headers::Extended, 7, include_bytes!("nbd/seeds/extended")),
    ] {
        let bytes = [vec![0; SETTING_BYTES], session(headers)].concat();
        assert!(bytes == seed, "{headers:?}");
        let outcome = play(&bytes).unwrap();
        assert_eq!(outcome.agreed.unwrap().headers, headers);
        assert_eq!(outcome.asked.len(), asked, "{headers:?} {:?}", outcome.asked);
        assert_eq!(outcome.end, Some(TransmissionEnd::Disconnected));
    }
}

/// Wherever a handshake is split in two, it gives the same answers and the same agreement, and the
/// transmission starts at the same byte.
#[test]
fn a_handshake_may_be_split_anywhere() {
    for headers in HEADERS {
        let bytes = session(headers);
        let exports = nbd::exports();
        let whole = negotiate_cut_at(&bytes, &exports, bytes.len());
        assert!((0..=whole.2).all(|cut| negotiate_cut_at(&bytes, &exports, cut) == whole));
    }
}

fn negotiate_cut_at(bytes: &[u8], exports: &Exports, cut: usize) -> (Vec<u8>, Agreed, usize) {
    let mut handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
    let mut at = 0;
    let mut out = Vec::new();
    let mut until = cut;
    loop {
        let received = handshake.receive(&bytes[at..until.max(at)], exports, &mut out);
        at += received.taken;
        match received.step {
            Step::Transmit(agreed) => return (out, agreed, at),
            Step::Receive => until = bytes.len(),
            Step::Answer => {}
            step => panic!("{step:?}"),
        }
    }
}

/// Splits a transmission in two in every possible way.
#[test]
fn a_transmission_may_be_split_anywhere() {
    for headers in HEADERS {
        let bytes = requests(headers);
        let export = Export { size_bytes: 1 << 14, ..nbd::export("disk") };
        let contexts = if headers == Headers::Simple { &[][..] } else { &[BASE_ALLOCATION] };
        let agreed = nbd::agree(export, headers, contexts);
        let mut cuts = (0..=bytes.len()).map(|cut| {
            let mut server = Server::new(agreed);
            server.receive(&bytes[..cut]);
            server.receive(&bytes[cut..]);
            (server.sent, server.asked, server.disk, server.end)
        });
        let whole = cuts.next().unwrap();
        assert!(cuts.all(|cut| cut == whole));
    }
}

fn any_headers() -> impl Strategy<Value = Headers> {
    prop::sample::select(HEADERS.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = play(&bytes);
    }

    #[test]
    fn a_session_with_errors_never_panics(
        headers in any_headers(),
        setting in any::<[u8; SETTING_BYTES]>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        let mut bytes = session(headers);
        for (at, byte) in changes {
            // Most of the bytes are payload.
            let len = bytes.len().min(600);
            bytes[at.index(len)] = byte;
        }
        let _ = play(&[&setting[..], &bytes].concat());
    }
}
