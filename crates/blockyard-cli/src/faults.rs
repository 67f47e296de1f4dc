//! How often each rule of a fault file was met, in answers.

use blockyard::layer::fault::Count;
use blockyard_sim::device::stack::FaultCount;
use serde::Serialize;

use crate::table::{Align, Table};

/// A rule and its counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FaultRow {
    name: String,
    /// Requests offered to the device that the rule is about.
    matched: u64,
    /// Of those, the ones it did something to.
    fired: u64,
}

/// A row for each of `counts`.
pub(crate) fn rows(counts: &[FaultCount]) -> Vec<FaultRow> {
    let row = |FaultCount { name, matched, fired }: &FaultCount| FaultRow {
        name: name.clone(),
        matched: *matched,
        fired: *fired,
    };
    counts.iter().map(row).collect()
}

/// A row for each rule of a served disk.
pub(crate) fn rows_served(counts: Vec<(String, Count)>) -> Vec<FaultRow> {
    let row = |(name, Count { matched, fired })| FaultRow { name, matched, fired };
    counts.into_iter().map(row).collect()
}

const COLUMNS: &[(&str, Align)] =
    &[("rule", Align::Left), ("matched", Align::Right), ("fired", Align::Right)];

/// A table of the rules under each design, or of each disk: `what` says which; or of those of a single
/// one that is not named. `None` where there are no rules.
pub(crate) fn table<'a>(
    what: &'static str,
    of: impl Iterator<Item = (Option<&'a str>, &'a [FaultRow])>,
) -> Option<Table> {
    let of: Vec<_> = of.collect();
    if of.iter().all(|(_, rows)| rows.is_empty()) {
        return None;
    }
    let named = of.iter().any(|(name, _)| name.is_some());
    let first = named.then_some((what, Align::Left));
    let columns: Vec<_> = first.into_iter().chain(COLUMNS.iter().copied()).collect();
    let mut table = Table::new(&columns);
    for (of, rows) in of {
        for FaultRow { name, matched, fired } in rows {
            let cells = [name.clone(), matched.to_string(), fired.to_string()];
            table.row(of.map(str::to_owned).into_iter().chain(cells));
        }
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Vec<FaultRow> {
        let count =
            |name: &str, matched, fired| FaultCount { name: name.to_owned(), matched, fired };
        rows(&[count("bad-block", 12, 12), count("hiccup", 100_000, 97)])
    }

    #[test]
    fn the_rules_of_a_run_and_of_several_designs() {
        let of_run =
            "rule       matched  fired\nbad-block       12     12\nhiccup      100000     97\n";
        let counts = counts();
        let text = |of| table("design", [of].into_iter()).unwrap().to_string();
        assert_eq!(text((None, &counts[..])), of_run);
        let of_designs = text((Some("mq-none"), &counts[..1]));
        assert_eq!(
            of_designs,
            "design   rule       matched  fired\nmq-none  bad-block       12     12\n"
        );
        assert!(table("design", [(None, &counts[..0])].into_iter()).is_none());
    }
}
