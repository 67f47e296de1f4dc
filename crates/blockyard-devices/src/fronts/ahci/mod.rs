//! The front end of a SATA drive: AHCI, native command queuing, and Serial ATA.
//!
//! Reads and writes are queued in the drive (NCQ). Everything crosses the wire in frames, in one
//! direction at a time. A command is one frame, which the drive answers by another; then its data
//! follows, announced by a frame of its own; and one more frame reports its end. A medium that
//! fetches asks for the data of writes when it has room: `fetch` bytes by each frame that announces
//! data, for a write that the drive chooses. Commands and answers go between these pieces.
//!
//! A host has up to 32 ports, each with a drive, a wire and tags of its own. One interrupt serves
//! all ports.
//!
//! Left out: several drives behind one port, errors, power states of the link, and completions that
//! one frame reports together.
//!
//! # Rules
//!
//! - **[unqueued-command-alone]** A command that is not queued, such as a flush, is refused until
//!   the drive is idle, and every command is refused until it has ended. The refused command waits
//!   at the head of the dispatch list, so the queue drains before it, as with Linux's libata.

pub(crate) mod profile;

use super::front::{Front, FrontUse, sectors_of};
use super::line::Line;
use crate::fronts::ahci::profile::AhciProfile;
use crate::medium::Access;
use crate::null::transfer_time;
use blockyard::bio::Op;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;

/// Bytes of data in one frame at most (Serial ATA).
const DATA_FRAME_BYTES: u64 = 8192;
/// Bytes of the frames, with their check sum (Serial ATA): registers either way, DMA setup, DMA
/// activate, set device bits, and the header of data.
const REGISTER: u64 = 20 + 4;
const SETUP: u64 = 28 + 4;
const ACTIVATE: u64 = 4 + 4;
const DEVICE_BITS: u64 = 8 + 4;
const DATA: u64 = 4 + 4;
/// Bytes of the list of ranges to be trimmed (ATA, data set management).
const TRIM_BYTES: u64 = 512;

/// The front end.
#[derive(Debug)]
pub(crate) struct Ahci {
    profile: AhciProfile,
    /// Commands that the driver has accepted.
    outstanding: u32,
    /// Whether one of them is not queued.
    is_alone: bool,
    wire: Line,
    controller: Line,
}

impl Ahci {
    pub(super) fn new(profile: AhciProfile) -> Self {
        let idle = Line::default();
        Self { profile, outstanding: 0, is_alone: false, wire: idle, controller: idle }
    }

    /// Whether the drive queues a command.
    fn queues(&self, access: Access) -> bool {
        match access.op {
            Op::Read | Op::Write => true,
            Op::Discard => self.profile.queued_trim,
            _ => false,
        }
    }

    /// Returns the time of `sectors` of a queued command, with the frame that announces them.
    fn data(&self, sectors: u32) -> Duration {
        let bytes = u64::from(sectors) * u64::from(SECTOR_BYTES);
        let frames = bytes.div_ceil(DATA_FRAME_BYTES);
        self.frame(SETUP) + self.frames(frames, bytes + frames * DATA)
    }

    /// Returns the time of the frames by which the drive asks for each frame of `sectors` after the
    /// first.
    fn activations(&self, sectors: u32) -> Duration {
        let bytes = u64::from(sectors) * u64::from(SECTOR_BYTES);
        let frames = bytes.div_ceil(DATA_FRAME_BYTES).saturating_sub(1);
        self.frames(frames, frames * ACTIVATE)
    }

    /// Passes a command with the `data` of a write, and returns when the medium can begin.
    fn pass(&mut self, access: Access, data: Duration, now: Instant) -> Instant {
        let frames = if self.queues(access) { 2 } else { 1 };
        let command = self.frames(frames, frames * REGISTER);
        let ranges = match access.op {
            Op::Discard => self.frame(ACTIVATE) + self.frame(DATA + TRIM_BYTES),
            _ => Duration::ZERO,
        };
        // One wire for both directions: this waits for what is on its way.
        let arrived = self.wire.pass(now, command + ranges + data);
        self.controller.pass(arrived, self.profile.interval) + self.profile.command
    }

    fn frame(&self, bytes: u64) -> Duration {
        self.frames(1, bytes)
    }

    /// Returns the time of `frames` frames with `bytes` together.
    fn frames(&self, frames: u64, bytes: u64) -> Duration {
        let own_ns = self.profile.frame.as_ns().saturating_mul(frames);
        Duration::from_ns(own_ns) + transfer_time(bytes, self.profile.link)
    }
}

impl Front for Ahci {
    fn admit(&mut self, access: Access) -> bool {
        let is_queued = self.queues(access);
        if self.is_alone || (!is_queued && self.outstanding > 0) {
            return false;
        }
        self.outstanding += 1;
        self.is_alone = !is_queued;
        true
    }

    fn release(&mut self, access: Access) {
        debug_assert!(self.outstanding > 0, "{access:?} ends at an idle drive");
        debug_assert!(!self.is_alone || self.outstanding == 1, "[unqueued-command-alone]");
        self.outstanding -= 1;
        self.is_alone = false;
    }

    fn send(&mut self, access: Access, now: Instant) -> Instant {
        let data = match access.op {
            Op::Write => self.data(access.sectors) + self.activations(access.sectors),
            _ => Duration::ZERO,
        };
        self.pass(access, data, now)
    }

