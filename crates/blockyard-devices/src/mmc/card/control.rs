//! A card's work apart from data: settings, cache, background operations and interrupts.

use super::busy::{Busy, Work};
use super::misuse::Wrong;
use super::transfer::{Transfer, What};
use super::{Card, RegistersKind};
use crate::mmc::profile::BackgroundTiming;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::command::Opcode;
use blockyard_mmc::command::status::Status;
use blockyard_mmc::register::ext_csd::{ExceptionEvents, Hpi, index};

/// Settings that CMD0 and a loss of power undo.
const VOLATILE: [u16; 9] = [
    index::CMDQ_MODE_EN,
    index::CACHE_CTRL,
    index::POWER_OFF_NOTIFICATION,
    index::EXCEPTION_EVENTS_CTRL,
    index::HPI_MGMT,
    index::ERASE_GROUP_DEF,
    index::BUS_WIDTH,
    index::HS_TIMING,
    index::POWER_CLASS,
];

/// Background operations, and the failure of a packed write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Background {
    bytes: u64,
    /// The first failed entry (from 1) of the last packed write.
    pub(super) failed_entry: Option<u8>,
}

impl Background {
    pub(super) const fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Does background operations for `span`.
    pub(super) fn work(&mut self, timing: Option<&BackgroundTiming>, span: Duration) {
        let done = timing.map_or(0, |timing| timing.done_in(span));
        self.bytes = self.bytes.saturating_sub(done);
    }

    /// Takes note that `busy` is over.
    pub(super) fn end(&mut self, busy: &Busy) {
        if busy.work == Work::Background {
            self.bytes = 0;
        }
    }

    pub(super) fn packed_failed(&mut self, entry: u8) {
        self.failed_entry.get_or_insert(entry);
    }

    /// Returns BKOPS_STATUS, 0 to 3.
    fn level(&self, timing: Option<&BackgroundTiming>) -> u8 {
        let level = timing.map_or(0, |timing| self.bytes / timing.level_bytes);
        u8::try_from(level.min(3)).expect("a background level should be at most 3")
    }
}

/// CMD6 of eMMC, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    at: u16,
    value: u8,
}

impl Card {
    pub(super) fn ext_csd_byte(&self, at: u16) -> u8 {
        match &self.registers.kind {
            RegistersKind::Mmc { ext_csd } => ext_csd[usize::from(at)],
            RegistersKind::Sd { .. } => 0,
        }
    }

    pub(super) fn ext_csd_bit(&self, at: u16, bit: u8) -> bool {
        self.ext_csd_byte(at) >> bit & 1 != 0
    }

    fn set_ext_csd(&mut self, at: u16, value: u8) {
        if let RegistersKind::Mmc { ext_csd } = &mut self.registers.kind {
            ext_csd[usize::from(at)] = value;
        }
    }

    pub(super) fn forget_modes(&mut self) {
        for at in VOLATILE {
            self.set_ext_csd(at, 0);
        }
        let boot = self.ext_csd_byte(index::PARTITION_CONFIG) & !0b111;
        self.set_ext_csd(index::PARTITION_CONFIG, boot);
        if let Some(enhancement) = self.enhancement_mut() {
            (enhancement.cache_on, enhancement.queue_on) = (false, false);
        }
        self.flushes_until = Instant::ZERO;
    }

    /// Turns on the features that the core's identification turns on.
    pub(super) fn turn_on(&mut self) {
        let has_groups = self.ext_csd_byte(index::HC_ERASE_GRP_SIZE) > 0;
        let packs = self.features.max_packed_writes > 0;
        let packed_events = u8::try_from(ExceptionEvents::PACKED_FAILURE)
            .expect("event bit 3 should fit in a byte");
        for (at, value, able) in [
            (index::ERASE_GROUP_DEF, 1, has_groups),
            (index::HPI_MGMT, 1, self.features.hpi.is_some()),
            (index::CACHE_CTRL, 1, self.features.cache_bytes > 0),
            (index::EXCEPTION_EVENTS_CTRL, packed_events, packs),
        ] {
            if able {
                self.set_ext_csd(at, value);
            }
        }
        if let Some(enhancement) = self.enhancement_mut() {
            enhancement.cache_on = enhancement.cache_bytes > 0;
        }
    }

    pub(super) fn set_busy(&mut self, since: Instant, until: Instant, work: Work) {
        debug_assert!(since <= until, "busy with {work:?} from {since} until {until}");
        self.busy = Some(Busy { since, until, work });
    }

