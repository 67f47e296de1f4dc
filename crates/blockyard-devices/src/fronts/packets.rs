//! The time of data in packets.

use blockyard::time::Duration;

/// Returns the time for `bytes` in packets of at most `packet` bytes, to each of which `header`
/// bytes are added, at `rate` bytes per second; rounded up, and zero for no data.
pub(crate) fn packets_time(bytes: u64, packet: u64, header: u64, rate: u64) -> Duration {
    debug_assert!(packet > 0 && rate > 0, "packets of {packet} bytes at {rate} bytes per second");
    let all = bytes + bytes.div_ceil(packet) * header;
    let ns = (u128::from(all) * 1_000_000_000).div_ceil(u128::from(rate));
    Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_add_their_headers() {
        // USB 2.0, table 5-10: at most 13 packets of 512 bytes with 55 bytes of overhead each in
        // 125 us.
        let ns = packets_time(13 * 512, 512, 55, 60_000_000).as_ns();
        assert!((121_000..=125_000).contains(&ns), "{ns}");
        assert_eq!(packets_time(0, 512, 55, 60_000_000), Duration::ZERO);
    }
}
