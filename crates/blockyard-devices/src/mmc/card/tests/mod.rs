//! Checks of the card model against its figures and the standards.

mod behaviour;
mod durable;
mod ends;
mod extension;
mod failures;
mod identified;
mod open;
mod published;
mod sequences;

use super::*;
use crate::mmc::profile::CardTiming;
use blockyard_mmc::command::{BlockCount, Direction, SwitchAccess};
use blockyard_mmc::mode::{NRC, Timing, Width};

const RCA: Rca = Rca(1);
const ONE_MS: Duration = Duration::from_ms(1);

/// An SD card of 1 GiB, addressed in sectors.
fn sd() -> Registers {
    Registers {
        ocr: 0x40ff_8000,
        cid: [1; 16],
        csd: [2; 16],
        kind: RegistersKind::Sd {
            scr: [3; 8],
            ssr: Box::new([4; 64]),
            functions: [0; 6],
            enhancement: None,
        },
        sectors: 1 << 21,
        addressing: Addressing::Sectors,
    }
}

/// An eMMC 5.1 device of 1 GiB: a cache of 64 KiB, 32 tasks, 63 packed writes, HPI by CMD13, BKOPS.
fn emmc() -> Registers {
    let mut ext_csd = Box::new([0; 512]);
    for (at, value) in [
        (index::EXT_CSD_REV, 8),
        (index::CACHE_SIZE + 1, 2), // 0x200 Kibit
        (index::CMDQ_SUPPORT, 1),
        (index::CMDQ_DEPTH, 31),
        (index::MAX_PACKED_WRITES, 63),
        (index::HPI_FEATURES, 1),
        (index::BKOPS_SUPPORT, 1),
        (index::SEC_FEATURE_SUPPORT, 0x50),
        (index::BOOT_SIZE_MULT, 1), // 128 KiB: 256 sectors
    ] {
        ext_csd[usize::from(at)] = value;
    }
    Registers { kind: RegistersKind::Mmc { ext_csd }, ..sd() }
}

/// A host that takes one step at a time.
struct Host {
    card: Card,
    now: Instant,
}

impl Host {
    /// Returns a host with a selected card on a 4-lane bus at 50 MHz. A clock is 20 ns; a command
    /// with its response takes 98 clocks.
    fn new(registers: Registers, timing: CardTiming) -> Self {
        let mode = Mode::new(Timing::SdHighSpeed, Width::Four);
        let card = Card::new(registers, timing, mode, Prng::new(1)).unwrap();
        Self { card: card.selected(RCA), now: Instant::ZERO }
    }

    /// Sends a command and advances to the end of its response.
    fn send(&mut self, command: &Command) -> Reaction {
        let arrives = self.now + self.card.command_time();
        let reaction =
            self.card.command(command, arrives).unwrap_or_else(|misuse| panic!("{misuse}"));
        self.now = reaction.at;
        reaction
    }

    /// Sends a command that the card must refuse. Returns the error.
    fn misuse(&mut self, command: &Command) -> Wrong {
        let before = self.card.clone();
        let arrives = self.now + self.card.command_time();
        let misuse = self.card.command(command, arrives).unwrap_err();
        assert_eq!(self.card, before, "{misuse}");
        misuse.wrong
    }

    fn status(&mut self) -> Status {
        self.send(&Command::send_status(RCA)).answer.unwrap().status().unwrap()
    }

    /// Transfers blocks and advances to the end of the last one.
    fn transfer(&mut self, blocks: u32) -> Transferred {
        let done = self.card.transfer(blocks, self.now).unwrap_or_else(|misuse| panic!("{misuse}"));
        self.now = done.end;
        done
    }

    /// Waits until the card is not busy.
    fn wait(&mut self) {
        self.now = self.now.max(self.card.busy_until().unwrap_or(self.now));
    }

    /// Changes a byte of EXT_CSD and waits.
    fn switch(&mut self, byte: u16, value: u8) {
        let reaction = self.send(&Command::switch(SwitchAccess::WriteByte, byte, value));
        self.now = reaction.busy_until.unwrap_or(reaction.at);
    }

    /// Runs an open-ended transfer, with a status at the end of a write. Returns the time that it
    /// takes.
    fn run(&mut self, direction: Direction, sector: u32, blocks: u16) -> Duration {
        let begin = self.now;
        let _ = self.send(&match direction {
            Direction::Read => Command::read_multiple(sector, blocks),
            Direction::Write => Command::write_multiple(sector, blocks),
        });
        let done = self.transfer(u32::from(blocks));
        assert_eq!((done.blocks, done.error), (u32::from(blocks), None));
        let _ = self.send(&Command::stop_transmission(direction));
        if direction == Direction::Write {
            self.wait();
            assert!(self.status().is_ready());
        }
        self.now.since(begin)
    }

    /// Announces and begins a write of `blocks`. Returns the instant from which data can flow.
    fn begin_write(&mut self, sector: u32, blocks: u16) -> Instant {
        let _ = self.send(&count(blocks));
        self.send(&Command::write_multiple(sector, blocks)).data_from.unwrap()
    }

    fn ext_csd(&mut self) -> ExtCsd {
        let _ = self.send(&Command::send_ext_csd());
        let _ = self.transfer(1);
        ExtCsd::parse(self.card.register().try_into().unwrap()).unwrap()
    }

    /// Advances the time.
    fn idle(&mut self, span: Duration) {
        self.now = self.now + span + self.card.mode.time(u64::from(NRC));
    }
}

/// A slow card: pages of 4 KiB take 1 ms each and the buffer holds two. The end of a write takes 50
/// us, a flush 3 ms, a switch 2 ms, and an interrupt 5 ms to stop the work.
fn slow() -> CardTiming {
    let mut timing = CardTiming::instant(8192);
    timing.write.program = ONE_MS;
    timing.write.finish = Duration::from_us(50);
    timing.write.flush = Duration::from_ms(3);
    timing.control.switch = Duration::from_ms(2);
    timing.control.interrupt = Duration::from_ms(5);
    timing
}

/// Returns the command that announces `blocks`.
fn count(blocks: u16) -> Command {
    Command::set_block_count(BlockCount::new(blocks))
}
