//! The extension registers of an SD card of class A2 (SD 5.7 and 5.8): function 0 lists the others,
//! and function 1 is the performance enhancement register.
//!
//! CMD48 reads a page from any byte on. CMD49 writes one setting of the performance enhancement
//! register, and the card is busy with it for up to 1 s. A flush that takes longer goes on while
//! the card takes commands again: its bit stays set until all data is programmed.

use super::busy::Work;
use super::misuse::Wrong;
use super::transfer::{Transfer, What};
use super::{Card, RegistersKind};
use blockyard::time::Instant;
use blockyard_mmc::card::time::EXTENSION_WRITE;
use blockyard_mmc::command::Direction;
use blockyard_mmc::register::extension::{
    CACHE_ENABLE, CACHE_FLUSH, ExtensionPlace, Performance, QUEUE_ENABLE, performance_place,
};

/// The function of the performance enhancement register, which the standard leaves to the card, and
/// its code in the general information.
const FUNCTION: u8 = 1;
const CODE: u8 = 2;

/// What the performance enhancement register of an SD card says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enhancement {
    /// Bytes of the volatile cache; 0: there is none. No register states them.
    pub cache_bytes: u64,
    /// Tasks in its command queue, 2 to 32; 0: there is none.
    pub queue_depth: u8,
    /// Whether the cache is on.
    pub(crate) cache_on: bool,
    /// Whether the queue is on.
    pub(crate) queue_on: bool,
}

impl Enhancement {
    /// A cache of `cache_bytes` and a queue of `queue_depth` tasks, which are off.
    #[must_use]
    pub const fn new(cache_bytes: u64, queue_depth: u8) -> Self {
        debug_assert!(queue_depth <= 32, "more tasks than CMD44 can name");
        Self { cache_bytes, queue_depth, cache_on: false, queue_on: false }
    }

    /// The general information, with one function.
    fn general() -> [u8; 512] {
        let mut bytes = [0; 512];
        (bytes[4], bytes[16]) = (1, CODE);
        // No further entry, and one register, whose address has the function from bit 18 on.
        bytes[16 + 42] = 1;
        let address = u32::from(FUNCTION) << 18;
        bytes[16 + 44..16 + 48].copy_from_slice(&address.to_le_bytes());
        bytes
    }

    /// The register, without a flush.
    fn register(&self) -> [u8; 512] {
        let mut bytes = [0; 512];
        bytes[4] = u8::from(self.cache_bytes > 0);
        bytes[6] = self.queue_depth.saturating_sub(1);
        bytes[usize::from(CACHE_ENABLE)] = u8::from(self.cache_on);
        bytes[usize::from(QUEUE_ENABLE)] = u8::from(self.queue_on);
        bytes
    }

    /// Returns what a host knows after it has read both.
    pub(in crate::mmc) fn known(&self) -> Performance {
        let place = performance_place(&Self::general()).expect("the function that is listed");
        Performance::parse(place, &self.register())
    }
}

impl Card {
    const fn enhancement(&self) -> Option<&Enhancement> {
        match &self.registers.kind {
            RegistersKind::Sd { enhancement, .. } => enhancement.as_ref(),
            RegistersKind::Mmc { .. } => None,
        }
    }

    pub(super) const fn enhancement_mut(&mut self) -> Option<&mut Enhancement> {
        match &mut self.registers.kind {
            RegistersKind::Sd { enhancement, .. } => enhancement.as_mut(),
            RegistersKind::Mmc { .. } => None,
        }
    }

    /// Returns whether the cache of an SD card is on.
    pub(super) fn sd_cache_on(&self) -> bool {
        self.enhancement().is_some_and(|enhancement| enhancement.cache_on)
    }

    /// Returns whether the queue of an SD card is on.
    pub(super) fn sd_queue_on(&self) -> bool {
        self.enhancement().is_some_and(|enhancement| enhancement.queue_on)
    }

    /// Checks that this card models a read of what `argument` of CMD48 names.
    pub(super) fn check_read_extension(&self, argument: u32) -> Result<(), Wrong> {
        let function = ExtensionPlace::of_argument(argument).function();
        let is_there = self.enhancement().is_some() && matches!(function, 0 | FUNCTION);
        if is_there { Ok(()) } else { Err(Wrong::Unmodelled("that extension register")) }
    }

