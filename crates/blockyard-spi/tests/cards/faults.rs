//! Faults of wires, cards and users.

use crate::emulated::{Kind, Model, Slot};
use crate::{TestDisk, blocking_disk, pattern, slot};
use blockyard::status::Status;
use blockyard_spi::disk::{Design, Failure, Io};
use blockyard_spi::error::Error;

fn sdhc() -> (Slot, TestDisk) {
    let slot = slot(Model::new(Kind::Sdhc));
    let disk = blocking_disk(&slot, Design::SMALL);
    slot.0.borrow_mut().log.clear();
    (slot, disk)
}

/// The arguments with which a command was sent.
fn arguments(slot: &Slot, index: u8) -> Vec<u32> {
    let model = slot.0.borrow();
    model
        .log
        .iter()
        .filter(|sent| sent.index == index && !sent.app)
        .map(|sent| sent.argument)
        .collect()
}

/// Only the blocks from the damaged one on are sent again.
#[test]
fn a_block_that_was_damaged_on_the_wire_is_sent_again() {
    let (slot, mut disk) = sdhc();
    let data = pattern(1, 8);
    slot.0.borrow_mut().damaged_writes.extend([(103, 2), (107, 1)]);
    disk.write(100, &data).unwrap();
    assert_eq!(slot.0.borrow().data[100 * 512..108 * 512], data);
    assert_eq!(arguments(&slot, 25), [100, 103, 103]);
    assert_eq!(arguments(&slot, 24), [107], "the last block alone");

    slot.0.borrow_mut().damaged_reads.extend([(100, 3), (106, 3)]);
    let mut back = vec![0; data.len()];
    disk.read(100, &mut back).unwrap();
    assert_eq!(back, data);
    assert_eq!(arguments(&slot, 18), [100, 100, 100, 100, 106, 106, 106]);
    assert_eq!((disk.0.card().repeats(), disk.0.counts().requeues), (9, 0));
}

/// The block behind the token is whole, and must not be taken for an answer.
#[test]
fn a_block_whose_start_token_was_damaged_is_sent_again() {
    let (slot, mut disk) = sdhc();
    let data = pattern(1, 2);
    disk.write(100, &data).unwrap();
    slot.0.borrow_mut().damaged_tokens.extend([(100, 1), (200, 1)]);
    let mut back = vec![0; data.len()];
    disk.read(100, &mut back).unwrap();
    assert_eq!(back, data);
    assert_eq!(arguments(&slot, 18), [100, 100]);
    // A block of zeroes looks like responses without an error.
    let mut back = [1; 512];
    disk.read(200, &mut back).unwrap();
    assert_eq!((back, arguments(&slot, 17)), ([0; 512], vec![200, 200]));
    assert_eq!(slot.0.borrow().count(0), 0, "the connection was not in doubt");
}

/// A damaged block is not sent again for ever.
#[test]
fn a_block_that_is_damaged_every_time_fails() {
    let (slot, mut disk) = sdhc();
    slot.0.borrow_mut().damaged_reads.insert(102, 1000);
    slot.0.borrow_mut().damaged_writes.insert(202, 1000);
    let failed = Err(Failure::Failed(Status::IoError));
    assert_eq!(disk.read(100, &mut [0; 4 * 512]), failed);
    assert_eq!(arguments(&slot, 18), [100, 102, 102, 102]);
    assert_eq!(disk.write(200, &pattern(2, 4)), failed);
    assert_eq!(disk.0.last_error(), Some(Error::Damaged));
    disk.read(104, &mut [0; 512]).unwrap();
    assert_eq!(slot.0.borrow().count(0), 0, "the connection was not in doubt");
}

#[test]
fn a_command_that_was_damaged_on_the_wire_is_sent_again() {
    let (slot, mut disk) = sdhc();
    let data = pattern(3, 2);
    slot.0.borrow_mut().damaged_commands = 3;
    disk.write(9, &data).unwrap();
    slot.0.borrow_mut().damaged_commands = 1;
    let mut back = [0; 1024];
    disk.read(9, &mut back).unwrap();
    assert_eq!(back, *data);
    slot.0.borrow_mut().damaged_commands = 1000;
    assert_eq!(disk.read(9, &mut back), Err(Failure::Failed(Status::IoError)));
}

