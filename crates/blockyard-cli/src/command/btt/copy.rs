//! `btt copy` and `btt convert`: copy all sectors of a BTT. Sectors without data are neither read
//! nor allocated.

use core::ops::Range;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use blockyard_btt::{Btt, Container, Format, FormatError, IoError, MediaError, Memory, Uuid};
use blockyard_pmem::{Image, ImageMemory, NewImage, hole};

use super::{failed, open, options, unusable};
use crate::cli::{Convert, CopySectors};
use crate::message::Failure;
use crate::progress::{share, show_share};

/// The maximum number of sectors that are copied at a time.
const RUN: u8 = 64;

pub(super) fn copy(args: &CopySectors) -> Result<(), Failure> {
    if args.to.exists() { from_raw(args) } else { to_raw(args) }
}

fn from_raw(args: &CopySectors) -> Result<(), Failure> {
    let raw = File::open(&args.from).map_err(|error| unusable(&args.from, error))?;
    if Image::identify(&args.from, &options(true, None)).is_ok() {
        let words =
            "it holds a BTT itself: copy its sectors to a raw image that does not exist yet";
        return Err(unusable(&args.from, words));
    }
    let (_, btt) = open(&args.to, args.container, false, args.force)?;
    let len = raw.metadata().map_err(|error| unusable(&args.from, error))?.len();
    let bytes = u64::from(btt.sector_bytes());
    if !len.is_multiple_of(bytes) {
        return Err(unusable(
            &args.from,
            format_args!("it has {len} bytes, which is not a whole number of sectors of {bytes}"),
        ));
    }
    if len == 0 {
        return Err(unusable(&args.from, "it is empty, or its size is unknown"));
    }
    let sectors = len / bytes;
    let room = btt.sectors();
    if sectors > room {
        return Err(unusable(
            &args.from,
            format_args!("it has {sectors} sectors, but the BTT has only {room}"),
        ));
    }
    let mut worker = btt.worker();
    let data =
        raw_runs(&raw, sectors, bytes).filter_map(|(run, is_hole)| (!is_hole).then_some(run));
    each_run(data, sectors, btt.sector_bytes(), |lba, run| {
        raw.read_exact_at(run, lba * bytes).map_err(|error| failed(&args.from, error))?;
        for one in alike(lba, btt.sector_bytes(), run) {
            match one.is_zeroes {
                true => worker.set_zero(one.lba, one.count),
                false => worker.write(one.lba, one.bytes),
            }
            .map_err(|error| sector(&args.to, one.lba, error))?;
        }
        Ok(())
    })?;
    let holes = raw_runs(&raw, sectors, bytes).filter_map(|(run, is_hole)| is_hole.then_some(run));
    for run in holes.flat_map(|hole| btt.runs(hole)) {
        let zeroed = worker.set_zero(run.start, run.end - run.start);
        zeroed.map_err(|error| sector(&args.to, run.start, error))?;
    }
    drop(worker);
    btt.flush().map_err(|error| failed(&args.to, error))
}

fn to_raw(args: &CopySectors) -> Result<(), Failure> {
    let (_, btt) = open(&args.from, args.container, true, args.force)?;
    let made = OpenOptions::new().write(true).create_new(true).open(&args.to);
    let raw = made.map_err(|error| unusable(&args.to, error))?;
    let copied = fill_raw(args, &btt, &raw);
    if copied.is_err() {
        // This command created the partial file.
        drop(std::fs::remove_file(&args.to));
    }
    copied?.tell(&args.from, "are zeroes", &args.to)
}

fn fill_raw(args: &CopySectors, btt: &Btt<ImageMemory>, raw: &File) -> Result<Unreadable, Failure> {
    let mut unreadable = Unreadable::default();
    let bytes = u64::from(btt.sector_bytes());
    let unwritten = |error: io::Error| failed(&args.to, error);
    raw.set_len(btt.sectors() * bytes).map_err(unwritten)?;
    each_run(btt.runs(0..btt.sectors()), btt.sectors(), btt.sector_bytes(), |lba, run| {
        read(btt, &args.from, lba, run, |lba, _| {
            unreadable.add(lba);
            args.zero_lost
        })?;
        for one in alike(lba, btt.sector_bytes(), run).filter(|one| !one.is_zeroes) {
            raw.write_all_at(one.bytes, one.lba * bytes).map_err(unwritten)?;
        }
        Ok(())
    })?;
    raw.sync_all().map_err(unwritten)?;
    Ok(unreadable)
}

