//! A model of an eMMC device or SD card as a host sees it: at the level of commands, in virtual
//! time.
//!
//! A host model calls [`Card::command`] when a command has arrived. The call returns the card's
//! answer and its instant. When the host is ready for data it calls [`Card::transfer`], once or
//! piece by piece. The busy time ends at `Card::busy_until`, which an interrupt (HPI) changes. A
//! card has no events of its own: each call names an instant, and the card's state follows from it.
//!
//! Wire time follows from [`Mode`], rounded up once for each response and each run of blocks. The
//! host drives the bus, and the card accepts any mode ([`Card::drive`]).
//! [`identify`](blockyard_mmc::identify) and its tests check that card and host agree on the mode.
//! The card holds no data; its caller does. After `Card::keep_data` the card reports the fate of
//! the data as [`DataEvent`]s.
//!
//! Data flows once the host is ready ([`Card::transfer`]), the card has the data or room for it,
//! and the wire is free. The card makes room page by page.
//!
//! # Rules
//!
//! - **[misuse-changes-nothing]** A command that the table [`legal`] refuses is a [`Misuse`], a bug
//!   of the host, and leaves the card as it was. The same holds for a command that the host can
//!   know to be wrong, and for one that this card does not model. After a lost command or response
//!   no host can know the card's state. Then the card treats an illegal command as real cards do:
//!   it stays silent and sets ILLEGAL_COMMAND in the next status. It treats a stop that crosses the
//!   end of its transfer in the same way. An idle card is also silent, without misuse, if the host
//!   asks for the other standard.
//! - **[card-time-moves-forward]** Commands arrive in the order of time, and none while a response
//!   is on the wire.
//! - **[failed-block-ends-transfer]** A failed block ends the transfer: host and card stay in their
//!   states and wait for CMD12.
//! - **[certain-once-programmed]** Only the card knows which data is on the medium for certain.
//!   With the cache on, this is data in programmed pages that bypassed the cache or that a flush
//!   found in it. With the cache off, it is data in any programmed page. A card without a cache
//!   that ends busy early keeps the data that it has received, as the standards require. A loss of
//!   power may leave any part of the other data, sector by sector, because a cache programs pages
//!   when it likes.
//!
//! # Not modelled
//!
//! Secure erase, the cache barrier, RPMB, I/O cards, and block sizes other than
//! 512 bytes are not modelled: a host that asks for one gets a [`Misuse`]. The card accepts any
//! voltage. Erased sectors cost a copy like others. A cache empties by itself, oldest page first,
//! as fast as pages are programmed; data that waits for the rest of its page counts as programmed
//! once its share of the page's time has passed.

mod act;
mod ahead;
mod busy;
mod control;
mod engine;
mod erase;
mod extension;
mod fate;
mod function;
pub mod misuse;
mod open;
pub mod packed;
mod program;
mod queue;
mod ready;
mod sequence;
#[cfg(test)]
mod tests;
mod transfer;
mod unit;

pub use extension::Enhancement;
pub use misuse::{Misuse, Wrong};
pub use transfer::{DataError, Transferred};

use crate::data::event::DataEvent;
use crate::mmc::profile::{BadTiming, CardTiming};
use ahead::Streams;
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::command::legal::legal;
use blockyard_mmc::command::state::{CardState, Queue};
use blockyard_mmc::command::status::Status;
use blockyard_mmc::command::{Addressing, Command, Opcode, Rca, Response, Standard};
use blockyard_mmc::controller::HostError;
use blockyard_mmc::mode::{COMMAND_CLOCKS, Mode, NCR_MAX};
use blockyard_mmc::register::ext_csd::{ExtCsd, Hpi, index};
use busy::Busy;
use control::Background;
use core::ops::Range;
use engine::Engine;
use fate::Fate;
use function::Functions;
use queue::{Parameters, Tasks};
use sequence::Sequences;
use std::collections::VecDeque;
use transfer::{Transfer, TransferState};
use unit::Units;

