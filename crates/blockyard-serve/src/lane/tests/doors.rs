//! Tests of a lane with doors of guests, alone and beside an NBD client.

use super::guest::{Guest, GuestRequest, Seen, Step};
use super::{BLOCK, DISK_BYTES, disk, in_memory};
use crate::disk::{DiskConfig, Layers, Source};
use crate::lane::entrance::Message;
use crate::lane_alone;
use blockyard::bio::Op;
use blockyard::layer::delay::Extra;
use blockyard::status::Status;
use blockyard::time::Duration;
use blockyard_btt::Container;
use blockyard_pmem::{Durability, Image, ImageOptions, NewImage};
use blockyard_std::parts::ring::IoEngine;
use core::ops::Range;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

const GUEST_BYTES: usize = 1 << 20;

fn request(op: Op, block: u64, ranges: &[Range<usize>]) -> GuestRequest {
    GuestRequest { op, offset: block * BLOCK as u64, ranges: ranges.to_vec() }
}

/// Returns the block of a guest's memory with this number.
const fn block(number: usize) -> Range<usize> {
    number * BLOCK..(number + 1) * BLOCK
}

/// Lets a guest take `steps` on `disk`.
fn run_guest(disk: &DiskConfig, steps: impl IntoIterator<Item = Step>) -> Seen {
    let (seen, guest_has_seen) = mpsc::channel();
    let guest = Guest { memory_bytes: GUEST_BYTES, steps: steps.into_iter().collect(), seen };
    let (entrance, parts) = lane_alone::parts(disk, IoEngine::Auto)
        .expect("a lane with one disk should be constructible");
    lane_alone::run(entrance, parts, [Box::new(guest)]).expect("the lane should serve and flush");
    guest_has_seen.recv().expect("a guest that has gone")
}

/// Writes the data of three ranges, reads it into two others, and does so with more ranges than a request may have.
fn write_and_read_ranges(disk: &DiskConfig) {
    // 200 blocks of the guest's memory, the last one first; each holds its own number.
    let many: Vec<_> = (0..200).rev().map(block).collect();
    let fill =
        (0..200_u8).map(|number| Step::Fill(block(number.into()).start, vec![number; BLOCK]));
    let three = [block(7), block(3).start..block(4).end, block(100)];
    let steps = fill.chain([
        Step::Submit(vec![request(Op::Write, 1, &three), request(Op::Write, 8, &many)]),
        Step::Submit(vec![
            request(Op::Read, 1, &[block(210), block(220).start..block(222).end]),
            request(Op::Read, 8, &[block(230), block(229)]),
            request(Op::Read, 206, &[block(240), block(239)]),
        ]),
    ]);
    let seen = run_guest(disk, steps);
    assert_eq!(seen.ends.len(), 5, "{:?}", seen.ends);
    assert!(seen.ends.iter().all(|(_, status)| *status == Status::Ok), "{:?}", seen.ends);
    // The data of the first write was blocks 7, 3, 4 and 100; that of the second 199 to 0.
    let expected =
        [(210, 7), (220, 3), (221, 4), (222, 100), (230, 199), (229, 198), (240, 1), (239, 0)];
    for (number, byte) in expected {
        assert!(seen.memory[block(number)] == [byte; BLOCK], "block {number} of the guest");
    }
}

/// Returns a path for the disk called `name`.
fn path_of(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("blockyard-guest-{name}-{}", std::process::id()))
}

#[test]
fn the_data_of_a_guest_lies_in_several_ranges_on_a_disk_in_memory() {
    write_and_read_ranges(&in_memory());
}

#[test]
fn the_data_of_a_guest_lies_in_several_ranges_on_a_file() {
    let path = path_of("file");
    for buffered in [true, false] {
        let file = std::fs::File::create(&path).expect("a new file for the disk");
        file.set_len(DISK_BYTES).expect("the file should grow to the size of the disk");
        write_and_read_ranges(&disk(Source::File { path: path.clone(), buffered }));
    }
    std::fs::remove_file(path).expect("the disk's file should be removable");
}

#[test]
fn the_data_of_a_guest_lies_in_several_ranges_on_a_btt() {
    let path = path_of("btt");
    let new = NewImage { bytes: 17 << 20, sector_bytes: 512, container: Container::Namespace };
    drop(Image::create(&path, &new, &ImageOptions::default()).expect("new image"));
    write_and_read_ranges(&btt(&path));
    std::fs::remove_file(path).expect("the image should be removable");
}

fn btt(path: &Path) -> DiskConfig {
    let path = path.to_owned();
    let durability = Durability::Process;
    disk(Source::Btt { path, durability, container: None, force: false })
}

