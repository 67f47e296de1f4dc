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
            untaken: life.untaken_ns,
        }
    }

    #[expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]
    fn cells(&self) -> [String; 6] {
        let parts = [self.for_tag, self.staged, self.held, self.in_driver, self.untaken];
        let total: f64 = parts.iter().sum();
        let part = |ns: f64| {
            let percent = if total > 0.0 { 100.0 * ns / total } else { 0.0 };
            format!("{} {percent:>3.0}%", nanoseconds(ns))
        };
        let [for_tag, staged, held, in_driver, untaken] = parts.map(part);
        [nanoseconds(total), for_tag, staged, held, in_driver, untaken]
    }
}

/// What each reason did in a run; those that did nothing too.
pub(crate) fn holds(figures: &Figures) -> Holds {
    let held = |why::Held { count, per_io, percent }| Held { count, per_io, percent };
    Hold::ALL.iter().map(|hold| hold.name()).zip(figures.holds.map(held)).collect()
}

/// Where a request spends its life, a row for each design.
pub(crate) fn lives<'a>(designs: impl Iterator<Item = (&'a str, &'a Life)>) -> Table {
    let mut table = Table::new(&[
        ("design", Align::Left),
        ("life", Align::Right),
        ("for a tag", Align::Right),
        ("staged", Align::Right),
        ("held", Align::Right),
        ("in driver", Align::Right),
        ("untaken", Align::Right),
    ]);
    for (name, life) in designs {
        table.row([name.to_owned()].into_iter().chain(life.cells()));
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
    fn a_life_of_nothing_has_no_shares() {
        let cells = Life::default().cells();
        assert_eq!(cells.map(|cell| cell.trim().to_owned())[1], "0ns   0%");
    }
}
