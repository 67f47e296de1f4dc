//! Computes the region that a job instance covers on a device of known size.

use super::error::{Fault, JobError};
use super::limits::MAPPED_BLOCKS_MAX;
use super::model::Job;
use super::units::{Units, Visits};
use super::value::Amount;

/// The region of an instance in one file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The first byte, from the start of the file (or of the device, if the file is a device).
    pub start_bytes: u64,
    /// The length: at least one block.
    pub len_bytes: u64,
    /// The length of the whole file, or of the device. A file without a name ends where its region
    /// ends.
    pub file_bytes: u64,
}

impl FileRange {
    /// Returns the first byte after the region.
    pub const fn end_bytes(&self) -> u64 {
        self.start_bytes + self.len_bytes
    }
}

/// A job instance whose sizes are all known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The region in each of its files; at least one.
    pub files: Vec<FileRange>,
    /// `size`: the bytes that one pass moves, unless `io_bytes` says otherwise.
    pub size_bytes: u64,
    /// `io_size`: the bytes that the instance moves, in as many passes as that takes; 0 if not
    /// given.
    pub(crate) io_bytes: u64,
    /// The number of passes (`loops`). With `u64::MAX` only time ends the instance.
    pub passes: u64,
}

impl Resolved {
    /// Returns the bytes that the instance moves; `u64::MAX` if only time ends it.
    pub fn moved_bytes(&self) -> u64 {
        let wanted_bytes = if self.io_bytes > 0 { self.io_bytes } else { self.size_bytes };
        wanted_bytes.saturating_mul(self.passes)
    }
}

impl Job {
    /// Returns the regions of instance number `instance` (0 to `numjobs - 1`). Each file is a
    /// device of `device_bytes` bytes, or lies on one.
    ///
    /// The caller decides where on the device a file without a name lies.
    ///
    /// # Errors
    ///
    /// [`Fault::DeviceTooSmall`] if the region extends beyond the end of the device,
    /// [`Fault::SmallerThanBlock`] if the rest of the device holds no block, [`Fault::MapTooLarge`]
    /// if the job needs larger random maps than [`MAPPED_BLOCKS_MAX`].
    pub fn resolve(&self, instance: u32, device_bytes: u64) -> Result<Resolved, JobError> {
        debug_assert!(instance < self.numjobs, "instance {instance} of {}", self.numjobs);
        let file = self.region(instance, device_bytes)?;
        debug_assert!(file.end_bytes() <= device_bytes, "{file:?} on {device_bytes} bytes");
        self.check_maps(file)?;
        let files = vec![file; self.files()];
        let count = files.len() as u64;
        // fio lets a share in `io_size` shrink `size`.
        let (moved_bytes, io_bytes) = match self.io_size {
            Some(Amount::Bytes(bytes)) => (file.len_bytes, bytes),
            Some(Amount::Percent(percent)) if percent > 0 => {
                (percent_of(percent, file.len_bytes), 0)
            }
            _ => (file.len_bytes, 0),
        };
        let all_bytes = moved_bytes.saturating_mul(count);
        debug_assert!(count > 0, "a job has a file");
        let size_bytes = match self.size {
            Some(Amount::Bytes(bytes)) if bytes > 0 => bytes.min(all_bytes),
            // Beside `filesize`, a size in percent is a share of that, wherever the region begins.
            Some(Amount::Percent(percent @ 1..100)) => {
                self.filesize_bytes.map_or(all_bytes, |bytes| {
                    percent_of(percent, bytes).saturating_mul(count).min(all_bytes)
                })
            }
            _ => all_bytes,
        };
        let block_bytes = u64::from(self.min_block_bytes());
        if size_bytes / count < block_bytes {
            let fault = Fault::SmallerThanBlock { size_bytes: size_bytes / count, block_bytes };
            return Err(JobError { place: self.place_of("size").clone(), fault });
        }
        let endless = self.time_based && self.runtime_ns.is_some();
        let passes = if endless { u64::MAX } else { self.loops.max(1) };
        Ok(Resolved { files, size_bytes, io_bytes, passes })
    }

    /// Checks that the random maps of all instances fit in memory. Each instance has one for each
    /// of its files.
    fn check_maps(&self, file: FileRange) -> Result<(), JobError> {
        let units = Units::of(self, file.len_bytes);
        let maps = self.files() as u64 * u64::from(self.numjobs);
        let blocks = units.blocks.saturating_mul(maps);
        if !self.pattern.random || units.visits != Visits::Mapped || blocks <= MAPPED_BLOCKS_MAX {
            return Ok(());
        }
        // The later of the two options decides.
        let place = self.place_of("bsrange").max(self.place_of("bssplit")).clone();
        Err(JobError { place, fault: Fault::MapTooLarge { blocks } })
    }

