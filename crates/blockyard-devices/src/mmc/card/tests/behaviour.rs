//! Tests of one behaviour each, with figures computed by hand.

use super::super::misuse::Wrong;
use super::super::packed::HeaderError;
use super::*;
use crate::mmc::profile::{AheadTiming, BackgroundTiming, Gather, Stall, WriteTiming};
use crate::reader::spread::Spread;
use blockyard_mmc::command::erase::MmcErase;
use blockyard_mmc::command::legal::Illegal;
use blockyard_mmc::command::queue::{TaskId, TaskParameters};
use blockyard_mmc::register::ext_csd::{BkopsLevel, ExceptionEvents};

/// A command with its response: 98 clocks of 20 ns.
const COMMAND: Duration = Duration::from_ns(1960);
/// A page of 4 KiB on the wire: 8 blocks of 1042 + 9 clocks.
const PAGE: Duration = Duration::from_ns(168_160);

/// Returns the wire time of a read of `blocks`: 1042 clocks per block, and 2 between two blocks.
fn on_wire(blocks: u64) -> Duration {
    Duration::from_ns((blocks * 1044 - 2) * 20)
}

#[test]
fn a_buffer_takes_data_at_the_wire_s_speed_until_it_is_full() {
    let mut host = Host::new(emmc(), slow());
    let from = host.begin_write(0, 32);
    let done = host.transfer(32);
    // Two pages fit at once. The third enters when the first is programmed, the fourth after the
    // second.
    assert_eq!(done.begin, from);
    assert_eq!(done.end, from + PAGE + ONE_MS + ONE_MS + PAGE);
    // Then the third and the fourth are programmed, one after the other.
    let programmed = from + PAGE + Duration::from_ms(4);
    assert_eq!(done.busy_until, Some(programmed + Duration::from_us(50)));
    assert_eq!(host.card.unprogrammed_bytes(done.end), 8192);
    // The card is busy with the received data, then ready. A host must not stop a write that has
    // ended.
    assert_eq!(host.card.state(done.end), CardState::Programming);
    assert!(!host.status().is_ready());
    let stop = Command::stop_transmission(Direction::Write);
    assert!(matches!(host.misuse(&stop), Wrong::Illegal(_)));
    host.wait();
    assert!(host.status().is_ready());
}

fn write_in(pieces: &[u32]) -> (Instant, Option<Instant>) {
    let mut host = Host::new(emmc(), slow());
    // Sectors 5 to 31: 3 sectors of a page, then three whole pages.
    host.begin_write(5, 27);
    let last = pieces.iter().map(|&blocks| host.transfer(blocks)).last().unwrap();
    (last.end, last.busy_until)
}

#[test]
fn data_asked_for_block_by_block_flows_as_if_asked_for_at_once() {
    assert_eq!(write_in(&[27]), write_in(&[1; 27]));
    assert_eq!(write_in(&[27]), write_in(&[2, 8, 9, 8]));
}

#[test]
fn a_page_that_is_written_in_part_costs_more() {
    let mut timing = slow();
    timing.write.partial = Duration::from_us(300);
    let mut host = Host::new(sd(), timing);
    // Sectors 7 to 16: parts of the first and third pages, and all of the second.
    let from = host.send(&Command::write_multiple(7, 10)).data_from.unwrap();
    let _ = host.transfer(10);
    let stop = host.send(&Command::stop_transmission(Direction::Write));
    let first_block = Duration::from_ns(1051 * 20);
    let programs = Duration::from_us(1300 + 1000 + 1300);
    assert_eq!(stop.busy_until, Some(from + first_block + programs + Duration::from_us(50)));
}

/// Reads a block. Returns when it was there, and when it was asked for.
fn read_block(host: &mut Host, sector: u32) -> (Instant, Instant) {
    let _ = host.send(&Command::read_single(sector));
    let asked = host.now;
    (host.transfer(1).end, asked)
}