/// The I/Os of one transfer before the bad block have ended well.
#[test]
fn a_medium_error_fails_the_ios_from_its_block_on() {
    let good = Ok(());
    let bad = Err(Failure::Failed(Status::Medium));
    let (slot, mut disk) = sdhc();
    let data = pattern(4, 4);
    slot.0.borrow_mut().unwritable.insert(302);
    let mut ios: Vec<_> =
        (300..).zip(data.chunks(512)).map(|(at, block)| Io::write(at, block)).collect();
    assert_eq!(disk.run(&mut ios), bad);
    assert_eq!(ios.iter().map(|io| io.result).collect::<Vec<_>>(), [good, good, bad, bad]);
    assert_eq!(slot.0.borrow().data[300 * 512..302 * 512], data[..1024]);
    assert_eq!(disk.0.last_error(), Some(Error::Unwritable(0x04)), "the card's own reason");

    slot.0.borrow_mut().unreadable.insert(302);
    let mut back = [[0; 512]; 4];
    let mut ios: Vec<_> = (300..).zip(&mut back).map(|(at, block)| Io::read(at, block)).collect();
    assert_eq!(disk.run(&mut ios), bad);
    assert_eq!(ios.iter().map(|io| io.result).collect::<Vec<_>>(), [good, good, bad, bad]);
    assert_eq!(back[..2].concat(), data[..1024]);
    assert_eq!(disk.0.last_error(), Some(Error::Unreadable(0x04)));

    // The same for one block, which is another command.
    assert_eq!(disk.write(302, &data[..512]), bad);
    assert_eq!(disk.read(302, &mut [0; 512]), bad);
    disk.read(303, &mut [0; 512]).unwrap();
    assert_eq!(slot.0.borrow().count(0), 0, "the connection was not in doubt");
}

#[test]
fn a_card_may_be_busy_as_long_as_the_specification_allows() {
    let (slot, mut disk) = sdhc();
    slot.0.borrow_mut().busy_ms = Some(490);
    disk.write(9, &pattern(5, 1)).unwrap();
    assert_eq!(disk.0.counts().requeues, 0);
    // Longer, but it comes back: after a reset, the write goes to the card again.
    slot.0.borrow_mut().busy_ms = Some(900);
    let data = pattern(6, 3);
    disk.write(9, &data).unwrap();
    assert_eq!(disk.0.last_error(), Some(Error::Timeout { command: 25 }));
    assert_eq!(disk.0.counts().requeues, 1);
    assert_eq!(slot.0.borrow().data[9 * 512..12 * 512], data);
}

/// [lost-is-identified]
#[test]
fn a_card_that_does_not_answer_once_is_identified_again() {
    let (slot, mut disk) = sdhc();
    slot.0.borrow_mut().mute_commands = 1;
    let data = pattern(7, 4);
    disk.write(9, &data).unwrap();
    assert_eq!(slot.0.borrow().data[9 * 512..13 * 512], data);
    assert_eq!((slot.0.borrow().count(0), disk.0.counts().requeues), (1, 1));
    assert_eq!(slot.0.borrow().hz, 25_000_000);
}

#[test]
fn a_card_that_gives_no_data_times_out() {
    let (slot, mut disk) = sdhc();
    slot.0.borrow_mut().stalled = true;
    assert_eq!(disk.read(9, &mut [0; 1024]), Err(Failure::Failed(Status::Timeout)));
    assert_eq!(disk.0.counts().requeues, 1, "tried again once");
    slot.0.borrow_mut().stalled = false;
    disk.read(9, &mut [0; 1024]).unwrap();
}

/// [lost-is-identified]
#[test]
fn a_card_that_was_taken_out_is_gone_until_the_same_one_is_back() {
    let (slot, mut disk) = sdhc();
    let gone = Err(Failure::Failed(Status::Gone));
    let data = pattern(8, 2);
    disk.write(9, &data).unwrap();
    slot.0.borrow_mut().present = false;
    assert_eq!(disk.write(9, &data), gone);
    assert_eq!(disk.read(9, &mut [0; 512]), gone);
    assert_eq!(disk.0.last_error(), Some(Error::NoAnswer { command: 0 }));

    // Another card, with data that is not ours.
    let mut other = Model::with(Kind::Sdhc, 2, true);
    other.rough = true;
    let ours = slot.0.replace(other);
    assert_eq!(disk.write(9, &pattern(9, 1)), gone);
    assert_eq!(disk.0.last_error(), Some(Error::OtherCard));
    assert!(slot.0.borrow().data.iter().all(|byte| *byte == 0), "the other card was written");

    slot.0.replace(ours);
    slot.0.borrow_mut().power_cycle();
    let mut back = [0; 1024];
    disk.read(9, &mut back).unwrap();
    assert_eq!(back, *data);
}
