//! Where a request spends its life under each design, and what holds it back: the second and third
//! table of `whatif`.

use std::collections::BTreeMap;

use blockyard::trace::Hold;
use blockyard_sim::why::{self, Figures};
use serde::Serialize;

use crate::human::{digits, nanoseconds};
use crate::table::{Align, Table};

/// Mean times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Life {
    /// An I/O waiting for a tag.
    pub(crate) for_tag: f64,
    pub(crate) staged: f64,
    pub(crate) held: f64,
    pub(crate) in_driver: f64,
    /// Waiting for the flushes it needs.
    pub(crate) for_flush: f64,
    /// An ended I/O until its job took the result.
    pub(crate) untaken: f64,
}

/// What a reason did, by its name.
pub(crate) type Holds = BTreeMap<&'static str, Held>;

/// How a reason held hardware queues.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Held {
    pub(crate) count: u64,
    pub(crate) per_io: f64,
    /// Of the time of a hardware queue, mean over all of them.
    pub(crate) percent: f64,
}

impl Life {
    pub(crate) fn of(figures: &Figures) -> Self {
        let life = &figures.life;
        Self {
            for_tag: life.for_tag_ns,
            staged: life.staged_ns,
            held: life.held_ns,
            in_driver: life.in_driver_ns,
            for_flush: life.flushing_ns,
            untaken: life.untaken_ns,
        }
    }

    /// Its parts with their names.
    const fn parts(&self) -> [(&'static str, f64); 6] {
        [
            ("for a tag", self.for_tag),
            ("staged", self.staged),
            ("held", self.held),
            ("in driver", self.in_driver),
            (FOR_FLUSH, self.for_flush),
            ("untaken", self.untaken),
        ]
    }
}

/// The part that has a column only where it happened.
const FOR_FLUSH: &str = "for a flush";

/// What each reason did in a run; those that did nothing too.
pub(crate) fn holds(figures: &Figures) -> Holds {
    let held = |why::Held { count, per_io, percent }| Held { count, per_io, percent };
    Hold::ALL.iter().map(|hold| hold.name()).zip(figures.holds.map(held)).collect()
}

/// Where a request spends its life, a row for each design.
#[expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]
pub(crate) fn lives<'a>(designs: impl Iterator<Item = (&'a str, &'a Life)> + Clone) -> Table {
    let flushes = designs.clone().any(|(_, life)| life.for_flush > 0.0);
    let shown = |(name, _): &(&str, f64)| flushes || *name != FOR_FLUSH;
    let parts = Life::default().parts().into_iter().filter(shown);
    let parts = parts.map(|(name, _)| (name, Align::Right));
    let head = [("design", Align::Left), ("life", Align::Right)];
    let mut table = Table::new(&head.into_iter().chain(parts).collect::<Vec<_>>());
    for (name, life) in designs {
        let total: f64 = life.parts().iter().map(|(_, ns)| ns).sum();
        let cell = |(_, ns): (&str, f64)| {
            let percent = if total > 0.0 { 100.0 * ns / total } else { 0.0 };
            format!("{} {percent:>3.0}%", nanoseconds(ns))
        };
        let cells = life.parts().into_iter().filter(shown).map(cell);
        table.row([name.to_owned(), nanoseconds(total)].into_iter().chain(cells));
    }
    table
}

/// What held requests back, a row for each design and a column for each reason that did; `None`
/// where nothing did.
pub(crate) fn reasons<'a>(
    designs: impl Iterator<Item = (&'a str, &'a Holds)> + Clone,
) -> Option<Table> {
    let happened = |name: &&str| designs.clone().any(|(_, holds)| holds[name].count > 0);
    let names: Vec<_> = Hold::ALL.map(Hold::name).into_iter().filter(happened).collect();
    if names.is_empty() {
        return None;
    }
    let columns = names.iter().map(|name| (*name, Align::Right));
    let columns: Vec<_> = [("design", Align::Left)].into_iter().chain(columns).collect();
    let mut table = Table::new(&columns);
    for (design, holds) in designs {
        let cell = |name: &&str| match holds[name] {
            Held { count: 0, .. } => "-".to_owned(),
            Held { per_io, percent, .. } => format!("{} {percent:>3.0}%", digits(per_io)),
        };
        table.row([design.to_owned()].into_iter().chain(names.iter().map(cell)));
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_that_held_something_have_a_column() {
        let holds = |count| {
            let held = Held { count, per_io: 1.5, percent: 42.0 };
            let none = |hold| (Hold::name(hold), Held::default());
            let mut holds: Holds = Hold::ALL.map(none).into();
            holds.insert("tag", held);
            holds
        };
        let (some, none) = (holds(3), holds(0));
        let table = reasons([("a", &some), ("b", &none)].into_iter()).unwrap().to_string();
        assert_eq!(table, "design        tag\na       1.50  42%\nb               -\n");
        assert!(reasons([("b", &none)].into_iter()).is_none());
    }

    #[test]
    fn a_life_of_nothing_has_no_shares_and_flushes_are_told_where_there_are_any() {
        let (none, some) = (Life::default(), Life { for_flush: 3e6, ..Life::default() });
        let table = |lives_of: &[(&'static str, Life)]| {
            lives(lives_of.iter().map(|(name, life)| (*name, life))).to_string()
        };
        let without = table(&[("a", none)]);
        assert!(without.contains(" 0ns   0%") && !without.contains(FOR_FLUSH), "{without}");
        let with = table(&[("a", none), ("b", some)]);
        assert!(with.contains(FOR_FLUSH) && with.contains("3.00ms 100%"), "{with}");
    }
}