pub(super) fn convert(args: &Convert) -> Result<(), Failure> {
    let (was, from) = open(&args.from, args.container, true, args.force)?;
    let container = Container::from(args.into);
    let bytes = room_for(&from, was, container).map_err(|error| unusable(&args.from, error))?;
    let new = NewImage { bytes, sector_bytes: from.sector_bytes(), container };
    let made = Image::create(&args.to, &new, &options(false, None));
    let to = made.map_err(|error| unusable(&args.to, error))?;
    let copied = fill(args, &from, &to);
    if copied.is_err() {
        // As above.
        drop(std::fs::remove_file(&args.to));
    }
    copied?.tell(&args.from, "are marked as lost", &args.to)
}

/// Copies all sectors. Returns the sectors that could not be read and were not marked as lost.
fn fill(
    args: &Convert,
    from: &Btt<ImageMemory>,
    to: &Btt<ImageMemory>,
) -> Result<Unreadable, Failure> {
    let mut unreadable = Unreadable::default();
    let mut worker = to.worker();
    let all = from.runs(0..from.sectors());
    each_run(all, from.sectors(), from.sector_bytes(), |first, run| {
        let mut lost = Vec::new();
        read(from, &args.from, first, run, |lba, error| {
            lost.push(lba);
            if error != IoError::Lost {
                unreadable.add(lba);
            }
            true
        })?;
        for one in alike(first, from.sector_bytes(), run).filter(|one| !one.is_zeroes) {
            worker.write(one.lba, one.bytes).map_err(|error| sector(&args.to, one.lba, error))?;
        }
        lost.iter()
            .try_for_each(|&lba| to.set_error(lba).map_err(|error| sector(&args.to, lba, error)))
    })?;
    drop(worker);
    to.flush().map_err(|error| failed(&args.to, error))?;
    Ok(unreadable)
}

/// Returns the size of a file that has the sectors of `from` in `container` instead of `was`. The
/// arenas are larger if the new blocks are.
fn room_for(
    from: &Btt<ImageMemory>,
    was: Container,
    container: Container,
) -> Result<u64, FormatError> {
    let format = Format {
        container,
        sector_bytes: from.sector_bytes(),
        uuid: Uuid::NIL,
        parent_uuid: Uuid::NIL,
        blank: true,
    };
    let mut bytes = from.memory().len() - was.first_arena() + container.first_arena();
    loop {
        let plan = format.plan(bytes)?;
        let layouts = plan.iter().map(|(_, info)| info.layout);
        let sectors: u64 = layouts.clone().map(|layout| u64::from(layout.external_nlba)).sum();
        let missing = from.sectors().saturating_sub(sectors);
        if missing == 0 {
            return Ok(bytes);
        }
        let block = layouts.map(|layout| u64::from(layout.internal_lbasize)).max().unwrap_or(1);
        bytes = (bytes + missing * (block + 4)).next_multiple_of(4096);
    }
}

/// Splits the sectors of a raw image into runs, and says for each whether it is a hole.
fn raw_runs(raw: &File, sectors: u64, bytes: u64) -> impl Iterator<Item = (Range<u64>, bool)> {
    let mut next = 0;
    core::iter::from_fn(move || {
        let first = next;
        let in_hole = hole(raw, first * bytes, sectors * bytes) / bytes;
        let count = if in_hole > 0 { in_hole } else { u64::from(RUN).min(sectors - first) };
        next = first + count;
        (count > 0).then_some((first..next, in_hole > 0))
    })
}

