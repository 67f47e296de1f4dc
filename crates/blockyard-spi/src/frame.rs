//! Commands, responses and tokens of SPI mode, with their checksums (SD Physical Layer Simplified
//! Specification, chapter 7 and 4.5).
//!
//! A command is six bytes. The card answers with R1, some commands with more bytes behind it. Data
//! goes in blocks: a start token, the bytes, and a CRC16.

/// The length of every data block of a transfer, in bytes.
pub const BLOCK_BYTES: usize = 512;

/// What a host sends when it has nothing to say: the line stays high.
pub const IDLE: u8 = 0xff;

/// The start token of a block that is read, and of the block of a single write.
pub const START: u8 = 0xfe;
/// The start token of each block of a multiple write.
pub const START_MANY: u8 = 0xfc;
/// Ends a multiple write, in place of a start token.
pub const STOP_MANY: u8 = 0xfd;

/// A command's number and argument. `app` commands follow CMD55.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The number, 0 to 63.
    pub index: u8,
    /// The argument.
    pub argument: u32,
    /// Whether it is an application command (ACMD).
    pub app: bool,
}

impl Command {
    /// Returns CMD`index`.
    #[must_use]
    pub const fn new(index: u8, argument: u32) -> Self {
        Self { index, argument, app: false }
    }

    /// Returns ACMD`index`.
    #[must_use]
    pub const fn app(index: u8, argument: u32) -> Self {
        Self { index, argument, app: true }
    }

    /// Returns the six bytes on the wire, with CRC7 and end bit.
    #[must_use]
    pub fn bytes(self) -> [u8; 6] {
        debug_assert!(self.index < 64, "CMD{} does not exist", self.index);
        let [a, b, c, d] = self.argument.to_be_bytes();
        let head = [0x40 | self.index, a, b, c, d];
        let [first, ..] = head;
        [first, a, b, c, d, crc7(&head) << 1 | 1]
    }
}

/// The first byte of every response. The top bit is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct R1(pub u8);

impl R1 {
    /// The card is not identified yet.
    pub const IDLE_STATE: u8 = 1 << 0;
    /// The card does not know the command, or not in this state.
    pub const ILLEGAL_COMMAND: u8 = 1 << 2;
    /// The command was damaged on the wire; the card did nothing.
    pub const CRC_ERROR: u8 = 1 << 3;

    /// Returns whether a byte on the wire is a response.
    #[must_use]
    pub const fn is_response(byte: u8) -> bool {
        byte & 0x80 == 0
    }

    /// Returns whether any bit of `bits` is set.
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits != 0
    }

    /// Returns whether the card took the command, in the idle state or not.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 & !Self::IDLE_STATE == 0
    }
}

/// What a card says about a block that it received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataResponse {
    /// The card has the block.
    Accepted,
    /// The block was damaged on the wire.
    CrcError,
    /// The card could not write it.
    WriteError,
}

impl DataResponse {
    /// Reads the byte behind a written block: `xxx0sss1`. Returns `None` if it is none of the three
    /// answers.
    #[must_use]
    pub const fn of(byte: u8) -> Option<Self> {
        match byte & 0x1f {
            0b0_0101 => Some(Self::Accepted),
            0b0_1011 => Some(Self::CrcError),
            0b0_1101 => Some(Self::WriteError),
            _ => None,
        }
    }
}

/// The token that a card sends in place of a block that it cannot read: `000xxxxx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorToken(pub u8);

impl ErrorToken {
    /// The medium has an error that the card could not correct.
    pub const ECC_FAILED: u8 = 1 << 2;
    /// The address is beyond the card.
    pub const OUT_OF_RANGE: u8 = 1 << 3;

    /// Returns whether a byte on the wire, where a start token is due, is an error token.
    #[must_use]
    pub const fn is_one(byte: u8) -> bool {
        byte & 0xe0 == 0 && byte != 0
    }
}

/// Returns the CRC7 of a command: x^7 + x^3 + 1, beginning with 0.
#[must_use]
pub fn crc7(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).rev().fold(crc, |crc: u8, at| {
            let out = crc >> 6 & 1 ^ byte >> at & 1;
            (crc << 1 & 0x7f) ^ (out * 0b000_1001)
        })
    })
}

/// Returns the CRC16 of a block: x^16 + x^12 + x^5 + 1, beginning with 0, a byte at a time.
#[must_use]
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let mut crc = crc.rotate_left(8) ^ u16::from(*byte);
        crc ^= (crc & 0xff) >> 4;
        crc ^= crc << 12;
        crc ^ (crc & 0xff) << 5
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of chapter 4.5 of the specification, and the well-known frames of CMD0 and
    /// CMD8.
    #[test]
    fn checksums_are_those_of_the_specification() {
        assert_eq!(crc7(&[0x40, 0, 0, 0, 0]), 0b100_1010);
        assert_eq!(crc7(&[0x51, 0, 0, 0, 0]), 0b010_1010);
        assert_eq!(crc7(&[0x11, 0, 0, 0x09, 0]), 0b011_0011);
        assert_eq!(crc16(&[0xff; 512]), 0x7fa1);
        assert_eq!(crc16(b"123456789"), 0x31c3); // the check value of this polynomial
        assert_eq!(Command::new(0, 0).bytes(), [0x40, 0, 0, 0, 0, 0x95]);
        assert_eq!(Command::new(8, 0x1aa).bytes(), [0x48, 0, 0, 1, 0xaa, 0x87]);
    }

    #[test]
    fn every_byte_is_read_as_the_specification_says() {
        for byte in 0..=u8::MAX {
            assert_eq!(R1::is_response(byte), byte < 0x80, "{byte:#x}");
            assert_eq!(R1(byte).is_ok(), byte <= 1, "{byte:#x}");
            let answer = match byte % 32 {
                5 => Some(DataResponse::Accepted),
                11 => Some(DataResponse::CrcError),
                13 => Some(DataResponse::WriteError),
                _ => None,
            };
            assert_eq!(DataResponse::of(byte), answer, "{byte:#x}");
            assert_eq!(ErrorToken::is_one(byte), (1..32).contains(&byte), "{byte:#x}");
        }
    }
}