/// The registers by which a card describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// OCR without the busy bit, which the card adds once it is powered up.
    pub ocr: u32,
    /// CID.
    pub cid: [u8; 16],
    /// CSD.
    pub csd: [u8; 16],
    /// The registers that only the card's standard has.
    pub kind: RegistersKind,
    /// Size of the user area in sectors.
    pub sectors: u64,
    /// The unit of addresses.
    pub(crate) addressing: Addressing,
}

/// Registers that only one standard has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistersKind {
    /// eMMC.
    Mmc {
        /// EXT_CSD, valid for [`ExtCsd::parse`].
        ext_csd: Box<[u8; 512]>,
    },
    /// SD.
    Sd {
        /// SCR.
        scr: [u8; 8],
        /// SD status.
        ssr: Box<[u8; 64]>,
        /// The supported functions, one bit each, for each of the six groups, group 1 (access mode)
        /// first.
        functions: [u16; 6],
        /// The performance enhancement register, if there are extension registers.
        enhancement: Option<Enhancement>,
    },
}

/// The answer of a card to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the reaction says when the card goes on"]
pub struct Reaction {
    /// The response on the command line, or the lack of one.
    pub answer: Result<Response, NoAnswer>,
    /// The end of the response. Without one, the end of the time in which it would have begun.
    pub at: Instant,
    /// The instant from which data can flow if the host is ready; `None` if there is no data.
    pub(crate) data_from: Option<Instant>,
    /// The instant until which the card holds DAT0 low; `None` if the card is not busy.
    pub(crate) busy_until: Option<Instant>,
}

/// Why a host has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// No response came: the card did not get the command, or there is no card.
    Timeout,
    /// The response had a wrong CRC; the card carried out the command.
    Crc,
}

impl From<NoAnswer> for HostError {
    fn from(no: NoAnswer) -> Self {
        match no {
            NoAnswer::Timeout => Self::Timeout,
            NoAnswer::Crc => Self::Damaged,
        }
    }
}

/// The features in registers that never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Features {
    cache_bytes: u64,
    queue_depth: u8,
    max_packed_writes: u8,
    max_packed_reads: u8,
    hpi: Option<Hpi>,
    bkops: bool,
    sanitize: bool,
}

impl Features {
    const NONE: Self = Self {
        cache_bytes: 0,
        queue_depth: 0,
        max_packed_writes: 0,
        max_packed_reads: 0,
        hpi: None,
        bkops: false,
        sanitize: false,
    };

    fn of(ext_csd: &ExtCsd) -> Self {
        use blockyard_mmc::register::ext_csd::SecureFeatures;
        Self {
            cache_bytes: ext_csd.cache_bytes(),
            queue_depth: ext_csd.queue_depth(),
            max_packed_writes: ext_csd.max_packed_writes(),
            max_packed_reads: ext_csd.max_packed_reads(),
            hpi: ext_csd.hpi(),
            bkops: ext_csd.bkops(),
            sanitize: ext_csd.secure_features().has(SecureFeatures::SANITIZE),
        }
    }
}

/// The announcement of CMD23.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Announced {
    blocks: u32,
    packed: bool,
    /// The write is reliable or forced: it bypasses the cache.
    durable: bool,
}

/// The card model. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    registers: Registers,
    features: Features,
    timing: CardTiming,
    mode: Mode,
    prng: Prng,
    rca: Rca,
    /// The card is removed or without power, and does not answer.
    silent: bool,
    state: CardState,
    /// The previous command was CMD55.
    application: bool,
    /// The host cannot know the card's state ([misuse-changes-nothing]).
    uncertain: bool,
    /// Error bits for the next status.
    errors: u32,
    announced: Option<Announced>,
    /// Sectors and blocks of the reads that a packed header announced.
    packed_read: Option<VecDeque<(u64, u32)>>,
    transfer: Option<Transfer>,
    busy: Option<Busy>,
    engine: Engine,
    /// The fate of the data, after [`Self::keep_data`].
    fate: Option<Fate>,
    units: Option<Units>,
    erase: erase::Range,
    tasks: Tasks,
    functions: Functions,
    background: Background,
    /// The places where the card reads ahead.
    streams: Streams,
    sequences: Sequences,
    /// The cache has taken a write since the last flush.
    is_soiled: bool,
    /// SD: when the last flush ends.
    flushes_until: Instant,
    /// The memory's work that the host does not see.
    memory_time: Duration,
    /// Good blocks of the last write.
    good_blocks: u32,
    /// The bytes of the register being read, or the byte that is written to one.
    register: Vec<u8>,
    last_command: Option<Command>,
    last_at: Instant,
    response_end: Instant,
    /// When the last busy ended.
    busy_ended: Instant,
}

