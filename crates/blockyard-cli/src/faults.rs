//! How often each rule of a fault file was met, in answers.

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

const COLUMNS: &[(&str, Align)] = &[
    ("design", Align::Left),
    ("rule", Align::Left),
    ("matched", Align::Right),
    ("fired", Align::Right),
];

/// A table of the rules under each design, or of those of a single run that names none.
pub(crate) fn text<'a>(of: impl Iterator<Item = (Option<&'a str>, &'a [FaultRow])>) -> String {
    let of: Vec<_> = of.collect();
    let named = of.iter().any(|(design, _)| design.is_some());
    let mut table = Table::new(if named { COLUMNS } else { &COLUMNS[1..] });
    for (design, rows) in of {
        for FaultRow { name, matched, fired } in rows {
            let cells = [name.clone(), matched.to_string(), fired.to_string()];
            table.row(design.map(str::to_owned).into_iter().chain(cells));
        }
    }
    table.to_string()
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
        assert_eq!(text([(None, counts().as_slice())].into_iter()), of_run);
        let of_designs = text([(Some("mq-none"), &counts()[..1])].into_iter());
        assert_eq!(
            of_designs,
            "design   rule       matched  fired\nmq-none  bad-block       12     12\n"
        );
    }
}
