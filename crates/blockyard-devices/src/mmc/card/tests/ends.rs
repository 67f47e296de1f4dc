//! The cost of the ends of writes, and the readiness of queued writes. The figures are computed by
//! hand.

use super::*;
use blockyard_mmc::command::queue::{TaskId, TaskParameters};

/// A page of 4 KiB on the wire: 8 blocks of 1042 + 9 clocks of 20 ns.
const PAGE: Duration = Duration::from_ns(168_160);
const FINISH: Duration = Duration::from_us(50);

/// Writes `blocks` in pages of 1 ms on `timing`. Returns the time from their first block to the end
/// of busy, less that of the first page on the wire and of [`FINISH`].
fn programming(timing: CardTiming, blocks: u16) -> Duration {
    let mut host = Host::new(emmc(), timing);
    let from = host.begin_write(0, blocks);
    let busy_until = host.transfer(blocks.into()).busy_until.unwrap();
    busy_until.since(from + PAGE + FINISH)
}

#[test]
fn a_transfer_that_ends_early_leaves_planes_idle() {
    let mut timing = slow();
    for (planes, times) in [(1, [1, 3, 4, 6]), (4, [4, 4, 4, 8])] {
        timing.write.parallel = planes;
        let found = [1, 3, 4, 6].map(|pages| programming(timing, pages * 8));
        assert_eq!(found, times.map(Duration::from_ms), "{planes} planes");
    }
}

/// Two blocks of a page of eight share it with later writes where busy ends early. Then they take a
/// quarter of its time on each of two planes.
#[test]
fn a_part_of_a_page_leaves_planes_idle_by_its_share() {
    let mut timing = slow();
    timing.write.early = true;
    timing.write.gather = crate::mmc::profile::Gather::Any;
    timing.write.parallel = 2;
    let mut host = Host::new(emmc(), timing);
    host.begin_write(0, 2);
    let end = host.transfer(2).end;
    assert_eq!(host.card.engine.done_at(), end + Duration::from_us(2 * 250));
}

/// As [`programming`] of 16 blocks, whose number is not announced.
fn stopped(timing: CardTiming) -> Duration {
    let mut host = Host::new(emmc(), timing);
    let from = host.send(&Command::write_multiple(0, 16)).data_from.unwrap();
    let _ = host.transfer(16);
    let stop = host.send(&Command::stop_transmission(Direction::Write));
    stop.busy_until.unwrap().since(from + PAGE + FINISH)
}

#[test]
fn an_end_that_only_a_stop_tells_closes_a_page() {
    let mut timing = slow();
    assert_eq!(stopped(timing), Duration::from_ms(2));
    timing.write.open_end = 30;
    assert_eq!(stopped(timing), Duration::from_us(2300));
    assert_eq!(programming(timing, 16), Duration::from_ms(2), "its end was announced");
}

#[test]
fn a_flush_updates_tables_once_for_what_was_written() {
    let mut host = Host::new(emmc(), slow());
    host.switch(index::CACHE_CTRL, 1);
    let flush = Command::switch(SwitchAccess::WriteByte, index::FLUSH_CACHE, 1);
    let command = Duration::from_ms(3);
    let times = [0, 8, 0].map(|blocks| {
        if blocks > 0 {
            let from = host.begin_write(0, blocks);
            let _ = host.transfer(blocks.into());
            host.now = from + PAGE + ONE_MS; // it is programmed
        }
        let reaction = host.send(&flush);
        host.wait();
        reaction.busy_until.unwrap().since(reaction.at)
    });
    assert_eq!(times, [command, command + FINISH, command]);
}

fn queue(host: &mut Host, task: u8) -> Instant {
    let parameters = TaskParameters::new(TaskId::new(task), Direction::Write, 8);
    let _ = host.send(&Command::queue_task_parameters(parameters));
    host.send(&Command::queue_task_address(u32::from(task) * 800)).at
}

fn ready(host: &mut Host) -> u32 {
    host.send(&Command::send_queue_status(RCA)).answer.unwrap().short().unwrap()
}

#[test]
fn a_queued_write_is_ready_once_it_is_taken_and_has_room() {
    let mut timing = slow();
    timing.write.early = true;
    timing.write.command = Duration::from_us(100);
    let mut host = Host::new(emmc(), timing);
    host.switch(index::CMDQ_MODE_EN, 1);
    let queued = queue(&mut host, 0);
    assert_eq!(host.card.next_task_ready(Instant::ZERO), Some(queued + Duration::from_us(100)));
    assert_eq!(ready(&mut host), 0);
    let _ = queue(&mut host, 1);
    let _ = queue(&mut host, 2);
    host.idle(Duration::from_us(100));
    // The buffer has room for two pages.
    assert_eq!(ready(&mut host), 0b011);
    assert_eq!(host.misuse(&Command::execute_write(TaskId::new(2), 8)), Wrong::Task(2));
    let _ = host.send(&Command::execute_write(TaskId::new(0), 8));
    let end = host.transfer(8).end;
    // One page is in the buffer for its 1 ms and the 100 us of its command, and the other one is
    // for the second write.
    host.wait();
    assert_eq!(ready(&mut host), 0b010);
    // Task 0 comes again, after task 2, which has the room first.
    let _ = queue(&mut host, 0);
    host.now = end + Duration::from_us(1100);
    assert_eq!(ready(&mut host), 0b110);
}
