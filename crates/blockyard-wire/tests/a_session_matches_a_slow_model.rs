//! Any requests, split anywhere, compared with a model that knows the disk as a list of bytes and
//! the protocol as a list of errors.
#![allow(clippy::cast_possible_truncation, reason = "the disks of tests are small")]

mod nbd;

use blockyard_wire::nbd::number::{cmd, cmd_flag};
use blockyard_wire::nbd::{BASE_ALLOCATION, BlockSizes, Export, ExportFlags, Headers};
use nbd::client::{Ask, Reply, replies};
use nbd::server::Server;
use nbd::{agree, all_flags, export};
use proptest::prelude::*;

const SIZE: u64 = 64 << 10;
const MAXIMUM: u32 = 16 << 10;

/// The export and the agreement of a session.
#[derive(Clone, Copy, Debug)]
struct Setting {
    headers: Headers,
    contexts: bool,
    everything: bool,
    read_only: bool,
    minimum: u32,
    partial_zeroes: bool,
}

impl Setting {
    fn flags(self) -> ExportFlags {
        let flags = if self.everything { all_flags() } else { ExportFlags::NONE };
        if self.read_only { flags | ExportFlags::READ_ONLY } else { flags }
    }

    fn server(self) -> Server {
        let Self { minimum, partial_zeroes, .. } = self;
        let blocks = BlockSizes { minimum, preferred: 4096, maximum: MAXIMUM, partial_zeroes };
        let export = Export { size_bytes: SIZE, blocks, flags: self.flags(), ..export("disk") };
        let contexts: &[&str] = if self.contexts { &[BASE_ALLOCATION] } else { &[] };
        Server::new(agree(export, self.headers, contexts))
    }

    /// Returns the error of `ask`: that of the first condition that applies.
    fn error(self, ask: Ask) -> u32 {
        let extended = self.headers == Headers::Extended;
        let end = u128::from(ask.offset) + u128::from(ask.len);
        let minimum = u64::from(self.minimum);
        let beyond = end > u128::from(SIZE);
        let writes = [cmd::WRITE, cmd::TRIM, cmd::WRITE_ZEROES].contains(&ask.kind);
        let flush = ask.kind == cmd::FLUSH;
        let any_byte =
            ask.kind == cmd::TRIM || ask.kind == cmd::WRITE_ZEROES && self.partial_zeroes;
        let is_partial = !ask.offset.is_multiple_of(minimum) || !ask.len.is_multiple_of(minimum);
        let mut of_command = if self.everything { vec![cmd_flag::FUA] } else { vec![] };
        of_command.extend(match ask.kind {
            cmd::READ if self.headers != Headers::Simple => vec![cmd_flag::DF],
            cmd::WRITE if extended => vec![cmd_flag::PAYLOAD_LEN],
            cmd::WRITE_ZEROES => vec![cmd_flag::NO_HOLE, cmd_flag::FAST_ZERO],
            cmd::BLOCK_STATUS => vec![cmd_flag::REQ_ONE],
            _ => vec![],
        });
        let unknown_flag = (0..16)
            .map(|bit| 1 << bit)
            .any(|bit| ask.flags & bit != 0 && !of_command.contains(&bit));
        let wrong = [
            (!self.everything && (cmd::FLUSH..=cmd::WRITE_ZEROES).contains(&ask.kind), 22),
            (ask.kind == cmd::BLOCK_STATUS && !self.contexts, 22),
            (ask.kind > cmd::BLOCK_STATUS, 22),
            (unknown_flag, 22),
            (writes && self.read_only, 1),
            (flush && (ask.offset, ask.len) != (0, 0), 22),
            (beyond && [cmd::WRITE, cmd::WRITE_ZEROES].contains(&ask.kind), 28),
            (beyond && !flush, 22),
            (is_partial && !any_byte, 22),
            (
                ask.kind == cmd::READ && ask.len > u64::from(MAXIMUM),
                if self.headers == Headers::Simple { 22 } else { 75 },
            ),
            (ask.kind == cmd::WRITE && ask.len > u64::from(MAXIMUM), 22),
            (ask.kind == cmd::BLOCK_STATUS && ask.len == 0, 22),
        ];
        wrong.into_iter().find(|(wrong, _)| *wrong).map_or(0, |(_, error)| error)
    }

    /// Whether data follow the header.
    fn has_payload(self, ask: Ask) -> bool {
        let declared = ask.flags & cmd_flag::PAYLOAD_LEN != 0;
        ask.kind == cmd::WRITE || self.headers == Headers::Extended && declared
    }