impl Card {
    /// Returns a card as after power-up. `prng` draws stalls and faults.
    ///
    /// # Errors
    ///
    /// Returns [`BadTiming`] if the figures contradict each other.
    ///
    /// # Panics
    ///
    /// Panics if the registers hold an EXT_CSD that [`ExtCsd::parse`] refuses.
    pub fn new(
        registers: Registers,
        timing: CardTiming,
        mode: Mode,
        prng: Prng,
    ) -> Result<Self, BadTiming> {
        timing.check()?;
        let features = match &registers.kind {
            RegistersKind::Mmc { ext_csd } => Features::of(
                &ExtCsd::parse(ext_csd).expect("the EXT_CSD of a card model should be valid"),
            ),
            RegistersKind::Sd { enhancement, .. } => {
                let Enhancement { cache_bytes, queue_depth, .. } =
                    enhancement.unwrap_or(Enhancement::new(0, 0));
                Features { cache_bytes, queue_depth, ..Features::NONE }
            }
        };
        Ok(Self {
            features,
            mode,
            prng,
            rca: Rca(0),
            silent: false,
            state: CardState::Idle,
            application: false,
            uncertain: false,
            errors: 0,
            announced: None,
            packed_read: None,
            transfer: None,
            busy: None,
            engine: Engine::default(),
            fate: None,
            units: timing.units.map(Units::new),
            erase: erase::Range::default(),
            tasks: Tasks::new(features.queue_depth, timing.read.parallel),
            functions: Functions::default(),
            background: Background::default(),
            streams: Streams::default(),
            sequences: Sequences::new(
                timing.write.gather,
                timing.write.page_bytes / SECTOR_BYTES,
                timing.write.sequences,
            ),
            is_soiled: false,
            flushes_until: Instant::ZERO,
            memory_time: Duration::ZERO,
            good_blocks: 0,
            register: Vec::with_capacity(512),
            last_command: None,
            last_at: Instant::ZERO,
            response_end: Instant::ZERO,
            busy_ended: Instant::ZERO,
            registers,
            timing,
        })
    }

    /// Returns the card as identification leaves it: with an address, selected and idle.
    #[must_use]
    pub fn selected(mut self, rca: Rca) -> Self {
        self.select(rca);
        self
    }

    /// Identifies the card at once, after a reset; see [`Self::selected`].
    pub fn select(&mut self, rca: Rca) {
        assert!(
            self.transfer.is_none() && self.busy.is_none(),
            "{rca:?} is for a card that is at work"
        );
        self.rca = rca;
        self.state = CardState::Transfer;
    }

    /// Returns the card as [`Self::selected`] does, with the features that identification turns on.
    #[must_use]
    pub(in crate::mmc) fn identified(mut self, rca: Rca) -> Self {
        self.identify(rca);
        self
    }

    /// Does the work of [`Self::identified`].
    pub(in crate::mmc) fn identify(&mut self, rca: Rca) {
        self.select(rca);
        self.turn_on();
    }

    /// Returns the first entry (from 1) of the last packed write that could not be programmed.
    pub(in crate::mmc) const fn failed_entry(&self) -> Option<u8> {
        self.background.failed_entry
    }

    /// Returns whether the next status will have one of `bits`.
    pub(in crate::mmc) const fn is_to_say(&self, bits: u32) -> bool {
        self.errors & bits != 0
    }

