//! The third and fourth tables of `whatif`: the stages in which requests spend their time, and the
//! holds of hardware queues.

use blockyard::trace::Hold;
use blockyard_answer::{Held, Holds, Life, LifeStage};
use blockyard_text::number::{digits, nanoseconds, percent};

use super::table::Table;
use super::time_and_share;

/// Returns the time that requests spend in each stage, a row for each design.
#[expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]
pub(super) fn lives<'a>(designs: impl Iterator<Item = (&'a str, &'a Life)> + Clone) -> Table {
    let flushes = designs.clone().any(|(_, life)| life.waiting_for_flush > 0.0);
    // The column is omitted if it would be empty.
    let shown = |(stage, _): &(LifeStage, f64)| flushes || *stage != LifeStage::WaitingForFlush;
    let parts = Life::default().parts().into_iter().filter(shown);
    let parts = parts.map(|(stage, _)| stage.name());
    let mut table = Table::of_numbers("design", ["total"].into_iter().chain(parts));
    for (name, life) in designs {
        let total = life.total();
        let cell = |(_, ns): (LifeStage, f64)| {
            let share = if total > 0.0 { 100.0 * ns / total } else { 0.0 };
            time_and_share(ns, share)
        };
        let cells = life.parts().into_iter().filter(shown).map(cell);
        table.row([name.to_owned(), nanoseconds(total)].into_iter().chain(cells));
    }
    table
}

/// Returns the holds of hardware queues, a row for each design and a column for each reason that
/// occurred, or `None` without holds.
pub(super) fn holds<'a>(
    designs: impl Iterator<Item = (&'a str, &'a Holds)> + Clone,
) -> Option<Table> {
    let happened = |hold: &Hold| designs.clone().any(|(_, holds)| holds.of(*hold).count > 0);
    let reasons: Vec<_> = Hold::ALL.into_iter().filter(happened).collect();
    if reasons.is_empty() {
        return None;
    }
    let mut table = Table::of_numbers("design", reasons.iter().map(|hold| hold.name()));
    for (design, holds) in designs {
        let cell = |hold: &Hold| match holds.of(*hold) {
            Held { count: 0, .. } => "-".to_owned(),
            Held { per_io, percent: share, .. } => {
                format!("{} {:>5}", digits(per_io), percent(share))
            }
        };
        table.row([design.to_owned()].into_iter().chain(reasons.iter().map(cell)));
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds_of(count: u64) -> Holds {
        let held = Held { count, per_io: 1.5, percent: 42.0 };
        [(Hold::Tag, held)].into_iter().collect::<Holds>()
    }

    #[test]
    fn only_reasons_that_held_something_have_a_column() {
        let some = holds_of(3);
        let none = holds_of(0);
        let table = holds([("a", &some), ("b", &none)].into_iter()).unwrap().to_string();
        assert_eq!(table, "design         tag\na       1.50  42 %\nb                -\n");
        assert!(holds([("b", &none)].into_iter()).is_none());
    }

    fn table(lives_of: &[(&'static str, Life)]) -> String {
        lives(lives_of.iter().map(|(name, life)| (*name, life))).to_string()
    }

    #[test]
    fn an_empty_life_has_no_shares_and_flushes_have_a_column_only_if_any() {
        let some = Life { waiting_for_flush: 3e6, ..Life::default() };
        let none = Life::default();
        let without = table(&[("a", none)]);
        assert!(
            without.ends_with("  -       -           -       -           -\n")
                && !without.contains("flushes"),
            "{without}"
        );
        let with = table(&[("a", none), ("b", some)]);
        assert!(with.contains("flushes") && with.contains("3.00 ms 100 %"), "{with}");
    }
}
