//! What the card of a profile says of itself.

use super::card::{Registers, RegistersKind};
use crate::profile::CardProfile;
use blockyard::mmc::command::Addressing;
use blockyard::mmc::register::ext_csd::index;

/// The registers of `card`, whose user area has so many `sectors`.
///
/// What the request path does not look at is zero.
pub(super) fn registers(card: &CardProfile, sectors: u64) -> Registers {
    let kind = if card.is_emmc() {
        RegistersKind::Mmc { ext_csd: ext_csd(card) }
    } else {
        RegistersKind::Sd { scr: [0; 8], ssr: Box::new([0; 64]), functions: [0; 6] }
    };
    Registers {
        ocr: 0x40ff_8000,
        cid: [0; 16],
        csd: [0; 16],
        kind,
        sectors,
        addressing: Addressing::Sectors,
    }
}

/// EXT_CSD of an eMMC 5.1 device.
fn ext_csd(card: &CardProfile) -> Box<[u8; 512]> {
    let mut bytes = Box::new([0; 512]);
    let features = &card.features;
    let mut set = |at: u16, value: &[u8]| {
        let at = usize::from(at);
        bytes[at..at + value.len()].copy_from_slice(value);
    };
    set(index::EXT_CSD_REV, &[8]);
    let kibits = u32::try_from(features.cache_bytes / 128).expect("at most 4 GiB");
    set(index::CACHE_SIZE, &kibits.to_le_bytes());
    if let Some(depth) = features.queue_depth.checked_sub(1) {
        set(index::CMDQ_SUPPORT, &[1]);
        set(index::CMDQ_DEPTH, &[depth]);
    }
    set(index::MAX_PACKED_WRITES, &[features.packed_writes]);
    set(index::HPI_FEATURES, &[u8::from(features.hpi)]);
    set(index::BKOPS_SUPPORT, &[u8::from(features.bkops)]);
    bytes
}
