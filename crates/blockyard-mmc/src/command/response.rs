//! Responses of a card on the command line (JESD84-B51 6.12; SD 4.9).

use super::address::Rca;
use super::status::Status;
use crate::register::Bits;

/// The form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// No response.
    None,
    /// The card's [status](Status).
    R1,
    /// Like R1; then DAT0 is low while the card is busy.
    R1b,
    /// CID or CSD.
    R2,
    /// OCR, without CRC.
    R3,
    /// OCR of an I/O card, without CRC.
    R4,
    /// SD: the chosen address, and half of the status.
    R6,
    /// SD: the accepted voltage, and the pattern.
    R7,
}

impl ResponseKind {
    /// Returns the bits on the wire: 0, 48 or 136.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::None => 0,
            Self::R2 => 136,
            _ => 48,
        }
    }

    /// Returns whether busy on DAT0 may follow.
    #[must_use]
    pub const fn has_busy(self) -> bool {
        matches!(self, Self::R1b)
    }

    /// Returns whether a CRC protects it.
    #[must_use]
    pub const fn has_crc(self) -> bool {
        !matches!(self, Self::None | Self::R3 | Self::R4)
    }
}

/// A response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// No response, as the command has none.
    None,
    /// The 32 bits of a 48-bit response.
    Short(u32),
    /// The 128 bits of an R2, without its start.
    Long(Bits<16>),
}

impl Response {
    /// Returns the 32 bits of a short response; `None` for any other.
    #[must_use]
    pub const fn short(self) -> Option<u32> {
        match self {
            Self::Short(bits) => Some(bits),
            Self::None | Self::Long(_) => None,
        }
    }

    /// Returns the status in an R1; `None` if the response is not a short one.
    #[must_use]
    pub fn status(self) -> Option<Status> {
        self.short().map(Status)
    }
}

/// R6: the address that an SD card chose, and bits 23, 22, 19 and 12:0 of its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct R6 {
    /// The address.
    pub rca: Rca,
    /// The status; bits that an R6 does not carry are zero.
    pub status: Status,
}

impl R6 {
    /// Reads the 32 bits of an R6.
    #[must_use]
    pub fn parse(bits: u32) -> Self {
        let [high, low, ..] = bits.to_be_bytes();
        let status = (bits & 0x8000) << 8 | (bits & 0x4000) << 8 | (bits & 0x2000) << 6;
        Self { rca: Rca(u16::from_be_bytes([high, low])), status: Status(status | bits & 0x1fff) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::state::CardState;

    #[test]
    fn an_r6_holds_an_address_and_a_part_of_the_status() {
        let r6 = R6::parse(0xaaaa_0500);
        assert_eq!((r6.rca, r6.status.state()), (Rca(0xaaaa), Some(CardState::Identification)));
        // COM_CRC_ERROR, ILLEGAL_COMMAND and ERROR: bits 23, 22 and 19 of the status.
        assert_eq!(R6::parse(0x0001_8000).status, Status(1 << 23));
        assert_eq!(R6::parse(0x0001_4000).status, Status(1 << 22));
        assert_eq!(R6::parse(0x0001_2000).status, Status(1 << 19));
        // Bits 12:0 are where they are in a status, and nowhere else.
        assert!((0..=0x1fff).all(|low| R6::parse(low).status == Status(low)));
    }

    #[test]
    fn responses_have_the_lengths_of_the_standards() {
        use ResponseKind::*;
        let bits = [None, R1, R1b, R2, R3, R4, R6, R7].map(ResponseKind::bits);
        assert_eq!(bits, [0, 48, 48, 136, 48, 48, 48, 48]);
        assert!(R1b.has_busy() && !R1.has_busy() && R1.has_crc() && !R3.has_crc());
    }
}
