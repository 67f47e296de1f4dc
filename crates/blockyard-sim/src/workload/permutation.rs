//! A random order of the numbers 0 to n - 1 that needs no memory.

use super::prng::Prng;

const ROUNDS: usize = 3;

/// A keyed bijection of 0 to `len - 1`.
///
/// Multiplications by odd numbers and xor-shifts permute the next power of two; a result that is
/// not below `len` is put in again until one is (fewer than two turns on average).
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u64,
    mask: u64,
    shift: u32,
    multipliers: [u64; ROUNDS],
    offsets: [u64; ROUNDS],
}

impl Permutation {
    /// An order of 0 to `len - 1` drawn from `prng`. `len` of 0 counts as 1.
    pub fn new(len: u64, prng: &mut Prng) -> Self {
        let len = len.max(1);
        let bits = 64 - (len - 1).leading_zeros();
        Self {
            len,
            mask: if bits == 64 { u64::MAX } else { (1 << bits) - 1 },
            shift: (bits / 2).max(1),
            multipliers: core::array::from_fn(|_| prng.next() | 1),
            offsets: core::array::from_fn(|_| prng.next()),
        }
    }

    /// What stands at `index`.
    ///
    /// # Panics
    ///
    /// If `index` is not below the length.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        assert!(index < self.len, "a permutation of {} has no index {index}", self.len);
        let mut x = index;
        loop {
            x = self.scramble(x);
            // Walking a cycle of the larger bijection from inside comes back inside.
            if x < self.len {
                return x;
            }
        }
    }

    #[inline]
    fn scramble(&self, mut x: u64) -> u64 {
        for round in 0..ROUNDS {
            x = x.wrapping_add(self.offsets[round]).wrapping_mul(self.multipliers[round])
                & self.mask;
            x ^= x >> self.shift;
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_once() {
        for len in (1..300).chain([1000, 4096, 4097, 65_535]) {
            let order = Permutation::new(len, &mut Prng::new(len));
            let mut seen: Vec<_> = (0..len).map(|index| order.at(index)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..len), "{len}");
        }
    }

    #[test]
    fn neighbours_do_not_stay_together() {
        let order = Permutation::new(1 << 20, &mut Prng::new(5));
        let near = (1..10_000u64).filter(|&i| order.at(i).abs_diff(order.at(i - 1)) < 1024).count();
        // By chance about one in 512.
        assert!(near < 60, "{near}");
    }

    #[test]
    fn any_stretch_of_the_order_is_spread_evenly() {
        let order = Permutation::new(1_000_000, &mut Prng::new(9));
        let mut counts = [0u32; 16];
        for index in 0..16_000 {
            counts[usize::try_from(order.at(index) * 16 / 1_000_000).unwrap()] += 1;
        }
        assert!(counts.iter().all(|&n| (850..1150).contains(&n)), "{counts:?}");
    }
}
