//! The length of the next I/O.

use crate::job::BlockSizes;

use super::prng::Prng;

/// A form of [`BlockSizes`] that allows fast draws.
#[derive(Clone, Debug)]
pub(super) enum Lengths {
    Fixed(u32),
    /// `min + step * k` for k below `steps`.
    Range {
        min: u32,
        step: u32,
        steps: u32,
    },
    /// A hundred lengths, one per percentage point.
    Split(Box<[u32]>),
}

impl Lengths {
    pub(super) fn new(sizes: &BlockSizes, unaligned: bool) -> Self {
        match sizes {
            BlockSizes::Fixed(bytes) => Self::Fixed(*bytes),
            BlockSizes::Range { min_bytes, max_bytes } => {
                debug_assert!(
                    0 < *min_bytes && min_bytes <= max_bytes,
                    "a range of lengths must be in order and above 0"
                );
                let step = if unaligned { 1 } else { *min_bytes };
                Self::Range { min: *min_bytes, step, steps: (max_bytes - min_bytes) / step + 1 }
            }
            BlockSizes::Split(entries) => Self::Split(
                entries
                    .iter()
                    .flat_map(|(bytes, percent)| core::iter::repeat_n(*bytes, (*percent).into()))
                    .collect(),
            ),
        }
    }

    #[inline]
    pub(super) fn draw(&self, prng: &mut Prng) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min, step, steps } => {
                // `steps` is a u32.
                min + step * u32::try_from(prng.below(u64::from(*steps))).unwrap_or(0)
            }
            Self::Split(points) => {
                let point = prng.below(points.len() as u64);
                points.get(usize::try_from(point).unwrap_or(0)).copied().unwrap_or(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_their_distributions() {
        let mut prng = Prng::new(3);
        let range = BlockSizes::Range { min_bytes: 1024, max_bytes: 4500 };
        let lengths = Lengths::new(&range, false);
        let mut counts = [0u32; 5];
        for _ in 0..40_000 {
            let bytes = lengths.draw(&mut prng);
            assert!(bytes.is_multiple_of(1024) && bytes <= 4096, "{bytes}");
            counts[(bytes / 1024) as usize] += 1;
        }
        assert!(counts[1..].iter().all(|&n| (9_600..10_400).contains(&n)), "{counts:?}");
        let split = Lengths::new(&BlockSizes::Split(vec![(512, 10), (8192, 90)]), false);
        let short = (0..100_000).filter(|_| split.draw(&mut prng) == 512).count();
        assert!((9_600..10_400).contains(&short), "{short}");
    }
}
