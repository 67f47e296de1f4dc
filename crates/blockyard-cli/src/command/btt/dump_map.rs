//! `btt dump-map`: the map as stored.

use std::io::{BufWriter, Write};

use blockyard_btt::arena::Arena;
use blockyard_btt::find::{Found, find};
use blockyard_btt::flog::SlotLayout;
use blockyard_btt::layout::MAP_ENTRY_BYTES;
use blockyard_btt::{Memory, PremapAba, SectorState};

use super::{failed, is_unlaid, look_at, unusable};
use crate::cli::DumpMap;
use crate::message::Failure;

/// The smallest size of a hole in a file, in bytes.
const HOLE_BYTES: u64 = 4096;

pub(super) fn dump_map(args: &DumpMap, out: &mut dyn Write) -> Result<(), Failure> {
    let file = &args.inspected.file;
    let (image, _) = look_at(&args.inspected)?;
    if is_unlaid(&image, file, out)? {
        return Ok(());
    }
    let found = find(&image.memory, image.container, image.own_uuid)
        .map_err(|error| unusable(file, error))?;
    let sectors: u64 = found.iter().map(|found| u64::from(found.info.layout.external_nlba)).sum();
    let end = args.count.map_or(sectors, |count| args.first.saturating_add(count).min(sectors));
    if args.first >= sectors {
        let first = args.first;
        return Err(unusable(
            file,
            format_args!("there is no sector {first}: it has {sectors} sectors"),
        ));
    }
    let mut out = BufWriter::new(out);
    writeln!(out, "sector state block arena")?;
    for (n, Found { start, first_lba, info, .. }) in found.into_iter().enumerate() {
        let dialect = image.container.dialect();
        let arena =
            Arena { start, first_lba, layout: info.layout, slots: SlotLayout::Standard, dialect };
        let within = args.first.saturating_sub(first_lba)..end.saturating_sub(first_lba);
        let end_lba = clamped(within.end).min(info.layout.external_nlba);
        let mut hole_end = 0;
        let mut looked_at = 0;
        for lba in (clamped(within.start)..end_lba).map(PremapAba) {
            let sector = first_lba + u64::from(lba.0);
            let at = arena.map_at(lba);
            // A search for holes once per page of the map is enough.
            if !args.all && at >= looked_at {
                hole_end = at + image.memory.hole(at);
                looked_at = hole_end.max(at + HOLE_BYTES);
            }
            if !args.all && at + MAP_ENTRY_BYTES <= hole_end {
                continue;
            }
            let entry =
                arena.load_map_entry(&image.memory, lba).map_err(|error| failed(file, error))?;
            let state = match entry.state() {
                SectorState::Initial if !args.all => continue,
                SectorState::Initial => "initial",
                SectorState::Zero => "zero",
                SectorState::Error => "lost",
                SectorState::Normal => "normal",
            };
            let block = entry.block(lba);
            let gone = if arena.has_block(block) { "" } else { " which does not exist" };
            writeln!(out, "{sector} {state} {block} {n}{gone}")?;
        }
    }
    Ok(out.flush()?)
}

/// The sector as an address of an arena, or the highest address.
fn clamped(sector: u64) -> u32 {
    u32::try_from(sector).map_or(u32::MAX, |lba| lba)
}