#[test]
fn a_card_that_reads_ahead_fetches_while_the_host_is_away() {
    let block = Duration::from_ns(1042 * 20);
    let mut timing = CardTiming::instant(4096);
    timing.read.access = Duration::from_us(100);
    let at_random = timing;
    // The card reads ahead at 50 us per block, up to 4 blocks.
    let per_kib = Duration::from_us(100);
    timing.read.ahead =
        Some(AheadTiming { per_kib, window_bytes: 2048, command: Duration::ZERO, streams: 1 });
    let mut host = Host::new(sd(), timing);
    let first = host.send(&Command::read_single(100));
    assert_eq!(first.data_from, Some(first.at + Duration::from_us(100)));
    let done = host.transfer(1);
    assert_eq!(done.end, first.at + Duration::from_us(100) + block);
    let fetched = done.end + Duration::from_us(50);
    assert_eq!(read_block(&mut host, 101).0, fetched);
    host.idle(Duration::from_us(60));
    let (end, asked) = read_block(&mut host, 102);
    assert_eq!(end, asked + block);
    // A long pause yields no more than four blocks: the fifth is fetched while they are sent.
    host.idle(ONE_MS);
    let begin = host.send(&Command::read_multiple(103, 6)).at;
    let sent = host.transfer(6).end;
    assert_eq!(sent, (begin + Duration::from_us(100)).max(begin + on_wire(6)));
    let _ = host.send(&Command::stop_transmission(Direction::Read));
    // A read up to four blocks back continues the stream. A read elsewhere or after a write does
    // not.
    host.idle(ONE_MS);
    let (end, asked) = read_block(&mut host, 105);
    assert_eq!(end, asked + block);
    host.idle(ONE_MS);
    let (end, asked) = read_block(&mut host, 104);
    assert_eq!(end, asked + Duration::from_us(100) + block);
    let _ = host.send(&Command::write_single(9));
    let _ = host.transfer(1);
    host.idle(ONE_MS);
    let (end, asked) = read_block(&mut host, 105);
    assert_eq!(end, asked + Duration::from_us(100) + block);
    let mut host = Host::new(sd(), at_random);
    for sector in 0..2 {
        let (end, asked) = read_block(&mut host, sector);
        assert_eq!(end, asked + Duration::from_us(100) + block);
        host.idle(ONE_MS);
    }
}

fn read_in(per_kib: Duration, pieces: &[u32]) -> Instant {
    let mut timing = CardTiming::instant(4096);
    timing.read.ahead =
        Some(AheadTiming { per_kib, window_bytes: 2048, command: Duration::ZERO, streams: 1 });
    let mut host = Host::new(sd(), timing);
    let _ = host.send(&Command::read_single(0));
    let _ = host.transfer(1);
    let _ = host.send(&Command::read_multiple(1, 12));
    pieces.iter().map(|&blocks| host.transfer(blocks).end).last().unwrap()
}

#[test]
fn blocks_that_are_fetched_as_they_are_sent_flow_alike_in_pieces() {
    for per_kib in [Duration::from_us(1), Duration::from_us(100)] {
        assert_eq!(read_in(per_kib, &[12]), read_in(per_kib, &[1; 12]));
        assert_eq!(read_in(per_kib, &[12]), read_in(per_kib, &[3, 1, 8]));
    }
}

#[test]
fn a_cache_takes_what_a_flush_or_time_makes_durable() {
    let mut host = Host::new(emmc(), slow());
    host.switch(index::CACHE_CTRL, 1);
    let from = host.begin_write(0, 32);
    let done = host.transfer(32);
    // With 64 KiB of room, only the wire limits the transfer; then come 50 us.
    assert_eq!(done.end, from + PAGE + PAGE + PAGE + PAGE);
    assert_eq!(done.busy_until, Some(done.end + Duration::from_us(50)));
    assert_eq!(host.card.unprogrammed_bytes(done.end), 16_384);
    host.wait();
    let programmed = from + PAGE + Duration::from_ms(4);
    let mut cut = host.card.clone();
    let flush = host.send(&Command::switch(SwitchAccess::WriteByte, index::FLUSH_CACHE, 1));
    // The tables are updated once for all of them.
    let flushed = Duration::from_us(3050);
    assert_eq!(flush.busy_until, Some(programmed + flushed));
    host.wait();
    assert_eq!(host.card.unprogrammed_bytes(host.now), 0);
    // Without the flush, a loss of power takes the pages not yet programmed: 2 of 4.
    assert_eq!(cut.power_cut(from + PAGE + Duration::from_us(2500)), 8192);
}

#[test]
fn a_forced_write_does_not_stop_at_the_cache() {
    let mut host = Host::new(emmc(), slow());
    host.switch(index::CACHE_CTRL, 1);
    let forced = BlockCount { forced: true, ..BlockCount::new(8) };
    let _ = host.send(&Command::set_block_count(forced));
    let from = host.send(&Command::write_multiple(0, 8)).data_from.unwrap();
    let done = host.transfer(8);
    assert_eq!(done.busy_until, Some(from + PAGE + ONE_MS + Duration::from_us(50)));
}

#[test]
fn a_read_waits_for_the_page_in_work_only() {
    let mut timing = slow();
    timing.read.access = Duration::from_us(100);
    timing.write.early = true;
    let mut host = Host::new(sd(), timing);
    let from = host.send(&Command::write_multiple(0, 16)).data_from.unwrap();
    let _ = host.transfer(16);
    let _ = host.send(&Command::stop_transmission(Direction::Write));
    host.wait();
    let read = host.send(&Command::read_single(99));
    assert_eq!(read.data_from, Some(from + PAGE + ONE_MS + Duration::from_us(100)));
}

#[test]
fn a_stall_comes_as_often_and_lasts_as_long_as_the_figures_say() {
    let least = Duration::from_ms(10);
    let most = Duration::from_ms(12);
    let mut timing = slow();
    let spread = Spread::new(&[(0, 100), (100_000_000, 120)]);
    timing.stall = Some(Stall { one_in_pages: 4, length: least, spread });
    let mut host = Host::new(sd(), timing);
    let usual = PAGE + ONE_MS + Duration::from_us(50) + COMMAND + COMMAND;
    let spans = (0..4000).map(|page| host.run(Direction::Write, page * 8, 8) - usual);
    let stalls: Vec<_> = spans.filter(|&more| more > ONE_MS).collect();
    // The expected number is 1000, with a standard deviation of 27.
    assert!((900..1100).contains(&stalls.len()), "{}", stalls.len());
    assert!(stalls.iter().all(|&stall| stall >= least && stall <= most));
}