    /// Extends the busy time of a write whose pages a read has delayed.
    pub(super) fn write_waits(&mut self) {
        let programmed = self.engine.done_at();
        if let Some(Busy { until, work: Work::Write { kept: false, finish, .. }, .. }) =
            &mut self.busy
        {
            *until = (programmed + *finish).max(*until);
        }
    }

    /// Returns EXCEPTION_EVENTS_STATUS.
    fn exceptions(&self) -> u16 {
        let urgent = self.background.level(self.timing.background.as_ref()) >= 2;
        let urgent = if urgent { ExceptionEvents::URGENT_BKOPS } else { 0 };
        let packed = self.background.failed_entry.is_some();
        urgent | if packed { ExceptionEvents::PACKED_FAILURE } else { 0 }
    }

    /// Returns the exception bit of a status. Urgent background operations always set it. Other
    /// events set it if EXCEPTION_EVENTS_CTRL allows them.
    pub(super) fn exception_bit(&self) -> u32 {
        let control = u16::from(self.ext_csd_byte(index::EXCEPTION_EVENTS_CTRL));
        let shown = self.exceptions() & (control | ExceptionEvents::URGENT_BKOPS);
        if shown == 0 { 0 } else { Status::EXCEPTION_EVENT }
    }

    /// Updates the bytes of EXT_CSD that change by themselves.
    pub(super) fn refresh_ext_csd(&mut self) {
        let level = self.background.level(self.timing.background.as_ref());
        let [exceptions, _] = self.exceptions().to_le_bytes();
        let (status, entry) = match self.background.failed_entry {
            None => (0, 0),
            Some(entry) => (0b11, entry),
        };
        self.set_ext_csd(index::BKOPS_STATUS, level);
        self.set_ext_csd(index::EXCEPTION_EVENTS_STATUS, exceptions);
        self.set_ext_csd(index::PACKED_COMMAND_STATUS, status);
        self.set_ext_csd(index::PACKED_FAILURE_INDEX, entry);
    }

    /// Returns the byte change that CMD6 with `argument` asks for.
    fn change(&self, argument: u32) -> Change {
        let [access, at, value, _] = argument.to_be_bytes();
        let at = u16::from(at);
        let old = self.ext_csd_byte(at);
        let value = match access & 3 {
            1 => old | value,
            2 => old & !value,
            _ => value,
        };
        Change { at, value }
    }

    /// Returns whether this card models the switch.
    pub(super) fn check_switch(&self, argument: u32) -> Result<(), Wrong> {
        let [access, ..] = argument.to_be_bytes();
        let Change { at, value } = self.change(argument);
        match at {
            _ if access & 3 == 0 => Err(Wrong::Unmodelled("a switch of the command set")),
            index::FLUSH_CACHE if value & 2 != 0 => Err(Wrong::Unmodelled("the cache barrier")),
            index::PARTITION_CONFIG if value & 7 == 3 => Err(Wrong::Unmodelled("RPMB")),
            index::CMDQ_MODE_EN
            | index::FLUSH_CACHE
            | index::CACHE_CTRL
            | index::POWER_OFF_NOTIFICATION
            | index::EXCEPTION_EVENTS_CTRL
            | index::HPI_MGMT
            | index::BKOPS_EN
            | index::BKOPS_START
            | index::SANITIZE_START
            | index::ERASE_GROUP_DEF
            | index::PARTITION_CONFIG
            | index::BUS_WIDTH
            | index::HS_TIMING
            | index::POWER_CLASS => Ok(()),
            _ => Err(Wrong::Unmodelled("a switch of that byte of EXT_CSD")),
        }
    }

