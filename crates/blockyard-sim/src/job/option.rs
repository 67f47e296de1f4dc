//! The table of options: each is defined once, in one of three lists by what becomes of it.

use super::effectless;
use super::model::Job;
use super::modelled;
use super::refused;
use super::value::{Parsed, Value};

/// One option of a job file.
pub struct OptionDef {
    /// The name fio prints it under.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// One line on what it does.
    pub doc: &'static str,
    /// What becomes of it here.
    pub effect: Effect,
    pub(super) apply: fn(&mut Job, Value<'_>) -> Parsed<()>,
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It changes the job.
    Modelled,
    /// It is checked and changes nothing, because of the reason given.
    NoEffect(&'static str),
    /// It would change what is measured and is not modelled yet: an error, unless its value
    /// switches it off (`0` or `none`).
    Refused(&'static str),
}

impl core::fmt::Debug for OptionDef {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OptionDef")
            .field("name", &self.name)
            .field("aliases", &self.aliases)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}

/// Every option known: the modelled ones first, then those without effect, then those refused.
pub fn options() -> impl Iterator<Item = &'static OptionDef> {
    modelled::OPTIONS.iter().chain(effectless::OPTIONS).chain(refused::OPTIONS)
}

/// The option called `name`, by its name or an alias.
pub(super) fn find(name: &str) -> Option<&'static OptionDef> {
    options().find(|def| def.name == name || def.aliases.contains(&name))
}

/// The spelling nearest to `name`, if any is near enough to be meant.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let spellings = options().flat_map(|def| def.aliases.iter().chain([&def.name]));
    let scored = spellings.map(|spelling| (strsim::damerau_levenshtein(name, spelling), *spelling));
    let near = name.len() / 3 + 1;
    scored.filter(|(distance, _)| *distance <= near).min().map(|(_, spelling)| spelling)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_options_share_a_spelling() {
        let mut spellings: Vec<_> =
            options().flat_map(|def| def.aliases.iter().chain([&def.name])).collect();
        spellings.sort();
        assert!(spellings.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_slip_of_the_pen_finds_its_option() {
        assert_eq!(nearest("iodpeth"), Some("iodepth"));
        assert_eq!(nearest("blocksiz"), Some("blocksize"));
        assert_eq!(nearest("xyzzyplugh"), None);
    }
}