#[test]
fn a_host_that_waits_no_longer_has_the_blocks_before_and_must_stop_the_card() {
    let limit = Duration::from_us(100);
    // There is room for one page. The next waits until the first is programmed.
    for (program, good) in [(Duration::from_us(400), 8), (Duration::from_us(20), 24)] {
        let mut timing = CardTiming::instant(4096);
        timing.write.program = program;
        let mut host = Host::new(sd(), timing);
        let from = host.begin_write(0, 24);
        let done = host.card.transfer_within(limit, 24, from).unwrap();
        assert_eq!(done.blocks, good);
        assert_eq!(done.error.is_some(), good < 24);
        if good < 24 {
            assert_eq!(done.error, Some(DataError::Timeout));
            assert_eq!(done.end, from + PAGE, "the host should wait from the end of the last page");
            host.now = done.end + limit;
            assert_eq!(host.card.state(host.now), CardState::Receive);
            let _ = host.send(&Command::stop_transmission(Direction::Write));
        }
    }
    let mut timing = CardTiming::instant(4096);
    timing.read.access = Duration::from_us(101);
    let mut host = Host::new(sd(), timing);
    let from = host.send(&Command::read_single(0)).at;
    let done = host.card.transfer_within(limit, 1, from).unwrap();
    assert_eq!((done.error, done.blocks, done.end), (Some(DataError::Timeout), 0, from));
}

/// The host moves data without a command, or more data than it asked for.
fn wrong_transfer(host: &mut Host, blocks: u32) -> Wrong {
    host.card.transfer(blocks, host.now).unwrap_err().wrong
}

/// [misuse-changes-nothing]
#[test]
fn what_a_host_must_not_do_is_named_with_command_state_and_instant() {
    let mut host = Host::new(emmc(), slow());
    let _ = host.begin_write(0, 8);
    let _ = host.transfer(8);
    let arrives = host.now + host.card.command_time();
    let misuse = host.card.command(&Command::read_single(0), arrives).unwrap_err();
    // Two commands of 98 clocks, 168,160 ns of data, 48 clocks.
    assert_eq!(
        misuse.to_string(),
        "at 0.000173040 in state Programming, CMD17 (0x00000000): CMD17 (ReadSingle) is illegal \
         in state Programming with the queue Off"
    );
    host.wait();
    for (command, wrong) in [
        (Command::send_scr(), Wrong::Standard),
        (Command::application(RCA), Wrong::Standard),
        (Command::send_status(Rca(7)), Wrong::Rca),
        (
            Command::interrupt_by_status(RCA),
            Wrong::Illegal(Illegal {
                opcode: Opcode::InterruptByStatus,
                state: CardState::Transfer,
                queue: Queue::Off,
            }),
        ),
        (Command::set_block_len(1024), Wrong::Unmodelled("a block of other than 512 bytes")),
        (
            Command::switch(SwitchAccess::WriteByte, index::FLUSH_CACHE, 2),
            Wrong::Unmodelled("the cache barrier"),
        ),
        (Command::mmc_erase(MmcErase::SecureErase), Wrong::Unmodelled("secure erase")),
    ] {
        let _ = host.status();
        assert_eq!(host.misuse(&command), wrong);
    }
    let _ = host.send(&count(8));
    assert_eq!(host.misuse(&Command::read_multiple(0, 4)), Wrong::Count(8));
    // Any other command makes the card forget the count: the read then ends with CMD12 only.
    let _ = host.status();
    let _ = host.send(&Command::read_multiple(0, 4));
    let _ = host.transfer(4);
    assert_eq!(host.card.state(host.now), CardState::Data);
    let _ = host.send(&Command::stop_transmission(Direction::Read));
    let _ = host.send(&count(8));
    assert_eq!(wrong_transfer(&mut host, 1), Wrong::Transfer(1));
    let _ = host.send(&Command::read_multiple(0, 8));
    assert_eq!(wrong_transfer(&mut host, 9), Wrong::Transfer(9));
    // Time moves forward, and a host waits for each response.
    let early = host.card.command(&Command::send_status(RCA), Instant::ZERO).unwrap_err();
    assert!(matches!(early.wrong, Wrong::Backwards(_)));
    let end = host.send(&Command::send_status(RCA)).at;
    let arrives = Instant::from_ns(end.as_ns() - 1);
    let early = host.card.command(&Command::send_status(RCA), arrives).unwrap_err();
    assert_eq!(early.wrong, Wrong::Overlap(end));
    let mut host = Host::new(sd(), slow());
    assert_eq!(host.misuse(&Command::send_scr()), Wrong::NotApplication);
    assert_eq!(host.misuse(&Command::send_ext_csd()), Wrong::Standard);
}