    /// Carries out CMD6 of eMMC, whose response ends at `at`. Returns the end of the busy time.
    pub(super) fn switch(&mut self, argument: u32, at: Instant) -> Instant {
        let Change { at: byte, value } = self.change(argument);
        let control = self.timing.control;
        let switched = at + control.switch;
        let able = match byte {
            index::CMDQ_MODE_EN => self.features.queue_depth > 0,
            index::CACHE_CTRL | index::FLUSH_CACHE => self.features.cache_bytes > 0,
            index::BKOPS_START => self.features.bkops,
            index::SANITIZE_START => self.features.sanitize,
            index::HPI_MGMT => self.features.hpi.is_some(),
            _ => true,
        };
        if !able {
            self.errors |= Status::SWITCH_ERROR;
            self.set_busy(at, switched, Work::Indivisible);
            return switched;
        }
        let flushes = byte == index::FLUSH_CACHE && value & 1 != 0
            || byte == index::CACHE_CTRL && value & 1 == 0;
        if flushes && self.cache_on() {
            self.begin_flush(at);
        }
        let (until, work) = match byte {
            index::FLUSH_CACHE if flushes && self.cache_on() => {
                (self.flushed_at(at), Work::Divisible)
            }
            index::CACHE_CTRL if flushes && self.cache_on() => {
                (self.flushed_at(at), Work::Indivisible)
            }
            index::BKOPS_START => {
                let bytes = self.background.bytes;
                let span = self.timing.background.as_ref().map(|timing| timing.work(bytes));
                (at + span.unwrap_or(Duration::ZERO), Work::Background)
            }
            index::SANITIZE_START => (at + self.timing.erase.sanitize, Work::Divisible),
            index::PARTITION_CONFIG => (at + control.partition, Work::Indivisible),
            _ => (switched, Work::Indivisible),
        };
        if !matches!(byte, index::FLUSH_CACHE | index::BKOPS_START | index::SANITIZE_START) {
            self.set_ext_csd(byte, value);
        }
        self.set_busy(at, until, work);
        until
    }

    /// Closes the pages of the cache for a flush that begins at `at`, and which covers them.
    pub(super) fn begin_flush(&mut self, at: Instant) {
        self.close_pages(at);
        if let Some(fate) = &mut self.fate {
            fate.flush(self.engine.last_page()); // [certain-once-programmed]
        }
    }

    /// Returns the end of a flush of the cache, whose pages are closed, that begins at `at`. Then
    /// the cache has nothing to flush.
    pub(super) fn flushed_at(&mut self, at: Instant) -> Instant {
        let write = &self.timing.write;
        let update = if self.is_soiled { write.finish } else { Duration::ZERO };
        let until = self.engine.done_at().max(at) + update + write.flush;
        self.is_soiled = false;
        until
    }

    /// Checks that the host may interrupt with `opcode`.
    pub(super) fn check_interrupt(&self, opcode: Opcode) -> Result<(), Wrong> {
        let by = match opcode {
            Opcode::InterruptByStatus => Hpi::SendStatus,
            _ => Hpi::StopTransmission,
        };
        let on = self.features.hpi == Some(by) && self.ext_csd_bit(index::HPI_MGMT, 0);
        if on { Ok(()) } else { Err(Wrong::Interrupt) }
    }

    /// Interrupts (HPI) the card's work. The response ends at `at`. Returns the end of the busy
    /// time.
    pub(super) fn interrupt(&mut self, at: Instant) -> Instant {
        let Some(mut busy) = self.busy.filter(|busy| busy.work != Work::Indivisible) else {
            return self.busy_until().unwrap_or(at);
        };
        if busy.until <= at {
            return busy.until;
        }
        debug_assert!(busy.since <= at, "{busy:?} is interrupted at {at}, before it begins");
        self.advance_data(at);
        if let Some(fate) = &mut self.fate {
            fate.interrupt();
        }
        match busy.work {
            Work::Write { sectors, kept: false, .. } => {
                if let Some(fate) = &mut self.fate {
                    fate.lose();
                }
                let lost = self.engine.drop_all(at) / u64::from(SECTOR_BYTES);
                let good = u64::from(sectors).saturating_sub(lost);
                let good =
                    u32::try_from(good).expect("good sectors should not exceed those of the write");
                for (byte, value) in (index::CORRECTLY_PRG_SECTORS_NUM..).zip(good.to_le_bytes()) {
                    self.set_ext_csd(byte, value);
                }
            }
            Work::Background => {
                self.background.work(self.timing.background.as_ref(), at.since(busy.since));
            }
            // A flush has not ended, so the next one has something to do.
            Work::Divisible => self.is_soiled |= self.cache_on(),
            Work::Write { .. } | Work::Indivisible => {}
        }
        busy.until = busy.until.min(at + self.timing.control.interrupt);
        busy.work = Work::Indivisible; // It has been interrupted.
        self.busy = Some(busy);
        busy.until
    }

    /// Carries out CMD12 in the middle of data. The response ends at `at`. Returns the end of the
    /// busy time of a write.
    pub(super) fn stop(&mut self, at: Instant) -> Option<Instant> {
        use blockyard_mmc::command::Direction;
        let mut transfer: Transfer = self.transfer.take()?;
        match (transfer.direction, transfer.what) {
            (Direction::Read, _) => None,
            (Direction::Write, What::Setting(_)) => Some(self.drop_setting(at)),
            (Direction::Write, _) => Some(self.finish_write(&mut transfer, at)),
        }
    }
}
