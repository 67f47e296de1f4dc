//! The disks of a trace, numbered by order of appearance.

use super::DISKS_MAX;
use super::error::TraceFault;

/// Names of disks, each with its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Disks {
    names: Vec<String>,
    /// Most traces name the same disk again and again.
    last: usize,
}

impl Disks {
    /// The number of the disk called `name`.
    pub(super) fn number(&mut self, name: &str) -> Result<u16, TraceFault> {
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
        u16::try_from(self.last).map_err(|_| TraceFault::TooManyDisks)
    }

    /// All names, by number.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}
