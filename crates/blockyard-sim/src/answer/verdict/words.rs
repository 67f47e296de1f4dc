//! The verdict in sentences.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::{Cell, Row, quotient};
use crate::answer::equality::EQUAL_WITHIN;
use crate::answer::number::{digits, time};

/// A 99th percentile that differs by less than this share is not worth words.
const P99_EQUAL_WITHIN: f64 = 0.1;
/// The largest number of jobs that a sentence lists.
const LISTED_MAX: usize = 6;

/// Returns a sentence on who is fastest, one on each group of designs that differs from the first, and one on those that do not.
pub(super) fn sentences(rows: &[Row]) -> Vec<String> {
    let Some(first) = rows.first() else {
        return vec!["No I/O ended while it was measured: there is nothing to compare.".to_owned()];
    };
    if first.designs.len() < 2 {
        return Vec::new();
    }
    let groups = groups(rows);
    let name = |at: usize| first.designs[at].design.as_str();
    let names = |of: &[usize]| listed(&of.iter().map(|at| name(*at)).collect::<Vec<_>>());
    let mut sentences = vec![fastest(rows)];
    for group in &groups[1..] {
        let words = against_first(rows, group[0]);
        sentences.push(format!("{} against {}: {words}.", names(group), name(0)));
    }
    if let [_, same @ ..] = groups[0].as_slice()
        && !same.is_empty()
    {
        sentences.push(format!("{}: no difference from {}.", names(same), name(0)));
    }
    sentences
}

