//! The verdict in sentences.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::judge::{ComparedFigure, Evidence, Judged};
use super::{Cell, Row, quotient};
use crate::equality::EQUAL_WITHIN;
use blockyard_sim::measure::P99_IOS_MIN;
use blockyard_text::number::{approximate, digits, nanoseconds, time};

/// The largest number of jobs or designs that a sentence lists.
pub(crate) const LISTED_MAX: usize = 6;
/// The largest number of sentences of one kind on designs: a sweep may have 64 of them.
pub(crate) const SENTENCES_MAX: usize = 12;
/// What every sentence on the syncs of a job has.
const OF_SYNCS: &str = " waits for its syncs: ";
/// The verdict on rows without an I/O.
const NOTHING: &str = "No I/O completed during the measurement: there is nothing to compare.";

/// Returns the commit latency of each job that syncs, a sentence on the fastest design, one on each
/// group of designs that differs from the first, and one on those that do not.
pub(super) fn sentences(evidence: Evidence<'_>) -> Vec<String> {
    let rows = evidence.rows;
    let any_io = rows.iter().flat_map(|row| &row.designs).any(|cell| cell.ios > 0);
    let Some(first) = rows.first().filter(|_| any_io) else { return vec![NOTHING.to_owned()] };
    let mut sentences: Vec<_> = rows.iter().filter_map(commits).collect();
    if first.designs.len() < 2 {
        return sentences;
    }
    let groups = groups(evidence);
    let baseline = names_of(first, &[0]);
    sentences.push(fastest(evidence));
    for group in groups[1..].iter().take(SENTENCES_MAX) {
        let words = against_first(evidence, group[0]);
        sentences.push(format!("{} against {baseline}: {words}.", names_of(first, group)));
    }
    if groups.len() - 1 > SENTENCES_MAX {
        let more = groups.len() - 1 - SENTENCES_MAX;
        sentences.push(format!("{more} more differ from {baseline}: see the table."));
    }
    if let [_, same @ ..] = groups[0].as_slice()
        && !same.is_empty()
    {
        let rows = || 0..rows.len();
        let is_equal = same.iter().all(|at| rows().all(|row| is_same(evidence, row, *at)));
        let known = if is_equal { "" } else { " known" };
        let same = names_of(first, same);
        sentences.push(format!("{same}: no{known} difference from {baseline}."));
    }
    sentences
}

/// The names of designs in a row, listed.
fn names_of(first: &Row, of: &[usize]) -> String {
    listed(&of.iter().map(|at| first.designs[*at].design.as_str()).collect::<Vec<_>>())
}

/// Whether the design `at` is known to do the same as the first for the row.
fn is_same(evidence: Evidence<'_>, row: usize, at: usize) -> bool {
    let is_equal = evidence.latency(row, 0, at) == Judged::Equal;
    is_equal && change(evidence, row, 0, at).is_none() && !evidence.untested.contains(&at)
}

/// Says how long the syncs of a job take under each design; `None` if the row is not one of syncs,
/// or none ended.
fn commits(row: &Row) -> Option<String> {
    debug_assert!(!row.designs.is_empty(), "a row has designs");
    let ended: Vec<_> = row.designs.iter().filter(|cell| cell.ios > 0).collect();
    if !row.is_sync() || ended.is_empty() {
        return None;
    }
    let has_p99 = ended.iter().all(|cell| cell.has_p99());
    let figure = if has_p99 { "p99" } else { "median" };
    let of_cell = |cell: &&Cell| {
        let [low, high] = cell.p99_within_ns.map(time);
        let latency = match has_p99 {
            true => format!("{} ({low} to {high})", time(cell.p99_ns)),
            false => time(cell.p50_ns),
        };
        if row.designs.len() == 1 { latency } else { format!("{latency} under {}", cell.design) }
    };
    let each: Vec<_> = ended.iter().map(of_cell).collect();
    let job = row.label.strip_suffix(" sync").unwrap_or(&row.job);
    Some(format!("{job}{OF_SYNCS}{figure} {}.", each.join(", ")))
}

/// Whether `sentence` names the fastest design: of all jobs, or of each.
pub(super) fn is_of_fastest(sentence: &str) -> bool {
    [" is fastest", " are fastest"].iter().any(|words| sentence.contains(words))
}

