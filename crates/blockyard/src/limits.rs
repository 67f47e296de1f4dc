//! The limits of a device, to which bios are split and merges are held.

use crate::bio::Op;

/// The limits of one device, in sectors of 512 bytes unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of the device.
    pub capacity_sectors: u64,
    /// Size of a logical block, a power of two: starts and lengths are multiples of it.
    pub logical_block_sectors: u32,
    /// The most sectors in one read or write.
    pub max_sectors: u32,
    /// The most memory segments in one read or write.
    pub max_segments: u16,
    /// The most sectors in one discard or secure erase; 0: the device supports neither.
    pub max_discard_sectors: u32,
    /// The most ranges in one discard. Above 1, any two discards merge, with their ranges kept
    /// separate.
    pub max_discard_segments: u16,
    /// The most sectors in one write-zeroes; 0: the device does not support it.
    pub max_write_zeroes_sectors: u32,
    /// No request crosses a multiple of this; 0: no such boundary.
    pub chunk_sectors: u32,
    /// Whether holes between segments are refused: pieces then join only where both edges lie on
    /// the device's virtual boundary (see [`Flags::GAP_HEAD`](crate::bio::Flags::GAP_HEAD)).
    pub virt_boundary: bool,
    /// Whether the device has a volatile write cache. Without one, a write is durable when it ends.
    pub write_cache: bool,
    /// Whether a write past the volatile cache can be asked for
    /// ([`Flags::FUA`](crate::bio::Flags::FUA)). Without, it is followed by a flush.
    pub fua: bool,
    /// Whether the medium rotates, so that a seek costs more than a transfer. Of the built-in
    /// elevators bfq asks, as in Linux; one of the embedder's own finds it in the limits that it
    /// gets.
    /// Linux's default of [`WbtTunables::latency`](crate::policy::WbtTunables::latency) depends on
    /// it.
    pub rotational: bool,
}

impl Limits {
    /// A device of `capacity_sectors` with the limits Linux gives a driver that states none of its
    /// own: 1280 KiB and 128 segments a request, no discard, write-through, not rotational.
    #[must_use]
    pub const fn new(capacity_sectors: u64) -> Self {
        Self {
            capacity_sectors,
            logical_block_sectors: 1,
            max_sectors: 2560,
            max_segments: 128,
            max_discard_sectors: 0,
            max_discard_segments: 1,
            max_write_zeroes_sectors: 0,
            chunk_sectors: 0,
            virt_boundary: false,
            write_cache: false,
            fua: false,
            rotational: false,
        }
    }

    /// Checks that no limit contradicts another: one logical block fits into every request.
    ///
    /// # Panics
    ///
    /// Panics, and names the field, if a logical block is not a power of two, if the most sectors
    /// of a supported operation are less than a logical block, if a chunk is not a whole number of
    /// logical blocks, or if a request may have no segment or no range.
    pub fn check(&self) {
        let block = self.logical_block_sectors;
        assert!(block.is_power_of_two(), "logical_block_sectors is {block}, not a power of two");
        // 0 says that the device does not discard, or write zeroes.
        for (name, max, may_be_0) in [
            ("max_sectors", self.max_sectors, false),
            ("max_discard_sectors", self.max_discard_sectors, true),
            ("max_write_zeroes_sectors", self.max_write_zeroes_sectors, true),
        ] {
            assert!(
                max >= block || (max == 0 && may_be_0),
                "{name} is {max}, less than a logical block of {block} sectors"
            );
        }
        let chunk = self.chunk_sectors;
        assert!(
            chunk.is_multiple_of(block),
            "chunk_sectors is {chunk}, not a multiple of a logical block of {block} sectors"
        );
        assert!(self.max_segments > 0, "max_segments is 0");
        assert!(self.max_discard_segments > 0, "max_discard_segments is 0");
    }

    /// Returns the most sectors of a request of `op`, wherever it starts; 0 if the op is not
    /// supported.
    #[must_use]
    pub const fn max_sectors_of(&self, op: Op) -> u32 {
        match op {
            Op::Read | Op::Write => self.max_sectors,
            Op::Discard | Op::SecureErase => self.max_discard_sectors,
            Op::WriteZeroes => self.max_write_zeroes_sectors,
            Op::DriverIn | Op::DriverOut => self.max_sectors,
            Op::Flush => 0,
        }
    }

    /// Most sectors a request of `op` may have when it starts at `sector`: as
    /// [`Self::max_sectors_of`], and not across the next chunk boundary.
    #[must_use]
    pub fn max_sectors_at(&self, op: Op, sector: u64) -> u32 {
        self.up_to_chunk(self.max_sectors_of(op), sector)
    }

    /// Returns `max`, or less if from `sector` on the next chunk boundary comes earlier.
    #[inline]
    pub(crate) fn up_to_chunk(&self, max: u32, sector: u64) -> u32 {
        if self.chunk_sectors == 0 {
            return max;
        }
        let into_chunk = sector % u64::from(self.chunk_sectors);
        let left = u64::from(self.chunk_sectors) - into_chunk;
        u32::try_from(left).map_or(max, |left| left.min(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_boundary_shortens_what_may_start_before_it() {
        let limits = Limits { chunk_sectors: 128, max_sectors: 100, ..Limits::new(1024) };
        assert_eq!(limits.max_sectors_at(Op::Write, 0), 100);
        assert_eq!(limits.max_sectors_at(Op::Write, 120), 8);
        assert_eq!(limits.max_sectors_at(Op::Write, 128), 100);
    }

    /// Each limit at the least that one logical block of 8 sectors needs, and one step below.
    #[test]
    fn a_limit_below_a_logical_block_is_refused_by_name() {
        let least = Limits {
            logical_block_sectors: 8,
            max_sectors: 8,
            max_segments: 1,
            max_discard_sectors: 8,
            max_discard_segments: 1,
            max_write_zeroes_sectors: 8,
            chunk_sectors: 8,
            ..Limits::new(64)
        };
        least.check();
        Limits { max_discard_sectors: 0, max_write_zeroes_sectors: 0, ..least.clone() }.check();
        Limits { chunk_sectors: 0, ..least.clone() }.check();
        for (name, limits) in [
            ("logical_block_sectors", Limits { logical_block_sectors: 6, ..least.clone() }),
            ("max_sectors", Limits { max_sectors: 7, ..least.clone() }),
            ("max_segments", Limits { max_segments: 0, ..least.clone() }),
            ("max_discard_sectors", Limits { max_discard_sectors: 1, ..least.clone() }),
            ("max_discard_segments", Limits { max_discard_segments: 0, ..least.clone() }),
            ("max_write_zeroes_sectors", Limits { max_write_zeroes_sectors: 1, ..least.clone() }),
            ("chunk_sectors", Limits { chunk_sectors: 9, ..least }),
        ] {
            let panic = std::panic::catch_unwind(|| limits.check()).expect_err(name);
            let words = panic.downcast_ref::<alloc::string::String>();
            let words =
                words.map_or_else(|| panic.downcast_ref::<&str>().copied(), |all| Some(all));
            assert!(words.expect("words").starts_with(&alloc::format!("{name} is ")), "{words:?}");
        }
    }
}
