//! `list`: the built-in devices, processors, designs and file systems, and the options of jobs.

use std::io::Write;

use blockyard_devices::profile::{
    Builtin, builtin_designs, builtin_devices, builtin_file_systems, builtin_processors, short_name,
};
use blockyard_fio::job::{Effect, options};

use crate::cli::{List, Listed};
use crate::message::Failure;
use crate::render::table::Table;
use crate::terminal::width;

pub(super) fn list(args: &List, out: &mut dyn Write) -> Result<(), Failure> {
    let tables = match args.what {
        Some(Listed::Devices) => vec![profiles("device", builtin_devices())],
        Some(Listed::Processors) => vec![profiles("processors", builtin_processors())],
        Some(Listed::Designs) => vec![profiles("design", builtin_designs())],
        Some(Listed::Filesystems) => vec![profiles("file system", builtin_file_systems())],
        Some(Listed::Options) => vec![job_options()],
        None => vec![
            profiles("device", builtin_devices()),
            profiles("processors", builtin_processors()),
            profiles("design", builtin_designs()),
            profiles("file system", builtin_file_systems()),
        ],
    };
    let width = width();
    let tables: Vec<_> = tables.iter().map(|table| format!("{table:width$}")).collect();
    Ok(out.write_all(tables.join("\n").as_bytes())?)
}

fn profiles(kind: &'static str, builtins: &[Builtin]) -> Table {
    let mut table = Table::of_words(&[kind, "what it is"]);
    for builtin in builtins {
        let short = short_name(builtin.name).map(|short| format!(", in short `{short}`"));
        table.row([builtin.name.to_owned(), builtin.title() + &short.unwrap_or_default()]);
    }
    table
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
