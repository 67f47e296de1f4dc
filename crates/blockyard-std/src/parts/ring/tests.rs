//! Both engines do the same.

use super::*;
use crate::parts::bell;
use crate::parts::map::Map;
use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(60);

/// Calls `test` with a ring of each engine.
fn with_each(test: impl Fn(Ring<u32>)) {
    for engine in [IoEngine::Uring, IoEngine::Threads] {
        test(Ring::new(engine).expect("both engines work where the tests run"));
    }
}

/// Waits until an operation is done. Returns its number and its result, or the number of the error.
fn next(ring: &mut Ring<u32>) -> (u32, Result<usize, Option<i32>>) {
    loop {
        if let Some(done) = ring.next_done() {
            return (done.kept, done.result.map_err(|error| error.raw_os_error()));
        }
        ring.enter(Some(LONG)).expect("a ring that works");
    }
}

/// Begins what was pushed, and returns whether something is done then.
fn is_done(ring: &mut Ring<u32>) -> bool {
    ring.enter(None).expect("a ring that works");
    ring.enter(Some(Duration::from_millis(1))).expect("a ring that works");
    ring.ops.has_done()
}

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("a pair of sockets should be left")
}

fn map(bytes: usize) -> Map {
    Map::new(bytes).expect("a small mapping should succeed")
}

fn bytes_of(map: &Map, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    map.read(0..len, &mut bytes);
    bytes
}

#[test]
fn a_receive_waits_for_bytes_and_a_whole_one_for_all() {
    with_each(|mut ring| {
        let (ours, mut theirs) = pair();
        let fd = ours.as_raw_fd();
        let memory = map(8);
        ring.receive(fd, memory.span(0..8), false, false, 1);
        assert!(ring.has_pushed() && !is_done(&mut ring) && !ring.has_pushed());
        theirs.write_all(b"abc").expect("room in the socket");
        assert_eq!(next(&mut ring), (1, Ok(3)));
        ring.receive(fd, memory.span(3..8), true, false, 2);
        theirs.write_all(b"de").expect("room in the socket");
        assert!(!is_done(&mut ring), "three more bytes are awaited");
        theirs.write_all(b"fghij").expect("room in the socket");
        assert_eq!(next(&mut ring), (2, Ok(5)));
        assert_eq!(bytes_of(&memory, 8), b"abcdefgh");
        // The rest came with those bytes, and no edge follows.
        ring.receive(fd, memory.span(0..8), false, true, 3);
        assert_eq!(next(&mut ring), (3, Ok(2)));
        assert!(ring.is_empty());
    });
}

#[test]
fn the_end_of_a_stream_ends_each_receive() {
    with_each(|mut ring| {
        let (ours, mut theirs) = pair();
        let fd = ours.as_raw_fd();
        let memory = map(8);
        theirs.write_all(b"ab").expect("room in the socket");
        drop(theirs);
        ring.receive(fd, memory.span(0..8), false, false, 1);
        assert_eq!(next(&mut ring), (1, Ok(2)));
        for number in 2..4 {
            ring.receive(fd, memory.span(0..8), true, false, number);
            assert_eq!(next(&mut ring), (number, Ok(0)));
        }
        let (ours, _theirs) = pair();
        ring.receive(ours.as_raw_fd(), memory.span(0..8), true, false, 4);
        assert!(!is_done(&mut ring));
        ours.shutdown(Shutdown::Both).expect("a socket that is connected");
        assert_eq!(next(&mut ring), (4, Ok(0)), "the owner has shut it down");
    });
}