#[test]
fn an_address_beyond_the_end_is_answered_with_an_error_and_no_data() {
    let mut host = Host::new(emmc(), slow());
    let _ = host.send(&count(2));
    let read = host.send(&Command::read_multiple((1 << 21) - 1, 2));
    assert_eq!(read.answer.unwrap().status().unwrap().errors(), Status::OUT_OF_RANGE);
    assert_eq!((read.data_from, host.card.state(read.at)), (None, CardState::Transfer));
    assert!(host.status().is_ready());
    // The boot partition has 256 sectors.
    host.switch(index::PARTITION_CONFIG, 1);
    let _ = host.send(&Command::read_single(255));
    let _ = host.transfer(1);
    assert!(host.send(&Command::read_single(256)).data_from.is_none());
    let mut bytes = sd();
    bytes.addressing = Addressing::Bytes;
    let mut host = Host::new(bytes, slow());
    let read = host.send(&Command::read_single(100));
    assert_eq!(read.answer.unwrap().status().unwrap().errors(), Status::ADDRESS_MISALIGN);
}

#[test]
fn a_switch_that_the_device_does_not_have_is_told_by_the_next_status() {
    let mut none = emmc();
    if let RegistersKind::Mmc { ext_csd } = &mut none.kind {
        ext_csd[usize::from(index::CMDQ_SUPPORT)] = 0;
    }
    let mut host = Host::new(none, slow());
    let on = Command::switch(SwitchAccess::WriteByte, index::CMDQ_MODE_EN, 1);
    let reaction = host.send(&on);
    assert_eq!(reaction.answer.unwrap().status().unwrap().errors(), 0);
    assert_eq!(reaction.busy_until, Some(reaction.at + Duration::from_ms(2)));
    host.wait();
    assert_eq!(host.status().errors(), Status::SWITCH_ERROR);
    assert_eq!(host.status().errors(), 0);
    let _ = host.send(&Command::read_single(0));
}

#[test]
fn an_interrupt_ends_busy_early_and_says_what_of_a_write_is_good() {
    let mut host = Host::new(emmc(), slow());
    let interrupt = Command::interrupt_by_status(RCA);
    let _ = host.begin_write(0, 128);
    let _ = host.transfer(128);
    // 14 of 16 pages are programmed when the last is received, so 2 ms are left.
    assert_eq!(host.misuse(&interrupt), Wrong::Interrupt);
    host.wait();
    host.switch(index::HPI_MGMT, 1);
    let _ = host.begin_write(0, 128);
    let done = host.transfer(128);
    let reaction = host.send(&interrupt);
    // The 5 ms of the interrupt would end after the busy time itself.
    assert_eq!(reaction.busy_until, done.busy_until);
    host.wait();
    assert!(host.status().is_ready());
    assert_eq!(host.ext_csd().programmed_sectors(), 14 * 8);
    host.idle(ONE_MS);
    // Without an interrupt, sanitize would take an hour.
    host.card.timing.erase.sanitize = Duration::from_secs(3600);
    let _ = host.send(&Command::switch(SwitchAccess::WriteByte, index::SANITIZE_START, 1));
    let reaction = host.send(&interrupt);
    assert_eq!(reaction.busy_until, Some(reaction.at + Duration::from_ms(5)));
    // A second interrupt does not postpone the end.
    assert_eq!(host.send(&interrupt).busy_until, reaction.busy_until);
}

#[test]
fn an_interrupt_that_crosses_with_the_end_of_busy_is_nobody_s_fault() {
    let mut host = Host::new(emmc(), slow());
    host.switch(index::HPI_MGMT, 1);
    let _ = host.begin_write(0, 8);
    let _ = host.transfer(8);
    assert!(!host.status().is_ready());
    host.wait();
    let reaction = host.send(&Command::interrupt_by_status(RCA));
    assert!(reaction.answer.unwrap().status().unwrap().is_ready());
    assert_eq!(reaction.busy_until, None);
    // Now the host could have known.
    assert!(matches!(host.misuse(&Command::interrupt_by_status(RCA)), Wrong::Illegal(_)));
    // A host that has not asked whether the card is busy is at fault as well.
    let _ = host.begin_write(0, 8);
    let _ = host.transfer(8);
    host.wait();
    assert!(matches!(host.misuse(&Command::interrupt_by_status(RCA)), Wrong::Illegal(_)));
}