/// Calls `copy` with the first sector and a buffer for each part of the runs, until a call fails.
/// `sectors` is the total.
fn each_run(
    runs: impl Iterator<Item = Range<u64>>,
    sectors: u64,
    sector_bytes: u32,
    mut copy: impl FnMut(u64, &mut [u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let bytes = sector_bytes as usize;
    let mut run = vec![0; bytes * usize::from(RUN)];
    let line = share();
    for Range { start: mut lba, end } in runs {
        while lba < end {
            let count = u8::try_from(end - lba).map_or(RUN, |left| left.min(RUN));
            copy(lba, &mut run[..bytes * usize::from(count)])?;
            lba += u64::from(count);
            show_share(&line, "copying", lba, sectors);
        }
    }
    Ok(())
}

/// Reads sectors from `first` on. Sectors that cannot be read are zeroed if `may` allows it.
fn read(
    btt: &Btt<ImageMemory>,
    file: &Path,
    first: u64,
    run: &mut [u8],
    mut may: impl FnMut(u64, IoError) -> bool,
) -> Result<(), Failure> {
    if btt.read(first, run).is_ok() {
        return Ok(());
    }
    for (lba, to) in (first..).zip(run.chunks_exact_mut(btt.sector_bytes() as usize)) {
        match btt.read(lba, to) {
            Ok(()) => {}
            Err(error @ (IoError::Lost | IoError::Map | IoError::Media(MediaError::Bad)))
                if may(lba, error) =>
            {
                to.fill(0);
            }
            Err(error) => return Err(sector(file, lba, error)),
        }
    }
    Ok(())
}

/// The sectors that could not be read while the others were copied.
#[derive(Default)]
struct Unreadable {
    count: u64,
    first: Vec<u64>,
}

impl Unreadable {
    /// The maximum number of sectors in a message.
    const NAMED: usize = 8;

    fn add(&mut self, lba: u64) {
        if self.first.len() < Self::NAMED {
            self.first.push(lba);
        }
        self.count += 1;
    }

    /// Fails if there are unreadable sectors. The error lists them and says what they `are` in
    /// `to`.
    fn tell(&self, from: &Path, are: &str, to: &Path) -> Result<(), Failure> {
        if self.count == 0 {
            return Ok(());
        }
        let names: Vec<_> = self.first.iter().map(u64::to_string).collect();
        let more = if self.count > self.first.len() as u64 { ", ..." } else { "" };
        let count = self.count;
        let names = names.join(", ");
        let to = to.display();
        Err(failed(
            from,
            format_args!(
                "sectors that cannot be read: {count} ({names}{more}), which {are} in {to}"
            ),
        ))
    }
}

/// Returns the failure of a sector.
fn sector(file: &Path, lba: u64, error: IoError) -> Failure {
    failed(file, format_args!("sector {lba}: {error}"))
}

/// Splits the sectors from `first` on into runs in which every sector or no sector is all zeroes.
fn alike(first: u64, sector_bytes: u32, run: &[u8]) -> impl Iterator<Item = Alike<'_>> {
    let bytes = sector_bytes as usize;
    let mut lba = first;
    let mut rest = run;
    core::iter::from_fn(move || {
        let is_zeroes = is_zero(rest.get(..bytes)?);
        let same = |sector: &&[u8]| is_zero(sector) == is_zeroes;
        let count = rest.chunks_exact(bytes).take_while(same).count();
        let (bytes, later) = rest.split_at(count * bytes);
        let alike = Alike { lba, count: count as u64, is_zeroes, bytes };
        (lba, rest) = (lba + alike.count, later);
        Some(alike)
    })
}

/// Whether all bytes are 0.
fn is_zero(sector: &[u8]) -> bool {
    sector.iter().all(|&byte| byte == 0)
}

/// A run of neighbouring sectors.
struct Alike<'a> {
    lba: u64,
    count: u64,
    is_zeroes: bool,
    bytes: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_zeroes_are_separated_from_the_rest() {
        let run = [0, 0, 1, 0, 0, 2, 3, 3, 0, 0];
        let found: Vec<_> = alike(7, 2, &run).map(|a| (a.lba, a.count, a.is_zeroes)).collect();
        assert_eq!(found, [(7, 1, true), (8, 3, false), (11, 1, true)]);
        assert!(alike(0, 2, &[]).next().is_none());
    }
}
