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
    let shape = Shape {
        limits: file.limits(),
        policies: Policies::NONE,
        elevator: None,
        depth: 4,
        block_bytes: file.block_bytes,
        timeout: Some(Duration::MAX),
        takes_slices: false,
        takes_long_ranges: false,
    };
    let device = FileDevice::new(Arc::new(file), 0, Rc::clone(jobs), Rc::clone(outbox), 4);
    LaneQueue::new(shape, device, (), jobs)
}

/// Begins a job, completes its I/O operations with `answers` in turn, and returns its status.
fn ends(
    queue: &mut LaneQueue<FileDevice, ()>,
    outbox: &Outbox,
    asked: Asked,
    transfer: Transfer,
    answers: &[Result<usize, i32>],
) -> Status {
    queue.begin(Owner::Lane, asked, transfer, Instant::ZERO);
    let mut answers = answers.iter();
    loop {
        queue.advance(Instant::ZERO);
        if let Some(ended) = queue.next_ended(&mut false) {
            assert_eq!(answers.next(), None, "the bio ended before it used every answer");
            return ended.status;
        }
        let Begun { number, io, .. } = outbox
            .begun
            .borrow_mut()
            .pop_front()
            .expect("a bio that has not ended has I/O in flight");
        let answer = answers.next().unwrap_or_else(|| panic!("unexpected I/O: {:?}", io.op));
        let answer = answer.map_err(io::Error::from_raw_os_error);
        outbox.end(number, answer);
    }
}

/// The kernel reports lost writes only once. If a write with FUA received that report, every later
/// flush must fail; if the write itself failed, later flushes may succeed.
///
/// Checks [failed-flush-stays-failed].
#[test]
fn a_lost_write_fails_every_later_flush() {
    let write = Asked { flags: Flags::FUA, ..Asked::from(Op::Write) };
    let flush = Asked::from(Op::Flush);
    for error in [libc::EIO, libc::ENOSPC] {
        let jobs = Jobs::new(RefCell::new(Slab::default()));
        let outbox = Rc::new(Outbox::default());
        let reports = Arc::default();
        let mut queue = queue(&jobs, &outbox, &reports, |_| ());
        // After a write that failed itself, a flush is sent. After a lost one, none is.
        for (lost, of_write, of_flush, flushed) in [
            (0, [Err(error); 2], &[Ok(0)][..], Status::Ok),
            (1, [Err(error), Ok(4096)], &[], Status::IoError),
        ] {
            let pages = Rc::new(Pages::new(4096).expect("memory should suffice for one page"));
            let place = Place::Buffer { pages, lead: 0 };
            let page = Transfer { place, ..Transfer::new(0, 4096) };
            assert_ne!(ends(&mut queue, &outbox, write, page, &of_write), Status::Ok);
            let status = ends(&mut queue, &outbox, flush, Transfer::new(0, 0), of_flush);
            assert_eq!(status, flushed, "{lost} writes were lost");
            assert_eq!(reports.0.load(Ordering::Relaxed), lost);
        }
    }
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
