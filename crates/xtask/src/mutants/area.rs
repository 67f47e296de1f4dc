//! The parts of the source whose tests must catch nearly every fault.

use crate::mutants::equivalent::Equivalents;
use crate::mutants::fault::{Fault, faults};
use crate::tidy::tree;
use blockyard::prng::Prng;
use std::fs;

/// A part of the source.
#[derive(Debug)]
pub struct Area {
    /// Its name in reports.
    pub name: &'static str,
    /// Its package.
    pub package: &'static str,
    /// Its folder within the package.
    pub folder: &'static str,
    /// The test programs that exercise it beyond its own unit tests, the fastest first: the
    /// package, and an argument of `cargo test`.
    pub tests: &'static [(&'static str, &'static str)],
}

/// Every part. The tests must catch at least `ENOUGH` faults of 100 in each.
pub const AREAS: [Area; 5] = [
    area("core", "blockyard", "src", &[("blockyard", ALL), ("blockyard-sim", "--test=swarm")]),
    area(
        "mmc",
        "blockyard-mmc",
        "src",
        &[("blockyard-mmc", ALL), ("blockyard-sim", "--test=swarm_mmc")],
    ),
    area("btt", "blockyard-btt", "src", &[("blockyard-btt", ALL)]),
    area("wire", "blockyard-wire", "src", &[("blockyard-wire", ALL)]),
    area(
        "devices/data",
        "blockyard-devices",
        "src/data",
        &[("blockyard-sim", "--test=acknowledged*"), ("blockyard-sim", "--test=swarm*")],
    ),
];

/// All test programs of a package.
const ALL: &str = "--test=*";

const fn area(
    name: &'static str,
    package: &'static str,
    folder: &'static str,
    tests: &'static [(&'static str, &'static str)],
) -> Area {
    Area { name, package, folder, tests }
}

/// How many faults of 100 the tests must catch.
pub(crate) const ENOUGH: usize = 97;

/// The smallest sample in which one survivor leaves [`ENOUGH`] of 100 caught.
const TELLING: usize = 100_usize.div_ceil(100 - ENOUGH);

/// Returns the most survivors that a sample may have: as many as leave [`ENOUGH`] of 100 caught. In
/// a sample of fewer than 34 faults one survivor would be too many, so it may have what chance
/// explains: if the tests catch [`ENOUGH`] of 100, at most one such sample of forty has more.
#[must_use]
pub(crate) fn survivors_max(sampled: usize) -> usize {
    if sampled >= TELLING { sampled * (100 - ENOUGH) / 100 } else { explained_by_chance(sampled) }
}

#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "a probability")]
fn explained_by_chance(sampled: usize) -> usize {
    let survives = 1.0 - ENOUGH as f64 / 100.0;
    let mut exactly = (1.0 - survives).powi(i32::try_from(sampled).expect("small sample"));
    let mut most = 0;
    let mut up_to = exactly;
    while up_to < 1.0 - 1.0 / 40.0 {
        let left = (sampled - most) as f64;
        most += 1;
        exactly *= left / most as f64 * survives / (1.0 - survives);
        up_to += exactly;
    }
    most
}

impl Area {
    /// Every fault of the part.
    ///
    /// # Panics
    ///
    /// Panics if a file cannot be read or is not Rust.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let folder = format!("crates/{}/{}/", self.package, self.folder);
        let files = tree::modules(self.package).into_iter().map(|module| module.file);
        let files = files.filter(|file| file.starts_with(&folder));
        let found = files.flat_map(|file| {
            let text = fs::read_to_string(tree::root().join(&file)).expect("source in UTF-8");
            faults(file.to_str().expect("path in UTF-8"), &text)
        });
        found.collect()
    }
}

/// Draws up to `count` of `faults` without those that are listed as equivalent; also returns how
/// many of the latter were drawn on the way.
#[must_use]
pub(crate) fn sample(
    mut faults: Vec<Fault>,
    count: usize,
    random: &mut Prng,
    known: &Equivalents,
) -> (Vec<Fault>, usize) {
    let mut drawn = vec![];
    let mut equivalent = 0;
    while drawn.len() < count && !faults.is_empty() {
        let at = usize::try_from(random.below(faults.len() as u64)).expect("below a length");
        let fault = faults.swap_remove(at);
        if known.contains(&fault) {
            equivalent += 1;
        } else {
            drawn.push(fault);
        }
    }
    (drawn, equivalent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_a_hundred_may_have_three_survivors() {
        assert_eq!([34, 60, 66, 67, 100].map(survivors_max), [1, 1, 1, 2, 3]);
    }

    #[test]
    fn a_small_sample_may_have_as_many_survivors_as_chance_explains() {
        // From a table of the binomial distribution with p = 0.03.
        assert_eq!([1, 4, 20].map(survivors_max), [1, 1, 2]);
    }
}
