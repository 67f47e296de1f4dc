//! Files whose kernel answers as the test says.

use super::*;
use crate::parts::device::How;
use crate::parts::job::Owner;
use crate::parts::map::Pages;
use crate::parts::queue::{Asked, LaneQueue};
use crate::parts::shape::Shape;
use crate::parts::slab::Slab;
use blockyard::bio::{Flags, Op};
use blockyard::policy::Policies;
use blockyard::time::Duration;
use core::sync::atomic::{AtomicU32, Ordering};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Counts the reports of failed flushes.
#[derive(Debug, Default)]
struct Reports(AtomicU32);

impl Damaged for Reports {
    fn cut_short(&self, _: u64, _: u64) {
        panic!("the file keeps its length");
    }

    fn flush_failed(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns a queue over an unlinked file of 64 KiB, which uses the page cache, and which `change`
/// may alter.
fn queue(
    jobs: &Jobs,
    outbox: &Rc<Outbox>,
    reports: &Arc<Reports>,
    change: impl FnOnce(&mut File),
) -> LaneQueue<FileDevice, ()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("blockyard-queue-{}-{count}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = std::fs::File::create(&path)
        .expect("the folder for temporary files should accept a new file");
    file.set_len(64 << 10).expect("the file should grow to 64 KiB");
    let bells =
        [Arc::new(crate::parts::bell::bell().expect("a descriptor should be left for the bell"))];
    let how = How {
        read_only: false,
        buffered: true,
        bells: &bells,
        claim: |_, _| Ok(()),
        damaged: Arc::clone(reports) as Arc<dyn Damaged>,
    };
    let mut file = File::open(&path, how).expect("the disk's file should open");
    change(&mut file);
    std::fs::remove_file(path).expect("the disk's file should be removable");
    let shape = shape(&file);
    let device = FileDevice::new(Arc::new(file), 0, Rc::clone(jobs), Rc::clone(outbox), 4);
    LaneQueue::new(shape, device, (), jobs)
}

fn shape(file: &File) -> Shape {
    Shape {
        limits: file.limits(),
        policies: Policies::NONE,
        elevator: None,
        depth: 4,
        block_bytes: file.block_bytes,
        timeout: Some(Duration::MAX),
        takes_slices: false,
        takes_long_ranges: false,
    }
}

/// Begins a job, lets `kernel` answer each of its I/O operations, and returns its status.
fn ends_by(
    queue: &mut LaneQueue<FileDevice, ()>,
    outbox: &Outbox,
    asked: Asked,
    transfer: Transfer,
    mut kernel: impl FnMut(&FileIo) -> Result<usize, i32>,
) -> Status {
    queue.begin(Owner::Lane, asked, transfer, Instant::ZERO);
    loop {
        queue.advance(Instant::ZERO);
        if let Some(ended) = queue.next_ended(&mut false) {
            return ended.status;
        }
        let Begun { number, io, .. } = outbox
            .begun
            .borrow_mut()
            .pop_front()
            .expect("a bio that has not ended has I/O in flight");
        outbox.end(number, kernel(&io).map_err(io::Error::from_raw_os_error));
    }
}

/// As [`ends_by`], with `answers` in turn.
fn ends(
    queue: &mut LaneQueue<FileDevice, ()>,
    outbox: &Outbox,
    asked: Asked,
    transfer: Transfer,
    answers: &[Result<usize, i32>],
) -> Status {
    let mut answers = answers.iter();
    let status = ends_by(queue, outbox, asked, transfer, |io| {
        *answers.next().unwrap_or_else(|| panic!("unexpected I/O: {:?}", io.op))
    });
    assert_eq!(answers.next(), None, "the bio ended before it used every answer");
    status
}

/// A file whose kernel has lost writes of the page cache or not, and told this to a descriptor or
/// not, as Linux does since 4.13: each descriptor is told once, by a flush or a write with FUA.
struct Loss {
    is_lost: bool,
    told: Vec<RawFd>,
    /// Whether it tells also with a write without FUA, as NFS does.
    tells_any_write: bool,
    /// The errors of the next writes themselves.
    of_writes: Vec<i32>,
}

impl Loss {
    fn answer(&mut self, io: &FileIo) -> Result<usize, i32> {
        let tells = match io.op {
            FileOp::Write { fua, .. } => fua || self.tells_any_write,
            FileOp::Sync => true,
            _ => false,
        };
        if let (FileOp::Write { .. }, Some(error)) = (io.op, self.of_writes.pop()) {
            return Err(error);
        }
        let fd = io.fd.as_raw_fd();
        if self.is_lost && tells && !self.told.contains(&fd) {
            self.told.push(fd);
            return Err(libc::EIO);
        }
        Ok(io.spans.iter().map(|span| span.len).sum())
    }
}

/// The kernel reports lost writes only once to a descriptor. If a write with FUA received that
/// report, every later flush must fail. If the write itself failed, later flushes may succeed:
/// without space, a further try of it may do so too, when room was freed meanwhile.
///
/// Checks [failed-flush-stays-failed].
#[test]
fn a_lost_write_fails_every_later_flush() {
    let durable = Asked { flags: Flags::FUA, ..Asked::from(Op::Write) };
    let plain = Asked::from(Op::Write);
    let [full, too_long] = [libc::ENOSPC, libc::EFBIG];
    for (write, is_lost, of_writes, flushed) in [
        (durable, true, vec![], Status::IoError),
        (durable, true, vec![full], Status::IoError),
        (durable, false, vec![full], Status::Ok),
        (durable, false, vec![too_long], Status::Ok),
        (durable, false, vec![libc::EIO], Status::Ok),
        (plain, true, vec![], Status::IoError), // on NFS
        (plain, false, vec![full], Status::Ok),
    ] {
        let case = format!("{:?}, lost: {is_lost}, {of_writes:?}", write.flags);
        let jobs = Jobs::new(RefCell::new(Slab::default()));
        let outbox = Rc::new(Outbox::default());
        let reports = Arc::default();
        let mut queue = queue(&jobs, &outbox, &reports, |_| ());
        let tells_any_write = write.flags == plain.flags;
        let mut loss = Loss { is_lost, told: Vec::new(), tells_any_write, of_writes };
        let pages = Rc::new(Pages::new(4096).expect("memory should suffice for one page"));
        let place = Place::Buffer { pages, lead: 0 };
        let page = Transfer { place, ..Transfer::new(0, 4096) };
        let status = ends_by(&mut queue, &outbox, write, page, |io| loss.answer(io));
        assert_ne!(status, Status::Ok, "{case}");
        for _ in 0..2 {
            let flush = Asked::from(Op::Flush);
            let none = Transfer::new(0, 0);
            let status = ends_by(&mut queue, &outbox, flush, none, |io| loss.answer(io));
            assert_eq!(status, flushed, "{case}");
        }
        assert_eq!(reports.0.load(Ordering::Relaxed), u32::from(is_lost), "{case}");
    }
}

/// A write with FUA in flight receives the kernel's report. A flush beside it, and the flush of
/// another lane, receive it as well: each has a descriptor of its own.
///
/// Checks [failed-flush-stays-failed].
#[test]
fn a_flush_beside_a_write_with_fua_learns_of_lost_writes() {
    for (is_lost, flushed) in [(true, Status::IoError), (false, Status::Ok)] {
        let jobs = Jobs::new(RefCell::new(Slab::default()));
        let outbox = Rc::new(Outbox::default());
        let reports = Arc::default();
        let mut queue = queue(&jobs, &outbox, &reports, |_| ());
        let pages = Rc::new(Pages::new(4096).expect("memory should suffice for one page"));
        let page = Transfer { place: Place::Buffer { pages, lead: 0 }, ..Transfer::new(0, 4096) };
        let durable = Asked { flags: Flags::FUA, ..Asked::from(Op::Write) };
        queue.begin(Owner::Lane, durable, page, Instant::ZERO);
        queue.advance(Instant::ZERO);
        let write = outbox.begun.borrow_mut().pop_front().expect("the write is in flight");
        let mut loss =
            Loss { is_lost, told: Vec::new(), tells_any_write: false, of_writes: Vec::new() };
        let told = loss.answer(&write.io).map_err(io::Error::from_raw_os_error);
        let flush = Asked::from(Op::Flush);
        let none = Transfer::new(0, 0);
        let status = ends_by(&mut queue, &outbox, flush, none, |io| loss.answer(io));
        assert_eq!(status, flushed);
        outbox.end(write.number, told);
        queue.advance(Instant::ZERO);
        let ended = queue.next_ended(&mut false).expect("the write has ended");
        assert_eq!(ended.status, flushed);
        assert_eq!(reports.0.load(Ordering::Relaxed), u32::from(is_lost));
    }
}

/// Each lane flushes by a descriptor of its own, and none by that of the writes.
///
/// Checks [failed-flush-stays-failed].
#[test]
fn no_two_lanes_flush_by_the_same_descriptor() {
    let jobs = Jobs::new(RefCell::new(Slab::default()));
    let outbox = Rc::new(Outbox::default());
    let bells = [(); 2].map(|()| {
        Arc::new(crate::parts::bell::bell().expect("a descriptor should be left for the bell"))
    });
    let path = std::env::temp_dir().join(format!("blockyard-lanes-{}", std::process::id()));
    std::fs::write(&path, [0; 4096]).expect("the folder should accept a new file");
    let damaged = Arc::new(Reports::default());
    let claim = |_: &OwnedFd, _: bool| Ok(());
    let how = How { read_only: false, buffered: true, bells: &bells, claim, damaged };
    let file = File::open(&path, how).expect("the disk's file should open");
    std::fs::remove_file(path).expect("the disk's file should be removable");
    let written_by = file.fd.as_raw_fd();
    let flushed_by: Vec<_> = file.flushed_by.iter().map(|fd| fd.as_raw_fd()).collect();
    assert_eq!(flushed_by.len(), 2);
    assert!(flushed_by[0] != flushed_by[1] && !flushed_by.contains(&written_by));
    let shape = shape(&file);
    let device = FileDevice::new(Arc::new(file), 1, Rc::clone(&jobs), Rc::clone(&outbox), 4);
    let mut queue = LaneQueue::new(shape, device, (), &jobs);
    let none = Transfer::new(0, 0);
    let status = ends_by(&mut queue, &outbox, Asked::from(Op::Flush), none, |io| {
        assert_eq!(io.fd.as_raw_fd(), flushed_by[1]);
        Ok(0)
    });
    assert_eq!(status, Status::Ok);
}

/// A file system whose writes of zeroes take nothing kept its lane busy for ever.
#[test]
fn zeroes_of_which_nothing_is_written_fail() {
    let jobs = Jobs::new(RefCell::new(Slab::default()));
    let outbox = Rc::new(Outbox::default());
    let mut queue = queue(&jobs, &outbox, &Arc::default(), |_| ());
    let zeroes = Transfer { no_hole: true, ..Transfer::new(0, 8192) };
    let answers = [Err(libc::EOPNOTSUPP), Ok(4096), Ok(0)];
    let status = ends(&mut queue, &outbox, Asked::from(Op::WriteZeroes), zeroes, &answers);
    assert_eq!(status, Status::IoError);
}

/// Through the page cache of a block device, the kernel would drop writes before it refuses. A file
/// system refuses first, and by direct I/O the page cache holds nothing.
#[test]
fn fast_zeroes_are_refused_before_the_kernel_touches_anything() {
    let refused = &[Err(libc::EOPNOTSUPP)][..];
    for (is_block_device, block_bytes, no_hole, answers) in [
        (true, 1, false, &[][..]),
        (true, 1, true, &[]),
        (true, 512, true, &[]),
        (true, 512, false, refused),
        (false, 1, false, refused),
        (false, 4096, true, refused),
    ] {
        let jobs = Jobs::new(RefCell::new(Slab::default()));
        let outbox = Rc::new(Outbox::default());
        let mut queue = queue(&jobs, &outbox, &Arc::default(), |file| {
            file.is_block_device = is_block_device;
            file.block_bytes = block_bytes;
        });
        let zeroes = Asked::from(Op::WriteZeroes);
        let fast = Transfer { fast: true, no_hole, ..Transfer::new(0, 8192) };
        let status = ends(&mut queue, &outbox, zeroes, fast, answers);
        let case = format!("a block device: {is_block_device}, {block_bytes}, {no_hole}");
        assert_eq!(status, Status::NotSupported, "{case}");
        let slow = Transfer { no_hole, ..Transfer::new(0, 8192) };
        assert_eq!(ends(&mut queue, &outbox, zeroes, slow, &[Ok(0)]), Status::Ok, "{case}");
    }
}
