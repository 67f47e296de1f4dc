//! The registers with which the card of a profile describes itself.

use super::card::{Enhancement, Registers, RegistersKind};
use crate::mmc::profile::CardProfile;
use blockyard::time::Duration;
use blockyard_mmc::card::{Card, CardKind};
use blockyard_mmc::command::{Addressing, Rca};
use blockyard_mmc::mode::Mode;
use blockyard_mmc::register::Bits;
use blockyard_mmc::register::cid::Cid;
use blockyard_mmc::register::csd::Csd;
use blockyard_mmc::register::ext_csd::{ExtCsd, index};
use blockyard_mmc::register::scr::Scr;
use blockyard_mmc::register::ssr::Ssr;

/// CSD of an eMMC device whose size is in EXT_CSD: version 4.x, erase, 15 ms to the first data and
/// 8 times that for a write, as in common parts. A host allows 10 times as much.
const CSD_MMC: [u8; 16] = 0xd027_0032_0f59_03ff_ffff_ffff_8e40_4001_u128.to_be_bytes();
/// CSD of an SDHC card.
const CSD_SD: [u8; 16] = 0x400e_0032_5b59_0000_e9e5_7f80_0a40_4001_u128.to_be_bytes();
/// SCR of a card that supports CMD23 and whose erased blocks read as zeroes.
const SCR: [u8; 8] = 0x0235_8003_0000_0000_u64.to_be_bytes();

/// The same of a card that has extension registers, which CMD48 and CMD49 read and write.
const SCR_A2: [u8; 8] = 0x0235_8007_0000_0000_u64.to_be_bytes();

/// The registers of `card`, whose user area has `sectors` sectors. Fields that the request path
/// does not read are zero.
pub(super) fn registers(card: &CardProfile, sectors: u64) -> Registers {
    let kind = if card.is_emmc() {
        RegistersKind::Mmc { ext_csd: ext_csd(card) }
    } else {
        let features = &card.features;
        let enhancement = Some(Enhancement::new(features.cache_bytes, features.queue_depth))
            .filter(|has| has.cache_bytes > 0 || has.queue_depth > 0);
        debug_assert!(card.features.cache_bytes == 0 || enhancement.is_some(), "a cache is stated");
        let scr = if enhancement.is_some() { SCR_A2 } else { SCR };
        RegistersKind::Sd { scr, ssr: Box::new([0; 64]), functions: [0; 6], enhancement }
    };
    Registers {
        ocr: 0x40ff_8000,
        cid: [0; 16],
        csd: if card.is_emmc() { CSD_MMC } else { CSD_SD },
        kind,
        sectors,
        addressing: Addressing::Sectors,
    }
}

/// Sets the field of EXT_CSD at `at`, which has not been set before.
fn set(bytes: &mut [u8; 512], at: u16, value: &[u8]) {
    let at = usize::from(at);
    debug_assert!(
        bytes[at..at + value.len()].iter().all(|byte| *byte == 0),
        "byte {at} is set twice"
    );
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// EXT_CSD of an eMMC 5.1 device.
fn ext_csd(card: &CardProfile) -> Box<[u8; 512]> {
    let mut bytes = Box::new([0; 512]);
    let features = &card.features;
    set(&mut bytes, index::EXT_CSD_REV, &[8]);
    let kibits =
        u32::try_from(features.cache_bytes / 128).expect("cache size in kibit, of at most 4 GiB");
    set(&mut bytes, index::CACHE_SIZE, &kibits.to_le_bytes());
    if let Some(depth) = features.queue_depth.checked_sub(1) {
        set(&mut bytes, index::CMDQ_SUPPORT, &[1]);
        set(&mut bytes, index::CMDQ_DEPTH, &[depth]);
    }
    set(&mut bytes, index::MAX_PACKED_WRITES, &[features.packed_writes]);
    set(&mut bytes, index::MAX_PACKED_READS, &[features.packed_reads]);
    set(&mut bytes, index::HPI_FEATURES, &[u8::from(features.hpi)]);
    set(&mut bytes, index::BKOPS_SUPPORT, &[u8::from(features.bkops)]);
    // A host that turns background operations on has promised to start them.
    set(&mut bytes, index::BKOPS_EN, &[u8::from(features.bkops)]);
    set(&mut bytes, index::SEC_FEATURE_SUPPORT, &[SANITIZE | TRIM]);
    match features.reliable_write_sectors {
        0 => set(&mut bytes, index::WR_REL_PARAM, &[RELIABLE_WRITES_OF_ANY_SIZE]),
        sectors => set(&mut bytes, index::REL_WR_SEC_C, &[sectors]),
    }
    let erase = &card.timing.erase;
    let whole = erase.group_sectors.is_multiple_of(GROUP_SECTORS);
    if let (true, Ok(group)) = (whole, u8::try_from(erase.group_sectors / GROUP_SECTORS)) {
        set(&mut bytes, index::HC_ERASE_GRP_SIZE, &[group]);
    }
    set(&mut bytes, index::ERASE_TIMEOUT_MULT, &[limit(erase.erase)]);
    set(&mut bytes, index::TRIM_MULT, &[limit(erase.trim.max(erase.discard))]);
    bytes
}

/// SEC_FEATURE_SUPPORT.
const SANITIZE: u8 = 0x40;
const TRIM: u8 = 0x10;
/// WR_REL_PARAM: EN_REL_WR.
const RELIABLE_WRITES_OF_ANY_SIZE: u8 = 0x04;
/// The unit of HC_ERASE_GRP_SIZE, which has 8 bits. Groups that do not fit are left out.
const GROUP_SECTORS: u32 = 1024;

/// The time limit, in units of 300 ms, of work that typically takes `typical` for a group: twice as
/// long.
fn limit(typical: Duration) -> u8 {
    let units = (2 * typical.as_ns()).div_ceil(Duration::from_ms(300).as_ns());
    u8::try_from(units.clamp(1, 255)).expect("limit between 1 and 255")
}

/// Returns a host's view of the card with `registers`, driven in `mode` at the address `rca`.
///
/// # Panics
///
/// Panics if a register cannot be parsed; those of [`registers`] can.
pub(super) fn known(registers: &Registers, mode: Mode, rca: Rca) -> Card {
    let cid = Bits(registers.cid);
    let csd = Bits(registers.csd);
    let (kind, cid, csd) = match &registers.kind {
        RegistersKind::Mmc { ext_csd } => {
            let ext_csd =
                ExtCsd::parse(ext_csd).expect("the EXT_CSD of a modelled device should be valid");
            let cid = Cid::mmc(&cid, ext_csd.revision());
            (CardKind::Mmc { ext_csd: Some(Box::new(ext_csd)) }, cid, Csd::mmc(&csd))
        }
        RegistersKind::Sd { scr, ssr, enhancement, .. } => {
            let kind = CardKind::Sd {
                scr: Scr::parse(scr).expect("the SCR of a modelled card should be valid"),
                ssr: Ssr::parse(ssr),
                performance: enhancement.map(|enhancement| enhancement.known()),
            };
            (kind, Cid::sd(&cid), Csd::sd(&csd))
        }
    };
    let csd = csd.expect("the CSD of a modelled card should be valid");
    let Registers { addressing, sectors, .. } = *registers;
    Card { kind, rca, cid, csd, addressing, sectors, mode }
}
