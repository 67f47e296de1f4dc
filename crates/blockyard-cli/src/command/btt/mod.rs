//! `btt`: block translation tables in files.

mod check;
mod copy;
mod create;
mod dump_map;
mod info;

use std::io::{self, Write};
use std::path::Path;

use blockyard_btt::check::{Options, Progress, Report, check as look};
use blockyard_btt::repair::Plan;
use blockyard_btt::{Btt, Container, MediaError};
use blockyard_pmem::{Durability, Image, ImageError, ImageMemory, ImageOptions};

use crate::cli::{BttCommand, ContainerName, Inspected};
use crate::message::{Failure, note};
use crate::progress::{share, show_share};

pub(super) fn btt(command: &BttCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        BttCommand::Create(args) => create::create(args),
        BttCommand::Info(args) => info::info(args, out),
        BttCommand::Check(args) => check::check(args, out),
        BttCommand::Repair(args) => check::repair(args, out),
        BttCommand::DumpMap(args) => dump_map::dump_map(args, out),
        BttCommand::Copy(args) => copy::copy(args),
        BttCommand::Convert(args) => copy::convert(args),
    }
}

/// Returns the failure of an unusable file.
fn unusable(file: &Path, error: impl core::fmt::Display) -> Failure {
    Failure::Input(format!("{}: {error}", file.display()))
}

/// Returns the failure of a file during its use.
fn failed(file: &Path, error: impl core::fmt::Display) -> Failure {
    Failure::Run(format!("{}: {error}", file.display()))
}

/// Returns the options for opening a file. If the medium fails, the command fails.
fn options(read_only: bool, container: Option<Container>) -> ImageOptions {
    let durability = Durability::Calls;
    ImageOptions { read_only, container, durability, ..ImageOptions::default() }
}

/// Opens a file with a BTT, damaged or not, to look at it. Returns whether another process writes
/// it.
fn look_at(args: &Inspected) -> Result<(Image, bool), Failure> {
    let (image, in_use) = match identify_as(args, true, false) {
        Err(ImageError::File(error)) if error.kind() == io::ErrorKind::ResourceBusy => {
            let file = args.file.display();
            note(&format!("{file}: in use and changing: what is shown may be of different times"));
            (identify_as(args, true, true), true)
        }
        other => (other, false),
    };
    Ok((image.map_err(|error| unusable(&args.file, error))?, in_use))
}

/// Opens a file with a BTT, damaged or not.
fn identify(args: &Inspected, read_only: bool) -> Result<Image, Failure> {
    identify_as(args, read_only, false).map_err(|error| unusable(&args.file, error))
}

fn identify_as(args: &Inspected, read_only: bool, unlocked: bool) -> Result<Image, ImageError> {
    let container = args.container.map(Container::from);
    // What is repaired is on the medium step by step.
    let durability = Durability::Disk;
    let options = ImageOptions { durability, unlocked, ..options(read_only, container) };
    match Image::identify(&args.file, &options) {
        // No BTT was found. The error is about the labelled container if that has intact arenas.
        Err(ImageError::Btt(_)) if container.is_none() => {
            let [labelled, plain] = [Container::LabelledNamespace, Container::Namespace]
                .map(|container| ImageOptions { container: Some(container), ..options });
            match Image::identify(&args.file, &labelled).map(|image| arenas(&image)) {
                Ok(1..) => Image::identify(&args.file, &labelled),
                _ => Image::identify(&args.file, &plain),
            }
        }
        other => other,
    }
}

/// Returns the number of intact arenas.
fn arenas(image: &Image) -> usize {
    checked(image, 1).map_or(0, |(report, _)| report.arenas)
}

/// Prints a note if a pool was never written, and so has neither contents nor damage. Returns
/// whether it did.
fn is_unlaid(image: &Image, file: &Path, out: &mut dyn Write) -> Result<bool, Failure> {
    if image.unwritten.is_some() {
        let file = file.display();
        let container = name(image.container);
        writeln!(
            out,
            "{file}: clean: {container}, not laid out yet: reads as zeroes until it is written"
        )?;
        out.flush()?;
    }
    Ok(image.unwritten.is_some())
}

/// Checks an image and keeps up to `keep` findings of each severity.
fn checked(image: &Image, keep: usize) -> Result<(Report, Plan), MediaError> {
    let Image { memory, container, own_uuid, .. } = image;
    let options = Options { container: *container, own_uuid: *own_uuid, keep };
    look(memory, &options, &mut show_check())
}

/// Shows the progress of a check.
fn show_check() -> impl FnMut(Progress) {
    let line = share();
    move |progress| {
        let what = format!("checking arena {}", progress.arena);
        show_share(&line, &what, progress.done.into(), progress.of.into());
    }
}

/// Opens the BTT in a file, and returns its container too. A broken BTT is refused unless it is
/// opened by `force`.
fn open(
    file: &Path,
    container: Option<ContainerName>,
    read_only: bool,
    force: bool,
) -> Result<(Container, Btt<ImageMemory>), Failure> {
    let options = options(read_only, container.map(Container::from));
    let image = Image::identify(file, &options).map_err(|error| unusable(file, error))?;
    if !force {
        image.refuse_broken(&mut show_check()).map_err(|error| {
            let broken = matches!(error, ImageError::Broken(..));
            let force = if broken { "; --force uses the BTT as it is" } else { "" };
            unusable(file, format_args!("{error}{force}"))
        })?;
    }
    let container = image.container;
    Ok((container, image.open(&options).map_err(|error| unusable(file, error))?))
}

/// Returns the name of a container.
const fn name(container: Container) -> &'static str {
    match container {
        Container::Namespace => "namespace without label",
        Container::LabelledNamespace => "namespace with a label",
        Container::Pool => "pool of libpmemblk",
    }
}
