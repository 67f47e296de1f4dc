//! The definition of one option of a job file.

use super::error::Place;
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

impl OptionDef {
    /// Whether the option is a flag, which may stand alone and has numbers only as its values: `thread`, `thread=1`.
    ///
    /// As in fio, a flag of a command line has its value after `=`. Any other option may have it in the next argument.
    #[must_use]
    pub fn is_flag(&self) -> bool {
        self.accepts(None) && !self.accepts(Some("word"))
    }

    /// Whether the value is a text of any form.
    pub(super) fn is_text(&self) -> bool {
        self.accepts(Some(" any text"))
    }

    fn accepts(&self, text: Option<&str>) -> bool {
        let mut scratch = Job::new("", Place { file: "".into(), line: 0 });
        (self.apply)(&mut scratch, Value { text, kb_base: 1024 }).is_ok()
    }
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
