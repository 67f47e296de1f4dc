//! The card's reports about data ([certain-once-programmed]), in pages of 4 KiB that take 1 ms.

use super::*;
use crate::mmc::profile::CardTiming;
use blockyard_mmc::command::BlockCount;
use blockyard_mmc::command::queue::{TaskId, TaskParameters};

fn before(at: Instant, span: Duration) -> Instant {
    Instant::from_ns(at.as_ns() - span.as_ns())
}

fn host(cache: bool) -> Host {
    let mut timing = CardTiming::instant(1 << 16);
    timing.write.program = ONE_MS;
    timing.write.flush = ONE_MS;
    timing.read.access = ONE_MS;
    let mut host = Host::new(emmc(), timing);
    host.switch(index::CACHE_CTRL, u8::from(cache));
    host.card.keep_data();
    host
}

impl Host {
    /// Begins a write of this many pages at sector 0, forced past the cache or not.
    fn write_pages(&mut self, pages: u16, reliable: bool) -> Transferred {
        let count = BlockCount { reliable, ..BlockCount::new(8 * pages) };
        let _ = self.send(&Command::set_block_count(count));
        let _ = self.send(&Command::write_multiple(0, 8 * pages));
        self.transfer(u32::from(8 * pages))
    }

    fn data_events_by(&mut self, at: Instant) -> Vec<DataEvent<u32>> {
        self.card.advance_data(at);
        core::iter::from_fn(|| self.card.next_data_event()).collect()
    }
}

fn received(page: u64) -> DataEvent<u32> {
    let first = 8 * (page - 1);
    let place = u32::try_from(first).unwrap();
    DataEvent::Received { place, sectors: first..first + 8, page }
}

fn certain(page: u64) -> DataEvent<u32> {
    DataEvent::Certain { page, sectors: 8 * (page - 1)..8 * page }
}

#[test]
fn without_a_cache_and_past_it_each_page_is_certain_when_it_is_programmed() {
    for cache in [false, true] {
        let mut host = host(cache);
        let done = host.write_pages(3, cache);
        let busy_until = done.busy_until.unwrap();
        // The first page was programmed while the others arrived: 168 us each.
        assert_eq!(host.data_events_by(done.end), [1, 2, 3].map(received));
        assert_eq!(host.data_events_by(before(busy_until, ONE_MS)), [1, 2].map(certain));
        assert_eq!(host.data_events_by(busy_until), [certain(3)]);
    }
}

#[test]
fn what_is_in_the_cache_is_certain_by_a_flush_alone_and_only_what_is_programmed() {
    let mut host = host(true);
    let done = host.write_pages(2, false);
    assert_eq!(done.busy_until, Some(done.end), "the data should be in the cache");
    assert_eq!(host.data_events_by(done.end + Duration::from_secs(1)), [1, 2].map(received));
    let mut host = self::host(true);
    let _ = host.write_pages(4, false);
    let reaction = host.send(&Command::switch(SwitchAccess::WriteByte, index::FLUSH_CACHE, 1));
    let until = reaction.busy_until.unwrap();
    let mut data_events = host.data_events_by(before(until, ONE_MS + ONE_MS));
    assert_eq!(data_events.pop(), Some(DataEvent::Flushed { page: 3 }));
    assert_eq!(host.data_events_by(until), [DataEvent::Flushed { page: 4 }]);
    // A flush does not cover later writes.
    let _ = host.card.power_cut(until);
    assert_eq!(host.data_events_by(until), [DataEvent::Lost]);
}

fn queue(host: &mut Host, task: u8, direction: Direction, sector: u32) {
    let parameters = TaskParameters::new(TaskId::new(task), direction, 8);
    let _ = host.send(&Command::queue_task_parameters(parameters));
    let _ = host.send(&Command::queue_task_address(sector));
}

/// The swarm found this bug: a read in the command queue went before the last page of a write, and
/// the host still took the write for durable at the instant that the card had first given.
#[test]
fn a_read_that_goes_before_the_last_page_of_a_write_keeps_the_card_busy() {
    let mut host = host(false);
    host.switch(index::CMDQ_MODE_EN, 1);
    queue(&mut host, 0, Direction::Write, 0);
    let _ = host.send(&Command::execute_write(TaskId::new(0), 8));
    let done = host.transfer(8);
    let busy_until = done.busy_until.unwrap();
    queue(&mut host, 1, Direction::Read, 800);
    assert_eq!(host.card.busy_until(), Some(busy_until + ONE_MS));
    assert_eq!(host.data_events_by(busy_until), [received(1)]);
    assert_eq!(host.data_events_by(busy_until + ONE_MS), [certain(1)]);
}

fn packed(blocks: u16) -> Command {
    Command::set_block_count(BlockCount { packed: true, ..BlockCount::new(blocks) })
}

fn send_header(host: &mut Host, header: &[u8; 512]) {
    let _ = host.send(&packed(1));
    let _ = host.send(&Command::write_multiple(0x1000, 1));
    host.card.packed_header(header).unwrap();
    let _ = host.transfer(1);
    host.wait();
}

const fn sent(place: u32, sectors: Range<u64>) -> DataEvent<u32> {
    DataEvent::Sent { place, sectors }
}

#[test]
fn packed_reads_are_named_by_their_place_in_all_that_is_read() {
    let mut registers = emmc();
    let RegistersKind::Mmc { ext_csd } = &mut registers.kind else { unreachable!("it is one") };
    ext_csd[usize::from(index::MAX_PACKED_READS)] = 2;
    let mut host = Host::new(registers, CardTiming::instant(1 << 16));
    host.card.timing.read.access = ONE_MS;
    host.card.keep_data();
    let mut header = [0; 512];
    header[..3].copy_from_slice(&[1, 1, 2]);
    // 8 blocks at sector 0x1000, 4 at sector 0x2004.
    header[8..24].copy_from_slice(&[8, 0, 0, 0, 0, 0x10, 0, 0, 4, 0, 0, 0, 4, 0x20, 0, 0]);
    send_header(&mut host, &header);
    let _ = host.send(&packed(12));
    let from = host.send(&Command::read_multiple(0x1000, 12)).data_from.unwrap();
    let done = host.transfer(12);
    // Each read's data is fetched when its turn comes.
    assert!(done.end > from + ONE_MS + ONE_MS && done.blocks == 12);
    assert_eq!(host.data_events_by(done.end), [sent(0, 0x1000..0x1008), sent(8, 0x2004..0x2008)]);
    // A header covers only the reads that follow it, and only the blocks that it lists.
    send_header(&mut host, &header);
    let _ = host.send(&packed(11));
    assert_eq!(host.misuse(&Command::read_multiple(0x1000, 11)), Wrong::Count(12));
    let _ = host.send(&packed(12));
    let _ = host.send(&Command::send_ext_csd());
    let _ = host.transfer(1);
    let _ = host.send(&packed(12));
    assert_eq!(host.misuse(&Command::read_multiple(0x1000, 12)), Wrong::Header);
}
