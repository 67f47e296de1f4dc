//! The counters of flash memory, which explain a result.

use crate::load::Written;
use crate::medium::MediumCounts;
use blockyard::time::Duration;

/// The counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Units that the host wrote.
    pub(super) written: u64,
    /// Those of them that replaced data in the buffer.
    pub(super) combined: u64,
    /// Valid units that collection moved.
    pub(super) collected: u64,
    /// Units that were folded out of the cache of single-level cells.
    pub(super) folded: u64,
    /// Those of them that were folded because that cache was full.
    pub(super) forced_folds: u64,
    /// Places that programs left empty, because they had too few units.
    pub(super) padded: u64,
    /// Pages that were read for commands, each time that they were.
    pub(super) reads: u64,
    /// Those of them that were read again.
    pub(super) retries: u64,
    /// Reads of commands that found their page in the register of a die.
    pub(super) joined: u64,
    /// Pages that were read ahead of commands.
    pub(super) ahead: u64,
    /// Parts of reads that found their data read ahead, or on its way.
    pub(super) ahead_used: u64,
    /// Pages of the map that were read for commands, and for what writes replaced.
    pub(super) map_reads: u64,
    /// Pages of the map that flushes programmed.
    pub(super) map_writes: u64,
    /// Units of the buffer that were programmed past the full cache of single-level cells.
    pub(super) past_cache: u64,
    pub(super) programs: u64,
    pub(super) slc_programs: u64,
    pub(super) erases: u64,
    /// Programs and erases that gave way to a read.
    pub(super) suspends: u64,
    /// Writes that found no room in the buffer.
    pub(super) stalls: u64,
    /// Reads that waited behind such a write.
    pub(super) held_reads: u64,
    /// Time that reads of commands waited for their die.
    pub(super) read_wait: Duration,
    /// The part of it for which commands waited with their reads.
    pub(super) command_wait: Duration,
    /// Time that dies worked.
    pub(super) used: Duration,
}

impl Counts {
    /// Units that the host wrote, and that nothing replaced in the buffer.
    const fn kept(&self) -> u64 {
        self.written - self.combined
    }

    /// Returns where the flash put what left the buffer, and what it wrote besides.
    pub(super) const fn written(&self) -> Written {
        Written {
            units: self.kept(),
            past_cache: self.past_cache,
            folded: self.forced_folds,
            collected: self.collected,
        }
    }

    /// Returns them by name. The amplification is what the flash wrote, in whole rows, for what
    /// left the buffer ([row-at-once]).
    pub(super) fn named(&self) -> MediumCounts {
        let kept = self.kept().max(1);
        let flash = kept + self.collected + self.folded + self.map_writes + self.padded;
        vec![
            ("units_written", self.written),
            ("units_combined", self.combined),
            ("units_collected", self.collected),
            ("units_folded", self.folded),
            ("units_padded", self.padded),
            ("write_amplification_percent", flash * 100 / kept),
            ("pages_read", self.reads),
            ("read_retries", self.retries),
            ("reads_joined", self.joined),
            ("pages_read_ahead", self.ahead),
            ("reads_ahead_used", self.ahead_used),
            ("map_pages_read", self.map_reads),
            ("map_pages_written", self.map_writes),
            ("programs", self.programs),
            ("slc_programs", self.slc_programs),
            ("erases", self.erases),
            ("suspends", self.suspends),
            ("buffer_stalls", self.stalls),
            ("reads_held", self.held_reads),
            ("read_wait_ns", self.read_wait.as_ns()),
        ]
    }
}
