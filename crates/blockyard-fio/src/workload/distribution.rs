//! Random positions among n blocks, for each distribution of a job.
//!
//! Some distributions need floating point. They use `libm` in pure Rust, so that every machine
//! computes the same bits.
#![allow(clippy::float_arithmetic, reason = "the laws are real-valued; libm rounds alike anywhere")]
#![allow(clippy::cast_precision_loss, reason = "blocks beyond 2 to the 53 round to a neighbour")]
#![allow(clippy::cast_possible_truncation, reason = "float to integer casts saturate")]
#![allow(clippy::cast_sign_loss, reason = "values are not negative where they are cast")]

use crate::job::Distribution;

use super::permutation::Permutation;
use super::prng::{Prng, unit};

/// Draws positions from 0 to `blocks - 1`.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    blocks: u64,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Uniform,
    /// Ranks with weights, mapped to positions by `place`.
    Ranked {
        ranks: Ranks,
        place: Placing,
    },
    /// fio's normal law: its ranks are the mean of twelve uniform ones, plus a uniform deviation of
    /// this width.
    Normal {
        deviation: u64,
        place: Placing,
    },
    /// For each zone: cumulative accesses in percent, first block, number of blocks.
    Zoned(Box<[(u64, u64, u64)]>),
}

#[derive(Clone, Debug)]
enum Ranks {
    Zipf(Zipf),
    /// The exponent of a uniform number.
    Pareto(f64),
}

/// The mapping of a rank to a position.
#[derive(Clone, Debug)]
enum Placing {
    Scattered(Permutation),
    /// Scattered by fio's multiplication, from this position on. Rank 0 stays there.
    Multiplied(u64),
    /// One behind the other, from this position on.
    From(u64),
}

/// fio's multiplier, 2 to the 64 times the square of the golden ratio's inverse.
const MULTIPLIER: u64 = 0x61c8_8646_80b5_83eb;

/// The number of uniform ranks whose mean makes a normal rank.
const NORMAL_RANKS: u64 = 12;

impl Sampler {
    /// Returns a sampler for `blocks` (at least 1) of `block_bytes` each.
    pub(super) fn new(law: &Distribution, blocks: u64, block_bytes: u64, prng: &mut Prng) -> Self {
        assert!(blocks > 0, "positions must be drawn from at least one block");
        let law = match law {
            // A sequence needs no draws, so its caller has none.
            Distribution::Uniform | Distribution::Sequence(_) => Law::Uniform,
            Distribution::Zipf { center, .. } | Distribution::Pareto { center, .. } => {
                Law::Ranked { ranks: Ranks::of(law, blocks), place: placing(*center, blocks, prng) }
            }
            Distribution::Normal { deviation_percent, center } => Law::Normal {
                deviation: normal_deviation(*deviation_percent, blocks),
                place: Placing::Multiplied(normal_offset(*center, blocks)),
            },
            Distribution::Zoned(zones) => {
                let block = |percent: u64| (blocks as f64 * percent as f64 / 100.0) as u64;
                Law::Zoned(zone_table(zones, blocks, block))
            }
            Distribution::ZonedAbs(zones) => {
                Law::Zoned(zone_table(zones, blocks, |bytes| bytes / block_bytes))
            }
        };
        Self { blocks, law }
    }

    /// Returns a sampler whose neighbouring ranks are neighbours, for `law`, which is zipf, pareto
    /// or normal. Without a centre, the first rank is drawn.
    pub(super) fn unscattered(law: &Distribution, blocks: u64, prng: &mut Prng) -> Self {
        assert!(blocks > 0, "positions must be drawn from at least one block");
        let law = match law {
            Distribution::Normal { deviation_percent, center } => Law::Normal {
                deviation: normal_deviation(*deviation_percent, blocks),
                place: Placing::From(normal_offset(*center, blocks)),
            },
            Distribution::Zipf { center, .. } | Distribution::Pareto { center, .. } => {
                let first = center.map(|center| (center * blocks as f64) as u64 % blocks);
                let place = Placing::From(first.unwrap_or_else(|| prng.below(blocks)));
                Law::Ranked { ranks: Ranks::of(law, blocks), place }
            }
            _ => Law::Uniform,
        };
        Self { blocks, law }
    }

