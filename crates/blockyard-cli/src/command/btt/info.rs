//! `btt info`: the metadata of a BTT.

use std::io::Write;

use blockyard_btt::find::{Found, find};

use super::{look_at, name, unusable};
use crate::cli::Inspected;
use crate::message::Failure;

pub(super) fn info(args: &Inspected, out: &mut dyn Write) -> Result<(), Failure> {
    let (image, _) = look_at(args)?;
    if let Some(format) = &image.unwritten {
        writeln!(out, "container    {}", name(image.container))?;
        writeln!(out, "parent uuid  {}", format.parent_uuid)?;
        writeln!(out, "sector size  {}", format.sector_bytes)?;
        writeln!(out, "not laid out yet: reads as zeroes until it is written")?;
        return Ok(());
    }
    let arenas = find(&image.memory, image.container, image.own_uuid)
        .map_err(|error| unusable(&args.file, error))?;
    let first = &arenas[0].info;
    let sectors: u64 = arenas.iter().map(|arena| u64::from(arena.info.layout.external_nlba)).sum();
    let sector_bytes = first.layout.external_lbasize;
    writeln!(out, "container    {}", name(image.container))?;
    writeln!(out, "version      {}", first.version)?;
    writeln!(out, "uuid         {}", first.uuid)?;
    writeln!(out, "parent uuid  {}", first.parent_uuid)?;
    writeln!(out, "sectors      {sectors}")?;
    writeln!(out, "sector size  {sector_bytes}")?;
    writeln!(out, "bytes        {}", sectors * u64::from(sector_bytes))?;
    for (n, Found { start, first_lba, info, from_copy }) in arenas.iter().enumerate() {
        let layout = info.layout;
        writeln!(out, "arena {n}")?;
        writeln!(out, "  byte          {start}")?;
        writeln!(out, "  first sector  {first_lba}")?;
        writeln!(out, "  sectors       {}", layout.external_nlba)?;
        let blocks = layout.internal_nlba;
        let bytes = layout.internal_lbasize;
        writeln!(out, "  blocks        {blocks} of {bytes} bytes, at {}", start + layout.dataoff)?;
        writeln!(out, "  map           {}", start + layout.mapoff)?;
        writeln!(out, "  log           {}, of {} lanes", start + layout.flogoff, layout.nfree)?;
        writeln!(out, "  copy of info  {}", start + layout.infooff)?;
        if info.error {
            writeln!(out, "  marked as broken: nothing may write to it")?;
        }
        if let Some(error) = from_copy {
            writeln!(out, "  read from the copy: {error} at byte {start}")?;
        }
    }
    Ok(())
}
