//! The number of times that each rule of a fault file matched and fired.

use blockyard_devices::stack::FaultCount;

use super::table::{Align, Table};

const COLUMNS: &[(&str, Align)] =
    &[("rule", Align::Left), ("matched", Align::Right), ("fired", Align::Right)];

/// Returns a table of the rules, or `None` without rules. If the rules' designs or disks have
/// names, these are the first column, called `what`.
pub(crate) fn table<'a>(
    what: &'static str,
    of: impl Iterator<Item = (Option<&'a str>, &'a [FaultCount])>,
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
        for FaultCount { name, matched, fired } in rows {
            let cells = [name.clone(), matched.to_string(), fired.to_string()];
            table.row(of.map(str::to_owned).into_iter().chain(cells));
        }
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, matched: u64, fired: u64) -> FaultCount {
        FaultCount { name: name.to_owned(), matched, fired }
    }

    fn counts() -> Vec<FaultCount> {
        vec![count("bad-block", 12, 12), count("hiccup", 100_000, 97)]
    }

    fn text(of: (Option<&str>, &[FaultCount])) -> String {
        table("design", [of].into_iter()).unwrap().to_string()
    }

    #[test]
    fn the_rules_of_a_run_and_of_several_designs() {
        let of_run =
            "rule       matched  fired\nbad-block       12     12\nhiccup      100000     97\n";
        let counts = counts();
        assert_eq!(text((None, &counts[..])), of_run);
        let of_designs = text((Some("mq-none"), &counts[..1]));
        assert_eq!(
            of_designs,
            "design   rule       matched  fired\nmq-none  bad-block       12     12\n"
        );
        assert!(table("design", [(None, &counts[..0])].into_iter()).is_none());
    }
}
