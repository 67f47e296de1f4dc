//! The disks of a trace, numbered in order of appearance.

use super::error::TraceFault;
use super::limits::DISKS_MAX;

/// Disk names; a name's index is its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Disks {
    names: Vec<String>,
    /// The disk found last: most traces name the same disk many times in a row.
    last: usize,
}

impl Disks {
    /// Returns the number of the disk called `name`; a new name takes the next number.
    pub(super) fn number(&mut self, name: &str) -> Result<u16, TraceFault> {
        debug_assert!(self.names.len() <= DISKS_MAX, "[bounded-trace-memory]");
        let known = |at: &usize| self.names.get(*at).is_some_and(|last| last == name);
        let found = Some(self.last).filter(known);
        let found = found.or_else(|| self.names.iter().position(|known| known == name));
        self.last = match found {
            Some(at) => at,
            None if self.names.len() == DISKS_MAX => return Err(TraceFault::TooManyDisks),
            None => {
                self.names.push(name.to_owned());
                self.names.len() - 1
            }
        };
        debug_assert_eq!(self.names[self.last], name, "the number found is that of the name");
        u16::try_from(self.last).map_err(|_| TraceFault::TooManyDisks)
    }

    /// All names, by number.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}
