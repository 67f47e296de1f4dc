//! Interrupts: the two 8259 controllers, a timer that ticks, and one line of a PCI device.
//!
//! Interrupts come at any time, but their handlers only count and mask: the program looks at
//! [`Line::has_fired`] when it likes. The device holds its line until its driver has read why, so
//! the handler masks the line, and [`Line::rearm`] unmasks it. Then the line interrupts again if
//! there is a reason left.

use super::ports;
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The vector of line 0; those below are exceptions.
const FIRST_VECTOR: usize = 32;
const VECTORS: usize = 48;
/// Ports of the controllers of lines 0 to 7 and 8 to 15.
const CONTROLLERS: [u16; 2] = [0x20, 0xa0];
/// The line by which the second controller interrupts the first.
const CASCADE: u8 = 2;
const TIMER_LINE: u8 = 0;
/// The timer counts down from this at 1.193182 MHz, so it ticks every millisecond.
const TICK: u16 = 1193;

// For each vector a stub of 16 bytes, which passes its number on. Exceptions end the program, so it
// does not matter that some have an error code on the stack.
global_asm!(
    r#"
    .text
    .balign 16
stubs:
    .set vector, 0
    .rept 48
    .balign 16
    pushq $vector
    jmp common
    .set vector, vector + 1
    .endr

common:
    pushq %rax
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    movq 72(%rsp), %rdi
    movq 80(%rsp), %rsi
    pushq %rbp
    movq %rsp, %rbp
    andq $-16, %rsp
    cld
    call interrupted
    movq %rbp, %rsp
    popq %rbp
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rax
    addq $8, %rsp
    iretq
    "#,
    options(att_syntax)
);

unsafe extern "C" {
    static stubs: [[u8; 16]; VECTORS];
}

/// The table of gates, each of 16 bytes.
#[repr(align(16))]
struct Gates(UnsafeCell<[[u64; 2]; VECTORS]>);

// SAFETY: `set_up` writes it once, before the first interrupt.
unsafe impl Sync for Gates {}

static GATES: Gates = Gates(UnsafeCell::new([[0; 2]; VECTORS]));
/// How often each line has interrupted.
static COUNTS: [AtomicU32; 16] = [const { AtomicU32::new(0) }; 16];
/// Whether a device has interrupted, and is masked.
static HAS_FIRED: AtomicBool = AtomicBool::new(false);

/// Starts the timer; all other lines stay masked.
pub(super) fn set_up() {
    // SAFETY: no interrupt comes yet, and nobody else uses the table.
    let gates = unsafe { &mut *GATES.0.get() };
    // SAFETY: `global_asm` defines them, and nobody writes them.
    for (gate, stub) in gates.iter_mut().zip(unsafe { &stubs }) {
        let stub = stub.as_ptr().expose_provenance() as u64;
        // An interrupt gate of ring 0, for the code segment 8.
        let low = stub & 0xffff | 8 << 16 | 0x8e00 << 32 | (stub >> 16 & 0xffff) << 48;
        *gate = [low, stub >> 32];
    }
    let [size, address] = [size_of::<Gates>() - 1, GATES.0.get().expose_provenance()];
    // The limit in 16 bits, then the address, which lie side by side in 10 bytes.
    let register = (address as u128) << 16 | size as u128;
    // SAFETY: the table is valid for as long as the program runs.
    unsafe { asm!("lidt [{}]", in(reg) &raw const register) };

    for (port, vector, cascade) in
        [(CONTROLLERS[0], 32, 1 << CASCADE), (CONTROLLERS[1], 40, CASCADE)]
    {
        ports::write_8(port, 0x11); // initialise: edges, a cascade, four words
        for word in [vector, cascade, 1] {
            ports::write_8(port + 1, word);
        }
        ports::write_8(port + 1, 0xff);
    }
    let [low, high] = TICK.to_le_bytes();
    ports::write_8(0x43, 0x34); // counter 0: both bytes, periodic
    ports::write_8(0x40, low);
    ports::write_8(0x40, high);
    set_masked(TIMER_LINE, false);
    set_masked(CASCADE, false);
    // SAFETY: every vector has a handler.
    unsafe { asm!("sti") };
}

fn set_masked(line: u8, is: bool) {
    let port = CONTROLLERS[usize::from(line / 8)] + 1;
    let bit = 1 << (line % 8);
    let mask = ports::read_8(port);
    ports::write_8(port, if is { mask | bit } else { mask & !bit });
}

/// The handler of every vector. Runs with interrupts off.
#[unsafe(no_mangle)]
extern "C" fn interrupted(vector: usize, at: usize) {
    let line = vector.checked_sub(FIRST_VECTOR);
    let line = line.unwrap_or_else(|| panic!("exception {vector} near {at:#x}"));
    let line = u8::try_from(line).expect("one of 16 lines");
    COUNTS[usize::from(line)].fetch_add(1, Ordering::Relaxed);
    if line != TIMER_LINE {
        set_masked(line, true);
        HAS_FIRED.store(true, Ordering::Release);
    }
    if line >= 8 {
        ports::write_8(CONTROLLERS[1], 0x20); // end of interrupt
    }
    ports::write_8(CONTROLLERS[0], 0x20);
}

/// The interrupt line of the one device that has one.
pub(crate) struct Line(u8);

impl Line {
    /// The line with this number, masked.
    ///
    /// # Panics
    ///
    /// Panics if the firmware of the machine has assigned no line of a device.
    pub(crate) fn new(number: u8) -> Self {
        assert!((3..16).contains(&number), "line {number} is not one of a PCI device");
        Self(number)
    }

    /// Lets the line interrupt once. Call it after the device's reasons were read.
    pub(crate) fn rearm(&self) {
        HAS_FIRED.store(false, Ordering::Release);
        set_masked(self.0, false);
    }

    /// Returns whether the line has interrupted since it was armed.
    #[expect(clippy::unused_self, reason = "there is one line")]
    pub(crate) fn has_fired(&self) -> bool {
        HAS_FIRED.load(Ordering::Acquire)
    }

    /// Sleeps until the line has interrupted, or the timer has ticked: for a millisecond at most.
    pub(crate) fn wait(&self) {
        // SAFETY: interrupts are off only between the check and the sleep, so none is missed.
        unsafe { asm!("cli") };
        if !self.has_fired() {
            // SAFETY: `sti` takes effect after `hlt` has begun.
            unsafe { asm!("sti", "hlt", "cli") };
        }
        // SAFETY: the table of gates is set up.
        unsafe { asm!("sti") };
    }

    /// Returns how often the line has interrupted.
    pub(crate) fn interrupts(&self) -> u32 {
        COUNTS[usize::from(self.0)].load(Ordering::Relaxed)
    }
}
