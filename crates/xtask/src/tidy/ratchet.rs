//! The table of violations that are still allowed, which may only fall.
//!
//! `allowed.txt` has a row for each part of the repository that breaks a rule of style. A test
//! compares it with the source: a part may not have more violations than its row says, nor fewer,
//! so that the row follows.

use crate::console::{Outcome, fail};
use crate::tidy::style::{Rule, Violation};
use crate::tidy::tree;
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// The number of rules.
const RULES: usize = Rule::ALL.len();
/// The width of a part's name in the table.
const NAME_WIDTH: usize = 20;
/// The width of a number in the table.
const NUMBER_WIDTH: usize = 11;

/// The numbers of violations by part, in the order of [`Rule::ALL`]. Parts without violations have
/// no row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(BTreeMap<String, [usize; RULES]>);

impl Table {
    /// Counts violations.
    #[must_use]
    pub fn count(violations: &[Violation]) -> Self {
        let mut table = Self::default();
        for violation in violations {
            let column = Rule::ALL.iter().position(|rule| *rule == violation.rule);
            let row = table.0.entry(violation.part.clone()).or_default();
            row[column.expect("rule of the list")] += 1;
        }
        table
    }

    /// Reads the text of a table. An error is the first line that is none.
    ///
    /// # Errors
    ///
    /// A line without a name, or without a number for each rule.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table = Self::default();
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        // The first line is the head.
        for line in lines.skip(1) {
            let (part, numbers) = line.split_once(' ').ok_or(line)?;
            let numbers = numbers.split_whitespace().map(str::parse);
            let numbers: Vec<usize> = numbers.collect::<Result<_, _>>().map_err(|_| line)?;
            let row = numbers.try_into().map_err(|_| line)?;
            table.0.insert(part.to_owned(), row);
        }
        Ok(table)
    }

    /// Reads the table of the repository.
    ///
    /// # Panics
    ///
    /// Panics if the file is missing or malformed.
    #[must_use]
    pub fn allowed() -> Self {
        let text = fs::read_to_string(path()).expect("table of allowed violations");
        Self::parse(&text).expect("line of the table of allowed violations")
    }

    fn number(&self, part: &str, column: usize) -> usize {
        self.0.get(part).map_or(0, |row| row[column])
    }

    fn sum(&self, column: usize) -> usize {
        self.0.values().map(|row| row[column]).sum()
    }

    /// The differences of today's numbers from those in this table.
    #[must_use]
    pub fn differences(&self, today: &Self) -> Vec<String> {
        let parts: BTreeSet<&String> = self.0.keys().chain(today.0.keys()).collect();
        let mut found = vec![];
        for part in parts {
            for (column, rule) in Rule::ALL.iter().enumerate() {
                let allowed = self.number(part, column);
                let number = today.number(part, column);
                if number != allowed {
                    found.push(format!("{part}, {}: {number}, and {allowed} allowed", rule.name()));
                }
            }
        }
        found
    }

    /// The rules of which today's numbers have more violations in all parts together. A violation
    /// that moves to another part with its code is no more.
    #[must_use]
    pub(crate) fn risen(&self, today: &Self) -> Vec<String> {
        let mut found = vec![];
        for (column, rule) in Rule::ALL.iter().enumerate() {
            let allowed = self.sum(column);
            let number = today.sum(column);
            if number > allowed {
                found.push(format!("{}: {number} in all, and {allowed} allowed", rule.name()));
            }
        }
        found
    }

    /// Replaces the table of the repository by `self`.
    ///
    /// # Errors
    ///
    /// If a rule is broken more often than the table allows.
    ///
    /// # Panics
    ///
    /// Panics if the file cannot be read or written.
    pub fn lower(&self) -> Outcome {
        let risen = Self::allowed().risen(self);
        if !risen.is_empty() {
            return fail(format!("the table may only fall: {}", risen.join("; ")));
        }
        fs::write(path(), self.to_string()).expect("table of allowed violations");
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Violations of the rules of style that remain: `./ci.sh tidy style` lists them."
        )?;
        writeln!(
            f,
            "# The numbers may only fall: `./ci.sh tidy lower` writes them after a change."
        )?;
        write!(f, "{:NAME_WIDTH$}", "part")?;
        for rule in Rule::ALL {
            write!(f, "{:>NUMBER_WIDTH$}", rule.name())?;
        }
        writeln!(f)?;
        for (part, row) in &self.0 {
            write!(f, "{part:NAME_WIDTH$}")?;
            for number in row {
                write!(f, "{number:>NUMBER_WIDTH$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The file of the table.
fn path() -> PathBuf {
    tree::root().join("crates/xtask/allowed.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, usize)]) -> Table {
        let mut table = Table::default();
        for (part, functions) in rows {
            let mut row = [0; RULES];
            row[0] = *functions;
            table.0.insert((*part).to_owned(), row);
        }
        table
    }

    #[test]
    fn a_table_is_read_as_it_is_written() {
        let written = table(&[("one", 3), ("two", 1)]);
        assert_eq!(Table::parse(&written.to_string()), Ok(written));
        assert_eq!(Table::parse("part functions\none 1\n"), Err("one 1".into()));
    }

    #[test]
    fn more_and_fewer_are_differences() {
        let allowed = table(&[("one", 3), ("two", 1)]);
        assert_eq!(allowed.differences(&allowed), [""; 0]);
        let today = table(&[("one", 2), ("three", 2)]);
        let expected = [
            "one, functions: 2, and 3 allowed",
            "three, functions: 2, and 0 allowed",
            "two, functions: 0, and 1 allowed",
        ];
        assert_eq!(allowed.differences(&today), expected);
    }

    #[test]
    fn a_violation_may_move_to_another_part_but_their_sum_may_not_rise() {
        let allowed = table(&[("one", 3)]);
        assert_eq!(allowed.risen(&table(&[("two", 3)])), [""; 0]);
        assert_eq!(
            allowed.risen(&table(&[("one", 2), ("two", 2)])),
            ["functions: 4 in all, and 3 allowed"]
        );
    }
}
