//! The definition of one option of a job file.

use super::model::Job;
use super::value::{Parsed, Value};

/// One option of a job file.
pub struct OptionDef {
    /// The name that fio prints.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// The purpose of the option in one line.
    pub doc: &'static str,
    /// The effect of the option in Blockyard.
    pub effect: Effect,
    pub(super) apply: fn(&mut Job, Value<'_>) -> Parsed<()>,
}

/// The effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The option changes the job.
    Modelled,
    /// The value is checked but changes nothing, for this reason.
    NoEffect(&'static str),
    /// The option would change the measurements and is not modelled yet. Any value is an error, except one that
    /// disables the option (`0` or `none`). The text is the reason.
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