    fn region(&self, instance: u32, device_bytes: u64) -> Result<FileRange, JobError> {
        let start = self.start(instance, device_bytes);
        let left = device_bytes.saturating_sub(start);
        let block_bytes = u64::from(self.min_block_bytes());
        let (option, len) = match (self.filesize_bytes, self.size) {
            (Some(bytes), _) => ("filesize", bytes.saturating_sub(start)),
            (None, Some(Amount::Bytes(bytes))) if bytes > 0 => {
                ("size", bytes / self.files() as u64)
            }
            // As in fio, 0 % is the whole device, and so is 100 %, even if that is no multiple of
            // the block.
            (None, Some(Amount::Percent(percent @ 1..100))) => {
                let len = percent_of(percent, device_bytes).min(left);
                ("size", len - len % block_bytes.max(1))
            }
            _ if self.fill_device => ("fill_device", left),
            _ => ("offset", left),
        };
        let needed_bytes = start.saturating_add(len);
        let fault = if needed_bytes > device_bytes {
            Fault::DeviceTooSmall { needed_bytes, device_bytes }
        } else if len < block_bytes {
            Fault::SmallerThanBlock { size_bytes: len, block_bytes }
        } else {
            // A name is a disk. Other files are as long as their job needs.
            let file_bytes = if self.filenames.is_empty() { needed_bytes } else { device_bytes };
            return Ok(FileRange { start_bytes: start, len_bytes: len, file_bytes });
        };
        Err(JobError { place: self.place_of(option).clone(), fault })
    }

    /// Returns where instance number `instance` begins in its files. If a part of that is in
    /// percent, it is rounded up to `offset_align`, or to the shortest block.
    fn start(&self, instance: u32, device_bytes: u64) -> u64 {
        let increment =
            bytes_of(self.offset_increment, device_bytes).saturating_mul(instance.into());
        let start = bytes_of(self.offset, device_bytes).saturating_add(increment);
        let amounts = [self.offset, self.offset_increment];
        if !amounts.iter().any(|amount| matches!(amount, Amount::Percent(1..))) {
            return start;
        }
        let align = match self.offset_align_bytes {
            0 => u64::from(self.min_block_bytes()).max(1),
            align => align,
        };
        start.div_ceil(align).saturating_mul(align)
    }
}

/// An amount in bytes: its share of the device, if it is one.
fn bytes_of(amount: Amount, device_bytes: u64) -> u64 {
    match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(percent) => percent_of(percent, device_bytes),
    }
}

