//! A random order of the numbers 0 to n - 1 in constant memory.

use super::prng::Prng;

const ROUNDS: usize = 2;

/// A keyed bijection of 0 to `len - 1`.
///
/// A number is split into a low part of k bits and a high part below q, where q times 2 to the k is
/// just above `len`. Each part in turn is shifted by a keyed function of the other (a Feistel
/// network). A result that is not below `len` is scrambled again. This is rare because the two
/// sizes are close, so the branch is well predicted.
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u64,
    low_bits: u32,
    high_len: u64,
    keys: [[u64; 4]; ROUNDS],
}

impl Permutation {
    /// Returns an order of 0 to `len - 1`, drawn from `prng`. A `len` of 0 counts as 1.
    pub fn new(len: u64, prng: &mut Prng) -> Self {
        let len = len.max(1);
        let low_bits = (64 - (len - 1).leading_zeros()) / 2;
        let keys = core::array::from_fn(|_| core::array::from_fn(|_| prng.next() | 1));
        Self { len, low_bits, high_len: len.div_ceil(1 << low_bits), keys }
    }

    /// Returns the number at `index`.
    ///
    /// # Panics
    ///
    /// Panics if `index` is not below the length.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        assert!(index < self.len, "a permutation of {} has no index {index}", self.len);
        let mut x = index;
        loop {
            x = self.scramble(x);
            // The cycle of a number below `len` contains another such number.
            if x < self.len {
                return x;
            }
        }
    }

    #[inline]
    fn scramble(&self, x: u64) -> u64 {
        let low_mask = (1 << self.low_bits) - 1;
        let mut low = x & low_mask;
        let mut high = x >> self.low_bits;
        for [a, b, c, d] in &self.keys {
            low ^= mix(high, *a, *b) & low_mask;
            let (_, step) = product(mix(low, *c, *d), self.high_len);
            high += step;
            high -= if high >= self.high_len { self.high_len } else { 0 };
        }
        debug_assert!(low <= low_mask && high < self.high_len, "both parts must keep their range");
        high << self.low_bits | low
    }
}

/// Returns 64 bits that depend on all of `x` and on both keys.
#[inline]
fn mix(x: u64, a: u64, b: u64) -> u64 {
    let (low, high) = product(x ^ a, b);
    low ^ high
}

/// Returns the low and the high half of a product.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the two halves are what is wanted")]
fn product(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    (product as u64, (product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for len in (1..300).chain([1000, 4096, 4097, 65_535]) {
            let order = Permutation::new(len, &mut Prng::new(len));
            let mut seen: Vec<_> = (0..len).map(|index| order.at(index)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..len), "{len}");
        }
    }

    #[test]
    fn neighbours_are_separated() {
        let order = Permutation::new(1 << 20, &mut Prng::new(5));
        let near = (1..10_000u64).filter(|&i| order.at(i).abs_diff(order.at(i - 1)) < 1024).count();
        // One in 512 by chance.
        assert!(near < 60, "{near}");
    }

    #[test]
    fn any_part_of_the_order_is_spread_evenly() {
        let order = Permutation::new(1_000_000, &mut Prng::new(9));
        let mut counts = [0u32; 16];
        for index in 0..16_000 {
            counts[usize::try_from(order.at(index) * 16 / 1_000_000).unwrap()] += 1;
        }
        assert!(counts.iter().all(|&n| (850..1150).contains(&n)), "{counts:?}");
    }
}