#[test]
fn an_interrupt_by_stop_ends_a_write_that_still_receives() {
    let mut registers = emmc();
    if let RegistersKind::Mmc { ext_csd } = &mut registers.kind {
        ext_csd[usize::from(index::HPI_FEATURES)] = 3;
    }
    let mut host = Host::new(registers, slow());
    let _ = host.send(&Command::switch(SwitchAccess::WriteByte, index::HPI_MGMT, 1));
    assert_eq!(host.misuse(&Command::interrupt_by_status(RCA)), Wrong::Interrupt);
    host.wait();
    // Two of 3 pages and a block are received. The first page is programmed 1 ms after it arrived,
    // and the interrupt comes later than that.
    let _ = host.send(&Command::write_multiple(0, 24));
    let _ = host.transfer(17);
    let interrupt = Command::interrupt_by_stop(RCA);
    let reaction = host.send(&interrupt);
    // The rest (a page, the block's page, and 50 us) takes less than the 5 ms allowed for an
    // interrupt.
    let left = reaction.busy_until.unwrap().since(reaction.at);
    assert!(left > ONE_MS && left < Duration::from_ms(3), "{left:?}");
    assert!(!host.status().is_ready());
    host.wait();
    // This interrupt comes too late: the card is not busy and does not accept it.
    let late = host.send(&interrupt);
    assert_eq!(late.answer, Err(NoAnswer::Timeout));
    assert_eq!(host.status().errors(), Status::ILLEGAL_COMMAND);
    assert_eq!(host.ext_csd().programmed_sectors(), 8);
}

#[test]
fn work_put_off_becomes_urgent_and_is_done_when_asked_for() {
    let mut timing = slow();
    let per_kib = Duration::from_us(100);
    timing.background = Some(BackgroundTiming { level_bytes: 8192, per_kib });
    let mut host = Host::new(emmc(), timing);
    host.switch(index::HPI_MGMT, 1);
    for page in 0..3 {
        let _ = host.begin_write(page * 8, 8);
        let _ = host.transfer(8);
        host.wait();
        assert!(!host.status().has(Status::EXCEPTION_EVENT));
    }
    assert_eq!(host.ext_csd().bkops_level(), BkopsLevel::Wanted);
    // 16 KiB of background work are level 2.
    let _ = host.begin_write(24, 8);
    let _ = host.transfer(8);
    host.wait();
    assert!(host.status().has(Status::EXCEPTION_EVENT));
    let ext_csd = host.ext_csd();
    assert_eq!(ext_csd.bkops_level(), BkopsLevel::Impacted);
    assert!(ext_csd.exceptions().has(ExceptionEvents::URGENT_BKOPS));
    // There is 1.6 ms of work. An interrupt comes after 100 us and 2 commands: 1 KiB is done.
    let start = Command::switch(SwitchAccess::WriteByte, index::BKOPS_START, 1);
    let begun = host.send(&start);
    assert_eq!(begun.busy_until, Some(begun.at + Duration::from_us(1600)));
    host.now = begun.at + Duration::from_us(100);
    let _ = host.send(&Command::interrupt_by_status(RCA));
    host.wait();
    assert_eq!(host.ext_csd().bkops_level(), BkopsLevel::Wanted);
    let begun = host.send(&start);
    // 1 KiB takes 100 us, and the interrupt's own 1.96 us did 20 bytes more.
    assert_eq!(begun.busy_until, Some(begun.at + Duration::from_ns(1_500_000 - 1_953)));
    host.wait();
    assert_eq!(host.ext_csd().bkops_level(), BkopsLevel::None);
    // A device that may start background operations itself runs them while it is idle.
    let mut host = Host::new(emmc(), timing);
    host.switch(index::BKOPS_EN, 2);
    // There are 20 KiB, less the work done between two commands; 8 KiB more take 800 us.
    for page in 0..5 {
        let _ = host.begin_write(page * 8, 8);
        let _ = host.transfer(8);
        host.wait();
    }
    assert_eq!(host.ext_csd().bkops_level(), BkopsLevel::Impacted);
    host.idle(Duration::from_us(800));
    assert_eq!(host.ext_csd().bkops_level(), BkopsLevel::Wanted);
}

fn packed(blocks: u16) -> Command {
    Command::set_block_count(BlockCount { packed: true, ..BlockCount::new(blocks) })
}

#[test]
fn packed_writes_are_one_transfer_with_one_busy() {
    let mut host = Host::new(emmc(), slow());
    let mut header = [0; 512];
    header[..3].copy_from_slice(&[1, 2, 2]);
    // 8 blocks at sector 0x1000, and 8 at sector 0x2004, which are half of each of two pages.
    header[8..24].copy_from_slice(&[8, 0, 0, 0, 0, 0x10, 0, 0, 8, 0, 0, 0, 4, 0x20, 0, 0]);
    let _ = host.send(&packed(17));
    let from = host.send(&Command::write_multiple(0x1000, 17)).data_from.unwrap();
    assert_eq!(wrong_transfer(&mut host, 17), Wrong::Header);
    let mut short = header;
    short[16] = 7;
    let wrong = host.card.packed_header(&short).unwrap_err().wrong;
    assert_eq!(wrong, Wrong::BadHeader(HeaderError::Blocks(16)));
    let mut far = header;
    far[15] = 0xff;
    let wrong = host.card.packed_header(&far).unwrap_err().wrong;
    assert_eq!(wrong, Wrong::BadHeader(HeaderError::Entry(1)));
    host.card.packed_header(&header).unwrap();
    assert_eq!(host.card.packed_header(&header).unwrap_err().wrong, Wrong::Header);
    let done = host.transfer(17);
    // The header, a page and half a page fit. The other half has room when the first page is
    // programmed, after 1 ms. Three pages are programmed in all, one after the other.
    let block = Duration::from_ns(1051 * 20);
    let programs = Duration::from_ms(3);
    assert_eq!(done.busy_until, Some(from + block + PAGE + programs + Duration::from_us(50)));
    host.wait();
    assert!(host.status().is_ready());
    assert_eq!(host.ext_csd().packed_failure(), None);
    // Each page fails, so the first failed entry is entry 1.
    host.card.timing.faults.program_one_in = Some(1);
    host.switch(index::EXCEPTION_EVENTS_CTRL, 8);
    let _ = host.send(&packed(17));
    let _ = host.send(&Command::write_multiple(0x1000, 17));
    host.card.packed_header(&header).unwrap();
    let _ = host.transfer(17);
    host.wait();
    assert!(host.status().has(Status::EXCEPTION_EVENT));
    assert_eq!(host.ext_csd().packed_failure(), Some(1));
    // A packed write of one block is the header of packed reads.
    let _ = host.send(&packed(1));
    assert_eq!(
        host.misuse(&Command::write_multiple(0, 1)),
        Wrong::Unmodelled("a packed read on this card")
    );
}

