//! Random positions among n blocks, for each distribution of a job.
//!
//! Some distributions need floating point. They use `libm` in pure Rust, so that every machine computes
//! the same bits.
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
    Normal {
        mean: f64,
        deviation: f64,
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
    From(u64),
}

impl Sampler {
    /// Returns a sampler for `blocks` (at least 1) of `block_bytes` each.
    pub(super) fn new(law: &Distribution, blocks: u64, block_bytes: u64, prng: &mut Prng) -> Self {
        assert!(blocks > 0, "positions must be drawn from at least one block");
        let mut place = |center: &Option<f64>| match center {
            None => Placing::Scattered(Permutation::new(blocks, prng)),
            Some(center) => Placing::From((center * blocks as f64) as u64 % blocks),
        };
        let law = match law {
            // A sequence needs no draws, so its caller has none.
            Distribution::Uniform | Distribution::Sequence(_) => Law::Uniform,
            Distribution::Zipf { theta, center } => {
                Law::Ranked { ranks: Ranks::Zipf(Zipf::new(*theta, blocks)), place: place(center) }
            }
            Distribution::Pareto { h, center } => Law::Ranked {
                ranks: Ranks::Pareto(libm::log(*h) / libm::log(1.0 - h)),
                place: place(center),
            },
            Distribution::Normal { deviation_percent, center } => Law::Normal {
                mean: center * blocks as f64,
                deviation: deviation_percent / 100.0 * blocks as f64,
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

    #[inline]
    pub(super) fn draw(&self, prng: &mut Prng) -> u64 {
        match &self.law {
            Law::Uniform => prng.below(self.blocks),
            Law::Ranked { ranks, place } => place.of(ranks.draw(self.blocks, prng), self.blocks),
            Law::Normal { mean, deviation } => normal(*mean, *deviation, self.blocks, prng),
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

/// Returns for each zone the cumulative percentage of accesses, its first block and its length. Zones
/// beyond the region are cut off; each has at least one block.
fn zone_table(
    zones: &[crate::job::Zone],
    blocks: u64,
    block_of: impl Fn(u64) -> u64,
) -> Box<[(u64, u64, u64)]> {
    let (mut access, mut width) = (0, 0u64);
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
            Self::From(first) if rank < blocks - first => first + rank,
            Self::From(first) => rank - (blocks - first),
        }
    }
}

impl Ranks {
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

/// Draws around `mean`. A draw outside the blocks is repeated; after 64 draws the edge is taken.
fn normal(mean: f64, deviation: f64, blocks: u64, prng: &mut Prng) -> u64 {
    let mut x = mean;
    for _ in 0..64 {
        // The method of Box and Muller; 1 - unit is never 0.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit(prng)));
        x = mean + deviation * radius * libm::cos(2.0 * core::f64::consts::PI * unit(prng));
        if (0.0..blocks as f64).contains(&x) {
            break;
        }
    }
    (x.max(0.0) as u64).min(blocks - 1)
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
        let mut counts = vec![0; usize::try_from(blocks).unwrap()];
        for _ in 0..DRAWS {
            counts[usize::try_from(sampler.draw(&mut prng)).unwrap()] += 1;
        }
        counts
    }

    /// Asserts that each count is within five standard deviations of its expectation.
    fn assert_near(counts: &[u32], expected: impl Fn(usize) -> f64) {
        for (index, count) in counts.iter().enumerate() {
            let (count, expected) = (f64::from(*count), expected(index));
            let bound = 5.0 * libm::sqrt(expected) + 1.0;
            assert!((count - expected).abs() < bound, "{index}: {count}, expected {expected}");
        }
    }

    #[test]
    fn zipf_ranks_have_their_weights() {
        for theta in [0.5, 0.9, 1.2, 2.5] {
            let counts = counts(&Distribution::Zipf { theta, center: Some(0.0) }, 100);
            let weight = |index: usize| libm::pow(index as f64 + 1.0, -theta);
            let sum: f64 = (0..100).map(weight).sum();
            assert_near(&counts, |index| f64::from(DRAWS) * weight(index) / sum);
        }
    }

    #[test]
    fn a_centre_places_the_hottest_block_and_without_one_it_is_scattered() {
        let hottest = |center| {
            let counts = counts(&Distribution::Zipf { theta: 1.2, center }, 1000);
            (0..1000).max_by_key(|&index| counts[index]).unwrap()
        };
        assert_eq!(hottest(Some(0.25)), 250);
        assert_eq!(hottest(Some(1.0)), 0);
        assert!(hottest(None) != 0);
    }

    #[test]
    fn pareto_sends_eighty_percent_of_accesses_to_twenty_percent() {
        let counts = counts(&Distribution::Pareto { h: 0.2, center: Some(0.0) }, 1000);
        let hot: u32 = counts[..200].iter().sum();
        assert!(hot.abs_diff(DRAWS / 5 * 4) < DRAWS / 200, "{hot}");
        let hotter: u32 = counts[..40].iter().sum();
        assert!(hotter.abs_diff(DRAWS / 100 * 64) < DRAWS / 200, "{hotter}");
    }

    #[test]
    fn normal_has_its_mean_and_deviation() {
        let law = Distribution::Normal { deviation_percent: 10.0, center: 0.5 };
        let counts = counts(&law, 1000);
        let within = |range: core::ops::Range<usize>| counts[range].iter().sum::<u32>();
        assert!(within(400..600).abs_diff(DRAWS / 10_000 * 6827) < DRAWS / 200);
        assert!(within(300..700).abs_diff(DRAWS / 10_000 * 9545) < DRAWS / 200);
        assert!(within(0..500).abs_diff(DRAWS / 2) < DRAWS / 200);
    }

    #[test]
    fn zones_get_their_shares() {
        let zone = |access_percent, width| Zone { access_percent, width };
        let zones = vec![zone(60, 10), zone(30, 20), zone(8, 30), zone(2, 40)];
        let share = [(100.0, 60.0), (200.0, 30.0), (300.0, 8.0), (400.0, 2.0)];
        let counts = counts(&Distribution::Zoned(zones), 1000);
        let zone_of = |index| [100, 300, 600, 1000].iter().position(|&end| index < end).unwrap();
        assert_near(&counts, |index| {
            let (blocks, percent) = share[zone_of(index)];
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
            Distribution::ZonedAbs(zone),
        ] {
            assert_eq!(counts(&law, 1), [DRAWS]);
        }
    }
}
