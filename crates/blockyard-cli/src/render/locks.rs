//! Locks: a table for each kind, with the designs that use it.

use blockyard_sim::answer::number::{digits, exact_percent, nanoseconds, time};
use blockyard_sim::answer::{LockFigures, LockKind};

use super::table::Table;

const COLUMNS: [&str; 5] = ["taken/I/O", "moved", "held", "mean wait", "longest wait"];
const KINDS: [LockKind; 4] =
    [LockKind::Queue, LockKind::Elevator, LockKind::DispatchList, LockKind::TagWords];

/// Returns a table of each kind of lock that a design uses, in lines of at most `width`. The text is empty if there are none.
pub(super) fn text<'a>(
    designs: impl Iterator<Item = (&'a str, &'a [LockFigures])> + Clone,
    width: usize,
) -> String {
    let mut text = String::new();
    for kind in KINDS {
        let of_kind = |(name, locks): (&'a str, &'a [LockFigures])| {
            Some((name, locks.iter().find(|of| of.kind == kind)?))
        };
        let mut rows = designs.clone().filter_map(of_kind).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let mut table = Table::of_numbers("design", COLUMNS);
        for (name, of) in rows {
            table.row([
                name.to_owned(),
                digits(of.per_io),
                exact_percent(of.moved_percent),
                exact_percent(of.held_percent),
                nanoseconds(of.mean_wait_ns),
                time(of.longest_wait_ns),
            ]);
        }
        let name = kind.name();
        text += &format!("\n{}{}:\n{table:width$}", name[..1].to_uppercase(), &name[1..]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_table_of_the_designs_that_use_it() {
        let of = |kind, per_io| LockFigures {
            kind,
            per_io,
            moved_percent: 87.5,
            held_percent: 99.96,
            mean_wait_ns: 8_700.0,
            longest_wait_ns: 123_456,
        };
        let all = [of(LockKind::Elevator, 2.25), of(LockKind::TagWords, 4.0)];
        let words = [of(LockKind::TagWords, 2.0)];
        let designs = [("mq-deadline", &all[..]), ("mq-none", &words[..])];
        let expected = "
The scheduler's lock:
                                                  longest
design       taken/I/O   moved   held  mean wait     wait
mq-deadline       2.25  87.5 %  100 %    8.70 us   123 us

The words of the tag map:
                                                  longest
design       taken/I/O   moved   held  mean wait     wait
mq-deadline       4.00  87.5 %  100 %    8.70 us   123 us
mq-none           2.00  87.5 %  100 %    8.70 us   123 us
";
        assert_eq!(text(designs.into_iter(), 80), expected);
        assert_eq!(text(core::iter::empty(), 80), "");
    }
}
