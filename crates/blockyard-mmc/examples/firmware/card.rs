//! A simulated eMMC device of 4 MiB, soldered beside the chip. It answers the commands of
//! identification and of the request path, and no others.

use alloc::vec;
use alloc::vec::Vec;
use blockyard::time::Duration;
use blockyard_mmc::command::Response;
use blockyard_mmc::command::state::CardState;
use blockyard_mmc::command::status::Status;
use blockyard_mmc::register::Bits;
use blockyard_mmc::register::ext_csd::{DeviceType, index, revision};

const MEDIUM_BYTES: usize = 4 << 20;
/// 2.7 to 3.6 V; up to 2 GB, so that its addresses are bytes.
const OCR: u32 = 0x00ff_8000;
const OCR_READY: u32 = 1 << 31;
/// A block that is hard to read.
const BAD_BLOCK: usize = 45;
/// The time from a read command to its first block.
const ACCESS_TIME: Duration = Duration::from_us(80);
/// The busy time after a write, and after CMD6.
const BUSY_TIME: Duration = Duration::from_us(150);

/// The device.
pub(crate) struct Card {
    state: CardState,
    ext_csd: [u8; 512],
    medium: Vec<u8>,
    /// The position of the next block on the medium; none for EXT_CSD.
    at: Option<usize>,
    /// The blocks that CMD23 announced, or that a command for one block implies; none: until CMD12.
    blocks_left: Option<u32>,
    /// How often reads of [`BAD_BLOCK`] fail from now on.
    bad_reads: u32,
}

impl Card {
    pub(crate) fn new(bad_reads: u32) -> Self {
        let mut ext_csd = [0; 512];
        ext_csd[usize::from(index::EXT_CSD_REV)] = revision::V4_41;
        ext_csd[usize::from(index::DEVICE_TYPE)] = DeviceType::HS_26 | DeviceType::HS_52;
        let medium = vec![0xff; MEDIUM_BYTES];
        Self { state: CardState::Idle, ext_csd, medium, at: None, blocks_left: None, bad_reads }
    }

    /// Takes a command. Does not answer a command that it does not know, or not in its state.
    pub(crate) fn command(&mut self, index: u8, argument: u32, has_data: bool) -> Option<Response> {
        use CardState::{Data, Identification, Idle, Ready, Receive, StandBy, Transfer};
        let before = self.state;
        match (index, before) {
            (0, _) => {
                self.state = Idle;
                self.ext_csd[usize::from(index::HS_TIMING)] = 0;
                self.ext_csd[usize::from(index::BUS_WIDTH)] = 0;
                return Some(Response::None);
            }
            (1, Idle) if argument == 0 => return Some(Response::Short(OCR)), // the host only asks
            (1, Idle) => {
                self.state = Ready;
                return Some(Response::Short(OCR | OCR_READY));
            }
            (2, Ready) => {
                self.state = Identification;
                return Some(Response::Long(CID));
            }
            (3, Identification) => self.state = StandBy,
            (9, StandBy) => return Some(Response::Long(csd())),
            (7, StandBy) => self.state = Transfer,
            (8, Transfer) if has_data => self.expects(None, Some(1), Data),
            (6, Transfer) => {
                let [_, at, value, _] = argument.to_be_bytes();
                self.ext_csd[usize::from(at)] = value;
            }
            (23, Transfer) => self.blocks_left = Some(argument & 0xffff),
            (17, Transfer) => self.expects(Some(argument), Some(1), Data),
            (18, Transfer) => self.expects(Some(argument), self.blocks_left, Data),
            (24, Transfer) => self.expects(Some(argument), Some(1), Receive),
            (25, Transfer) => self.expects(Some(argument), self.blocks_left, Receive),
            (12, Data | Receive) => self.expects(None, None, Transfer),
            (13, StandBy | Transfer | Data | Receive) | (16, Transfer) => {}
            _ => return None,
        }
        Some(Response::Short(Status::new(before, true).0))
    }

    fn expects(&mut self, at: Option<u32>, blocks: Option<u32>, state: CardState) {
        (self.at, self.blocks_left, self.state) = (at.map(|at| at as usize), blocks, state);
    }

    /// Sends the next block. Returns `None` if it cannot, or if none is wanted.
    pub(crate) fn read(&mut self, block: &mut [u8]) -> Option<()> {
        let from = self.next_block(CardState::Data)?;
        if from == Some(BAD_BLOCK * 512) && self.bad_reads > 0 {
            self.bad_reads -= 1;
            return None;
        }
        block.copy_from_slice(match from {
            Some(at) => self.medium.get(at..at + block.len())?,
            None => &self.ext_csd,
        });
        Some(())
    }

    /// Takes the next block. Returns `None` if the card does not want one.
    pub(crate) fn write(&mut self, block: &[u8]) -> Option<()> {
        let at = self.next_block(CardState::Receive)??;
        self.medium.get_mut(at..at + block.len())?.copy_from_slice(block);
        Some(())
    }

    /// Returns the position of the next block on the medium; none for EXT_CSD.
    fn next_block(&mut self, state: CardState) -> Option<Option<usize>> {
        if self.state != state {
            return None;
        }
        self.blocks_left = self.blocks_left.map(|left| left - 1);
        if self.blocks_left == Some(0) {
            (self.blocks_left, self.state) = (None, CardState::Transfer);
        }
        let next = self.at.map(|at| at + 512);
        Some(core::mem::replace(&mut self.at, next))
    }

    /// Returns the time before the first block of a read, and the busy time afterwards.
    pub(crate) const fn delays(index: u8) -> (Duration, Duration) {
        match index {
            17 | 18 => (ACCESS_TIME, Duration::ZERO),
            24 | 25 | 6 => (Duration::ZERO, BUSY_TIME),
            _ => (Duration::ZERO, Duration::ZERO),
        }
    }
}

const CID: Bits<16> = Bits(*b"\x70\x01\x00SIMULA\x10\x12\x34\x56\x78\x11\x01");

/// Returns the CSD, field by field, with the bit numbers of JESD84-B51 7.3.
fn csd() -> Bits<16> {
    let fields: [(u32, u128); 9] = [
        (122, 4),               // SPEC_VERS: 4.0 or later, so there is an EXT_CSD
        (112, 0x0e),            // TAAC: 1 ms
        (96, 0x32),             // TRAN_SPEED: 26 MHz
        (84, 0b0000_1111_0101), // CCC: the usual classes
        (80, 9),                // READ_BL_LEN: 512 bytes
        (62, MEDIUM_BYTES as u128 / (512 << 9) - 1), // C_SIZE, in units of 256 KiB
        (47, 7),                // C_SIZE_MULT: 512 blocks
        (22, 9),                // WRITE_BL_LEN
        (0, 1),
    ];
    let bits = fields.into_iter().fold(0, |bits, (at, value)| bits | value << at);
    Bits(u128::to_be_bytes(bits))
}
