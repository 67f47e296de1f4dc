//! The serial line, on which the program takes orders and reports, and the port by which it ends.

use crate::machine::ports;
use core::fmt::{self, Write};

const DATA: u16 = 0x3f8;
const LINE_STATUS: u16 = DATA + 5;
const HAS_RECEIVED: u8 = 1 << 0;
const CAN_SEND: u8 = 1 << 5;
/// QEMU's isa-debug-exit.
const EXIT: u16 = 0xf4;

/// The first serial line of a PC, as its firmware has set it up.
pub(crate) struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while ports::read_8(LINE_STATUS) & CAN_SEND == 0 {}
            ports::write_8(DATA, byte);
        }
        Ok(())
    }
}

/// Waits for a byte from the host.
pub(crate) fn receive() -> u8 {
    while ports::read_8(LINE_STATUS) & HAS_RECEIVED == 0 {
        core::hint::spin_loop();
    }
    ports::read_8(DATA)
}

/// Writes a line.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        use core::fmt::Write;
        writeln!($crate::serial::Serial, $($text)*).expect("serial line")
    }};
}

/// Ends the machine: QEMU's exit code is 1 for a success and 3 for a failure.
pub(crate) fn exit(is_success: bool) -> ! {
    ports::write_8(EXIT, if is_success { 0 } else { 1 });
    loop {
        core::hint::spin_loop();
    }
}
