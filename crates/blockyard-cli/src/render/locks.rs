//! Locks: a table for each kind, with the designs that use it, and what holds it under each.

use blockyard_answer::{HoldFigures, LockFigures, LockKind};
use blockyard_text::number::{digits, exact_percent, nanoseconds, time};

use super::table::Table;

const COLUMNS: [&str; 7] = [
    "taken per I/O",
    "moved",
    "held",
    "average hold",
    "longest hold",
    "average wait",
    "longest wait",
];
const KINDS: [LockKind; 5] = [
    LockKind::Queue,
    LockKind::Elevator,
    LockKind::DispatchList,
    LockKind::InsertionList,
    LockKind::TagWords,
];

/// Returns a table of each kind of lock that a design uses, in lines of at most `width`. The text
/// is empty if there are none.
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
            table.row(row(name.to_owned(), &of.all));
            // What held a lock that cost no time is of no interest.
            let holders = if of.all.longest_hold_ns > 0 { &of.holders[..] } else { &[] };
            for holder in holders {
                table.row(row(format!("  {}", holder.holder.name()), &holder.of));
            }
        }
        let name = kind.name();
        text += &format!("\n{}{}:\n{table:width$}", name[..1].to_uppercase(), &name[1..]);
    }
    text
}

fn row(first: String, of: &HoldFigures) -> [String; 1 + COLUMNS.len()] {
    [
        first,
        digits(of.per_io),
        exact_percent(of.moved_percent),
        exact_percent(of.held_percent),
        nanoseconds(of.mean_hold_ns),
        time(of.longest_hold_ns),
        nanoseconds(of.mean_wait_ns),
        time(of.longest_wait_ns),
    ]
}

#[cfg(test)]
mod tests {
    use blockyard_answer::{HolderFigures, LockHolder};

    use super::*;

    fn used(per_io: f64, mean_hold_ns: f64) -> HoldFigures {
        HoldFigures {
            per_io,
            moved_percent: 87.5,
            held_percent: 99.9,
            mean_hold_ns,
            longest_hold_ns: 1_234,
            mean_wait_ns: 8_700.0,
            longest_wait_ns: 123_456,
        }
    }

    fn lock(kind: LockKind, per_io: f64) -> LockFigures {
        let holder = |holder, per_io| HolderFigures { holder, of: used(per_io, 100.0) };
        let holders = vec![holder(LockHolder::Insert, 0.25), holder(LockHolder::Complete, 2.0)];
        LockFigures { kind, all: used(per_io, 250.0), holders }
    }

    /// A design with a name of 19 letters fits in 80 columns.
    #[test]
    fn each_kind_has_a_table_of_the_designs_that_use_it_and_of_what_holds_it() {
        let all = [lock(LockKind::Elevator, 2.25), lock(LockKind::TagWords, 4.0)];
        let mut free = lock(LockKind::TagWords, 2.0);
        free.all.longest_hold_ns = 0;
        let words = [free];
        let designs = [("mq-deadline-batched", &all[..]), ("mq-none", &words[..])];
        let expected = "
The scheduler's lock:
                       taken                  average  longest  average  longest
design               per I/O   moved    held     hold     hold     wait     wait
mq-deadline-batched     2.25  87.5 %  99.9 %   250 ns  1.23 us  8.70 us   123 us
  insert                0.25  87.5 %  99.9 %   100 ns  1.23 us  8.70 us   123 us
  complete              2.00  87.5 %  99.9 %   100 ns  1.23 us  8.70 us   123 us

The words of the tag map:
                       taken                  average  longest  average  longest
design               per I/O   moved    held     hold     hold     wait     wait
mq-deadline-batched     4.00  87.5 %  99.9 %   250 ns  1.23 us  8.70 us   123 us
  insert                0.25  87.5 %  99.9 %   100 ns  1.23 us  8.70 us   123 us
  complete              2.00  87.5 %  99.9 %   100 ns  1.23 us  8.70 us   123 us
mq-none                 2.00  87.5 %  99.9 %   250 ns     0 ns  8.70 us   123 us
";
        assert_eq!(text(designs.into_iter(), 80), expected);
        assert_eq!(text(designs.into_iter(), 120), expected);
        assert_eq!(text(core::iter::empty(), 80), "");
    }
}