    fn fetched_sectors(&self) -> Option<u32> {
        Some(sectors_of(self.profile.fetch))
    }

    fn send_alone(&mut self, access: Access, now: Instant) -> Instant {
        self.pass(access, Duration::ZERO, now)
    }

    fn fetch(&mut self, sectors: u32, now: Instant) -> Instant {
        let time = self.data(sectors) + self.activations(sectors);
        self.wire.pass(now, time)
    }

    fn answer(&mut self, access: Access, now: Instant) -> Instant {
        let end = if self.queues(access) { DEVICE_BITS } else { REGISTER };
        let data = match access.op {
            Op::Read => self.data(access.sectors),
            _ => Duration::ZERO,
        };
        self.wire.pass(now, data + self.frame(end))
    }

    fn used(&self) -> FrontUse {
        FrontUse { controller: self.controller.used(), link: self.wire.used() }
    }

    fn forget(&mut self) {
        [&mut self.controller, &mut self.wire].into_iter().for_each(Line::forget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::unit::HctxId;

    fn ahci(queued_trim: bool) -> Ahci {
        Ahci::new(AhciProfile {
            depth: 32,
            issue: Duration::ZERO,
            interval: Duration::ZERO,
            command: Duration::from_us(10),
            link: 600_000_000,
            frame: Duration::from_ns(600),
            queued_trim,
            fetch: 16 << 10,
        })
    }

    const fn access(op: Op, sectors: u32) -> Access {
        Access { op, start: 0, sectors, fua: false, queue: HctxId(0) }
    }

    #[test]
    fn a_flush_waits_until_the_drive_is_idle_and_everything_waits_for_it() {
        // [unqueued-command-alone]
        let read = access(Op::Read, 8);
        let flush = access(Op::Flush, 0);
        let mut ahci = ahci(false);
        assert!(ahci.admit(read) && ahci.admit(read));
        assert!(!ahci.admit(flush));
        ahci.release(read);
        assert!(!ahci.admit(flush));
        ahci.release(read);
        assert!(ahci.admit(flush));
        assert!(!ahci.admit(read) && !ahci.admit(flush));
        ahci.release(flush);
        assert!(ahci.admit(read));
    }

    #[test]
    fn a_trim_waits_only_where_the_drive_cannot_queue_it() {
        let write = access(Op::Write, 8);
        let trim = access(Op::Discard, 8);
        for queued in [false, true] {
            let mut ahci = ahci(queued);
            assert!(ahci.admit(write));
            assert_eq!(ahci.admit(trim), queued);
        }
    }

    #[test]
    fn both_directions_share_the_wire() {
        // A read of 4 KiB is five frames: two of 24 bytes before the medium; then one of 32, its
        // data of 4096 and 8, and one of 12. Each takes 600 ns and 1.67 ns a byte.
        let mut ahci = ahci(false);
        let read = access(Op::Read, 8);
        let write = access(Op::Write, 8);
        assert_eq!(ahci.send(read, Instant::ZERO), Instant::from_ns(2 * 640 + 10_000));
        assert_eq!(ahci.answer(read, Instant::ZERO), Instant::from_ns(1_280 + 3 * 600 + 6_914));
        // The write comes after it, with the same frames but the last.
        let before = 1_280 + 3 * 600 + 6_914;
        let after = before + 1_280 + 2 * 600 + 6_894;
        assert_eq!(ahci.send(write, Instant::ZERO), Instant::from_ns(after + 10_000));
    }

    /// Two pieces of 16 KiB, each announced by a frame of 32 bytes, in two frames of 8 KiB and 8
    /// bytes, the second asked for by one of 8: four times 600 ns, and 16440 bytes of 1.67 ns. The
    /// command has crossed alone, in two frames of 24 bytes, and one that comes between the pieces
    /// waits for the first alone.
    #[test]
    fn a_command_goes_between_two_pieces_of_a_write() {
        let mut ahci = ahci(false);
        let command = 2 * 640;
        assert_eq!(ahci.send_alone(access(Op::Write, 64), Instant::ZERO).as_ns(), 11_280);
        let piece = 4 * 600 + 27_400;
        let sent = Instant::from_ns(command);
        assert!(ahci.fetch(32, sent).as_ns().abs_diff(command + piece) <= 3);
        let read = ahci.send_alone(access(Op::Read, 8), Instant::from_ns(20_000)).as_ns();
        assert!(read.abs_diff(2 * command + piece + 10_000) <= 3, "{read}");
        let second = ahci.fetch(32, Instant::from_ns(20_000)).as_ns();
        assert!(second.abs_diff(2 * command + 2 * piece) <= 6, "{second}");
    }

    #[test]
    fn a_long_write_is_asked_for_frame_by_frame() {
        let mut ahci = ahci(false);
        let times = [16, 32].map(|sectors| {
            let before = ahci.wire.used();
            ahci.send(access(Op::Write, sectors), Instant::ZERO);
            ahci.wire.used().as_ns() - before.as_ns()
        });
        // A second frame of 8 KiB with its header, and the frame of 8 bytes that asks for it.
        assert!((times[1] - times[0]).abs_diff(2 * 600 + (8_200 + 8) * 10 / 6) <= 3, "{times:?}");
    }
}