/// Returns the designs in groups. Those of a group do not differ in any row; the first group has
/// the first design.
fn groups(evidence: Evidence<'_>) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in 0..evidence.rows[0].designs.len() {
        match groups.iter_mut().find(|group| {
            (0..evidence.rows.len()).all(|row| change(evidence, row, group[0], at).is_none())
        }) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

/// Says which design reaches the highest IOPS.
fn fastest(evidence: Evidence<'_>) -> String {
    debug_assert!(!evidence.rows.is_empty(), "a verdict on rows");
    let rows: Vec<_> =
        (0..evidence.rows.len()).filter(|row| !evidence.rows[*row].is_sync()).collect();
    let designs = &evidence.rows[0].designs;
    let every = if rows.len() > 1 { " for every job" } else { "" };
    let best: Vec<_> = (0..designs.len())
        .filter(|at| rows.iter().all(|row| is_best(evidence, *row, *at)))
        .collect();
    let is_alone = |row: &usize| best_of(evidence, *row).len() == 1;
    let names: Vec<_> = best.iter().map(|at| designs[*at].design.as_str()).collect();
    let are_equal = best.iter().all(|at| {
        rows.iter().all(|row| matches!(evidence.rate(*row, best[0], *at), Judged::Equal))
    });
    match best.len() {
        all if all == designs.len() && are_equal => all_equal(evidence, every),
        all if all == designs.len() && rows.len() > 1 => {
            "No design is known to be faster for any job.".to_owned()
        }
        all if all == designs.len() => "No design is known to be faster.".to_owned(),
        1 if rows.iter().all(is_alone) => format!("{} is fastest{every}.", names[0]),
        1 if !rows.iter().all(|row| is_tie(evidence, *row)) => {
            format!("{} is fastest, or not known to be slower,{every}.", names[0])
        }
        1 => format!("{} is fastest, or within 2 % of the fastest,{every}.", names[0]),
        0 => {
            let of_row = |row: &usize| {
                format!("{} for {}", winners(evidence, *row), evidence.rows[*row].label)
            };
            let mut winners: Vec<_> = rows.iter().take(LISTED_MAX).map(of_row).collect();
            winners.extend(left_out(rows.len()));
            format!("No design is fastest for every job: {}.", winners.join("; "))
        }
        _ if are_equal => {
            format!("{} are fastest{every}, within 2 % of each other.", listed(&names))
        }
        _ => format!("{} are fastest{every}; their order is undecided.", listed(&names)),
    }
}

/// The verdict on designs whose IOPS are equal.
fn all_equal(evidence: Evidence<'_>, every: &str) -> String {
    let designs = evidence.rows[0].designs.len();
    let pairs = (0..evidence.rows.len()).flat_map(|row| (1..designs).map(move |at| (row, at)));
    let tails: Vec<_> = pairs.map(|(row, at)| evidence.latency(row, 0, at)).collect();
    let words = if tails.iter().any(|tail| matches!(tail, Judged::Differs(_))) {
        "; latency differs"
    } else if tails.iter().all(|tail| *tail == Judged::Equal) {
        let known = if evidence.untested.is_empty() { "" } else { "; other values are not tested" };
        return format!("All designs are equal{every}: IOPS within 2 %, p99 within 10 %{known}.");
    } else {
        "; whether p99 differs is undecided"
    };
    format!("All designs reach the same IOPS within 2 %{every}{words}.")
}

/// Whether no design is faster for the row than the design `at`.
fn is_best(evidence: Evidence<'_>, row: usize, at: usize) -> bool {
    let designs = &evidence.rows[row].designs;
    debug_assert!(at < designs.len(), "design {at} of {}", designs.len());
    (0..designs.len()).all(
        |other| !matches!(evidence.rate(row, other, at), Judged::Differs(ratio) if ratio < 1.0),
    )
}

/// Whether the designs than which none is faster for the row are known to be equal.
fn is_tie(evidence: Evidence<'_>, row: usize) -> bool {
    let best = best_of(evidence, row);
    best.iter().all(|at| evidence.rate(row, best[0], *at) == Judged::Equal)
}

/// Returns the designs than which none is faster for the row.
fn best_of(evidence: Evidence<'_>, row: usize) -> Vec<usize> {
    let designs = 0..evidence.rows[row].designs.len();
    designs.filter(|at| is_best(evidence, row, *at)).collect()
}

/// Names the designs that reach the highest IOPS of a row.
fn winners(evidence: Evidence<'_>, row: usize) -> String {
    debug_assert!(row < evidence.rows.len(), "row {row} of {}", evidence.rows.len());
    let best = best_of(evidence, row);
    let designs = &evidence.rows[row].designs;
    let name = |at: &usize| designs[*at].design.as_str();
    let others: Vec<_> =
        (0..designs.len()).filter(|at| !best.contains(at)).map(|at| name(&at)).collect();
    if !is_tie(evidence, row) {
        return format!("undecided ({})", listed(&best.iter().map(name).collect::<Vec<_>>()));
    }
    match (best.len(), others.len()) {
        (_, 0) => "all designs".to_owned(),
        (best_count, 1) if best_count > 1 => format!("all but {}", listed(&others)),
        _ => listed(&best.iter().map(name).collect::<Vec<_>>()),
    }
}

/// Returns `a`, `a and b` or `a, b and c`.
pub(crate) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// Says what each job gains or pays under the design `at` instead of the first.
fn against_first(evidence: Evidence<'_>, at: usize) -> String {
    let changed: Vec<_> = (0..evidence.rows.len())
        .filter_map(|row| Some((&evidence.rows[row].label, change(evidence, row, 0, at)?)))
        .collect();
    let unchanged = (0..evidence.rows.len()).filter(|row| change(evidence, *row, 0, at).is_none());
    let is_equal = unchanged.clone().all(|row| is_same(evidence, row, at));
    let no_difference = if is_equal { "no difference" } else { "no known difference" };
    let left_out = left_out(changed.len());
    let mut words: Vec<_> = changed
        .into_iter()
        .take(LISTED_MAX)
        .map(|(label, change)| if label.is_empty() { change } else { format!("{label} {change}") })
        .collect();
    words.extend(left_out);
    let same: Vec<_> = unchanged.map(|row| evidence.rows[row].label.as_str()).collect();
    match same.len() {
        0 => {}
        count if count <= LISTED_MAX => words.push(format!("{} {no_difference}", listed(&same))),
        count => words.push(format!("{count} others {no_difference}")),
    }
    words.join("; ")
}

fn left_out(count: usize) -> Option<String> {
    (count > LISTED_MAX).then(|| format!("{} more in the table", count - LISTED_MAX))
}

/// Returns how the row differs under the design `at` from the design `from`; `None` if it does not.
/// Syncs differ by their latency alone: their rate is that of the writes.
fn change(evidence: Evidence<'_>, row: usize, from: usize, at: usize) -> Option<String> {
    debug_assert!(row < evidence.rows.len(), "row {row} of {}", evidence.rows.len());
    let rate = || rate(evidence, row, from, at);
    let rate = if evidence.rows[row].is_sync() { None } else { rate() };
    let parts: Vec<_> = [rate, latency(evidence, row, from, at)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns how the rates differ. IOPS and MiB/s are one number unless they disagree.
fn rate(evidence: Evidence<'_>, row: usize, from: usize, at: usize) -> Option<String> {
    let [first, other] = [from, at].map(|at| &evidence.rows[row].designs[at]);
    if first.iops <= 0.0 || other.iops <= 0.0 {
        return match (first.iops > 0.0, other.iops > 0.0) {
            (true, false) => Some(format!("has I/Os only under {}", first.design)),
            (false, true) => Some(format!("has I/Os only under {}", other.design)),
            _ => None,
        };
    }
    let iops = match evidence.rate(row, from, at) {
        Judged::Undecided(interval) => {
            let [low, high] = [interval.low, interval.high];
            return Some(format!("IOPS undecided ({low:.3} to {high:.3} times)"));
        }
        Judged::Differs(ratio) => Some(ratio),
        Judged::Equal | Judged::Unknown => None,
    };
    let ratio = other.iops / first.iops;
    let bytes = quotient(other.bytes_per_s, first.bytes_per_s).unwrap_or(ratio);
    let is_same_size = (ratio / bytes - 1.0).abs() <= EQUAL_WITHIN;
    match iops {
        _ if !is_same_size => Some(format!("IOPS {} but MiB/s {}", gain(ratio), gain(bytes))),
        Some(iops) => Some(gain(iops)),
        None => None,
    }
}

/// Returns the two 99th percentiles, or the medians of few syncs, if they are known to differ by
/// more than 10 %. Where the answered run is an exception among the seeds, it has the mean ratio
/// instead.
fn latency(evidence: Evidence<'_>, row: usize, from: usize, at: usize) -> Option<String> {
    debug_assert!(
        from.max(at) < evidence.rows[row].designs.len(),
        "designs {from} and {at} of {}",
        evidence.rows[row].designs.len()
    );
    let [first, other] = [from, at].map(|at| &evidence.rows[row].designs[at]);
    let Judged::Differs(ratio) = evidence.latency(row, from, at) else { return None };
    let (name, ns): (_, fn(&Cell) -> u64) = match evidence.latency_figure(row, from, at)? {
        ComparedFigure::Median => ("median", |cell| cell.p50_ns),
        ComparedFigure::P99 | ComparedFigure::Iops => ("p99", |cell| cell.p99_ns),
    };
    let [first, other] = [ns(first), ns(other)];
    if (other > first) == (ratio > 1.0) {
        return Some(format!("{name} {} -> {}", time(first), time(other)));
    }
    Some(format!("{name} {} times on average", digits(ratio)))
}

/// A ratio as `+2 %`, `-87 %` or `3.41 times`.
fn gain(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 2.0 => format!("{} times", digits(ratio)),
        _ => format!("{:+.0} %", 100.0 * (ratio - 1.0)),
    }
}

/// Says which 99th percentiles were not compared, and how long their jobs must run, and which are
/// undecided.
pub(super) fn undecided(evidence: Evidence<'_>) -> Vec<String> {
    let mut sentences: Vec<_> = too_few(evidence).into_iter().collect();
    let mut unsure = Vec::new();
    for (row, of) in evidence.rows.iter().enumerate() {
        for (at, cell) in of.designs.iter().enumerate().skip(1) {
            if let Judged::Undecided(interval) = evidence.latency(row, 0, at) {
                let [low, high] = [interval.low.max(0.0), interval.high].map(digits);
                let job =
                    if of.label.is_empty() { String::new() } else { format!("{}, ", of.label) };
                unsure.push(format!("{job}{} {low} to {high} times", cell.design));
            }
        }
    }
    if let Some(first) = evidence.rows.first().filter(|_| !unsure.is_empty()) {
        let others = left_out(unsure.len());
        let shown: Vec<_> = unsure.into_iter().take(LISTED_MAX).chain(others).collect();
        let first = &first.designs[0].design;
        let more = if evidence.seeds.is_empty() { " --seeds 8 decides more." } else { "" };
        sentences.push(format!("p99 is undecided against {first}: {}.{more}", shown.join("; ")));
    }
    sentences
}

/// Says which rows have too few I/Os for their p99, and how long the job must run to have enough
/// under each design.
fn too_few(evidence: Evidence<'_>) -> Option<String> {
    let short = |at: usize| {
        let row = &evidence.rows[at];
        let alike = |other: usize| evidence.latency(at, 0, other) == Judged::Equal;
        // Of a single design, only syncs are named by their p99.
        let is_named = if row.designs.len() == 1 { row.is_sync() } else { true };
        if !is_named || (row.designs.len() > 1 && (1..row.designs.len()).all(alike)) {
            return None;
        }
        let with_io = row.designs.iter().filter(|cell| cell.ios > 0);
        let fewest = with_io.min_by_key(|cell| cell.ios)?;
        // A lone sync is that of the end, and a longer run has no second one.
        if fewest.has_p99() || (row.is_sync() && fewest.ios == 1) {
            return None;
        }
        // 320 I/Os at 32 IOPS: 1,000 take 31.3 s.
        let needed = format!(
            "{} in {}; {P99_IOS_MIN} take {}",
            fewest.ios,
            nanoseconds(1e9 * approximate(fewest.ios) / fewest.iops),
            nanoseconds(1e9 * approximate(P99_IOS_MIN) / fewest.iops)
        );
        let job = if row.label.is_empty() { String::new() } else { format!("{} ", row.label) };
        Some(format!("{job}({needed})"))
    };
    let all: Vec<_> = (0..evidence.rows.len()).filter_map(short).collect();
    if all.is_empty() {
        return None;
    }
    let more = left_out(all.len());
    let shown: Vec<_> = all.into_iter().take(LISTED_MAX).chain(more).collect();
    Some(format!("Too few I/Os to compare p99: {}.", shown.join(", ")))
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
                p99_within_ns: [p99_ms * 1_000_000; 2],
                p99_9_ns: 0,
                max_ns: 0,
                ratio: (first > 0.0).then(|| iops / first),
                differs: false,
            });
        let job = label.to_owned();
        let direction = "read".to_owned();
        Row { job, direction, label: label.to_owned(), designs: cells.collect() }
    }

    fn told(rows: &[Row]) -> Vec<String> {
        sentences(Evidence { rows, seeds: &[], untested: &[] })
    }

    #[test]
    fn a_job_that_pays_for_another_is_named() {
        let rows = [
            row("log", &[(100.0, 100, 35), (104.0, 104, 35)]),
            row("reader", &[(126.0, 126, 35), (16.0, 16, 139)]),
        ];
        assert_eq!(
            told(&rows),
            [
                "No design is fastest for every job: b for log; a for reader.",
                "b against a: log +4 %; reader -87 %, p99 35.0 ms -> 139 ms.",
            ]
        );
    }

    /// Equal runs were "no difference" also where the certainty said "not tested".
    #[test]
    fn equality_that_no_reading_tests_is_not_known() {
        let rows = [row("", &[(100.0, 100, 100), (101.0, 101, 105), (99.0, 99, 100)])];
        let tested = Evidence { rows: &rows, seeds: &[], untested: &[] };
        let equal = "All designs are equal: IOPS within 2 %, p99 within 10 %";
        assert_eq!(sentences(tested), [&format!("{equal}."), "b and c: no difference from a."]);
        let untested = format!("{equal}; other values are not tested.");
        assert_eq!(
            sentences(Evidence { untested: &[2], ..tested }),
            [&untested, "b and c: no known difference from a."]
        );
        let rows =
            [row("x", &[(100.0, 100, 9), (50.0, 50, 9)]), row("y", &[(1.0, 1, 9), (1.0, 1, 9)])];
        let of_job = sentences(Evidence { rows: &rows, seeds: &[], untested: &[1] });
        assert_eq!(of_job[1], "b against a: x -50 %; y no known difference.");
    }

    #[test]
    fn iops_and_bytes_that_disagree_are_both_told() {
        let rows = [row("", &[(100.0, 933, 7), (268.0, 614, 7)])];
        assert_eq!(told(&rows), ["b is fastest.", "b against a: IOPS 2.68 times but MiB/s -34 %."]);
    }

    #[test]
    fn designs_that_are_equal_are_called_equal() {
        let equal = [row("", &[(100.0, 100, 100), (101.0, 101, 105), (99.0, 99, 100)])];
        assert_eq!(told(&equal)[0], "All designs are equal: IOPS within 2 %, p99 within 10 %.");
        assert_eq!(told(&equal)[1], "b and c: no difference from a.");
        let tails = [row("", &[(100.0, 100, 100), (101.0, 101, 50), (100.0, 100, 100)])];
        assert_eq!(told(&tails)[0], "All designs reach the same IOPS within 2 %; latency differs.");
        assert_eq!(told(&tails)[1], "b against a: p99 100 ms -> 50.0 ms.");
        let two = [row("", &[(50.0, 50, 9), (101.0, 101, 9), (100.0, 100, 9)])];
        assert_eq!(told(&two)[0], "b and c are fastest, within 2 % of each other.");
        assert_eq!(told(&two)[1], "b and c against a: 2.02 times.");
    }

    #[test]
    fn a_tie_is_not_called_fastest_and_equal_designs_share_a_sentence() {
        let rows = [
            row("db", &[(100.0, 100, 9), (103.0, 103, 9), (104.0, 104, 9)]),
            row("backup", &[(100.0, 100, 9), (99.0, 99, 9), (80.0, 80, 9)]),
        ];
        assert_eq!(
            told(&rows),
            [
                "b is fastest, or within 2 % of the fastest, for every job.",
                "b against a: db +3 %; backup no difference.",
                "c against a: db +4 %; backup -20 %.",
            ]
        );
        let rows = [row("", &[(100.0, 100, 9), (50.0, 50, 9), (50.5, 50, 9)])];
        assert_eq!(told(&rows), ["a is fastest.", "b and c against a: -50 %."]);
    }

    #[test]
    fn nothing_to_compare_says_so() {
        assert_eq!(told(&[]).len(), 1);
        assert!(told(&[row("", &[(1.0, 1, 1)])]).is_empty());
        let idle = [row("", &[(0.0, 0, 0), (5.0, 5, 1)])];
        assert_eq!(told(&idle), ["b is fastest.", "b against a: has I/Os only under b."]);
    }

    /// A row of syncs with these numbers and median and 99th percentile in ms.
    fn syncs(figures: &[(u64, u64)]) -> Row {
        let row = row("log sync", &figures.iter().map(|(_, ms)| (5.0, 0, *ms)).collect::<Vec<_>>());
        let designs = row.designs.into_iter().zip(figures);
        let cell = |(cell, (ios, ms)): (Cell, &(u64, u64))| Cell {
            ios: *ios,
            p50_ns: ms * 500_000,
            ..cell
        };
        let designs = designs.map(cell).collect();
        Row { job: "log".to_owned(), direction: "sync".to_owned(), designs, ..row }
    }

    /// A job that syncs waits for its syncs. The first lines said nothing of them, and compared
    /// designs by the latency of writes.
    #[test]
    fn the_latency_of_syncs_comes_first() {
        let writes = row("log write", &[(5.0, 1, 1), (5.0, 1, 1)]);
        let rows = [syncs(&[(2000, 173), (2000, 417)]), writes.clone()];
        assert_eq!(
            told(&rows),
            [
                "log waits for its syncs: p99 173 ms (173 ms to 173 ms) under a, 417 ms (417 ms to 417 ms) under b.",
                "All designs reach the same IOPS within 2 %; latency differs.",
                "b against a: log sync p99 173 ms -> 417 ms; log write no difference.",
            ]
        );
        let few = [syncs(&[(58, 173), (24, 417)]), writes];
        assert_eq!(
            told(&few)[0],
            "log waits for its syncs: median 86.5 ms under a, 208 ms under b."
        );
        assert!(!told(&few).concat().contains("p99 173"), "{:?}", told(&few));
    }

    /// The answer about an SD card named the p99 of 320 I/Os, which another
    /// seed reversed.
    #[test]
    fn a_p99_of_few_is_not_compared_and_the_run_time_that_it_needs_is_named() {
        let mut few = row("log", &[(32.0, 2, 2), (32.0, 2, 9)]);
        few.designs.iter_mut().for_each(|cell| cell.ios = 320);
        let rows = [few, row("lookup", &[(1880.0, 7, 2), (1880.0, 7, 2)])];
        let evidence = Evidence { rows: &rows, seeds: &[], untested: &[] };
        assert!(!sentences(evidence).concat().contains("p99 2"), "{:?}", sentences(evidence));
        assert_eq!(
            undecided(evidence),
            ["Too few I/Os to compare p99: log (320 in 10.0 s; 1000 take 31.2 s)."]
        );
    }

    fn seed_rows(iops: f64, p99: u64) -> Vec<Row> {
        vec![row("", &[(100.0, 100, 10), (iops, 100, p99)])]
    }

    fn told_of(rows: &[Row], seeds: &[Vec<Row>]) -> Vec<String> {
        let evidence = Evidence { rows, seeds, untested: &[] };
        [sentences(evidence), undecided(evidence)].concat()
    }

    /// A difference that other seeds do not confirm is not claimed.
    #[test]
    fn a_difference_that_other_seeds_reverse_is_undecided() {
        let rows = [row("", &[(100.0, 100, 10), (104.0, 104, 20)])];
        let confirmed = [seed_rows(104.1, 21), seed_rows(103.9, 20), seed_rows(104.0, 19)];
        assert_eq!(
            told_of(&rows, &confirmed),
            ["b is fastest.", "b against a: +4 %, p99 10.0 ms -> 20.0 ms."]
        );
        let reversed = [seed_rows(96.0, 5), seed_rows(104.0, 22), seed_rows(97.0, 8)];
        let told = told_of(&rows, &reversed);
        assert_eq!(told[0], "No design is known to be faster.");
        assert!(told[1].starts_with("b against a: IOPS undecided ("), "{told:?}");
        assert!(told[2].starts_with("p99 is undecided against a: b "), "{told:?}");
    }

    #[test]
    fn a_run_without_an_io_has_no_equal_designs() {
        let mut idle = row("", &[(0.0, 0, 0), (0.0, 0, 0)]);
        idle.designs.iter_mut().for_each(|cell| cell.ios = 0);
        assert_eq!(told(&[idle]), [NOTHING]);
    }
}
