//! The parts of the time of an I/O on persistent memory.

use blockyard_answer::PmemFigures;
use blockyard_text::number::{digits, exact_percent, nanoseconds};

use super::table::Table;

const COLUMNS: [&str; 9] =
    ["per I/O", "path", "copy", "readers", "locks", "log", "map", "fences", "channels"];
const COUNTS: [&str; 5] = ["fences", "lines written back", "lines fetched", "scans", "lock wait"];

/// Returns the tables of each design. The text is empty if there are none.
pub(super) fn text(rows: &[(&str, &PmemFigures)], width: usize) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut parts = Table::of_numbers("design", COLUMNS);
    let mut counts = Table::of_numbers("design", COUNTS);
    for (name, figures) in rows {
        let name = (*name).to_owned();
        let of = figures.percent;
        let shares = [of.path, of.copy, of.tracking, of.locks, of.log, of.map, of.fences];
        let shares = shares.into_iter().chain([figures.channels_percent]).map(exact_percent);
        parts.row([name.clone(), nanoseconds(figures.io_ns)].into_iter().chain(shares));
        counts.row([
            name,
            digits(figures.fences),
            digits(figures.write_backs),
            digits(figures.transfers),
            digits(figures.scans),
            nanoseconds(figures.lock_wait_ns),
        ]);
    }
    format!(
        "\nCPU time per I/O and its parts, utilisation of the memory channels:\n{parts:width$}\nCounts \
         per I/O:\n{counts:width$}"
    )
}

#[cfg(test)]
mod tests {
    use blockyard_answer::PmemParts;

    use super::*;

    #[test]
    fn designs_are_shown_below_each_other() {
        let parts = PmemParts {
            path: 52.2,
            copy: 35.8,
            tracking: 5.6,
            locks: 0.6,
            log: 0.0,
            map: 5.97,
            fences: 0.0,
        };
        let figures = PmemFigures {
            io_ns: 1_340.0,
            parts_ns: PmemParts::default(),
            percent: parts,
            fences: 2.0,
            write_backs: 3.0,
            scans: 0.5,
            transfers: 12.34,
            lock_wait_ns: 7.4,
            channels_percent: 97.6,
        };
        let expected = "
CPU time per I/O and its parts, utilisation of the memory channels:
design  per I/O    path    copy  readers   locks     log     map  fences  channels
btt     1.34 us  52.2 %  35.8 %   5.60 %  0.60 %  0.00 %  5.97 %  0.00 %    97.6 %

Counts per I/O:
                       lines    lines
design  fences  written back  fetched  scans  lock wait
btt       2.00          3.00     12.3   0.50       7 ns
";
        assert_eq!(text(&[("btt", &figures)], 100), expected);
        assert_eq!(text(&[], 100), "");
    }
}
