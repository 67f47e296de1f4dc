//! The bins in which fio reports a latency distribution.
//!
//! Below 128 ns each value has its own bin. Above, each power of two is divided into 64 bins of
//! equal width, each named by its middle value. The last bin, at 17 s, also holds all longer
//! latencies. A bucket of our [`Histogram`] is half as wide and lies within one bin.

use blockyard::stats::Histogram;

/// The binary logarithm of the number of bins in a power of two.
const BITS: u32 = 6;
/// The last power of two with its own bins.
const LAST_POWER: u32 = 33;

/// Returns the bins that are not empty, in ascending order: the value that names each bin, and its
/// count.
pub(super) fn bins(values: &Histogram) -> Vec<(u64, u64)> {
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (bucket, count) in values.buckets() {
        let told = bin_of(*bucket.start());
        match bins.last_mut() {
            Some((last, sum)) if *last == told => *sum += count,
            _ => bins.push((told, count)),
        }
    }
    bins
}

/// Returns the value that names the bin of `value`.
const fn bin_of(value: u64) -> u64 {
    const LARGEST: u64 = (2 << LAST_POWER) - 1;
    let value = if value > LARGEST { LARGEST } else { value };
    let power = (value | 1).ilog2();
    if power <= BITS {
        return value;
    }
    let width = 1 << (power - BITS);
    value / width * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that fio 3.33 used as keys name their own bins.
    #[test]
    fn fios_bins_are_ours() {
        for value in [101, 141, 201, 253, 258, 266, 318, 402, 414, 506, 532, 628, 684, 1128, 5088] {
            assert_eq!(bin_of(value), value);
        }
        assert_eq!([127, 128, 129, 130, 254, 256].map(bin_of), [127, 129, 129, 131, 255, 258]);
        let last = (127 << 27) + (1 << 26);
        assert_eq!([last, 17_179_869_183, 17_179_869_184, u64::MAX].map(bin_of), [last; 4]);
    }

    #[test]
    fn every_bucket_lies_in_one_bin() {
        let mut values = Histogram::new();
        for power in 0..64 {
            for step in 0..256 {
                let width = (1u64 << power) >> 8;
                values.record((1 << power) + width * step);
            }
        }
        for (bucket, _) in values.buckets() {
            assert_eq!(bin_of(*bucket.start()), bin_of(*bucket.end()), "{bucket:?}");
        }
        assert_eq!(bins(&values).iter().map(|bin| bin.1).sum::<u64>(), values.count());
        assert!(bins(&values).windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