/// Returns the designs in groups. Those of a group do not differ in any row; the first group has the first design.
fn groups(rows: &[Row]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in 0..rows[0].designs.len() {
        let same = |of: usize| rows.iter().all(|row| change(row, of, at).is_none());
        match groups.iter_mut().find(|group| same(group[0])) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

/// Says which design reaches the highest IOPS.
fn fastest(rows: &[Row]) -> String {
    let count = rows[0].designs.len();
    let every = if rows.len() > 1 { " for every job" } else { "" };
    let is_best = |at: &usize| rows.iter().all(|row| row.is_best(*at));
    let best: Vec<_> = (0..count).filter(is_best).collect();
    let all_tails_equal = (0..count).all(|at| rows.iter().all(|row| p99(row, 0, at).is_none()));
    let is_alone = |row: &Row| (0..count).filter(|at| row.is_best(*at)).count() == 1;
    let names: Vec<_> = best.iter().map(|at| rows[0].designs[*at].design.as_str()).collect();
    match best.len() {
        all if all == count && all_tails_equal => {
            format!("All designs are equal{every}: IOPS within 2 %, p99 within 10 %.")
        }
        all if all == count => {
            format!("All designs reach the same IOPS within 2 %{every}; latency differs.")
        }
        1 if rows.iter().all(is_alone) => format!("{} is fastest{every}.", names[0]),
        1 => format!("{} is fastest, or within 2 % of the fastest,{every}.", names[0]),
        0 => {
            let of_row = |row: &Row| format!("{} for {}", best_of(row), row.label);
            let mut winners: Vec<_> = rows.iter().take(LISTED_MAX).map(of_row).collect();
            winners.extend(left_out(rows.len()));
            format!("No design is fastest for every job: {}.", winners.join("; "))
        }
        _ => format!("{} are fastest{every}, within 2 % of each other.", listed(&names)),
    }
}

/// Returns the designs that reach the highest IOPS of `row`.
fn best_of(row: &Row) -> String {
    let (best, others): (Vec<_>, Vec<_>) = (0..row.designs.len()).partition(|at| row.is_best(*at));
    let names = |of: Vec<usize>| {
        listed(&of.into_iter().map(|at| row.designs[at].design.as_str()).collect::<Vec<_>>())
    };
    match (best.len(), others.len()) {
        (_, 0) => "all designs".to_owned(),
        (best_count, 1) if best_count > 1 => format!("all but {}", names(others)),
        _ => names(best),
    }
}

/// Returns `a`, `a and b` or `a, b and c`.
pub(in crate::answer) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// Says what each job gains or pays under the design `at` instead of the first.
fn against_first(rows: &[Row], at: usize) -> String {
    let changes = || rows.iter().map(|row| (row.label.as_str(), change(row, 0, at)));
    let changed = || changes().filter_map(|(label, change)| Some((label, change?)));
    let mut words: Vec<_> = changed()
        .take(LISTED_MAX)
        .map(|(label, change)| if label.is_empty() { change } else { format!("{label} {change}") })
        .collect();
    words.extend(left_out(changed().count()));
    let same: Vec<_> =
        changes().filter(|(_, change)| change.is_none()).map(|(label, _)| label).collect();
    match same.len() {
        0 => {}
        count if count <= LISTED_MAX => words.push(format!("{} no difference", listed(&same))),
        count => words.push(format!("{count} others no difference")),
    }
    words.join("; ")
}

fn left_out(count: usize) -> Option<String> {
    (count > LISTED_MAX).then(|| format!("{} more in the table", count - LISTED_MAX))
}

/// Returns how the row differs under the design `at` from the design `from`; `None` if it does not.
fn change(row: &Row, from: usize, at: usize) -> Option<String> {
    let (first, other) = (&row.designs[from], &row.designs[at]);
    let parts: Vec<_> = [rate(first, other), p99(row, from, at)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns how the rates differ. IOPS and MiB/s are one number unless they disagree.
fn rate(first: &Cell, other: &Cell) -> Option<String> {
    let only = |of: &Cell| Some(format!("has I/Os only under {}", of.design));
    if first.iops <= 0.0 || other.iops <= 0.0 {
        return match (first.iops > 0.0, other.iops > 0.0) {
            (true, false) => only(first),
            (false, true) => only(other),
            _ => None,
        };
    }
    let iops = other.iops / first.iops;
    let bytes = quotient(other.bytes_per_s, first.bytes_per_s).unwrap_or(iops);
    let is_equal = |ratio: f64| (ratio - 1.0).abs() <= EQUAL_WITHIN;
    let disagree = !is_equal(iops / bytes);
    match (is_equal(iops), is_equal(bytes)) {
        (true, true) => None,
        _ if disagree => Some(format!("IOPS {} but MiB/s {}", gain(iops), gain(bytes))),
        _ => Some(gain(iops)),
    }
}

/// Returns the two 99th percentiles if they differ by more than 10 %.
fn p99(row: &Row, from: usize, at: usize) -> Option<String> {
    let (first, other) = (&row.designs[from], &row.designs[at]);
    let ratio = quotient(other.p99_ns, first.p99_ns)?;
    let differs = other.ios > 0 && (ratio - 1.0).abs() > P99_EQUAL_WITHIN;
    differs.then(|| format!("p99 {} -> {}", time(first.p99_ns), time(other.p99_ns)))
}

/// A ratio as `+2 %`, `-87 %` or `3.41 times`.
fn gain(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 2.0 => format!("{} times", digits(ratio)),
        _ => format!("{:+.0} %", 100.0 * (ratio - 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row with these IOPS, MiB/s and p99 (in ms) under each of the designs a, b and c.
    fn row(label: &str, figures: &[(f64, u64, u64)]) -> Row {
        let first = figures[0].0;
        let cells =
            figures.iter().zip(["a", "b", "c"]).map(|(&(iops, mib, p99_ms), design)| Cell {
                design: design.to_owned(),
                ios: 1000,
                iops,
                bytes_per_s: mib << 20,
                mean_ns: 0,
                p50_ns: 0,
                p99_ns: p99_ms * 1_000_000,
                p99_9_ns: 0,
                max_ns: 0,
                ratio: (first > 0.0).then(|| iops / first),
            });
        let (job, direction) = (label.to_owned(), "read".to_owned());
        Row { job, direction, label: label.to_owned(), designs: cells.collect() }
    }

    #[test]
    fn a_job_that_pays_for_another_is_named() {
        let rows = [
            row("log", &[(100.0, 100, 35), (104.0, 104, 35)]),
            row("reader", &[(126.0, 126, 35), (16.0, 16, 139)]),
        ];
        assert_eq!(
            sentences(&rows),
            [
                "No design is fastest for every job: b for log; a for reader.",
                "b against a: log +4 %; reader -87 %, p99 35.0 ms -> 139 ms.",
            ]
        );
    }

    #[test]
    fn iops_and_bytes_that_disagree_are_both_told() {
        let rows = [row("", &[(100.0, 933, 7), (268.0, 614, 7)])];
        assert_eq!(
            sentences(&rows),
            ["b is fastest.", "b against a: IOPS 2.68 times but MiB/s -34 %."]
        );
    }

    #[test]
    fn designs_that_are_equal_are_called_equal() {
        let equal = [row("", &[(100.0, 100, 100), (101.0, 101, 105), (99.0, 99, 100)])];
        assert_eq!(
            sentences(&equal)[0],
            "All designs are equal: IOPS within 2 %, p99 within 10 %."
        );
        assert_eq!(sentences(&equal)[1], "b and c: no difference from a.");
        let tails = [row("", &[(100.0, 100, 100), (101.0, 101, 50), (100.0, 100, 100)])];
        assert_eq!(
            sentences(&tails)[0],
            "All designs reach the same IOPS within 2 %; latency differs."
        );
        assert_eq!(sentences(&tails)[1], "b against a: p99 100 ms -> 50.0 ms.");
        let two = [row("", &[(50.0, 50, 9), (101.0, 101, 9), (100.0, 100, 9)])];
        assert_eq!(sentences(&two)[0], "b and c are fastest, within 2 % of each other.");
        assert_eq!(sentences(&two)[1], "b and c against a: 2.02 times.");
    }

    #[test]
    fn a_tie_is_not_called_fastest_and_equal_designs_share_a_sentence() {
        let rows = [
            row("db", &[(100.0, 100, 9), (103.0, 103, 9), (104.0, 104, 9)]),
            row("backup", &[(100.0, 100, 9), (99.0, 99, 9), (80.0, 80, 9)]),
        ];
        assert_eq!(
            sentences(&rows),
            [
                "b is fastest, or within 2 % of the fastest, for every job.",
                "b against a: db +3 %; backup no difference.",
                "c against a: db +4 %; backup -20 %.",
            ]
        );
        let rows = [row("", &[(100.0, 100, 9), (50.0, 50, 9), (50.5, 50, 9)])];
        assert_eq!(sentences(&rows), ["a is fastest.", "b and c against a: -50 %."]);
    }

    #[test]
    fn nothing_to_compare_says_so() {
        assert_eq!(sentences(&[]).len(), 1);
        assert!(sentences(&[row("", &[(1.0, 1, 1)])]).is_empty());
        let idle = [row("", &[(0.0, 0, 0), (5.0, 5, 1)])];
        assert_eq!(sentences(&idle), ["b is fastest.", "b against a: has I/Os only under b."]);
    }
}