/// Queues a task of 8 blocks. Returns when it is queued.
fn queue(host: &mut Host, task: u8, direction: Direction, sector: u32) -> Instant {
    let parameters = TaskParameters::new(TaskId::new(task), direction, 8);
    let _ = host.send(&Command::queue_task_parameters(parameters));
    host.send(&Command::queue_task_address(sector)).at
}

fn ready_tasks(host: &mut Host) -> u32 {
    host.send(&Command::send_queue_status(RCA)).answer.unwrap().short().unwrap()
}

#[test]
fn a_command_queue_accesses_while_data_flows() {
    let mut timing = slow();
    timing.read.access = Duration::from_us(200);
    timing.read.parallel = 2;
    let mut host = Host::new(emmc(), timing);
    host.switch(index::CMDQ_MODE_EN, 1);
    assert!(matches!(host.misuse(&Command::read_single(0)), Wrong::Illegal(_)));
    assert_eq!(host.misuse(&Command::queue_task_address(0)), Wrong::NoTask);
    let first = queue(&mut host, 3, Direction::Read, 0);
    let second = queue(&mut host, 4, Direction::Read, 800);
    let third = queue(&mut host, 5, Direction::Read, 1600);
    let _ = queue(&mut host, 6, Direction::Write, 0);
    // The write is ready. The reads are ready 200 us after they were queued, the third after the
    // first.
    assert_eq!(ready_tasks(&mut host), 1 << 6);
    let access = Duration::from_us(200);
    assert_eq!(host.card.next_task_ready(host.now), Some(first + access));
    assert_eq!(host.card.next_task_ready(first + access), Some(second + access));
    assert!(third < first + access);
    assert_eq!(host.card.next_task_ready(second + access), Some(first + access + access));
    let execute = Command::execute_read(TaskId::new(3), 8);
    assert_eq!(host.misuse(&execute), Wrong::Task(3));
    host.now = first + access;
    assert_eq!(host.misuse(&Command::execute_read(TaskId::new(3), 9)), Wrong::Count(8));
    assert_eq!(host.misuse(&Command::execute_write(TaskId::new(3), 8)), Wrong::Task(3));
    let reaction = host.send(&execute);
    assert_eq!(reaction.data_from, Some(reaction.at));
    // While the task's data flows, the next task becomes ready and a new one is queued.
    host.idle(Duration::from_us(2));
    assert_eq!(ready_tasks(&mut host), 1 << 6 | 1 << 4);
    let _ = queue(&mut host, 3, Direction::Read, 8);
    let double = TaskParameters::new(TaskId::new(4), Direction::Read, 1);
    assert_eq!(host.misuse(&Command::queue_task_parameters(double)), Wrong::Task(4));
    let _ = host.transfer(8);
    let written = host.send(&Command::execute_write(TaskId::new(6), 8));
    let done = host.transfer(8);
    // A task can also be queued while write data is received, even if the host passed all of it at
    // once.
    host.now = written.at;
    let _ = queue(&mut host, 7, Direction::Read, 16);
    assert_eq!(host.card.state(host.now), CardState::Receive);
    host.now = done.end;
    host.wait();
    // A discarded task is not ready.
    let off = Command::switch(SwitchAccess::WriteByte, index::CMDQ_MODE_EN, 0);
    assert!(matches!(host.misuse(&off), Wrong::Illegal(_)));
    let _ = host.send(&Command::discard_task(TaskId::new(4)));
    host.wait();
    host.idle(ONE_MS);
    assert_eq!(ready_tasks(&mut host), 1 << 7 | 1 << 5 | 1 << 3);
    let _ = host.send(&Command::discard_queue());
    host.wait();
    assert_eq!(ready_tasks(&mut host), 0);
    host.switch(index::CMDQ_MODE_EN, 0);
    let _ = host.send(&Command::read_single(0));
}

