//! `btt dump-map`: the map, as it is stored.

use std::io::{BufWriter, Write};

use blockyard_btt::PremapAba;
use blockyard_btt::SectorState;
use blockyard_btt::arena::Arena;
use blockyard_btt::find::{Found, find};
use blockyard_btt::flog::SlotLayout;

use super::{failed, identify, is_unlaid, unusable};
use crate::cli::DumpMap;
use crate::message::Failure;

pub(super) fn dump_map(args: &DumpMap, out: &mut dyn Write) -> Result<(), Failure> {
    let file = &args.inspected.file;
    let image = identify(&args.inspected, true)?;
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
        for lba in (0..info.layout.external_nlba).map(PremapAba) {
            let sector = first_lba + u64::from(lba.0);
            if sector < args.first || sector >= end {
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
