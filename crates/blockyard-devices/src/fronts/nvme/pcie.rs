//! A link of PCI Express: the table `[nvme.link]`.

use blockyard::time::Duration;

use crate::fronts::packets::packets_time;
use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Among, Bytes, Count};

/// Bytes that a packet adds to its data: framing and sequence number, a header with an address of
/// 64 bits, and a check sum (PCI Express 3.0).
const HEADER_BYTES: u64 = 24;

/// A link of PCI Express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcieProfile {
    /// The generation, from 1 to 5, which says how fast a lane is.
    pub generation: u8,
    /// Lanes: 1, 2, 4, 8 or 16.
    pub lanes: u8,
    /// Bytes of data in one packet at most.
    pub payload: u64,
}

impl PcieProfile {
    /// Returns the bytes per second in each direction, headers included.
    #[must_use]
    pub fn rate(&self) -> u64 {
        // Transfers per second of a lane, less the encoding: 8 of 10 bits, later 128 of 130.
        let lane = match self.generation {
            1 => 250_000_000,
            2 => 500_000_000,
            3 => 984_615_384,
            4 => 1_969_230_769,
            _ => 3_938_461_538,
        };
        lane * u64::from(self.lanes)
    }

    /// Returns the time for `bytes` of data in one direction, rounded up; zero for no data.
    #[must_use]
    pub fn time(&self, bytes: u64) -> Duration {
        packets_time(bytes, self.payload, HEADER_BYTES, self.rate())
    }
}

table_of!(LINK, /// Reads the table `[nvme.link]` of `nvme`.
pub(crate) fn link("nvme.link") -> PcieProfile {
    generation: "generation" need(Count(1..=5)),
    lanes: "lanes" need(Among(&[1, 2, 4, 8, 16])),
    payload: "payload" need(Bytes(128..=4096)),
});

#[cfg(test)]
mod tests {
    use super::*;

    fn link(generation: u8, lanes: u8) -> PcieProfile {
        PcieProfile { generation, lanes, payload: 256 }
    }

    #[test]
    fn a_link_carries_what_its_generation_and_lanes_can_less_its_headers() {
        // Published: 0.985 GB/s for a lane of generation 3, 7.88 GB/s for four of generation 4.
        assert_eq!(link(3, 1).rate() / 1_000_000, 984);
        assert_eq!(link(4, 4).rate() / 10_000_000, 787);
        // 1 MiB in packets of 256 bytes with 24 more each.
        let ns = link(3, 4).time(1 << 20).as_ns();
        assert_eq!((1_u64 << 20) * 280 / 256 * 1000 / ns, 3938);
        assert_eq!(link(1, 1).time(0), Duration::ZERO);
    }
}