fn errors(reaction: &Reaction) -> u32 {
    reaction.answer.unwrap().status().unwrap().errors()
}

#[test]
fn an_erase_needs_its_three_commands_in_a_row() {
    let mut timing = slow();
    timing.erase.erase = Duration::from_ms(7);
    timing.erase.trim = Duration::from_ms(6);
    let mut host = Host::new(emmc(), timing);
    let erase = Command::mmc_erase(MmcErase::Erase);
    let refused = host.send(&erase);
    assert_eq!((errors(&refused), refused.busy_until), (Status::ERASE_SEQ_ERROR, None));
    // Sectors 1023 and 1024 are in two erase groups of 1024, or in one of 4096 with high-capacity
    // groups.
    let _ = host.send(&Command::mmc_erase_start(1023));
    let _ = host.send(&Command::mmc_erase_end(1024));
    let _ = host.status();
    let busy = host.send(&Command::mmc_erase(MmcErase::Trim));
    assert_eq!(busy.busy_until, Some(busy.at + Duration::from_ms(12)));
    host.wait();
    if let RegistersKind::Mmc { ext_csd } = &mut host.card.registers.kind {
        ext_csd[usize::from(index::HC_ERASE_GRP_SIZE)] = 4;
    }
    host.switch(index::ERASE_GROUP_DEF, 1);
    let _ = host.send(&Command::mmc_erase_start(1023));
    let _ = host.send(&Command::mmc_erase_end(1024));
    let busy = host.send(&erase);
    assert_eq!(busy.busy_until, Some(busy.at + Duration::from_ms(7)));
    host.wait();
    let _ = host.send(&Command::mmc_erase_start(1024));
    let _ = host.send(&Command::mmc_erase_end(1023));
    assert_eq!(errors(&host.send(&erase)), Status::ERASE_PARAM);
    let _ = host.send(&Command::mmc_erase_start(0));
    let between = host.send(&count(1)).answer.unwrap().status().unwrap();
    assert!(between.has(Status::ERASE_RESET));
    let _ = host.send(&Command::mmc_erase_end(0));
    assert_eq!(errors(&host.send(&erase)), Status::ERASE_SEQ_ERROR);
}

#[test]
fn falling_asleep_and_waking_take_time() {
    let mut host = Host::new(emmc(), slow());
    let _ = host.send(&Command::deselect());
    let asleep = host.send(&Command::sleep(RCA)).busy_until.unwrap();
    assert_eq!(host.misuse(&Command::awake(RCA)), Wrong::Busy(asleep));
    host.now = asleep;
    assert!(matches!(host.misuse(&Command::send_status(RCA)), Wrong::Illegal(_)));
    let awake = host.send(&Command::awake(RCA));
    assert_eq!(awake.busy_until, Some(awake.at + Duration::from_ms(2)));
    assert!(matches!(host.misuse(&Command::select(RCA)), Wrong::Busy(_)));
    host.wait();
    let _ = host.send(&Command::select(RCA));
    assert!(host.status().is_ready());
}

#[test]
fn a_busy_card_can_be_left_and_selected_again() {
    let mut host = Host::new(sd(), slow());
    let _ = host.send(&Command::write_multiple(0, 8));
    let _ = host.transfer(8);
    let busy = host.send(&Command::stop_transmission(Direction::Write)).busy_until;
    let _ = host.send(&Command::deselect());
    assert_eq!(host.card.state(host.now), CardState::Disconnect);
    assert_eq!(host.send(&Command::select(RCA)).busy_until, busy);
    assert_eq!(host.card.state(host.now), CardState::Programming);
    host.wait();
    assert!(host.status().is_ready());
}

/// Writes a page of 8 sectors at each of `sectors`, in two halves, on a card that gathers. Returns
/// the time of its memory, a flush included, in ms.
fn gathered(gather: Gather, sequences: u8, sectors: &[u32]) -> u64 {
    let mut timing = slow();
    timing.write.gather = gather;
    timing.write.sequences = sequences;
    timing.write.jump = Duration::from_ms(100);
    let mut host = Host::new(emmc(), timing);
    host.switch(index::CACHE_CTRL, 1);
    for half in [0, 4] {
        for sector in sectors {
            let _ = host.run(Direction::Write, sector + half, 4);
        }
    }
    host.switch(index::FLUSH_CACHE, 1);
    host.card.memory_time(host.now).as_ns() / 1_000_000
}

/// A page takes 1 ms, a write that continues nothing 100 ms more.
#[test]
fn writes_share_pages_as_their_card_gathers_them() {
    // Two sequences in turns. Each half of a page costs a page, or the halves of a sequence share
    // one.
    assert_eq!(gathered(Gather::Command, 2, &[0, 800]), 4 + 200);
    assert_eq!(gathered(Gather::Sequence, 2, &[0, 800]), 2 + 200);
    assert_eq!(gathered(Gather::Any, 2, &[0, 800]), 2 + 200);
    // A card that follows one sequence programs half a page whenever the other sequence goes on.
    assert_eq!(gathered(Gather::Sequence, 1, &[0, 800]), 4 + 400);
    assert_eq!(gathered(Gather::Any, 1, &[0, 800]), 2 + 400);
    // Three halves: the flush programs a page that is half empty.
    assert_eq!(gathered(Gather::Any, 4, &[0, 800, 1600]), 3 + 300);
    assert_eq!(gathered(Gather::Sequence, 4, &[0, 800, 1600]), 3 + 300);
}

