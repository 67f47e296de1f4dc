//! The list of faults that no test can see.
//!
//! Blank lines separate its blocks. The first line of a block is the file and the function, the
//! next two are the code before and after (nothing after a `+`: the statement is missing), and the
//! others are the reason. Lines that begin with `#` are comments.

use crate::mutants::fault::Fault;
use std::collections::BTreeMap;

/// Faults and reasons.
#[derive(Debug, Default)]
pub struct Equivalents(BTreeMap<String, String>);

impl Equivalents {
    /// Reads the list. An error names the first block with a mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let mut list = BTreeMap::new();
        for block in lines.split(|line| line.trim().is_empty()).filter(|block| !block.is_empty()) {
            let [_, before, after, reason @ ..] = block else {
                return Err(format!("too short: {}", block.join("\n")));
            };
            if !before.starts_with("- ") || !after.starts_with('+') || reason.is_empty() {
                return Err(format!("not file, -, + and reason: {}", block.join("\n")));
            }
            let fault = block[..3].iter().fold(String::new(), |all, line| all + line + "\n");
            if list.insert(fault, reason.join("\n")).is_some() {
                return Err(format!("twice: {}", block.join("\n")));
            }
        }
        Ok(Self(list))
    }

    /// Whether a fault is listed.
    #[must_use]
    pub fn contains(&self, fault: &Fault) -> bool {
        self.0.contains_key(&fault.block())
    }

    /// The listed blocks that are none of `faults`, because the code changed.
    pub fn stale<'a>(&self, faults: impl Iterator<Item = &'a Fault>) -> Vec<String> {
        let mut rest: Vec<_> = self.0.keys().cloned().collect();
        let blocks: std::collections::BTreeSet<_> = faults.map(Fault::block).collect();
        rest.retain(|block| !blocks.contains(block));
        rest
    }
}
