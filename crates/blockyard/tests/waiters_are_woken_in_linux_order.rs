//! The order in which waiters for tags are woken, compared with Linux's ([woken-takes-next-queue]).
//!
//! Jobs of several I/Os, one at a time, begin at fixed distances on a device with few tags.
//! `waiters/linux-6.12` has a line for each recording: tags, microseconds of an I/O, and the jobs
//! in the order in which Linux dispatched their I/Os. The jobs were real-time threads, which run in
//! the order in which they are woken. So a job whose I/O has ended takes the tag before the waiters
//! that the same put has woken; they try, and sleep again.

use blockyard::tag::TagPool;
use std::collections::BTreeMap;

/// Between the beginnings of two jobs: `startdelay` says 200 ms, and fio's main thread takes its
/// time.
const GAP_US: u64 = 200_240;

/// A recording of Linux.
struct Recording {
    tags: u32,
    io_us: u64,
    /// The jobs, in the order of dispatch.
    jobs: Vec<u64>,
}

impl Recording {
    fn parse(line: &str) -> Self {
        let mut numbers = line.split(' ').map(|number| number.parse::<u64>().unwrap());
        let tags = u32::try_from(numbers.next().unwrap()).unwrap();
        Self { tags, io_us: numbers.next().unwrap(), jobs: numbers.collect() }
    }
}

/// The jobs, the device and the pool of its tags, on one processor.
struct Machine {
    pool: TagPool,
    io_us: u64,
    /// The I/Os in flight by the instant at which they end, in order of dispatch: the job and its
    /// tag.
    in_flight: BTreeMap<u64, Vec<(u64, u32)>>,
    dispatched: Vec<u64>,
}

impl Machine {
    /// Lets `job` try for a tag at `now`. Returns whether it got one; otherwise it sleeps.
    fn tries(&mut self, job: u64, now: u64) -> bool {
        let tag = self.pool.take(u32::MAX);
        match tag {
            Some(tag) => {
                self.in_flight.entry(now + self.io_us).or_default().push((job, tag));
                self.dispatched.push(job);
            }
            None => self.pool.wait(job, false).unwrap(),
        }
        tag.is_some()
    }

    /// Ends the I/Os that end at `now`. Then the threads run in the order in which they were woken:
    /// of each I/O its job, if that has done fewer than `ios`, and the waiters.
    fn end(&mut self, now: u64, ios: usize) {
        let mut runs = Vec::new();
        for (job, tag) in self.in_flight.remove(&now).unwrap() {
            self.pool.put(tag);
            let done = self.dispatched.iter().filter(|of| **of == job).count();
            runs.extend((done < ios).then_some((job, false)));
            runs.extend(
                core::iter::from_fn(|| self.pool.next_woken()).map(|waiter| (waiter, true)),
            );
        }
        for (job, was_woken) in runs {
            if self.tries(job, now) && was_woken {
                self.pool.woken_got_tag(false);
            }
        }
    }
}

/// Returns the jobs in the order of dispatch.
fn dispatched(recording: &Recording) -> Vec<u64> {
    let jobs = recording.jobs.iter().max().unwrap() + 1;
    let ios = recording.jobs.len() / usize::try_from(jobs).unwrap();
    let mut machine = Machine {
        pool: TagPool::new(recording.tags, 0, u32::try_from(jobs).unwrap()),
        io_us: recording.io_us,
        in_flight: BTreeMap::new(),
        dispatched: Vec::new(),
    };
    let mut begins = (0..jobs).map(|job| (job * GAP_US, job)).peekable();
    loop {
        let ends = machine.in_flight.first_key_value().map(|(at, _)| *at);
        match begins.next_if(|(at, _)| ends.is_none_or(|end| *at < end)) {
            Some((now, job)) => _ = machine.tries(job, now),
            None => {
                let Some(now) = ends else { return machine.dispatched };
                machine.end(now, ios);
            }
        }
    }
}

/// Wake-ups of one, one, two, four and eight at a time.
#[test]
fn real_time_threads_get_tags_in_the_order_of_linux() {
    let recordings = include_str!("waiters/linux-6.12");
    for recording in recordings.lines().map(Recording::parse) {
        let ours = dispatched(&recording);
        let alike = ours.iter().zip(&recording.jobs).take_while(|(a, b)| a == b).count();
        assert_eq!(alike, recording.jobs.len(), "with {} tags, in order", recording.tags);
        assert_eq!(ours.len(), recording.jobs.len(), "with {} tags", recording.tags);
    }
    assert_eq!(recordings.lines().count(), 5);
}
