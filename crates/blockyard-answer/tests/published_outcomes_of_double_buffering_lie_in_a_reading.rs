//! The published outcomes of double buffering for MMC (December 2010), compared with the readings
//! of the device that the figures from before leave open. These readings are repairs: they were
//! made with the outcome known.
//!
//! A device that maps a lone read beside the access of the card explains the gains of short
//! records, the crossing of PIO, and, with a DMA engine that takes part of the time, what is gained
//! if unmapping is deleted. That processors which copy past the cache stall for longer than the bus
//! explains their load.

use blockyard_answer::reproduce::{Cell, Reproduction, Unit, experiments, run};
use std::sync::OnceLock;

/// The reading with nothing fitted.
const BESIDE: &str = "a lone read is mapped during the access";
/// The reading that was fitted to all tables.
const FITTED: &str = "so mapped; 45 % of DMA's KiB is its engine's";
const DESIGN: &str = "mmc-double-buffer";

fn reproduction() -> &'static Reproduction {
    static RUN: OnceLock<Reproduction> = OnceLock::new();
    RUN.get_or_init(|| {
        let mut all = experiments();
        let mut experiment = all.swap_remove(all.iter().position(|it| it.name == DESIGN).unwrap());
        experiment.tables.retain(|table| !table.published.is_empty());
        for table in &mut experiment.tables {
            table.workloads.retain(|workload| !workload.name.contains("write"));
        }
        run(&experiment, 1, &|| {}).unwrap()
    })
}

/// The cells of `design` in the table with `unit`, with the operation and the length of the record
/// in KiB.
fn cells(unit: &str, design: &str) -> Vec<(&'static str, u32, &'static Cell)> {
    let is_it = |cell: &&Cell| (cell.unit, cell.design) == (unit, design);
    let parts = |cell: &'static Cell| {
        let (op, kib) = cell.workload.split_once(' ').unwrap();
        (op, kib.trim_end_matches('k').parse().unwrap(), cell)
    };
    reproduction().cells.iter().filter(is_it).map(parts).collect()
}

/// Whether the published figure of `cell` lies between the lowest and the highest figure of all
/// readings, or within the tolerance of one.
fn lies_in_a_reading(cell: &Cell) -> bool {
    let published = cell.published.unwrap();
    let mut readings = cell.on_variants.values().copied().chain([cell.ours]);
    let is_between =
        readings.clone().any(|it| it <= published) && readings.any(|it| it >= published);
    cell.met_on.is_some() || is_between
}

#[test]
fn every_published_read_under_double_buffering_lies_in_a_reading() {
    let rates = cells(Unit::KibPerS.name(), DESIGN);
    assert_eq!(rates.len(), 3 * 13);
    for (_, _, cell) in &rates {
        assert!(lies_in_a_reading(cell), "{}: {:?}", cell.workload, cell.on_variants);
    }
    let met = rates.iter().filter(|(_, _, cell)| cell.met_on.is_some()).count();
    assert!(met >= 30, "{met} of 39 are within 150 KiB/s on one reading");
}

/// Overlap between requests gives a lone read nothing. Mapping beside the access gives it what was
/// published.
#[test]
fn short_random_reads_gain_as_published_if_they_are_mapped_beside_the_access() {
    for (op, kib, cell) in cells(Unit::KibPerS.name(), DESIGN) {
        if op == "randread" && kib <= 32 {
            let published = cell.published.unwrap();
            assert!(
                (cell.on_variants[BESIDE] - published).abs() < 75.0,
                "{kib}: {:?}",
                cell.on_variants
            );
            assert!(
                (cell.ours - published).abs() > 300.0,
                "{kib}: without it, {} for {published}",
                cell.ours
            );
        }
    }
}

/// It was published that DMA with two buffers reads faster than PIO from 8 MiB on, and more slowly
/// up to 2 MiB; at 4 MiB only rereads were faster.
#[test]
fn double_buffering_overtakes_pio_between_2_and_8_mib() {
    for (op, kib, cell) in cells(Unit::KibPerS.name(), DESIGN) {
        let ours = cell.on_variants[FITTED];
        if kib <= 2048 {
            assert!(ours < 0.0 && cell.published.unwrap() < 0.0, "{op} {kib}: {ours}");
        } else if kib >= 8192 {
            assert!(ours > 0.0 && cell.published.unwrap() > 0.0, "{op} {kib}: {ours}");
        }
        assert!(cell.ours < 0.0, "{op} {kib}: the device itself never overtakes it");
    }
}

#[test]
fn the_processor_load_of_long_reads_falls_as_published_if_copies_stall() {
    let loads = cells(Unit::CpuPercent.name(), DESIGN);
    let long: Vec<_> = loads.iter().filter(|(_, kib, _)| *kib >= 1024).collect();
    assert_eq!(long.len(), 3 * 5);
    for (op, kib, cell) in long {
        let published = cell.published.unwrap();
        let off = (cell.on_variants[FITTED] - published).abs();
        assert!(off <= 2.0, "{op} {kib}: {published}, {:?}", cell.on_variants);
        assert!((cell.ours - published).abs() > 5.0, "{op} {kib}: without stalls, {}", cell.ours);
        assert!((-20.0..=-12.0).contains(&published), "{published} is one of -13 to -20");
    }
    for (op, kib, cell) in loads {
        assert!(lies_in_a_reading(cell), "{op} {kib}: {:?}", cell.on_variants);
    }
}

/// All but four of the gains, which are published as whole percents, are met by one reading. At
/// random 4 KiB 2 % was published, and a gain of 314 kB/s by double buffering that still unmaps.
/// The first contains the second, so DMA would have read 12,560 kB/s or more there, and thus a KiB
/// in less than the bus takes with the access.
#[test]
fn gains_without_unmapping_lie_in_a_reading() {
    let gains = cells("gain %", "mmc-double-buffer-no-unmap");
    assert_eq!(gains.len(), 3 * 13);
    let missed: Vec<_> = gains.iter().filter(|(_, _, cell)| cell.met_on.is_none()).collect();
    assert!(missed.len() <= 4, "{missed:?}");
    for (op, kib, cell) in missed {
        assert!((*op, *kib) == ("randread", 4) || lies_in_a_reading(cell), "{op} {kib}: {cell:?}");
    }
}