    #[inline]
    pub(super) fn draw(&self, prng: &mut Prng) -> u64 {
        match &self.law {
            Law::Uniform => prng.below(self.blocks),
            Law::Ranked { ranks, place } => place.of(ranks.draw(self.blocks, prng), self.blocks),
            Law::Normal { deviation, place } => {
                place.of(normal(*deviation, self.blocks, prng), self.blocks)
            }
            Law::Zoned(zones) => {
                let point = prng.below(100);
                let (_, start, len) = zones
                    .iter()
                    .find(|(end, _, _)| point < *end)
                    .copied()
                    .unwrap_or((0, 0, self.blocks));
                start + prng.below(len)
            }
        }
    }
}

/// The way from ranks to blocks: from the centre on if there is one, or else at random.
fn placing(center: Option<f64>, blocks: u64, prng: &mut Prng) -> Placing {
    match center {
        None => Placing::Scattered(Permutation::new(blocks, prng)),
        Some(center) => Placing::Multiplied((center * blocks as f64) as u64 % blocks),
    }
}

/// Returns for each zone the cumulative percentage of accesses, its first block and its length.
/// Zones beyond the region are cut off; each has at least one block.
fn zone_table(
    zones: &[crate::job::Zone],
    blocks: u64,
    block_of: impl Fn(u64) -> u64,
) -> Box<[(u64, u64, u64)]> {
    let mut access = 0;
    let mut width = 0u64;
    let mut row = |zone: &crate::job::Zone| {
        let start = block_of(width).min(blocks - 1);
        access += u64::from(zone.access_percent);
        width = width.saturating_add(zone.width);
        (access, start, block_of(width).min(blocks).saturating_sub(start).max(1))
    };
    debug_assert!(!zones.is_empty(), "the job reader must refuse an empty list of zones");
    zones.iter().map(&mut row).collect()
}

impl Placing {
    #[inline]
    fn of(&self, rank: u64, blocks: u64) -> u64 {
        debug_assert!(rank < blocks, "rank {rank} of {blocks}");
        match self {
            Self::Scattered(order) => order.at(rank),
            Self::Multiplied(first) => rank.wrapping_mul(MULTIPLIER).wrapping_add(*first) % blocks,
            Self::From(first) if rank < blocks - first => first + rank,
            Self::From(first) => rank - (blocks - first),
        }
    }
}

impl Ranks {
    /// Returns the ranks of zipf or pareto.
    fn of(law: &Distribution, blocks: u64) -> Self {
        match law {
            Distribution::Pareto { h, .. } => Self::Pareto(libm::log(*h) / libm::log(1.0 - h)),
            Distribution::Zipf { theta, .. } => Self::Zipf(Zipf::new(*theta, blocks)),
            _ => unreachable!("only zipf and pareto have ranks: {law:?}"),
        }
    }

    #[inline]
    fn draw(&self, blocks: u64, prng: &mut Prng) -> u64 {
        match self {
            Self::Zipf(zipf) => zipf.draw(prng),
            // A fraction 1 - h of the accesses hits a fraction h of the blocks, at every scale.
            Self::Pareto(power) => {
                ((blocks as f64 * libm::pow(unit(prng), *power)) as u64).min(blocks - 1)
            }
        }
    }
}

/// Returns the width of fio's deviation in blocks, at most half of them.
fn normal_deviation(percent: f64, blocks: u64) -> u64 {
    (libm::ceil(percent / 100.0 * blocks as f64) as u64).min(blocks / 2)
}

/// Returns the distance by which a centre other than 0.5 moves all positions.
fn normal_offset(center: f64, blocks: u64) -> u64 {
    let moved = (center * blocks as f64) as u64 + blocks - blocks / 2;
    moved % blocks
}

/// Draws a rank by fio's rule. A deviation that leads out of the blocks is halved until it does
/// not.
fn normal(deviation: u64, blocks: u64, prng: &mut Prng) -> u64 {
    let sum: u64 = (0..NORMAL_RANKS).map(|_| prng.below(blocks + 1)).sum();
    let mean = sum.div_ceil(NORMAL_RANKS).min(blocks - 1);
    if deviation == 0 {
        return mean;
    }
    let mut moves = prng.below(deviation).cast_signed() - (deviation / 2).cast_signed();
    loop {
        match mean.checked_add_signed(moves) {
            Some(rank) if rank < blocks => return rank,
            _ => moves /= 2,
        }
    }
}

