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
    /// Multiples of `min` below `max`, and `max`, which is none: as in fio, it is drawn as much less often as the step to it is shorter.
    UnevenRange {
        min: u32,
        max: u32,
    },
    Split(Split),
}

/// Lengths with percentages.
#[derive(Clone, Debug)]
pub(super) struct Split {
    min: u32,
    /// A hundred lengths, one per percentage point.
    points: Box<[u32]>,
    /// The lengths, the rarest first.
    rarest_first: Box<[u32]>,
}

impl Lengths {
    pub(super) fn new(sizes: &BlockSizes, unaligned: bool) -> Self {
        match sizes {
            BlockSizes::Fixed(bytes) => Self::Fixed(*bytes),
            BlockSizes::Range { min_bytes, max_bytes } if min_bytes == max_bytes => {
                Self::Fixed(*min_bytes)
            }
            BlockSizes::Range { min_bytes, max_bytes }
                if !unaligned && !max_bytes.is_multiple_of(*min_bytes) =>
            {
                Self::UnevenRange { min: *min_bytes, max: *max_bytes }
            }
            BlockSizes::Range { min_bytes, max_bytes } => {
                debug_assert!(
                    0 < *min_bytes && min_bytes <= max_bytes,
                    "a range of lengths must be in order and above 0"
                );
                let step = if unaligned { 1 } else { *min_bytes };
                Self::Range { min: *min_bytes, step, steps: (max_bytes - min_bytes) / step + 1 }
            }
            BlockSizes::Split(entries) => Self::split(entries, sizes.min_bytes()),
        }
    }

    fn split(entries: &[(u32, u8)], min: u32) -> Self {
        if entries.iter().all(|(bytes, _)| *bytes == min) {
            return Self::Fixed(min);
        }
        let drawn = entries.iter().filter(|(_, percent)| *percent > 0);
        let mut ascending: Vec<_> = drawn.copied().collect();
        ascending.sort_by_key(|(_, percent)| *percent);
        let points =
            entries.iter().flat_map(|(bytes, share)| core::iter::repeat_n(*bytes, (*share).into()));
        Self::Split(Split {
            min,
            points: points.collect(),
            rarest_first: ascending.into_iter().map(|(bytes, _)| bytes).collect(),
        })
    }

    /// Returns a length for an I/O with `room_bytes` before the end of its region; `None` if none fits. As in fio, a length that does
    /// not fit is drawn again. A job with only one length takes it, and its last I/O may end behind the region.
    #[inline]
    pub(super) fn draw(&self, room_bytes: u64, prng: &mut Prng) -> Option<u32> {
        match self {
            Self::Fixed(bytes) => Some(*bytes),
            Self::Range { min, .. } | Self::UnevenRange { min, .. }
                if u64::from(*min) > room_bytes =>
            {
                None
            }
            Self::Range { min, step, steps } => loop {
                let len = min + step * below(*steps, prng);
                if u64::from(len) <= room_bytes {
                    return Some(len);
                }
            },
            Self::UnevenRange { min, max } => loop {
                let len = (min * (below(*max, prng) / min + 1)).min(*max);
                if u64::from(len) <= room_bytes {
                    return Some(len);
                }
            },
            Self::Split(split) => split.draw(room_bytes, prng),
        }
    }
}

/// Returns a number below `end`.
#[inline]
fn below(end: u32, prng: &mut Prng) -> u32 {
    u32::try_from(prng.below(end.into())).unwrap_or(0)
}

impl Split {
    /// fio tries the more frequent lengths in turn before it draws again.
    fn draw(&self, room_bytes: u64, prng: &mut Prng) -> Option<u32> {
        let fits = |len: &&u32| u64::from(**len) <= room_bytes;
        let some_fits =
            u64::from(self.min) <= room_bytes && self.rarest_first.iter().any(|len| fits(&len));
        if !some_fits {
            return None;
        }
        loop {
            let point = prng.below(self.points.len() as u64);
            let drawn = self.points.get(usize::try_from(point).unwrap_or(0))?;
            if fits(&drawn) {
                return Some(*drawn);
            }
            let more_frequent = self.rarest_first.iter().skip_while(|len| *len != drawn);
            if let Some(len) = more_frequent.into_iter().find(fits) {
                return Some(*len);
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
        let range = BlockSizes::Range { min_bytes: 1024, max_bytes: 4096 };
        let lengths = Lengths::new(&range, false);
        let mut counts = [0u32; 5];
        for _ in 0..40_000 {
            let bytes = lengths.draw(u64::MAX, &mut prng).unwrap();
            assert!(bytes.is_multiple_of(1024) && bytes <= 4096, "{bytes}");
            counts[(bytes / 1024) as usize] += 1;
        }
        assert!(counts[1..].iter().all(|&n| (9_600..10_400).contains(&n)), "{counts:?}");
        // fio 3.33: `bsrange=4k-10k` gives 4k, 8k and 10k in the proportion 2 to 2 to 1.
        let uneven = BlockSizes::Range { min_bytes: 4096, max_bytes: 10_240 };
        let uneven = Lengths::new(&uneven, false);
        let drawn: Vec<_> = (0..50_000).map(|_| uneven.draw(u64::MAX, &mut prng)).collect();
        for (len, expected) in [(4096, 20_000), (8192, 20_000), (10_240, 10_000_usize)] {
            let count = drawn.iter().filter(|drawn| **drawn == Some(len)).count();
            assert!(count.abs_diff(expected) < 600, "{len}: {count}");
        }
        let split = Lengths::new(&BlockSizes::Split(vec![(512, 10), (8192, 90)]), false);
        let short = (0..100_000).filter(|_| split.draw(u64::MAX, &mut prng) == Some(512)).count();
        assert!((9_600..10_400).contains(&short), "{short}");
    }

    /// fio 3.33: a job of `bssplit=4k/50:64k/30:128k/20` goes on until even its shortest I/O does not fit.
    #[test]
    fn a_length_that_does_not_fit_is_drawn_again() {
        let mut prng = Prng::new(3);
        let split = BlockSizes::Split(vec![(4096, 50), (65536, 30), (131_072, 20)]);
        let range = BlockSizes::Range { min_bytes: 4096, max_bytes: 131_072 };
        for sizes in [split, range] {
            let lengths = Lengths::new(&sizes, false);
            for room in [4096, 8191, 65536, 100_000] {
                let len = lengths.draw(room, &mut prng).unwrap();
                assert!(u64::from(len) <= room, "{len} in {room}");
            }
            assert_eq!(lengths.draw(4095, &mut prng), None);
        }
        assert_eq!(Lengths::new(&BlockSizes::Fixed(4096), false).draw(1, &mut prng), Some(4096));
    }
}