/// Returns `percent` (0 to 100) of `bytes`, rounded down.
fn percent_of(percent: u8, bytes: u64) -> u64 {
    debug_assert!(percent <= 100, "{percent} percent");
    let product = u128::from(bytes) * u128::from(percent) / 100;
    u64::try_from(product).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::build::parse_bytes;
    use super::super::source::NoSource;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn resolve(options: &str, instance: u32) -> Result<Resolved, String> {
        let text = format!("[a]\ndirect=1\n{options}");
        let job = parse_bytes("f", text.as_bytes(), &NoSource).unwrap().jobs.remove(0);
        job.resolve(instance, 64 * MIB).map_err(|e| e.to_string())
    }

    fn range(options: &str, instance: u32) -> (u64, u64) {
        let file = resolve(options, instance).unwrap().files[0];
        (file.start_bytes, file.len_bytes)
    }

    #[test]
    fn a_region_follows_from_offset_size_and_instance() {
        assert_eq!(range("", 0), (0, 64 * MIB));
        assert_eq!(range("size=1m\noffset=2m", 0), (2 * MIB, MIB));
        assert_eq!(range("offset=25%", 0), (16 * MIB, 48 * MIB));
        assert_eq!(range("size=75%\noffset=50%", 0), (32 * MIB, 32 * MIB));
        assert_eq!(range("size=1m\noffset_increment=1m\nnumjobs=4", 3), (3 * MIB, MIB));
        assert_eq!(range("size=1m\nnrfiles=4", 0), (0, MIB / 4));
        assert_eq!(range("size=1m\nfilesize=2m\nnrfiles=4", 0), (0, 2 * MIB));
        // fio 3.33 and 3.42: a file of `filesize` ends there, wherever the region begins.
        assert_eq!(range("filesize=2m\noffset=512k", 0), (MIB / 2, MIB + MIB / 2));
        // fio 3.33 and 3.42: 0 and 0 % are the whole device, and a size wins over fill_device.
        for whole in ["size=0", "size=0%", "offset=0%", "fill_device=1", "fill_device=1\nsize=0"] {
            assert_eq!(range(whole, 0), (0, 64 * MIB), "{whole}");
        }
        assert_eq!(range("fill_device=1\nsize=1m", 0), (0, MIB));
    }

    fn kib_of(options: &str) -> u64 {
        resolve(options, 0).unwrap().size_bytes >> 10
    }

    /// fio 3.33: `filesize=8m size=50%` reads 4m, with and without an offset, and `size=3k` beside
    /// it is refused.
    #[test]
    fn a_size_beside_filesize_is_a_share_of_it_and_holds_a_block() {
        assert_eq!(kib_of("size=50%\nfilesize=128k"), 64);
        assert_eq!(kib_of("size=50%\nfilesize=128k\noffset=16k"), 64);
        assert_eq!(kib_of("size=50%\nfilesize=64k\nnrfiles=2"), 64);
        assert!(resolve("size=3k\nfilesize=128k", 0).is_err());
    }

    /// fio 3.33 and 3.42: an offset in percent is rounded up to a block, a size in percent down.
    #[test]
    fn percentages_are_rounded_to_blocks() {
        let third = 64 * MIB * 33 / 100;
        assert_eq!(third % 16384, 11_141);
        let up = third - 11_141 + 16384;
        assert_eq!(range("bs=16k\nsize=33%\noffset=33%", 0), (up, third - 11_141));
        assert_eq!(range("bs=16k\noffset=33%\noffset_align=1m", 0).0, 22 * MIB);
        let one = 64 * MIB / 100;
        assert_eq!(
            range("offset_increment=1%\nnumjobs=3\nsize=4k", 2).0,
            (2 * one).div_ceil(4096) * 4096
        );
    }

    fn amounts(options: &str) -> (u64, u64, u64) {
        let resolved = resolve(options, 0).unwrap();
        (resolved.size_bytes >> 10, resolved.passes, resolved.io_bytes >> 10)
    }

    #[test]
    fn amounts_follow_from_size_io_size_and_loops() {
        assert_eq!(amounts("size=64k\nio_size=128k"), (64, 1, 128));
        assert_eq!(amounts("size=64k\nio_size=50%"), (32, 1, 0));
        assert_eq!(amounts("size=64k\nfilesize=16k\nnrfiles=2\nloops=3"), (32, 3, 0));
        assert_eq!(amounts("size=64k\nfilesize=128k\nnrfiles=2"), (64, 1, 0));
        assert_eq!(amounts("size=64k\ntime_based\nruntime=1"), (64, u64::MAX, 0));
    }

    fn resolve_random(options: &str, device_bytes: u64) -> Result<Resolved, String> {
        let text = format!("[a]\ndirect=1\nrw=randread\n{options}");
        let job = parse_bytes("f", text.as_bytes(), &NoSource).unwrap().jobs.remove(0);
        job.resolve(0, device_bytes).map_err(|error| error.to_string())
    }

    /// A job with blocks of 1 to 4 KiB took a map of 32 GiB on a device of 1 TiB when the shortest
    /// block had four bytes, and the allocation ended the program.
    #[test]
    fn random_maps_have_a_limit() {
        // One bit for each 512 bytes: 2^33 bits for 4 TiB.
        let mixed = "bsrange=512-4k";
        assert!(resolve_random(mixed, 4 << 40).is_ok());
        let refused = resolve_random(mixed, (4 << 40) + 512).unwrap_err();
        assert!(refused.starts_with("f:4: random blocks of several lengths"), "{refused}");
        assert!(resolve_random("bsrange=4-4k", 1 << 40).is_err());
        assert!(resolve_random(&format!("{mixed}\nnumjobs=2"), (2 << 40) + 512).is_err());
        assert!(resolve_random(&format!("{mixed}\nnrfiles=2\nsize=8t"), 8 << 40).is_err());
        // Without a map, nothing is large.
        assert!(resolve_random(&format!("{mixed}\nnorandommap"), 1 << 60).is_ok());
        assert!(resolve_random(&format!("{mixed}\nrw=read"), 1 << 60).is_ok());
        assert!(resolve_random("bs=512", 1 << 60).is_ok());
    }

    /// [error-names-line]
    #[test]
    fn a_device_too_small_names_the_line() {
        assert!(resolve("size=65m", 0).unwrap_err().starts_with("f:3: device smaller"));
        assert!(resolve("offset=64m", 0).unwrap_err().starts_with("f:3: size too small"));
        assert!(resolve("offset=18446744073709551615\nsize=1m", 0).is_err());
    }
}