#[test]
fn a_quick_send_fails_where_another_waits() {
    with_each(|mut ring| {
        let (ours, mut theirs) = pair();
        let fd = ours.as_raw_fd();
        let memory = Arc::new(map(1 << 20));
        fn push(
            ring: &mut Ring<u32>,
            range: std::ops::Range<usize>,
            quick: bool,
            number: u32,
            memory: &Arc<Map>,
            fd: i32,
        ) {
            let mut message = ring.message();
            message.spans.push(memory.span(range));
            ring.send(fd, message, quick, number);
        }
        memory.write(0, &[7; 1 << 20]);
        // A part of it is no success, so it ends the wait.
        push(&mut ring, 0..1 << 20, true, 999, &memory, fd);
        let (_, part) = next(&mut ring);
        let mut sent = part.expect("a part fits");
        assert!(sent < 1 << 20);
        for number in 0.. {
            push(&mut ring, 0..1 << 16, true, number, &memory, fd);
            ring.enter(None).expect("a ring that works");
            match next(&mut ring) {
                (_, Ok(bytes)) => sent += bytes,
                (_, Err(errno)) => {
                    assert_eq!(errno, Some(libc::EAGAIN), "the socket is full");
                    break;
                }
            }
        }
        push(&mut ring, 0..1 << 20, false, 1000, &memory, fd);
        assert!(!is_done(&mut ring), "nobody has read");
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            theirs.read_to_end(&mut bytes).expect("a socket that works");
            bytes
        });
        let mut start = 0;
        let mut number = 1000;
        while start < 1 << 20 {
            let (done, result) = next(&mut ring);
            assert_eq!(done, number);
            start += result.expect("the other end reads");
            number += 1;
            if start < 1 << 20 {
                push(&mut ring, start..1 << 20, false, number, &memory, fd);
            }
        }
        ring.forget(fd);
        drop(ours);
        assert_eq!(reader.join().expect("a reader"), vec![7; sent + (1 << 20)]);
    });
}

#[test]
fn a_send_to_nobody_fails_and_one_that_waits_ends_with_its_peer() {
    with_each(|mut ring| {
        let (ours, theirs) = pair();
        let memory = map(1 << 20);
        let mut message = ring.message();
        message.spans.extend([memory.span(0..5), memory.span(5..1 << 20)]);
        ring.send(ours.as_raw_fd(), message, false, 1);
        let (_, sent) = next(&mut ring);
        assert!(sent.is_ok_and(|sent| (1..1 << 20).contains(&sent)), "a part fits: {sent:?}");
        let mut message = ring.message();
        message.spans.push(memory.span(0..1 << 20));
        ring.send(ours.as_raw_fd(), message, false, 2);
        assert!(!is_done(&mut ring));
        drop(theirs);
        let (number, result) = next(&mut ring);
        assert_eq!(number, 2);
        assert!(matches!(result, Err(Some(libc::EPIPE | libc::ECONNRESET))), "{result:?}");
    });
}

#[test]
fn a_bell_wakes_once_for_each_time_that_it_is_awaited() {
    with_each(|mut ring| {
        let bell = bell::bell().expect("a descriptor should be left");
        ring.readable(bell.as_raw_fd(), 1);
        assert!(!is_done(&mut ring));
        for number in 1..4 {
            bell::ring(&bell);
            assert_eq!(next(&mut ring).0, number);
            bell::silence(&bell);
            ring.readable(bell.as_raw_fd(), number + 1);
        }
        // A bell that is rung before it is awaited is not missed.
        bell::ring(&bell);
        assert_eq!(next(&mut ring).0, 4);
    });
}

#[test]
fn a_number_of_a_socket_that_was_forgotten_can_be_that_of_another() {
    with_each(|mut ring| {
        let memory = map(8);
        let mut numbers = Vec::new();
        for number in 0..3 {
            let (ours, mut theirs) = pair();
            let ours = rustix::io::fcntl_dupfd_cloexec(ours, 700).expect("a number from 700 on");
            numbers.push(ours.as_raw_fd());
            ring.receive(ours.as_raw_fd(), memory.span(0..8), false, false, number);
            assert!(!is_done(&mut ring));
            theirs.write_all(b"a").expect("room in the socket");
            assert_eq!(next(&mut ring), (number, Ok(1)));
            ring.forget(ours.as_raw_fd());
        }
        // Tests beside this one use lower numbers only.
        assert_eq!(numbers[0], numbers[1], "the system gives the lowest free number");
    });
}