    /// Checks that this card models the setting that `argument` of CMD49 names: one byte, without a
    /// mask.
    pub(super) fn check_write_extension(&self, argument: u32) -> Result<(), Wrong> {
        let place = ExtensionPlace::of_argument(argument);
        let is_one = argument & (1 << 26 | 0x1ff) == 0;
        let is_setting = place.function() == FUNCTION
            && matches!(place.offset(), CACHE_ENABLE | CACHE_FLUSH | QUEUE_ENABLE);
        if self.enhancement().is_some() && is_one && is_setting {
            Ok(())
        } else {
            Err(Wrong::Unmodelled("that setting of an extension register"))
        }
    }

    /// Returns the 512 bytes that `argument` of CMD48 asks for, whose response ends at `at`. Beyond
    /// the page they are zero.
    pub(super) fn extension_bytes(&self, argument: u32, at: Instant) -> Vec<u8> {
        let place = ExtensionPlace::of_argument(argument);
        debug_assert!(self.enhancement().is_some(), "{place:?} of a card without such registers");
        let mut page = match self.enhancement() {
            Some(enhancement) if place.function() == FUNCTION => enhancement.register(),
            _ => Enhancement::general(),
        };
        if place.function() == FUNCTION {
            page[usize::from(CACHE_FLUSH)] = u8::from(self.flushes_until > at);
        }
        let mut bytes = page[usize::from(place.offset())..].to_vec();
        debug_assert!(!bytes.is_empty(), "{place:?} is beyond its page");
        bytes.resize(512, 0);
        bytes
    }

    /// Shows the card `block`, which the host is about to send: the header of a packed command, or
    /// the data of CMD49.
    ///
    /// # Errors
    ///
    /// Returns [`Misuse`](super::Misuse) as [`Self::packed_header`] does.
    pub(crate) fn show_block(&mut self, block: &[u8; 512]) -> Result<(), super::Misuse> {
        match &self.transfer {
            Some(Transfer { what: What::Setting(_), .. }) => {
                self.register.clear();
                self.register.push(block[0]);
                Ok(())
            }
            _ => self.packed_header(block),
        }
    }

    /// Begins the data of CMD49 with `argument`, whose response ends at `end`.
    pub(super) fn begin_setting(&mut self, argument: u32, end: Instant) {
        debug_assert!(self.transfer.is_none(), "a setting during another transfer");
        self.register.clear();
        let what = What::Setting(ExtensionPlace::of_argument(argument).offset());
        self.transfer = Some(Transfer::new(Direction::Write, what, 0, 1, end));
    }

    /// Carries out the setting at byte `offset`, whose data has come at `at`. Returns the end of
    /// the busy time.
    pub(super) fn set_extension(&mut self, offset: u16, at: Instant) -> Instant {
        debug_assert_eq!(self.register.len(), 1, "the host has shown the byte of a setting");
        let is_on = self.register.first().is_some_and(|byte| byte & 1 != 0);
        let ends_flushed = match offset {
            CACHE_ENABLE => !is_on,
            CACHE_FLUSH => is_on,
            _ => false,
        };
        let mut until = at + self.timing.control.switch;
        if ends_flushed && self.cache_on() {
            self.begin_flush(at);
            self.flushes_until = self.flushed_at(at);
            until = self.flushes_until.min(at + EXTENSION_WRITE).max(until);
        }
        if let Some(enhancement) = self.enhancement_mut() {
            match offset {
                CACHE_ENABLE => enhancement.cache_on = is_on && enhancement.cache_bytes > 0,
                QUEUE_ENABLE => enhancement.queue_on = is_on && enhancement.queue_depth > 0,
                _ => {}
            }
        }
        debug_assert!(
            until <= at + EXTENSION_WRITE.max(self.timing.control.switch),
            "busy too long"
        );
        self.set_busy(at, until, Work::Indivisible);
        until
    }

    /// Ends CMD49 whose data did not come, at `at`.
    pub(super) fn drop_setting(&mut self, at: Instant) -> Instant {
        self.set_busy(at, at, Work::Indivisible);
        at
    }
}