    /// Returns the current registers.
    #[must_use]
    pub(in crate::mmc) const fn registers(&self) -> &Registers {
        &self.registers
    }

    /// Makes the card report the fate of data from now on.
    pub(crate) fn keep_data(&mut self) {
        self.fate.get_or_insert_default();
    }

    /// Returns whether the card reports the fate of data.
    #[must_use]
    pub(crate) const fn keeps_data(&self) -> bool {
        self.fate.is_some()
    }

    /// Returns the next data event, in order. It names sectors by their place within the transfer's
    /// data, without the header of a packed transfer.
    pub(crate) fn next_data_event(&mut self) -> Option<DataEvent<u32>> {
        self.fate.as_mut()?.next_data_event()
    }

    /// Returns the sectors that the card has received and could not program since
    /// [`Self::keep_data`].
    #[must_use]
    pub(crate) fn failed_sectors(&self) -> &[Range<u64>] {
        self.fate.as_ref().map_or(&[], Fate::failed)
    }

    /// Reports the pages that are programmed by `at` ([certain-once-programmed]).
    pub(in crate::mmc) fn advance_data(&mut self, at: Instant) {
        self.engine.advance_to(at);
        if let Some(fate) = &mut self.fate {
            fate.programmed(self.engine.programmed_page());
        }
    }

