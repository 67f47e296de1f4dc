//! Assigns each record to a part of the device and to a task.

use super::options::Map;
use blockyard::unit::QueueId;
use std::collections::BTreeMap;

/// The place of one disk of a trace on the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placing {
    pub(super) queue: QueueId,
    pub(super) map: Option<Map>,
    pub(super) end_bytes: u64,
    pub(super) device_bytes: u64,
    pub(super) block_bytes: u64,
}

impl Placing {
    /// Returns the first byte on the device for a range of the trace's disk. The whole range lies
    /// on the device.
    pub(super) fn place(&self, offset_bytes: u64, len_bytes: u32) -> u64 {
        debug_assert!(self.block_bytes > 0 && self.device_bytes >= self.block_bytes);
        let last = self.device_bytes - u64::from(len_bytes).min(self.device_bytes);
        let first = match self.map {
            // `Replay::player` has checked that the disk of the trace fits.
            None => return offset_bytes,
            Some(Map::Wrap) => (offset_bytes % self.device_bytes).min(last),
            Some(Map::Scale) => {
                let end = u128::from(self.end_bytes.max(1));
                let scaled = u128::from(offset_bytes) * u128::from(self.device_bytes) / end;
                let scaled = u64::try_from(scaled).unwrap_or(last);
                (scaled - scaled % self.block_bytes).min(last)
            }
        };
        debug_assert!(first <= last, "a mapped range lies on the device");
        first
    }
}

/// The assignment of a record to its submitter.
#[derive(Clone, Debug)]
pub(super) enum Submitters {
    /// By processor: that of the trace, modulo the processors of the machine.
    Cpus {
        /// Number of processors of the machine.
        cpus: u16,
        /// The task of each processor in use.
        tasks: BTreeMap<u16, u32>,
    },
    /// There is one submitter.
    One,
    /// By process.
    Processes(BTreeMap<u32, u32>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_addresses_lie_on_the_device() {
        fn placing(map: Option<Map>) -> Placing {
            Placing {
                queue: QueueId(0),
                map,
                end_bytes: 10_000 * 512,
                device_bytes: 1000 * 512,
                block_bytes: 4096,
            }
        }
        let wrap = placing(Some(Map::Wrap));
        assert_eq!(wrap.place(2008 * 512, 4096), 8 * 512);
        assert_eq!(wrap.place(999 * 512, 1024), 998 * 512, "a range does not cross the end");
        let scale = placing(Some(Map::Scale));
        assert_eq!(scale.place(0, 4096), 0);
        assert_eq!(scale.place(5000 * 512, 4096), 496 * 512, "the middle, aligned to a block");
        assert_eq!(scale.place(9992 * 512, 4096), 992 * 512);
        assert_eq!(placing(None).place(123 * 512, 512), 123 * 512);
    }
}
