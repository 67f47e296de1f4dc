//! `list`: the built-in devices and designs, and the options of jobs.

use std::io::Write;

use blockyard_sim::job::{Effect, options};
use blockyard_sim::profile::{Design, Device, builtin_designs, builtin_devices};

use crate::cli::{List, Listed};
use crate::message::Failure;
use crate::render::table::Table;

pub(super) fn list(args: &List, out: &mut dyn Write) -> Result<(), Failure> {
    let tables = match args.what {
        Some(Listed::Devices) => vec![devices()?],
        Some(Listed::Designs) => vec![designs()?],
        Some(Listed::Options) => vec![job_options()],
        None => vec![devices()?, designs()?],
    };
    let tables: Vec<_> = tables.iter().map(ToString::to_string).collect();
    Ok(out.write_all(tables.join("\n").as_bytes())?)
}

fn devices() -> Result<Table, Failure> {
    let mut table = Table::of_words(&["device", "what it is"]);
    for builtin in builtin_devices() {
        table.row([builtin.name.to_owned(), Device::lookup(builtin.name)?.title]);
    }
    Ok(table)
}

fn designs() -> Result<Table, Failure> {
    let mut table = Table::of_words(&["design", "what it is"]);
    for builtin in builtin_designs() {
        table.row([builtin.name.to_owned(), Design::lookup(builtin.name)?.title]);
    }
    Ok(table)
}

fn job_options() -> Table {
    let mut table = Table::of_words(&["option", "also", "what it does"]);
    for option in options() {
        let does = match option.effect {
            Effect::Modelled => option.doc.to_owned(),
            Effect::NoEffect(reason) => format!("no effect: {reason}"),
            Effect::Refused(reason) => format!("not supported yet: {reason}"),
        };
        table.row([option.name.to_owned(), option.aliases.join(", "), does]);
    }
    table
}
