//! A queue with an elevator that idles, and the loop that runs the queue at the instants that it names.
//!
//! ```sh
//! cargo run -p blockyard --example anticipatory
//! ```
//!
//! `elevator.rs` is the elevator. The tests below run it through the conformance test of the crate.

mod elevator;

use blockyard::bio::{Bio, Submitter};
use blockyard::device::null::NullDevice;
use blockyard::driver::Device;
use blockyard::elevator::Elevator;
use blockyard::host::Host;
use blockyard::layer::delay::{Delayed, Extra};
use blockyard::limits::Limits;
use blockyard::policy::{ElevatorKind, Policies, SchedDepth};
use blockyard::prng::Prng;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId};
use elevator::Anticipatory;

/// The time that the device takes for a request.
const SERVICE: Duration = Duration::from_ms(1);

/// A queue over a device that serves one request at a time.
struct Disk {
    queue: RequestQueue,
    host: Host<Delayed<NullDevice>>,
    now: Instant,
}

impl Disk {
    fn new(elevator: Box<dyn Elevator + Send>) -> Self {
        let tags = TagSetConfig::single(1);
        let device =
            Delayed::new(NullDevice::new(1, 1), Extra::fixed(SERVICE), Prng::new(0), &tags);
        let host = Host::new(device, (), tags);
        let policies = Policies {
            elevator: ElevatorKind::Other,
            sched_depth: SchedDepth::Fixed(8),
            ..Policies::NONE
        };
        let config = QueueConfig::new(1, 1, Limits::new(1 << 21), policies);
        let queue = RequestQueue::with_elevator(QueueId(0), config, &host, elevator);
        Self { queue, host, now: Instant::ZERO }
    }

    /// Submits the read numbered `number` of `process`, far from all others.
    fn read(&mut self, process: u32, number: u32) {
        let cookie = u64::from(process) << 32 | u64::from(number);
        self.submit(process, Bio::read(cookie % 999 * 80, 8, cookie));
    }

    fn submit(&mut self, process: u32, bio: Bio) {
        let bio = bio.with_submitter(Submitter { process, group: 0 });
        self.queue.submit(&mut self.host, CpuId(0), bio, self.now).expect("there is a tag");
        self.queue.turn(&mut self.host, self.now);
    }

    /// Advances to the next instant at which the queue or the device has something to do, `latest` at the latest,
    /// unless a read has ended already. Returns the process and the number of a read that has ended.
    fn advance(&mut self, latest: Instant) -> Option<(u32, u32)> {
        let mut ended = self.queue.next_ended();
        if ended.is_none() {
            let polls = [self.queue.poll_at(), self.host.driver.poll_at()];
            let next = polls.into_iter().flatten().min().unwrap_or(latest);
            self.now = next.clamp(self.now, latest);
            self.queue.turn(&mut self.host, self.now);
            ended = self.queue.next_ended();
        }
        let cookie = ended?.bio.cookie;
        Some((u32::try_from(cookie >> 32).ok()?, u32::try_from(cookie & 0xffff_ffff).ok()?))
    }
}

/// Two processes read `count` blocks each, one after the other: each submits its next read when the last has ended.
/// Returns the processes in the order in which their reads ended, and the time that all took.
fn read_in_turns(count: u32) -> (Vec<u32>, Duration) {
    let mut disk = Disk::new(Box::new(Anticipatory::default()));
    let end = Instant::ZERO + Duration::from_secs(1);
    let mut order = Vec::new();
    disk.read(1, 0);
    disk.read(2, 0);
    while disk.now < end && order.len() < 2 * count as usize {
        let Some((process, number)) = disk.advance(end) else { continue };
        order.push(process);
        if number + 1 < count {
            disk.read(process, number + 1);
        }
    }
    (order, disk.now.since(Instant::ZERO))
}

fn main() {
    let (order, took) = read_in_turns(3);
    println!("two processes read three blocks each, one read at a time");
    println!("their reads ended in the order {order:?}, after {} us", took.as_ns() / 1000);
}

#[cfg(test)]
mod tests {
    use super::*;
    use elevator::WAIT;

    fn at_us(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    /// Six reads of 1 ms, and the wait of 2 ms for a fourth read of process 1, which does not come.
    #[test]
    fn the_next_read_of_a_process_goes_before_a_read_that_waits() {
        assert_eq!(read_in_turns(3), (vec![1, 1, 1, 2, 2, 2], Duration::from_ms(8)));
    }

    /// The read of process 1 ends after 1 ms, and that of process 2 begins after 3 ms and ends after 4.
    #[test]
    fn the_wait_ends_at_its_instant() {
        let mut disk = Disk::new(Box::new(Anticipatory::default()));
        disk.read(1, 0);
        disk.read(2, 0);
        assert_eq!(disk.advance(at_us(9000)), Some((1, 0)));
        assert_eq!(disk.now, at_us(1000));
        assert_eq!(disk.queue.poll_at(), Some(at_us(3000)), "the wait of {WAIT:?}");
        assert_eq!(disk.queue.in_flight(), 0, "the device is idle");
        assert_eq!(disk.advance(at_us(9000)), None);
        assert_eq!((disk.now, disk.queue.in_flight()), (at_us(3000), 1));
        assert_eq!(disk.advance(at_us(9000)), Some((2, 0)));
        assert_eq!(disk.now, at_us(4000));
    }

    /// [elevator-starves-none]: process 1 always has its next read in time, and yet the other read goes.
    #[test]
    fn sixteen_reads_pass_over_a_read_that_waits() {
        let (order, _) = read_in_turns(40);
        let first_of_other = order.iter().position(|process| *process == 2);
        assert_eq!(first_of_other, Some(17), "the first read passes nobody, 16 more pass");
    }

    /// `find_merge` sees whose bio it is. While a read of process 1 is in the device, three reads of neighbouring
    /// sectors come: those of process 2 become one request, and that of process 3 waits for another 3 ms.
    #[test]
    fn only_bios_of_one_process_join() {
        let mut disk = Disk::new(Box::new(Anticipatory::default()));
        disk.read(1, 0);
        disk.submit(2, Bio::read(808, 8, 2));
        disk.submit(3, Bio::read(800, 8, 3));
        disk.submit(2, Bio::read(816, 8, 4));
        let mut ends = Vec::new();
        while !disk.queue.is_empty() {
            if let Some((_, cookie)) = disk.advance(at_us(99_000)) {
                ends.push((cookie, disk.now));
            }
        }
        let [one, two, three] = [1000, 4000, 7000].map(at_us);
        assert_eq!(ends, [(0, one), (2, two), (4, two), (3, three)]);
    }

    #[test]
    fn it_keeps_the_contract_of_elevators() {
        for seed in 0..300 {
            println!("seed {seed}");
            blockyard::conformance::elevator(seed, |_, _| Box::new(Anticipatory::default()));
        }
    }
}