/// More calls at once than there are threads, by the page cache and beside it.
#[test]
fn files_are_written_read_zeroed_and_cut_short() {
    let path = std::env::temp_dir().join(format!("blockyard-ring-{}", std::process::id()));
    with_each(|mut ring| {
        let options =
            File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file: Arc<OwnedFd> = Arc::new(options.expect("a file in the temporary folder").into());
        let memory = map(200 * 4096);
        let cache = Backing::PageCache;
        for number in 0..200 {
            let at = start_of(number);
            memory.write(at, &[number.to_le_bytes()[0]; 4096]);
            let spans = vec![memory.span(at..at + 100), memory.span(at + 100..at + 4096)];
            let op = FileOp::Write { offset: at as u64, fua: number % 2 == 0 };
            ring.file(FileIo { fd: Arc::clone(&file), backing: cache, op, spans }, number);
        }
        let all: Vec<_> = (0..200).map(|number| (number, Ok(4096))).collect();
        assert_eq!(next_200(&mut ring), all);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let ops = [
            FileOp::Allocate { mode, offset: 4096, len: 4096 },
            FileOp::Sync,
            FileOp::Prefetch { offset: 0, len: 4096 },
        ];
        for (op, number) in ops.into_iter().zip(1..) {
            let io = FileIo { fd: Arc::clone(&file), backing: cache, op, spans: Vec::new() };
            ring.file(io, number);
            assert_eq!(next(&mut ring), (number, Ok(0)));
        }
        for backing in [cache, Backing::Memory, Backing::Disk] {
            memory.zero(0..200 * 4096);
            for number in 0..200 {
                let at = start_of(number);
                let op = FileOp::Read { offset: start_of(number) as u64 };
                let spans = vec![memory.span(at..at + 4096)];
                ring.file(FileIo { fd: Arc::clone(&file), backing, op, spans }, number);
            }
            assert_eq!(next_200(&mut ring), all);
            for number in 0..200 {
                let mut bytes = Vec::new();
                memory.read(start_of(number)..start_of(number) + 4096, &mut bytes);
                let expected = if number == 1 { 0 } else { number.to_le_bytes()[0] };
                assert_eq!(bytes, [expected; 4096], "block {number}");
            }
        }
        let op = FileOp::Read { offset: 200 * 4096 };
        let spans = vec![memory.span(0..1)];
        ring.file(FileIo { fd: file, backing: cache, op, spans }, 4);
        assert_eq!(next(&mut ring), (4, Ok(0)), "the end of the file");
        let read_only: OwnedFd = File::open(&path).expect("the file").into();
        let io = FileIo {
            fd: Arc::new(read_only),
            backing: cache,
            op: FileOp::Write { offset: 0, fua: false },
            spans: vec![memory.span(0..1)],
        };
        ring.file(io, 5);
        assert_eq!(next(&mut ring), (5, Err(Some(libc::EBADF))));
        assert!(ring.is_empty());
    });
    std::fs::remove_file(&path).expect("the file");
}

/// Returns the next 200 results, in the order of their numbers.
fn next_200(ring: &mut Ring<u32>) -> Vec<(u32, Result<usize, Option<i32>>)> {
    let mut done: Vec<_> = (0..200).map(|_| next(ring)).collect();
    done.sort_unstable();
    done
}

fn start_of(number: u32) -> usize {
    usize::try_from(number).expect("small") * 4096
}

#[test]
fn looking_for_io_uring_interrupts_no_later_call() {
    for _ in 0..20 {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        here.set_read_timeout(Some(LONG)).unwrap();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            there.write_all(b"x").unwrap();
        });
        assert_eq!(IoEngine::Auto.settle().0, IoEngine::Uring);
        assert_eq!(here.read(&mut [0]).expect("no EINTR"), 1);
        writer.join().unwrap();
    }
}