/// [abandoned-request-keeps-memory]: a guest that resets its queue gets no result of the requests before, and uses their tokens
/// again while the delayed device still has them.
#[test]
fn a_guest_that_was_reset_gets_no_result_of_the_requests_before() {
    let delay = Some(Extra::fixed(Duration::from_ms(20)));
    let disk = DiskConfig { layers: Layers { delay, ..Layers::default() }, ..in_memory() };
    let seen = run_guest(
        &disk,
        [
            Step::Fill(0, vec![1; BLOCK]),
            Step::SubmitAndReset(vec![
                request(Op::Write, 0, &[block(0)]),
                request(Op::Read, 40, &[block(1)]),
                request(Op::Flush, 0, &[]),
            ]),
            Step::Submit(vec![request(Op::Read, 0, &[block(2)])]),
            Step::SubmitAndReset(vec![request(Op::Read, 80, &[block(3)])]),
        ],
    );
    assert_eq!(seen.ends, [(0, Status::Ok)], "the one request that was not abandoned");
    assert_eq!(seen.reclaimed, 4, "each abandoned request gives its memory back");
}

/// A small NBD client at the other end of a socket.
struct NbdClient(UnixStream);

impl NbdClient {
    /// Chooses the default export, as an old client does: by `NBD_OPT_EXPORT_NAME`.
    fn enter(mut socket: UnixStream) -> Self {
        let mut greeting = [0; 18];
        socket.read_exact(&mut greeting).expect("the greeting");
        // Fixed newstyle, and no zeroes after the export's size.
        socket.write_all(&3_u32.to_be_bytes()).expect("the client's flags");
        let option = [&b"IHAVEOPT"[..], &1_u32.to_be_bytes(), &0_u32.to_be_bytes()].concat();
        socket.write_all(&option).expect("the option");
        let mut export = [0; 10];
        socket.read_exact(&mut export).expect("the size and flags of the export");
        assert_eq!(export[..8], DISK_BYTES.to_be_bytes(), "the size of the disk");
        Self(socket)
    }

    fn send(&mut self, command: u16, block: u64, len: usize, payload: &[u8]) {
        let len = u32::try_from(len).expect("a length of 32 bits");
        let mut request = Vec::from(0x2560_9513_u32.to_be_bytes());
        request.extend([0; 2]);
        request.extend(command.to_be_bytes());
        request.extend([7; 8]);
        request.extend((block * BLOCK as u64).to_be_bytes());
        request.extend(len.to_be_bytes());
        request.extend(payload);
        self.0.write_all(&request).expect("the request");
    }

    fn receive_reply(&mut self) {
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).expect("the reply");
        assert_eq!(reply[..4], 0x6744_6698_u32.to_be_bytes());
        assert_eq!(reply[4..8], [0; 4], "no error");
    }

    fn read_block(&mut self, block: u64) -> Vec<u8> {
        self.send(0, block, BLOCK, &[]);
        self.receive_reply();
        let mut data = vec![0; BLOCK];
        self.0.read_exact(&mut data).expect("the data");
        data
    }

    fn write_block(&mut self, block: u64, byte: u8) {
        self.send(1, block, BLOCK, &[byte; BLOCK]);
        self.receive_reply();
    }
}

/// One lane serves doors of two kinds, and each client finds what the other one has written.
#[test]
fn a_guest_and_an_nbd_client_share_a_lane() {
    let (entrance, parts) = lane_alone::parts(&in_memory(), IoEngine::Auto)
        .expect("a lane with one disk should be constructible");
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let nbd = lane_alone::nbd_client(&parts, OwnedFd::from(theirs)).expect("an NBD client");
    let (seen, guest_has_seen) = mpsc::channel();
    let steps = [
        Step::AwaitWake,
        Step::Submit(vec![request(Op::Read, 5, &[block(9), block(2)])]),
        Step::Submit(vec![request(Op::Write, 20, &[block(2), block(9)])]),
    ];
    let guest = Guest { memory_bytes: GUEST_BYTES, steps: steps.into(), seen };
    let own = entrance.clone();
    let client = thread::spawn(move || {
        let mut client = NbdClient::enter(ours);
        client.write_block(5, 55);
        client.write_block(6, 66);
        own.send(Message::WakeDoors);
        drop(own);
        let seen = guest_has_seen.recv().expect("a guest that has gone");
        assert_eq!(seen.ends, [(0, Status::Ok), (0, Status::Ok)]);
        assert_eq!(client.read_block(20), [66; BLOCK]);
        assert_eq!(client.read_block(21), [55; BLOCK]);
        client.send(2, 0, 0, &[]);
    });
    lane_alone::run(entrance, parts, [nbd, Box::new(guest)]).expect("the lane should serve");
    client.join().expect("the NBD client and the guest should agree");
}
