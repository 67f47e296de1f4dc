//! Faults in the text of a file, each behind a switch. Lines keep their numbers.

use crate::mutants::fault::Fault;
use core::cmp::Reverse;
use core::ops::Range;

/// Where the text of a fault stands in the file in which it was planted.
pub struct Planted {
    /// The fault's number.
    pub number: usize,
    /// The bytes of the switch and of the code with the fault.
    pub(crate) added: Range<usize>,
    /// The bytes of `added` and of the original code.
    pub whole: Range<usize>,
    /// Whether the code is a statement, which is missing with the fault.
    pub(crate) is_statement: bool,
}

/// Returns `text` with `faults` and their numbers planted.
#[must_use]
pub fn plant(text: &str, faults: &[(usize, &Fault)]) -> (String, Vec<Planted>) {
    let mut edits = vec![];
    for (at, (number, fault)) in faults.iter().enumerate() {
        let Range { start, end } = fault.bytes;
        let switch = format!("crate::blockyard_fault::on({number})");
        let (open, close) = if fault.after.is_empty() {
            (format!("if !{switch} {{ "), " }")
        } else {
            (format!("(if {switch} {{ ({}) }} else {{ ", fault.after), " })")
        };
        // Between neighbours, one ends before the next begins; of nested ones, the outer begins
        // first.
        edits.push(((start, 1, Reverse(end), Reverse(at)), at, open));
        edits.push(((end, 0, Reverse(start), Reverse(faults.len() - at)), at, close.into()));
    }
    edits.sort();
    let mut result = String::new();
    let mut planted: Vec<Planted> = faults
        .iter()
        .map(|(number, fault)| {
            let is_statement = fault.after.is_empty();
            Planted { number: *number, added: 0..0, whole: 0..0, is_statement }
        })
        .collect();
    let mut copied = 0;
    for ((position, opens, ..), at, addition) in edits {
        result += &text[copied..position];
        copied = position;
        if opens == 1 {
            planted[at].added = result.len()..result.len() + addition.len();
        }
        result += &addition;
        planted[at].whole = planted[at].added.start..result.len();
    }
    result += &text[copied..];
    (result, planted)
}

/// Returns the module that a crate with faults needs, for faults with numbers below `count`.
///
/// It must not allocate, because tests count allocations: it reads its environment from the kernel.
#[must_use]
pub fn switch(count: usize) -> String {
    include_str!("switch.rs.txt").replace("COUNT_OF_FAULTS", &count.to_string())
}
