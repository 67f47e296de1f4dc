//! Chunks of block status, compared with a list of the state of each unit.
#![allow(clippy::cast_possible_truncation, reason = "the disks of tests are small")]

mod nbd;

use blockyard_wire::nbd::number::{cmd, cmd_flag};
use blockyard_wire::nbd::transmission::STATUS_BYTES_MIN;
use blockyard_wire::nbd::{
    BASE_ALLOCATION, Event, Export, Headers, Limits, MetaContext, Transmission,
};
use nbd::client::{Ask, replies};
use nbd::{agree, export};
use proptest::prelude::*;

const DISK: u64 = 1 << 40;

/// Returns the chunk for `ask` from `extents` with this much room, and whether more extents were
/// wanted at its end.
fn chunk(
    headers: Headers,
    ask: Ask,
    extents: impl IntoIterator<Item = (u64, u32)>,
    room: usize,
) -> (Vec<(u64, u64)>, bool) {
    let export = Export { size_bytes: DISK, ..export("disk") };
    let agreed = agree(export, headers, &[BASE_ALLOCATION]);
    let mut transmission = Transmission::new(agreed, Limits::DEFAULT);
    let next = transmission.next(&ask.bytes(headers));
    let Event::Request(mut request) = next.event else { panic!("{next:?}") };
    let mut out = vec![0; room];
    let mut chunk = transmission.status(&mut request, MetaContext(0), &mut out);
    let mut wanted = true;
    for (len, state) in extents {
        wanted = chunk.push(len, state);
    }
    let len = chunk.finish();
    let mut end = [0; 44];
    let answer = transmission.answer(request, Ok(()), &mut end);
    let stream = [&out[..len], &end[..answer.header_bytes]].concat();
    let mut replies = replies(&stream, headers, |_| 0);
    (replies.remove(0).1.status.remove(&0).unwrap(), wanted)
}

const BOTH: [Headers; 2] = [Headers::Structured, Headers::Extended];
const ROOM: usize = 1 << 12;

#[test]
fn with_req_one_there_is_one_extent_within_the_request() {
    for headers in BOTH {
        let ask = Ask::new(cmd::BLOCK_STATUS, 0, 4096).flags(cmd_flag::REQ_ONE);
        assert_eq!(chunk(headers, ask, [(8192, 3)], ROOM), (vec![(4096, 3)], false));
        assert_eq!(chunk(headers, ask, [(512, 3), (512, 0)], ROOM), (vec![(512, 3)], false));
        assert_eq!(chunk(headers, ask, [(512, 3), (512, 3)], ROOM), (vec![(1024, 3)], true));
        let more = Ask { flags: 0, ..ask };
        assert_eq!(chunk(headers, more, [(8192, 3)], ROOM), (vec![(8192, 3)], false));
    }
}

#[test]
fn no_extent_ends_beyond_the_export() {
    for headers in BOTH {
        for flags in [0, cmd_flag::REQ_ONE] {
            let ask = Ask::new(cmd::BLOCK_STATUS, DISK - 1024, 1024).flags(flags);
            assert_eq!(chunk(headers, ask, [(u64::MAX, 3)], ROOM), (vec![(1024, 3)], false));
        }
    }
}

#[test]
fn an_extent_of_more_than_four_gibibytes_is_cut_in_compact_form() {
    let ask = Ask::new(cmd::BLOCK_STATUS, 0, 0xffff_ffff);
    let long = chunk(Headers::Structured, ask, [(DISK, 3), (512, 0)], ROOM);
    assert_eq!(long, (vec![(0xffff_0000, 3)], false));
    let grown = chunk(Headers::Structured, ask, [(0xfff0_0000, 3), (0xfff0_0000, 3)], ROOM);
    assert_eq!(grown, (vec![(0xffff_0000, 3)], false));
    let ask = Ask { len: DISK, ..ask };
    assert_eq!(chunk(Headers::Extended, ask, [(DISK, 3)], ROOM), (vec![(DISK, 3)], false));
}

#[test]
fn there_are_at_most_two_to_the_twenty_extents() {
    for (headers, bytes) in [(Headers::Structured, 8), (Headers::Extended, 16)] {
        let ask = Ask::new(cmd::BLOCK_STATUS, 0, 0xffff_fe00);
        let extents = (0..(1u32 << 20) + 5).map(|number| (512, number & 1));
        let (reported, wanted) = chunk(headers, ask, extents, 64 + bytes * ((1 << 20) + 100));
        assert_eq!((reported.len(), wanted), (1 << 20, false));
        assert!(reported.iter().enumerate().all(|(at, extent)| *extent == (512, at as u64 & 1)));
    }
}

/// The bytes before the first descriptor: the header of the chunk, the context, and the number of
/// descriptors in extended form.
fn head_bytes(headers: Headers) -> usize {
    if headers == Headers::Extended { 32 + 4 + 4 } else { 20 + 4 }
}

#[test]
fn as_many_extents_are_reported_as_the_buffer_has_room_for() {
    for (headers, bytes) in [(Headers::Structured, 8), (Headers::Extended, 16)] {
        let ask = Ask::new(cmd::BLOCK_STATUS, 0, 1 << 20);
        for room in STATUS_BYTES_MIN..STATUS_BYTES_MIN + 100 {
            let extents = (0..30).map(|number| (512, number & 1));
            let (reported, wanted) = chunk(headers, ask, extents, room);
            let descriptors = (room - head_bytes(headers)) / bytes;
            assert_eq!((reported.len(), wanted), (descriptors, false), "{headers:?} {room}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The reported extents match the units from the start, and end only where they may.
    #[test]
    fn the_reported_extents_match_the_disk(
        extended in any::<bool>(),
        one in any::<bool>(),
        units in 1u64..30,
        extents in prop::collection::vec((1u64..10, 0u32..3), 1..20),
        more_room in 0usize..50,
    ) {
        let (headers, bytes) = if extended { (BOTH[1], 16) } else { (BOTH[0], 8) };
        let flags = if one { cmd_flag::REQ_ONE } else { 0 };
        let ask = Ask::new(cmd::BLOCK_STATUS, 0, units * 512).flags(flags);
        let room = STATUS_BYTES_MIN + more_room;
        let (reported, wanted) =
            chunk(headers, ask, extents.iter().map(|(len, state)| (len * 512, *state)), room);
        let list = |extents: Vec<(u64, u64)>| -> Vec<u64> {
            extents.into_iter().flat_map(|(len, state)| vec![state; len as usize]).collect()
        };
        let units_now = list(extents.iter().map(|(len, state)| (*len, u64::from(*state))).collect());
        let reported_units = list(reported.iter().map(|(len, state)| (len / 512, *state)).collect());
        prop_assert!(reported.iter().all(|(len, _)| *len > 0 && len % 512 == 0));
        prop_assert!(reported.windows(2).all(|two| two[0].1 != two[1].1));
        prop_assert!(units_now.starts_with(&reported_units));
        let before_last: u64 = reported[..reported.len() - 1].iter().map(|(len, _)| len).sum();
        prop_assert!(before_last < ask.len);
        prop_assert!(!one || (reported.len() == 1 && reported[0].0 <= ask.len));
        // The chunk ended with the extents, the request, the room, or after one extent.
        let enough = reported_units.len() as u64 >= units || reported_units.len() == units_now.len() || one;
        prop_assert!(enough || reported.len() == (room - head_bytes(headers)) / bytes);
        prop_assert!(!wanted || (reported_units.len() == units_now.len() && (reported_units.len() as u64) < units));
    }
}
