//! Lost commands and responses, bad blocks, and cards that are gone.

use super::super::misuse::Wrong;
use super::*;

#[test]
fn a_lost_command_changes_nothing_and_a_lost_response_makes_the_host_unsure() {
    let mut host = Host::new(sd(), slow());
    host.card.timing.faults.command_lost_one_in = Some(1);
    let lost = host.send(&Command::read_multiple(0, 8));
    assert_eq!((lost.answer, lost.data_from), (Err(NoAnswer::Timeout), None));
    assert_eq!(host.card.state(host.now), CardState::Transfer);
    host.card.timing.faults.command_lost_one_in = None;
    // The host cannot know that there is nothing to stop.
    let stop = host.send(&Command::stop_transmission(Direction::Read));
    assert_eq!(stop.answer, Err(NoAnswer::Timeout));
    assert_eq!(host.status().errors(), Status::ILLEGAL_COMMAND);
    host.card.timing.faults.response_crc_one_in = Some(1);
    let unheard = host.send(&Command::read_multiple(0, 8));
    assert_eq!(unheard.answer, Err(NoAnswer::Crc));
    assert_eq!(host.card.state(host.now), CardState::Data);
    host.card.timing.faults.response_crc_one_in = None;
    // The host tries again. The card is in another state, stays silent, and then reports the
    // reason.
    let again = host.send(&Command::read_multiple(0, 8));
    assert_eq!(again.answer, Err(NoAnswer::Timeout));
    let status = host.status();
    assert_eq!((status.errors(), status.state()), (Status::ILLEGAL_COMMAND, Some(CardState::Data)));
    // Now the host knows the state.
    assert!(matches!(host.misuse(&Command::read_multiple(0, 8)), Wrong::Illegal(_)));
    let _ = host.send(&Command::stop_transmission(Direction::Read));
    assert!(host.status().is_ready());
}

/// [failed-block-ends-transfer]
#[test]
fn a_bad_block_ends_a_transfer_which_waits_to_be_stopped() {
    let mut host = Host::new(emmc(), slow());
    let _ = host.send(&count(8));
    let _ = host.send(&Command::read_multiple(0, 8));
    let _ = host.transfer(3);
    host.card.timing.faults.read_crc_one_in = Some(1);
    let bad = host.transfer(5);
    assert_eq!((bad.blocks, bad.error), (0, Some(DataError::Crc)));
    assert_eq!(host.card.transfer(1, host.now).unwrap_err().wrong, Wrong::Transfer(1));
    host.idle(ONE_MS);
    assert_eq!(host.card.state(host.now), CardState::Data);
    let _ = host.send(&Command::stop_transmission(Direction::Read));
    assert!(host.status().is_ready());
    // The good blocks of a write are programmed: a page of 8 sectors and one of 2.
    let _ = host.begin_write(0, 16);
    let _ = host.transfer(10);
    assert_eq!(host.card.unprogrammed_bytes(host.now), 10 * 512);
    host.card.timing.faults.write_crc_one_in = Some(1);
    let bad = host.transfer(6);
    assert_eq!((bad.blocks, bad.error, bad.busy_until), (0, Some(DataError::Crc), None));
    assert_eq!(host.card.state(host.now), CardState::Receive);
    let stop = host.send(&Command::stop_transmission(Direction::Write));
    assert_eq!(host.card.unprogrammed_bytes(stop.at), 10 * 512);
    host.wait();
    assert!(host.status().is_ready());
    // No data arrives at all.
    host.card.timing.faults.no_data_one_in = Some(1);
    let _ = host.send(&Command::read_single(0));
    let none = host.transfer(1);
    assert_eq!((none.blocks, none.error, none.end), (0, Some(DataError::Timeout), none.begin));
    let _ = host.send(&Command::stop_transmission(Direction::Read));
    // A page cannot be programmed.
    host.card.timing.faults = crate::profile::CardFaults::default();
    host.card.timing.faults.program_one_in = Some(1);
    let _ = host.begin_write(0, 8);
    let _ = host.transfer(8);
    host.wait();
    assert_eq!(host.status().errors(), Status::ERROR);
}

#[test]
fn sd_tells_how_many_blocks_of_a_write_are_good() {
    let mut host = Host::new(sd(), slow());
    let _ = host.send(&Command::write_multiple(0, 16));
    let _ = host.transfer(10);
    host.card.timing.faults.write_crc_one_in = Some(1);
    let _ = host.transfer(6);
    let _ = host.send(&Command::stop_transmission(Direction::Write));
    host.wait();
    let _ = host.send(&Command::application(RCA));
    let _ = host.send(&Command::send_written_blocks());
    let _ = host.transfer(1);
    assert_eq!(host.card.register(), [0, 0, 0, 10]);
}

#[test]
fn a_card_that_is_gone_is_silent_until_it_is_back_and_must_be_identified() {
    let mut host = Host::new(emmc(), slow());
    host.switch(index::CACHE_CTRL, 1);
    let _ = host.begin_write(0, 16);
    let done = host.transfer(16);
    // Pages 1 and 2 are programmed 1 and 2 ms after 168.16 us.
    assert_eq!(host.card.remove(done.end), 8192);
    assert_eq!(host.send(&Command::send_status(RCA)).answer, Err(NoAnswer::Timeout));
    let data = host.transfer(1);
    assert_eq!((data.error, host.card.busy_until()), (Some(DataError::Timeout), None));
    host.card.power_up(host.now);
    assert!(matches!(host.misuse(&Command::send_status(Rca(0))), Wrong::Illegal(_)));
    let _ = host.send(&Command::go_idle());
    // The device stays idle if the host asks without voltages.
    let asked = host.send(&Command::send_op_cond(0)).answer.unwrap();
    assert_eq!((asked, host.card.state(host.now)), (Response::Short(0x40ff_8000), CardState::Idle));
    let ready = host.send(&Command::send_op_cond(0x40ff_8080)).answer.unwrap();
    assert_eq!(ready, Response::Short(0xc0ff_8000));
    let cid = host.send(&Command::all_send_cid()).answer.unwrap();
    assert_eq!(cid, Response::Long(blockyard_mmc::register::Bits([1; 16])));
    let _ = host.send(&Command::set_relative_addr(RCA));
    let _ = host.send(&Command::send_csd(RCA));
    let _ = host.send(&Command::select(RCA));
    // The cache is off again.
    assert!(!host.ext_csd().cache_on());
}
