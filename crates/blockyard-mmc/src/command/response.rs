//! Responses: what a card says on the command line (JESD84-B51 6.12; SD 4.9).

use super::address::Rca;
use super::status::Status;
use crate::register::Bits;

/// The form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// None at all.
    None,
    /// The card's [status](Status).
    R1,
    /// As R1; then DAT0 is low as long as the card is busy.
    R1b,
    /// CID or CSD.
    R2,
    /// OCR, without CRC.
    R3,
    /// OCR of an I/O card, without CRC.
    R4,
    /// SD: the address chosen, and half of the status.
    R6,
    /// SD: the voltage accepted, and the pattern back.
    R7,
}

impl ResponseKind {
    /// Bits on the wire: 0, 48 or 136.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::None => 0,
            Self::R2 => 136,
            _ => 48,
        }
    }

    /// Whether busy on DAT0 may follow.
    #[must_use]
    pub const fn has_busy(self) -> bool {
        matches!(self, Self::R1b)
    }

    /// Whether a CRC protects it.
    #[must_use]
    pub const fn has_crc(self) -> bool {
        !matches!(self, Self::None | Self::R3 | Self::R4)
    }
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Nothing, as the command has it.
    None,
    /// The 32 bits of a response of 48.
    Short(u32),
    /// The 128 bits of an R2, its start taken off.
    Long(Bits<16>),
}

impl Response {
    /// The 32 bits of a short response; `None` of any other.
    #[must_use]
    pub const fn short(self) -> Option<u32> {
        match self {
            Self::Short(bits) => Some(bits),
            Self::None | Self::Long(_) => None,
        }
    }

    /// The status in an R1; `None` where the response is not a short one.
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
    fn an_r6_is_an_address_and_a_status_squeezed() {
        let r6 = R6::parse(0xaaaa_0500);
        assert_eq!((r6.rca, r6.status.state()), (Rca(0xaaaa), Some(CardState::Identification)));
        // COM_CRC_ERROR, ILLEGAL_COMMAND and ERROR: bits 23, 22 and 19 of the status.
        assert_eq!(R6::parse(0x0001_8000).status, Status(1 << 23));
        assert_eq!(R6::parse(0x0001_4000).status, Status(1 << 22));
        assert_eq!(R6::parse(0x0001_2000).status, Status(1 << 19));
    }

    #[test]
    fn lengths_are_those_of_the_standards() {
        use ResponseKind::*;
        let bits = [None, R1, R1b, R2, R3, R4, R6, R7].map(ResponseKind::bits);
        assert_eq!(bits, [0, 48, 48, 136, 48, 48, 48, 48]);
        assert!(R1b.has_busy() && !R1.has_busy() && R1.has_crc() && !R3.has_crc());
    }
}