    /// Checks the reply to `ask`, and applies the command to `disk`.
    fn check(self, ask: Ask, payload: u8, reply: &Reply, disk: &mut [u8]) {
        let error = self.error(ask);
        assert_eq!(reply.error, error, "{ask:?}");
        let simple = match self.headers {
            Headers::Simple => true,
            Headers::Structured => {
                error == 0 && ask.kind != cmd::READ && ask.kind != cmd::BLOCK_STATUS
            }
            Headers::Extended => false,
        };
        assert_eq!(reply.simple, simple, "{ask:?}");
        if error != 0 {
            assert!(reply.data.is_empty() && reply.status.is_empty());
            return;
        }
        let range = ask.offset as usize..(ask.offset + ask.len) as usize;
        match ask.kind {
            cmd::READ => {
                let data: Vec<u8> = reply.data.iter().flat_map(|(_, data)| data.clone()).collect();
                assert_eq!(data, disk[range]);
                let first = reply.data.first().map(|(offset, _)| *offset);
                let offset = if simple { 0 } else { ask.offset };
                assert!(first.is_none_or(|first| first == offset));
            }
            cmd::WRITE => disk[range].fill(payload),
            cmd::WRITE_ZEROES => disk[range].fill(0),
            cmd::TRIM => {
                let whole = disk.chunks_mut(self.minimum as usize).enumerate();
                for (number, block) in whole {
                    let start = number * self.minimum as usize;
                    if range.start <= start && start + block.len() <= range.end {
                        block.fill(0);
                    }
                }
            }
            cmd::BLOCK_STATUS => check_status(ask, &reply.status[&0], disk),
            _ => {}
        }
    }
}

/// Checks byte by byte; the server reports blocks of 512 from the start of the request.
fn check_status(ask: Ask, extents: &[(u64, u64)], disk: &[u8]) {
    let mut at = ask.offset;
    for (index, (len, state)) in extents.iter().enumerate() {
        assert!(at < ask.offset + ask.len, "an extent starts after the requested range");
        assert!(index == 0 || extents[index - 1].1 != *state, "two extents that could be one");
        for block in disk[at as usize..(at + len) as usize].chunks(512) {
            assert_eq!(if block.iter().all(|byte| *byte == 0) { 3 } else { 0 }, *state);
        }
        at += len;
    }
    let one = ask.flags & cmd_flag::REQ_ONE != 0;
    assert!(!one || (extents.len() == 1 && extents[0].0 <= ask.len));
    assert!(one || at >= ask.offset + ask.len, "all extents had room");
}

fn any_setting() -> impl Strategy<Value = Setting> {
    let headers =
        prop::sample::select(vec![Headers::Simple, Headers::Structured, Headers::Extended]);
    let rare = prop::bool::weighted(0.15);
    let blocks = (prop::sample::select(vec![1, 512, 4096]), any::<bool>());
    (headers, any::<bool>(), rare, rare, blocks).prop_map(
        |(headers, contexts, nothing, read_only, (minimum, partial_zeroes))| Setting {
            headers,
            contexts: contexts && headers != Headers::Simple,
            everything: !nothing,
            read_only,
            minimum,
            partial_zeroes,
        },
    )
}

fn any_ask(headers: Headers) -> impl Strategy<Value = Ask> {
    let kind = prop_oneof![9 => 0u16..8, 1 => 8u16..12]
        .prop_map(|kind| if kind == cmd::DISC { cmd::READ } else { kind });
    let flags =
        prop_oneof![6 => Just(0u16), 3 => (0u16..6).prop_map(|bit| 1 << bit), 1 => 0u16..128];
    let place = prop_oneof![
        4 => (0u64..17).prop_map(|block| block * 4096),
        2 => (0u64..129).prop_map(|block| block * 512),
        2 => 0..SIZE + 2,
        1 => (0u64..3).prop_map(|back| u64::MAX - back),
    ];
    let len = prop_oneof![
        4 => (0u64..6).prop_map(|block| block * 4096),
        2 => 0u64..5000,
        1 => Just(u64::from(MAXIMUM) + 1),
    ];
    (kind, flags, place, len, any::<u64>()).prop_map(
        move |(kind, mut flags, offset, len, cookie)| {
            if headers == Headers::Extended && kind == cmd::WRITE {
                flags ^= cmd_flag::PAYLOAD_LEN;
            }
            if kind == cmd::BLOCK_STATUS {
                flags &= !cmd_flag::PAYLOAD_LEN; // another test covers it
            }
            let len = if kind == cmd::FLUSH && len < 4096 { 0 } else { len };
            let offset = if kind == cmd::FLUSH && offset < SIZE { 0 } else { offset };
            Ask { flags, kind, cookie, offset, len }
        },
    )
}

fn any_session() -> impl Strategy<Value = (Setting, Vec<Ask>, Vec<usize>)> {
    any_setting().prop_flat_map(|setting| {
        let asks = prop::collection::vec(any_ask(setting.headers), 1..30);
        (Just(setting), asks, prop::collection::vec(1usize..3000, 1..10))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_session_matches_a_slow_model((setting, asks, cuts) in any_session()) {
        let mut stream = Vec::new();
        for (number, ask) in (1u8..).zip(&asks) {
            stream.extend(ask.bytes(setting.headers));
            if setting.has_payload(*ask) {
                stream.extend(vec![number; ask.len as usize]);
            }
        }
        let mut server = setting.server();
        let mut disk = server.disk.clone();
        let (mut rest, mut cuts) = (&stream[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            server.receive(piece);
            rest = behind;
        }
        let mut lens = core::mem::take(&mut server.data_lens).into_iter();
        let told = replies(&server.sent, setting.headers, |_| match setting.headers {
            Headers::Simple => lens.next().unwrap(),
            _ => 0,
        });
        prop_assert_eq!(told.len(), asks.len());
        for ((number, ask), (cookie, reply)) in (1u8..).zip(&asks).zip(&told) {
            prop_assert_eq!(*cookie, ask.cookie);
            setting.check(*ask, number, reply, &mut disk);
        }
        prop_assert!(disk == server.disk);
    }
}
