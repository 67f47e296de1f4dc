//! CSD and CID, and the checksums, a bit at a time.

/// Generations of cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Standard capacity, of version 1: it does not know CMD8.
    Sdsc1,
    /// Standard capacity, of version 2.
    Sdsc2,
    /// High capacity.
    Sdhc,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Sdsc1, Self::Sdsc2, Self::Sdhc];

    /// Address units of a sector.
    pub(crate) fn unit(self) -> u32 {
        if self == Self::Sdhc { 1 } else { 512 }
    }

    /// The CSD of a real card of this kind, with `sectors` for its size. `erases_all`: single
    /// sectors can be erased.
    pub(crate) fn csd(self, sectors: u32, erases_all: bool) -> [u8; 16] {
        let csd = if self == Self::Sdhc {
            assert_eq!(sectors % 1024, 0, "high capacity counts in 512 KiB");
            set(0x400e_0032_5b59_0000_e9e5_7f80_0a40_40f1, 69, 48, sectors / 1024 - 1)
        } else {
            assert_eq!(sectors % 512, 0, "this multiplier counts in 256 KiB");
            let csd = set(0x0026_0032_5f5a_83c9_3efb_cfff_9280_40cb, 73, 62, sectors / 512 - 1);
            let csd = set(csd, 49, 47, 7);
            let csd = set(csd, 46, 46, u32::from(erases_all));
            set(set(csd, 83, 80, 9), 25, 22, 9)
        };
        sealed(csd.to_be_bytes())
    }
}

pub(crate) fn cid(serial: u32) -> [u8; 16] {
    let mut cid = *b"\x03SDEMULA\x10....\x01\x7a\x00";
    cid[9..13].copy_from_slice(&serial.to_be_bytes());
    sealed(cid)
}

fn set(register: u128, high: u32, low: u32, value: u32) -> u128 {
    let mask = ((1_u128 << (high - low + 1)) - 1) << low;
    register & !mask | u128::from(value) << low
}

fn sealed(mut register: [u8; 16]) -> [u8; 16] {
    register[15] = crc(&register[..15], 7, 0x09).to_le_bytes()[0] << 1 | 1;
    register
}

/// The remainder of `bytes` by a polynomial of degree `width`, by long division.
pub(crate) fn crc(bytes: &[u8], width: u32, polynomial: u32) -> u32 {
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| u32::from(byte >> at & 1)));
    bits.chain((0..width).map(|_| 0)).fold(0, |rest, bit| {
        let rest = rest << 1 | bit;
        if rest >> width == 1 { rest ^ (1 << width | polynomial) } else { rest }
    })
}

pub(crate) fn crc7(bytes: &[u8]) -> u8 {
    crc(bytes, 7, 0x09).to_le_bytes()[0]
}

pub(crate) fn crc16(bytes: &[u8]) -> [u8; 2] {
    let [.., high, low] = crc(bytes, 16, 0x1021).to_be_bytes();
    [high, low]
}
