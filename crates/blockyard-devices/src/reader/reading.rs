//! Where the figures of a profile come from, and other readings of those that are assumed.

use blockyard::prng::Prng;
use core::cell::RefCell;
use std::collections::BTreeMap;

/// A figure of a profile that says where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its table and key: `card.read.access`.
    pub key: String,
    /// Where it comes from, in the words of the profile.
    pub origin: String,
    /// The lowest and the highest value that it may have, as the profile writes them.
    pub range: Option<[String; 2]>,
    /// Where its value lies in the range in this [`Reading`], from 0 to 255.
    pub place: Option<u8>,
}

/// What a figure rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Published measurements, from which it was computed.
    Fitted,
    /// A document, or a default of Linux, that states it.
    Stated,
    /// Nothing but experience.
    Assumed,
}

impl Figure {
    /// What the figure rests on: the first word of its origin says it. A word that says nothing
    /// known is an assumption.
    #[must_use]
    pub fn basis(&self) -> Basis {
        match self.origin.split(':').next() {
            Some("fitted") => Basis::Fitted,
            Some("source" | "default") => Basis::Stated,
            _ => Basis::Assumed,
        }
    }
}

/// Another reading of a profile: each figure with a range has a value drawn from it. Small and
/// large values are as likely: a time is as often below the geometric mean of its range as above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The seed of all draws.
    pub seed: u64,
    /// The number of the reading. Readings are independent.
    pub number: u32,
}

impl Reading {
    /// Returns where the value of `key` lies in its range. It depends on no other key. Figures that
    /// move together have one key here.
    fn place(self, key: &str) -> u8 {
        // FNV-1a.
        let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let place = Prng::new(self.seed).fork(self.number.into()).fork(hash).below(256);
        u8::try_from(place).expect("a number below 256")
    }
}

/// The figures that were read so far, and how.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    reading: Option<Reading>,
    /// The keys of the tables that were opened, by their paths.
    tables: RefCell<BTreeMap<&'static str, &'static [&'static str]>>,
    figures: RefCell<BTreeMap<String, Figure>>,
}

impl Notes {
    pub(crate) fn of(reading: Option<Reading>) -> Self {
        Self { reading, ..Self::default() }
    }

    /// Whether figures have values from their ranges, rather than the stated ones.
    pub(crate) const fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Notes a figure. Returns where its value lies in its range, if this is not to be the stated
    /// value. All figures with one `moves_with` have one place.
    pub(crate) fn add(
        &self,
        key: String,
        moves_with: &str,
        origin: String,
        range: Option<[String; 2]>,
    ) -> Option<u8> {
        let place =
            self.reading.filter(|_| range.is_some()).map(|reading| reading.place(moves_with));
        let figure = Figure { key: key.clone(), origin, range, place };
        self.figures.borrow_mut().insert(key, figure);
        place
    }

    /// Notes that the table at `path`, which may have the keys `known`, was opened.
    pub(crate) fn open(&self, path: &'static str, known: &'static [&'static str]) {
        self.tables.borrow_mut().insert(path, known);
    }

    /// Returns all keys that the tables may have, with those of the top of the file.
    pub(crate) fn keys(&self) -> Vec<String> {
        let tables = self.tables.borrow();
        tables.iter().flat_map(|(path, keys)| keys.iter().map(|key| full_key(path, key))).collect()
    }

    pub(crate) fn into_figures(self) -> Vec<Figure> {
        self.figures.into_inner().into_values().collect()
    }
}

/// Returns `key` with the path of its table, which is empty at the top of the file.
fn full_key(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

/// Returns the value at `place` between `low` and `high`: in equal ratios, or in equal steps from
/// 0.
pub(crate) fn between(low: u64, high: u64, place: u8) -> u64 {
    debug_assert!(low <= high, "a range from {low} to {high}");
    if low == 0 {
        let part = u128::from(high) * u128::from(place) / u128::from(u8::MAX);
        return u64::try_from(part).expect("a part of 64 bits");
    }
    let mut low = low;
    let mut high = high;
    for bit in (0..u8::BITS).rev() {
        let middle = (u128::from(low) * u128::from(high)).isqrt();
        let middle = u64::try_from(middle).expect("a mean of 64 bits");
        if place >> bit & 1 == 1 { low = middle } else { high = middle }
    }
    if place == u8::MAX { high } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_divide_a_range_into_equal_ratios() {
        let places = [0, 64, 128, 192, 255];
        assert_eq!(places.map(|place| between(100, 1600, place)), [100, 200, 400, 800, 1600]);
        assert_eq!([0, 51, 255].map(|place| between(0, 50, place)), [0, 10, 50]);
        assert_eq!(places.map(|place| between(7, 7, place)), [7; 5]);
        let all: Vec<_> = (0..=255).map(|place| between(1000, 1_000_000, place)).collect();
        assert!(all.is_sorted() && all.iter().all(|value| (1000..=1_000_000).contains(value)));
    }

    fn place_of(seed: u64, number: u32, key: &str) -> u8 {
        Reading { seed, number }.place(key)
    }

    #[test]
    fn a_place_depends_on_the_seed_the_reading_and_the_key_only() {
        const KEY: &str = "card.read.access";
        assert_eq!(place_of(1, 2, KEY), place_of(1, 2, KEY));
        let others = [place_of(2, 2, KEY), place_of(1, 3, KEY), place_of(1, 2, "cpu.submit")];
        assert!(others.iter().any(|place| *place != place_of(1, 2, KEY)));
        let mean = (0..1000).map(|n| u32::from(place_of(1, n, "cpu.submit"))).sum::<u32>() / 1000;
        assert!((118..138).contains(&mean), "{mean}");
    }
}