/// Zipf's law by rejection-inversion (Hörmann and Derflinger 1996), in constant time and memory.
#[derive(Clone, Debug)]
struct Zipf {
    theta: f64,
    blocks: u64,
    /// The integral of the hat at its left end, and over all ranks.
    low: f64,
    high: f64,
    /// Below this distance the hat is under the weight, so that a draw is accepted at once.
    squeeze: f64,
}

impl Zipf {
    fn new(theta: f64, blocks: u64) -> Self {
        let mut zipf = Self { theta, blocks, low: 0.0, high: 0.0, squeeze: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(blocks as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - libm::pow(2.0, -theta));
        zipf
    }

    /// Returns a rank, counted from 0.
    fn draw(&self, prng: &mut Prng) -> u64 {
        loop {
            let u = self.high + unit(prng) * (self.low - self.high);
            let x = self.inverse(u);
            let rank = ((x + 0.5) as u64).clamp(1, self.blocks);
            let k = rank as f64;
            if k - x <= self.squeeze || u >= self.integral(k + 0.5) - libm::pow(k, -self.theta) {
                return rank - 1;
            }
        }
    }

    /// Returns the integral of x to the power -theta.
    fn integral(&self, x: f64) -> f64 {
        let power = 1.0 - self.theta;
        libm::expm1(power * libm::log(x)) / power
    }

    fn inverse(&self, y: f64) -> f64 {
        let power = 1.0 - self.theta;
        libm::exp(libm::log1p((y * power).max(-1.0)) / power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Zone;

    const DRAWS: u32 = 200_000;

    fn counts(law: &Distribution, blocks: u64) -> Vec<u32> {
        let mut prng = Prng::new(11);
        let sampler = Sampler::new(law, blocks, 4096, &mut prng);
        counts_of(&sampler, blocks, &mut prng)
    }

    /// Returns how often each rank of a law is drawn.
    fn ranks(law: &Distribution, blocks: u64) -> Vec<u32> {
        let mut prng = Prng::new(11);
        let sampler = Sampler::unscattered(law, blocks, &mut prng);
        counts_of(&sampler, blocks, &mut prng)
    }

    fn counts_of(sampler: &Sampler, blocks: u64, prng: &mut Prng) -> Vec<u32> {
        let mut counts = vec![0; usize::try_from(blocks).unwrap()];
        for _ in 0..DRAWS {
            counts[usize::try_from(sampler.draw(prng)).unwrap()] += 1;
        }
        counts
    }

    /// Asserts that each count is within five standard deviations of its expectation.
    fn assert_near(counts: &[u32], expected: impl Fn(usize) -> f64) {
        for (index, count) in counts.iter().enumerate() {
            let count = f64::from(*count);
            let expected = expected(index);
            let bound = 5.0 * libm::sqrt(expected) + 1.0;
            assert!((count - expected).abs() < bound, "{index}: {count}, expected {expected}");
        }
    }

    #[test]
    fn zipf_ranks_have_their_weights() {
        for theta in [0.5, 0.9, 1.2, 2.5] {
            let counts = ranks(&Distribution::Zipf { theta, center: Some(0.0) }, 100);
            let weight = |index: usize| libm::pow(index as f64 + 1.0, -theta);
            let sum: f64 = (0..100).map(weight).sum();
            assert_near(&counts, |index| f64::from(DRAWS) * weight(index) / sum);
        }
    }

    fn hottest(center: Option<f64>) -> usize {
        let counts = counts(&Distribution::Zipf { theta: 1.2, center }, 1000);
        (0..1000).max_by_key(|&index| counts[index]).unwrap()
    }

    #[test]
    fn a_centre_places_the_hottest_block_and_without_one_it_is_scattered() {
        assert_eq!(hottest(Some(0.25)), 250);
        assert_eq!(hottest(Some(1.0)), 0);
        assert!(hottest(None) != 0);
    }

    /// fio multiplies a rank by a constant, so that the second hottest block lies far from the
    /// hottest one.
    #[test]
    fn a_centre_leaves_the_other_blocks_scattered() {
        let law = Distribution::Zipf { theta: 1.2, center: Some(0.5) };
        let counts = counts(&law, 4096);
        let near: u32 = counts[1948..2148].iter().sum::<u32>() - counts[2048];
        let others = DRAWS - counts[2048];
        assert!(near < others / 10, "{near} of {others} accesses lie around the centre");
    }

    #[test]
    fn pareto_sends_eighty_percent_of_accesses_to_twenty_percent() {
        let counts = ranks(&Distribution::Pareto { h: 0.2, center: Some(0.0) }, 1000);
        let hot: u32 = counts[..200].iter().sum();
        assert!(hot.abs_diff(DRAWS / 5 * 4) < DRAWS / 200, "{hot}");
        let hotter: u32 = counts[..40].iter().sum();
        assert!(hotter.abs_diff(DRAWS / 100 * 64) < DRAWS / 200, "{hotter}");
    }

    fn within(counts: &[u32], range: core::ops::Range<usize>) -> u32 {
        counts[range].iter().sum::<u32>()
    }

    /// The mean of twelve uniform numbers deviates by a twelfth, and a uniform deviation of 10 %
    /// adds little: the root of (1 / 144 + 0.01 / 12), or 88 of 1000.
    #[test]
    fn normal_ranks_have_fios_mean_and_deviation() {
        let law = Distribution::Normal { deviation_percent: 10.0, center: 0.5 };
        let counts = ranks(&law, 1000);
        assert!(
            within(&counts, 0..500).abs_diff(DRAWS / 2) < DRAWS / 100,
            "{}",
            within(&counts, 0..500)
        );
        assert!(within(&counts, 412..588).abs_diff(DRAWS / 10_000 * 6827) < DRAWS / 80);
        assert!(within(&counts, 324..676).abs_diff(DRAWS / 10_000 * 9545) < DRAWS / 80);
    }

    /// fio 3.33 and 3.42 for `normal:15` and 16384 I/Os of 4096 blocks: the 1000 hottest blocks get
    /// 82 %, and offsets lie anywhere.
    #[test]
    fn normal_blocks_are_scattered() {
        let law = Distribution::Normal { deviation_percent: 15.0, center: 0.5 };
        let mut counts = counts(&law, 4096);
        let first: u32 = counts[..410].iter().sum();
        assert!(first.abs_diff(DRAWS / 10) < DRAWS / 50, "{first} of {DRAWS} in the first tenth");
        counts.sort_unstable();
        let hottest: u32 = counts[3096..].iter().sum();
        assert!(hottest.abs_diff(DRAWS / 100 * 81) < DRAWS / 50, "{hottest} of {DRAWS}");
    }

    fn zone(access_percent: u8, width: u64) -> Zone {
        Zone { access_percent, width }
    }

    #[test]
    fn zones_get_their_shares() {
        let zones = vec![zone(60, 10), zone(30, 20), zone(8, 30), zone(2, 40)];
        let share = [(100.0, 60.0), (200.0, 30.0), (300.0, 8.0), (400.0, 2.0)];
        let counts = counts(&Distribution::Zoned(zones), 1000);
        assert_near(&counts, |index| {
            let zone = [100, 300, 600, 1000].iter().position(|&end| index < end).unwrap();
            let (blocks, percent) = share[zone];
            f64::from(DRAWS) * percent / 100.0 / blocks
        });
    }

    #[test]
    fn one_block_gets_every_access() {
        let zone = vec![Zone { access_percent: 100, width: 1 << 40 }];
        for law in [
            Distribution::Uniform,
            Distribution::Zipf { theta: 1.5, center: None },
            Distribution::Pareto { h: 0.5, center: Some(1.0) },
            Distribution::Normal { deviation_percent: 99.0, center: 1.0 },
            Distribution::Normal { deviation_percent: 0.0, center: 0.0 },
            Distribution::ZonedAbs(zone),
        ] {
            assert_eq!(counts(&law, 1), [DRAWS]);
        }
    }
}
