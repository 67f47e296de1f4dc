//! A queue with an elevator of one's own.
//!
//! ```sh
//! cargo run -p blockyard --example reads_first
//! ```
//!
//! `elevator.rs` is the elevator. The tests below run it through the conformance test of the crate.

mod elevator;

use blockyard::bio::Bio;
use blockyard::device::null::NullDevice;
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::{ElevatorKind, Policies};
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, QueueId};
use elevator::ReadsFirst;

/// Submits `bios` to a device that serves one request at a time, and returns their cookies in the
/// order in which they ended.
fn order_of_ends(bios: &[Bio]) -> Vec<u64> {
    let mut host = Host::new(NullDevice::new(1, 1), (), TagSetConfig::single(64));
    let policies = Policies { elevator: ElevatorKind::Other, ..Policies::NONE };
    let config = QueueConfig::new(1, 1, Limits::new(1 << 21), policies);
    let own = Box::new(ReadsFirst::default());
    let mut queue = RequestQueue::with_elevator(QueueId(0), config, &host, own);
    let now = Instant::ZERO;
    for bio in bios {
        queue.submit(&mut host, CpuId(0), *bio, now).expect("there are more tags than bios");
    }
    queue.turn(&mut host, now);
    core::iter::from_fn(|| queue.next_ended()).map(|ended| ended.bio.cookie).collect()
}

fn main() {
    let bios = [Bio::write(0, 8, 1), Bio::write(800, 8, 2), Bio::read(1600, 8, 3)];
    println!("submitted: write 1, write 2, read 3");
    println!("ended in the order {:?}", order_of_ends(&bios));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(number: u64) -> u64 {
        number * 800
    }

    #[test]
    fn reads_go_first_and_each_kind_in_order() {
        let bios = [
            Bio::write(far(1), 8, 1),
            Bio::read(far(2), 8, 2),
            Bio::write(far(3), 8, 3),
            Bio::read(far(4), 8, 4),
        ];
        assert_eq!(order_of_ends(&bios), [2, 4, 1, 3]);
    }

    /// [elevator-starves-none].
    #[test]
    fn a_write_lets_sixteen_reads_pass() {
        let reads = (1..40).map(|number| Bio::read(number * 800, 8, number));
        let bios: Vec<_> = core::iter::once(Bio::write(0, 8, 0)).chain(reads).collect();
        assert_eq!(
            order_of_ends(&bios)[..18],
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 17]
        );
    }

    #[test]
    fn it_keeps_the_contract_of_elevators() {
        for seed in 0..300 {
            println!("seed {seed}");
            blockyard::conformance::elevator(seed, |_, _| Box::new(ReadsFirst::default()));
        }
    }
}
