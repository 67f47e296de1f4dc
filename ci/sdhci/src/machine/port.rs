//! Instructions that access devices. Each is a barrier to the compiler: memory that was written
//! before is written when the device acts.

use core::arch::asm;

/// Port I/O.
pub(crate) mod ports {
    use core::arch::asm;

    /// Writes a byte.
    pub(crate) fn write_8(port: u16, value: u8) {
        // SAFETY: this program uses only ports of devices that access no memory by them.
        unsafe { asm!("out dx, al", in("dx") port, in("al") value) };
    }

    /// Reads a byte.
    pub(crate) fn read_8(port: u16) -> u8 {
        let value;
        // SAFETY: as in `write_8`.
        unsafe { asm!("in al, dx", in("dx") port, out("al") value) };
        value
    }

    /// Writes four bytes.
    pub(crate) fn write_32(port: u16, value: u32) {
        // SAFETY: as in `write_8`.
        unsafe { asm!("out dx, eax", in("dx") port, in("eax") value) };
    }

    /// Reads four bytes.
    pub(crate) fn read_32(port: u16) -> u32 {
        let value;
        // SAFETY: as in `write_8`.
        unsafe { asm!("in eax, dx", in("dx") port, out("eax") value) };
        value
    }
}

/// Returns the time-stamp counter.
pub(crate) fn time_stamp() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: every 64-bit processor has the instruction.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high) };
    u64::from(high) << 32 | u64::from(low)
}

/// The registers of a device in memory.
#[derive(Clone, Copy)]
pub(crate) struct Mmio {
    address: usize,
    bytes: usize,
}

impl Mmio {
    /// The `bytes` of registers at `address`, which come from a base address register (BAR).
    pub(crate) const fn new(address: u32, bytes: usize) -> Self {
        assert!(address != 0 && address.is_multiple_of(4), "a BAR that holds no address");
        Self { address: address as usize, bytes }
    }

    fn place(self, register: usize, bytes: usize) -> usize {
        assert!(register + bytes <= self.bytes, "register {register:#x} is beyond the device");
        self.address + register
    }

    /// Writes one byte.
    pub(crate) fn write_8(self, register: usize, value: u8) {
        let at = self.place(register, 1);
        // SAFETY: the device is there, and accesses only memory whose address it was given.
        unsafe { asm!("mov [{}], {}", in(reg) at, in(reg_byte) value) };
    }

    /// Writes two bytes.
    pub(crate) fn write_16(self, register: usize, value: u16) {
        let at = self.place(register, 2);
        // SAFETY: as in `write_8`.
        unsafe { asm!("mov [{}], {:x}", in(reg) at, in(reg) value) };
    }

    /// Writes four bytes.
    pub(crate) fn write_32(self, register: usize, value: u32) {
        let at = self.place(register, 4);
        // SAFETY: as in `write_8`.
        unsafe { asm!("mov [{}], {:e}", in(reg) at, in(reg) value) };
    }

    /// Reads one byte.
    pub(crate) fn read_8(self, register: usize) -> u8 {
        let at = self.place(register, 1);
        let value;
        // SAFETY: as in `write_8`.
        unsafe { asm!("mov {}, [{}]", out(reg_byte) value, in(reg) at) };
        value
    }

    /// Reads two bytes.
    pub(crate) fn read_16(self, register: usize) -> u16 {
        let at = self.place(register, 2);
        let value;
        // SAFETY: as in `write_8`.
        unsafe { asm!("mov {:x}, [{}]", out(reg) value, in(reg) at) };
        value
    }

    /// Reads four bytes.
    pub(crate) fn read_32(self, register: usize) -> u32 {
        let at = self.place(register, 4);
        let value;
        // SAFETY: as in `write_8`.
        unsafe { asm!("mov {:e}, [{}]", out(reg) value, in(reg) at) };
        value
    }
}