/// A write that the host waits for, and a reliable one, cost whole pages.
#[test]
fn a_write_that_must_be_programmed_gathers_nothing() {
    let mut timing = slow();
    timing.write.gather = Gather::Any;
    let mut host = Host::new(sd(), timing);
    let _ = host.run(Direction::Write, 0, 4);
    let _ = host.run(Direction::Write, 4, 4);
    assert_eq!(host.card.memory_time(host.now), ONE_MS + ONE_MS);
}

#[test]
fn busy_after_a_write_depends_on_what_it_continues() {
    let mut timing = slow();
    timing.write.early = true;
    timing.write.finish = Duration::from_ms(9);
    timing.write.follow = Some(Duration::from_ms(2));
    let mut host = Host::new(sd(), timing);
    let mut spans = [0, 8, 800, 16, 808]
        .map(|sector| host.run(Direction::Write, sector, 8).as_ns() / 1_000_000);
    assert_eq!(spans, [9, 2, 9, 9, 9]);
    timing.write.sequences = 2;
    let mut host = Host::new(sd(), timing);
    spans = [0, 8, 800, 16, 808]
        .map(|sector| host.run(Direction::Write, sector, 8).as_ns() / 1_000_000);
    assert_eq!(spans, [9, 2, 9, 2, 2]);
}

/// The time of ten writes of eight pages in the long run, in ms, on a card to which `raise` adds a
/// cost. Writes begin `step` sectors apart; 64 is in sequence.
fn ten_writes(step: u32, raise: fn(&mut WriteTiming, Duration)) -> u64 {
    let mut timing = slow();
    timing.write.early = true;
    timing.write.buffer_bytes = 8 * 4096;
    timing.write.follow = Some(Duration::ZERO);
    raise(&mut timing.write, ONE_MS);
    let mut host = Host::new(sd(), timing);
    let spans = (0..15).map(|at| host.run(Direction::Write, step * at, 64));
    let last = spans.skip(5).fold(Duration::ZERO, |sum, span| sum + span);
    last.as_ns() / 1_000_000
}

/// Eight pages of 1 ms fit the buffer, and take 1.3 ms on the wire: the memory is the bottleneck,
/// and writes follow each other in 8 ms. Another 1 ms for each command makes that 9 ms, as 1 ms
/// to close what was written does: `follow` in sequence, and `finish` elsewhere.
#[test]
fn a_command_and_a_close_are_not_hidden_behind_programming() {
    let costs: [fn(&mut WriteTiming, Duration); 4] = [
        |_, _| (),
        |write, ms| write.command = ms,
        |write, ms| write.follow = Some(ms),
        |write, ms| write.finish = ms,
    ];
    assert_eq!(costs.map(|raise| ten_writes(64, raise)), [80, 90, 90, 80], "in sequence");
    assert_eq!(costs.map(|raise| ten_writes(1000, raise)), [80, 90, 80, 90], "elsewhere");
}

/// The card has fetched the block long before it is asked for it, and handles the command first.
#[test]
fn a_command_for_data_that_was_read_ahead_takes_its_time() {
    let block = Duration::from_ns(1042 * 20);
    let mut timing = CardTiming::instant(4096);
    timing.read.ahead = Some(AheadTiming {
        per_kib: Duration::from_us(100),
        window_bytes: 2048,
        command: Duration::from_us(300),
        streams: 1,
    });
    let mut host = Host::new(sd(), timing);
    let _ = host.send(&Command::read_single(100));
    let _ = host.transfer(1);
    host.idle(ONE_MS);
    let asked = host.send(&Command::read_single(101)).at;
    assert_eq!(host.transfer(1).end, asked + Duration::from_us(300) + block);
}

#[test]
fn accesses_spread_around_their_figure() {
    let mut timing = CardTiming::instant(8192);
    timing.read.access = Duration::from_us(100);
    timing.read.spread = Spread::new(&[(0, 50), (100_000_000, 250)]);
    let mut host = Host::new(sd(), timing);
    let mut spans: Vec<_> = (0..1000)
        .map(|at| {
            let read = host.send(&Command::read_single(at * 100));
            let span = read.data_from.unwrap().since(read.at).as_ns() / 1000;
            let _ = host.transfer(1);
            span
        })
        .collect();
    spans.sort_unstable();
    assert!(spans[0] >= 50 && spans[0] < 55 && spans[999] > 245 && spans[999] < 250);
    assert!((135..165).contains(&spans[500]), "{}", spans[500]);
    timing = timing.without_chance();
    assert_eq!(timing.read.spread, None);
}
