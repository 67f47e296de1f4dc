//! PCI configuration space: finds the controller.

use crate::machine::ports;

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
/// System peripheral, SD host controller.
const SD_HOST_CLASS: u32 = 0x0805;
/// Bits of the command register: the device answers in memory, and uses memory by itself.
const MEMORY: u32 = 1 << 1;
const BUS_MASTER: u32 = 1 << 2;

/// A function of a device on bus 0.
#[derive(Clone, Copy)]
pub(crate) struct Function(u32);

impl Function {
    /// Returns the first SD host controller. SDHCI says so by its class, whoever made it.
    pub(crate) fn sd_host() -> Option<Self> {
        let functions = (0..256).map(|at| Self(at << 8));
        functions.into_iter().find(|function| function.read(0x08) >> 16 == SD_HOST_CLASS)
    }

    fn read(self, register: u32) -> u32 {
        ports::write_32(ADDRESS, 1 << 31 | self.0 | register);
        ports::read_32(DATA)
    }

    fn write(self, register: u32, value: u32) {
        ports::write_32(ADDRESS, 1 << 31 | self.0 | register);
        ports::write_32(DATA, value);
    }

    /// Lets the device answer and use memory. Returns the address of its registers and its
    /// interrupt line, which the machine's firmware has assigned.
    pub(crate) fn enable(self) -> (u32, u8) {
        let command = self.read(0x04) & 0xffff; // the status above clears bits that are written
        self.write(0x04, command | MEMORY | BUS_MASTER);
        let [line, ..] = self.read(0x3c).to_le_bytes();
        (self.read(0x10) & !0xf, line)
    }
}