    /// Sets the mode in which the host drives the bus from now on.
    pub fn drive(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Returns the wire time of a command. A host calls [`Self::command`] that long after it begins
    /// to send the command.
    #[must_use]
    pub(crate) fn command_time(&self) -> Duration {
        self.mode.time(u64::from(COMMAND_CLOCKS))
    }

    /// Returns the card's state at `at`, which must not be before the last command.
    #[must_use]
    pub fn state(&self, at: Instant) -> CardState {
        let mut state = self.state;
        if self.transfer.as_ref().is_some_and(|transfer| transfer.ended_by(at)) {
            state = state.after_data();
        }
        if self.busy_until().is_none_or(|until| until <= at) {
            state = state.after_busy();
        }
        state
    }

    /// Returns the instant until which the card holds DAT0 low, after a write or a response with
    /// busy. The instant may have passed. An interrupt (HPI) brings it forward.
    #[must_use]
    pub(crate) fn busy_until(&self) -> Option<Instant> {
        self.busy.map(|busy| busy.until).filter(|_| !self.silent)
    }

    /// Returns the number of bytes received by `at` that are not on the medium. A loss of power
    /// takes them.
    #[must_use]
    pub(crate) fn unprogrammed_bytes(&mut self, at: Instant) -> u64 {
        self.engine.advance_to(at);
        self.engine.bytes() + self.transfer.as_ref().map_or(0, Transfer::page_bytes)
    }

    /// Returns the time until `at` in which the memory worked unseen by the host: it programmed
    /// pages or fetched data ahead.
    #[must_use]
    pub(crate) fn memory_time(&self, at: Instant) -> Duration {
        self.memory_time - self.engine.done_at().since(at) - self.streams.due().since(at)
    }

    /// Returns the bytes of the register read in progress or of the last one. A tuning block has
    /// none.
    #[must_use]
    pub fn register(&self) -> &[u8] {
        &self.register
    }

    /// Cuts the power at `at`. Returns the number of lost bytes. These are the last bytes received,
    /// because pages are programmed in order. The card does not answer until [`Self::power_up`].
    pub(crate) fn power_cut(&mut self, at: Instant) -> u64 {
        let lost = self.unprogrammed_bytes(at);
        self.advance_data(at);
        self.engine.drop_all(at);
        if let Some(fate) = &mut self.fate {
            fate.lose();
        }
        self.reset();
        self.silent = true;
        self.streams.forget();
        self.sequences.forget();
        self.is_soiled = false;
        if let Some(units) = &mut self.units {
            units.close_all();
        }
        lost
    }

    /// Pulls the card out. Returns the number of lost bytes, as a power cut does.
    /// [`Self::power_up`] puts the card back.
    pub fn remove(&mut self, at: Instant) -> u64 {
        self.power_cut(at)
    }

    /// Restores the power. The card waits in [`CardState::Idle`] to be identified.
    pub fn power_up(&mut self, at: Instant) {
        self.reset();
        self.silent = false;
        self.last_at = self.last_at.max(at);
        self.response_end = self.last_at;
        self.busy_ended = self.last_at;
    }

    /// Takes a command whose last bit arrives at `at`. Lost responses and silence are answers, not
    /// errors.
    ///
    /// # Errors
    ///
    /// Returns [`Misuse`] if the host must not send the command now or this card does not model it
    /// ([misuse-changes-nothing], [card-time-moves-forward]).
    pub fn command(&mut self, command: &Command, at: Instant) -> Result<Reaction, Misuse> {
        let wrong = |wrong| self.misuse(command, at, wrong);
        if at < self.last_at {
            return Err(wrong(Wrong::Backwards(self.last_at)));
        }
        if at < self.response_end {
            return Err(wrong(Wrong::Overlap(self.response_end)));
        }
        if self.silent {
            return Ok(self.silence(at));
        }
        if self.is_probe(command, at) {
            self.advance_to(at);
            return Ok(self.silence(at));
        }
        let next = match self.check(command, at) {
            Ok(next) => next,
            Err(Wrong::Illegal(_))
                if self.uncertain
                    || self.late_interrupt(command, at)
                    || self.late_stop(command) =>
            {
                self.advance_to(at);
                self.errors |= Status::ILLEGAL_COMMAND; // [misuse-changes-nothing]
                return Ok(self.silence(at));
            }
            Err(other) => return Err(wrong(other)),
        };
        self.advance_to(at);
        self.last_command = Some(*command);
        if one_in(&mut self.prng, self.timing.faults.command_lost_one_in) {
            self.uncertain = true;
            return Ok(self.silence(at));
        }
        Ok(self.act(command, next, at))
    }

    /// Returns whether `command` stops a transfer that has ended by itself since the host last
    /// heard of it.
    fn late_stop(&self, command: &Command) -> bool {
        let state = self.transfer.as_ref().map(|transfer| transfer.state);
        command.opcode == Opcode::StopTransmission
            && matches!(state, Some(TransferState::Ended(at)) if at > self.last_at)
    }

    /// Returns whether `command` asks an idle card if it follows the other standard.
    fn is_probe(&self, command: &Command, at: Instant) -> bool {
        let asks = match command.opcode {
            Opcode::SendOpCond => self.standard() == Standard::Sd,
            Opcode::SendIfCond | Opcode::Application => self.standard() == Standard::Mmc,
            Opcode::IoSendOpCond => true,
            _ => false,
        };
        asks && self.state(at) == CardState::Idle
    }

    /// Checks that the host may send `command` at `at`. Returns the state to which it leads.
    fn check(&self, command: &Command, at: Instant) -> Result<CardState, Wrong> {
        let row = command.opcode.row();
        let standard = self.standard();
        if row.standard != Standard::Both && row.standard != standard {
            return Err(Wrong::Standard);
        }
        if row.application && !self.application {
            return Err(Wrong::NotApplication);
        }
        let state = self.state(at);
        let opcode = match command.opcode {
            // The work to interrupt ended while the command was on the wire.
            Opcode::InterruptByStatus if self.late_interrupt(command, at) => Opcode::SendStatus,
            opcode => opcode,
        };
        let next = legal(state, opcode, self.queue()).map_err(Wrong::Illegal)?;
        match self.busy_until() {
            // The table gives no time to falling asleep and waking.
            Some(until) if until > at && matches!(state, CardState::StandBy | CardState::Sleep) => {
                Err(Wrong::Busy(until))
            }
            _ => self.check_content(command, at).map(|()| next),
        }
    }

    /// Returns whether an interrupt crosses the end of the work that it interrupts: the work ended
    /// after the host's last command, up to which the card has advanced. The host is not at fault
    /// if that command asked whether the card was still at work. A card takes interrupts in its
    /// programming state only (JESD84-B51 6.6.23), and a host that has not asked cannot know the
    /// state.
    fn late_interrupt(&self, command: &Command, at: Instant) -> bool {
        let has_asked = self.last_command.is_some_and(|last| last.opcode == Opcode::SendStatus);
        matches!(command.opcode, Opcode::InterruptByStatus | Opcode::InterruptByStop)
            && self.state(at) == CardState::Transfer
            && self.busy.is_some()
            && has_asked
    }

    /// Advances the card to `at` and ends all work that is over by then.
    fn advance_to(&mut self, at: Instant) {
        debug_assert!(at >= self.last_at, "[card-time-moves-forward]");
        let state = self.state(at);
        if self.transfer.as_ref().is_some_and(|transfer| transfer.ended_by(at)) {
            self.transfer = None;
        }
        self.advance_data(at);
        if let Some(busy) = self.busy.take_if(|busy| busy.until <= at) {
            self.busy_ended = busy.until;
            self.background.end(&busy);
        }
        if self.busy.is_none() && self.transfer.is_none() {
            let idle_from = self.busy_ended.max(self.last_at).max(self.engine.done_at());
            if self.ext_csd_bit(index::BKOPS_EN, 1) {
                self.background.work(self.timing.background.as_ref(), at.since(idle_from));
            }
        }
        self.state = state;
        self.last_at = at;
    }

    /// Resets the card, as CMD0 does. Received pages are still programmed.
    fn reset(&mut self) {
        self.rca = Rca(0);
        self.state = CardState::Idle;
        self.application = false;
        self.uncertain = false;
        self.errors = 0;
        self.announced = None;
        self.packed_read = None;
        self.transfer = None;
        self.busy = None;
        self.erase = erase::Range::default();
        self.tasks.forget(None);
        self.functions = Functions::default();
        self.background.failed_entry = None;
        self.forget_modes();
    }

    /// Returns the reaction of a card that stays silent until the host gives up.
    fn silence(&mut self, at: Instant) -> Reaction {
        debug_assert!(at >= self.last_at, "[card-time-moves-forward]");
        self.last_at = at;
        let end = at + self.mode.time(u64::from(NCR_MAX));
        self.response_end = end;
        Reaction {
            answer: Err(NoAnswer::Timeout),
            at: end,
            data_from: None,
            busy_until: self.busy_until().filter(|&until| until > at),
        }
    }

    fn misuse(&self, command: &Command, at: Instant, wrong: Wrong) -> Misuse {
        Misuse { command: Some(*command), state: self.state(at), at, wrong }
    }

    const fn standard(&self) -> Standard {
        match self.registers.kind {
            RegistersKind::Mmc { .. } => Standard::Mmc,
            RegistersKind::Sd { .. } => Standard::Sd,
        }
    }

    fn queue(&self) -> Queue {
        self.tasks.queue(self.ext_csd_bit(index::CMDQ_MODE_EN, 0) || self.sd_queue_on())
    }

    fn cache_on(&self) -> bool {
        let is_on = self.ext_csd_bit(index::CACHE_CTRL, 0) || self.sd_cache_on();
        self.features.cache_bytes > 0 && is_on
    }

    /// Returns the number of bytes that the card takes at wire speed.
    fn buffer_bytes(&self) -> u64 {
        let buffer = self.timing.write.buffer_bytes;
        if self.cache_on() { buffer.max(self.features.cache_bytes) } else { buffer }
    }
}

/// Draws an event that happens once in `one_in` draws on average.
fn one_in(prng: &mut Prng, one_in: Option<u32>) -> bool {
    one_in.is_some_and(|one_in| prng.below(u64::from(one_in)) == 0)
}

/// Returns the task number in CMD46, CMD47 or CMD48.
const fn task_number(argument: u32) -> u8 {
    Parameters::parse(argument).number
}
