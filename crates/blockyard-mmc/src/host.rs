//! The capabilities of a host.

use super::command::queue::DIRECT;
use super::timing::{TimingSet, Width};

/// The capabilities of a host controller, its wiring and its supplies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCapabilities {
    /// Timings that may be used. The basic ones, [`TimingSet::BASIC`], may always be used.
    pub timings: TimingSet,
    /// The widest bus that is wired.
    pub width: Width,
    /// The highest clock in Hz.
    pub max_clock_hz: u32,
    /// The voltages that the host can supply, as bits 23:7 of an OCR.
    pub supply: u32,
    /// Whether the host can signal at 1.8 V.
    pub signal_1v8: bool,
    /// Whether the host can signal at 1.2 V.
    pub signal_1v2: bool,
    /// Whether the host can switch the card's power off and on.
    pub power_cycle: bool,
    /// Whether the host needs SDR50 tuned; SDR104, HS200 and HS400 always are.
    pub tunes_sdr50: bool,
    /// Whether the card is soldered in.
    pub non_removable: bool,
    /// The largest number of 512-byte blocks in one transfer, at least 1.
    pub max_blocks: u16,
    /// The largest number of memory segments in one transfer, at least 1.
    pub max_segments: u16,
    /// Whether transfers may be announced with CMD23.
    pub set_block_count: bool,
    /// How the end of busy is found.
    pub busy_detect: BusyDetect,
    /// How data moves.
    pub transfer: Transfer,
    /// Whether the controller [holds back](super::controller::HostController::prepare_beside) the
    /// data of a read until its memory is prepared, as one with a FIFO and a separate DMA engine
    /// can.
    pub holds_data: bool,
    /// Whether the controller can leave a transfer
    /// [open](super::controller::MmcRequest::stays_open) and
    /// [continue](super::controller::MmcRequest::continues) it without a command.
    pub keeps_open: bool,
    /// The number of tasks that the command queue engine holds, 1 to 32; 0 if there is no engine.
    pub queue_engine_depth: u8,
    /// Whether the engine takes direct commands beside its tasks.
    pub queue_engine_direct: bool,
}

/// The way in which a host learns that the card has released DAT0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyDetect {
    /// The card is asked (CMD13) again and again.
    Status,
    /// DAT0 is checked again and again.
    Line,
    /// The controller raises an interrupt.
    Hardware,
}

/// The way in which a host moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// The processor copies it.
    Pio,
    /// The controller fetches it from prepared memory.
    Dma,
}

impl HostCapabilities {
    /// A plain controller: 3.3 V, 4 bits, 50 MHz, high speed, DMA with one segment, CMD23, no busy
    /// detection, a slot whose power can be switched.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            timings: TimingSet::HIGH_SPEED,
            width: Width::Four,
            max_clock_hz: 50_000_000,
            supply: 0x00ff_8000,
            signal_1v8: false,
            signal_1v2: false,
            power_cycle: true,
            tunes_sdr50: false,
            non_removable: false,
            max_blocks: u16::MAX,
            max_segments: 1,
            set_block_count: true,
            busy_detect: BusyDetect::Status,
            transfer: Transfer::Dma,
            holds_data: false,
            keeps_open: false,
            queue_engine_depth: 0,
            queue_engine_direct: false,
        }
    }

    /// A controller with everything: all timings at 208 MHz, 8 bits, 1.8 and 1.2 V, 128 segments,
    /// busy detection in hardware, data held back for memory, transfers left open, a command queue
    /// engine of 32 tasks.
    #[must_use]
    pub const fn full() -> Self {
        Self {
            timings: TimingSet::ALL,
            width: Width::Eight,
            max_clock_hz: 208_000_000,
            signal_1v8: true,
            signal_1v2: true,
            max_segments: 128,
            busy_detect: BusyDetect::Hardware,
            holds_data: true,
            keeps_open: true,
            queue_engine_depth: 32,
            queue_engine_direct: true,
            ..Self::plain()
        }
    }

    /// Returns the number of requests that the command queue engine holds at once: at most 31 if
    /// direct commands take the last number.
    #[must_use]
    pub const fn queue_engine_tasks(&self) -> u8 {
        let most = if self.queue_engine_direct { DIRECT.number() } else { 32 };
        if self.queue_engine_depth < most { self.queue_engine_depth } else { most }
    }
}
