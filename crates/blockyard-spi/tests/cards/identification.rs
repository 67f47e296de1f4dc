//! From power-up to a card that is known.

use crate::emulated::{Kind, Model, Sent};
use crate::{blocking_card, blocking_disk, open, slot};
use blockyard_mmc::register::csd::Layout;
use blockyard_spi::blocking::wait;
use blockyard_spi::disk::Design;
use blockyard_spi::error::Error;

fn cmd(index: u8, argument: u32) -> Sent {
    Sent { index, app: false, argument }
}

/// The sequence of the specification's figure 7-2. The emulated card needs ACMD41 three times.
#[test]
fn each_kind_of_card_is_identified_by_the_commands_of_the_specification() {
    for kind in Kind::ALL {
        let slot = slot(Model::new(kind));
        let mut card = blocking_card(&slot);
        let identity = wait(card.identify()).unwrap().clone();
        let is_high = kind == Kind::Sdhc;
        assert_eq!((identity.sectors(), identity.is_sector_addressed), (8192, is_high));
        assert_eq!(identity.csd.layout, if is_high { Layout::Sd2 } else { Layout::Sd1 });
        assert_eq!(&identity.cid.0[..8], b"\x03SDEMULA");

        let capacity = if kind == Kind::Sdsc1 { 0 } else { 1 << 30 };
        let power_up = [cmd(55, 0), Sent { index: 41, app: true, argument: capacity }];
        let mut expected = vec![cmd(0, 0), cmd(8, 0x1aa), cmd(59, 1)];
        expected.extend([power_up; 3].concat());
        expected.push(cmd(58, 0));
        expected.extend((!is_high).then_some(cmd(16, 512)));
        expected.extend([cmd(9, 0), cmd(10, 0)]);
        let model = slot.0.borrow();
        assert_eq!(model.log, expected, "{kind:?}");
        assert_eq!(model.hz, 25_000_000, "the clock behind the identification");
    }
}

#[test]
fn an_empty_slot_is_told_within_a_second() {
    let slot = slot(Model::new(Kind::Sdhc));
    slot.0.borrow_mut().present = false;
    let error = open(&slot, Design::SMALL).err();
    assert_eq!(error, Some(Error::NoAnswer { command: 0 }));
    let ms = slot.0.borrow().now_ns / 1_000_000;
    assert!(ms < 1000, "it took {ms} ms");
}

/// QEMU's card (ssi-sd, at least up to 7.2) always answers CMD58 with the bit of the idle state. It
/// was refused for that.
#[test]
fn a_card_that_says_it_is_idle_with_its_ocr_is_taken() {
    let slot = slot(Model::new(Kind::Sdhc));
    slot.0.borrow_mut().says_idle = true;
    let mut disk = blocking_disk(&slot, Design::SMALL);
    disk.read(5, &mut [0; 512]).unwrap();
}

/// With the wrong unit, every write would go astray. The CSD has a checksum, and contradicts.
#[test]
fn a_card_whose_unit_of_addresses_was_misread_is_not_used() {
    for kind in Kind::ALL {
        let slot = slot(Model::new(kind));
        slot.0.borrow_mut().flips_capacity = true;
        assert_eq!(open(&slot, Design::SMALL).err(), Some(Error::Damaged), "{kind:?}");
    }
}

/// Asking again costs nothing.
#[test]
fn a_known_card_is_not_identified_again() {
    let slot = slot(Model::new(Kind::Sdhc));
    let mut disk = blocking_disk(&slot, Design::SMALL);
    for sector in 0..5 {
        disk.read(sector, &mut [0; 512]).unwrap();
    }
    assert_eq!(slot.0.borrow().count(0), 1);
}
