//! The published figures of an SD card on a Ux500 (Walleij 2017, iozone, direct I/O), measured
//! before the change that they accompany: the time of a request that has the host to itself.

use super::*;
use crate::mmc::profile::UnitTiming;
use std::vec::Vec;

/// Microseconds by record: size in KiB, read, write, random write.
const PUBLISHED: [(u64, u64, u64, u64); 8] = [
    (4, 669, 1955, 100_000),
    (8, 879, 1658, 98_765),
    (16, 1306, 2774, 96_386),
    (32, 2145, 5127, 94_955),
    (64, 3819, 9700, 92_086),
    (128, 7166, 18_804, 92_286),
    (256, 13_840, 36_984, 83_225),
    (512, 27_474, 70_397, 69_717),
];

/// A command and its response: 98 clocks of 20 ns.
const COMMAND_NS: u64 = 1960;
/// The host's work per KiB: a KiB of a read takes 52.45 us, of which the bus takes 41.93 us.
const HOST_KIB_NS: u64 = 10_520;
/// The card's access time. A prior: at most the 142 us of a chunk when all else is hidden.
const ACCESS_NS: u64 = 100_000;
/// The host's work per request: the rest of the 460 us of a read, without its two commands.
const HOST_NS: u64 = 460_000 - ACCESS_NS - 2 * COMMAND_NS;
/// The page size: writing half a page takes longer than writing a whole one.
const PAGE_KIB: u64 = 8;
/// The time to program a page: a KiB of a write takes 143.05 us, less the host's work and the wire
/// time, in which two blocks take 2 * (1042 + 9) clocks of 20 ns.
const PROGRAM_NS: u64 = PAGE_KIB * (143_050 - HOST_KIB_NS - 42_040);
/// Half a page takes 873 us more than its bytes, including the other half, programmed in vain.
const PARTIAL_NS: u64 = 873_000 - PROGRAM_NS / 2;
/// The rest of the 510 us of a write. The host's fixed part is the same as for a read.
const FINISH_NS: u64 = 510_000 - HOST_NS - 3 * COMMAND_NS;

/// The card. The figures do not give its number of open units. It has a buffer of one page; see
/// [`WriteTiming::buffer_bytes`](crate::profile::WriteTiming::buffer_bytes).
fn ux500(open: u8) -> CardTiming {
    let mut timing = CardTiming::instant(PAGE_KIB * 1024);
    timing.read.access = Duration::from_ns(ACCESS_NS);
    // 41.93 us/KiB are two blocks of 1044 clocks and two gaps of 85 ns.
    timing.read.gap = Duration::from_ns((41_930 - 2 * 1044 * 20) / 2);
    timing.write.page_bytes = 8192;
    timing.write.program = Duration::from_ns(PROGRAM_NS);
    timing.write.partial = Duration::from_ns(PARTIAL_NS);
    timing.write.finish = Duration::from_ns(FINISH_NS);
    let copy_per_kib = Duration::from_us(196);
    timing.units = Some(UnitTiming { bytes: 512 * 1024, open, copy_per_kib });
    timing
}

/// Returns the mean time in ns of a record of `kib` at each of `sectors`, including the host's
/// work.
fn record_ns(open: u8, direction: Direction, kib: u64, sectors: &[u32]) -> u64 {
    let mut host = Host::new(sd(), ux500(open));
    let blocks = u16::try_from(2 * kib).unwrap();
    for &sector in sectors {
        host.idle(Duration::from_ns(HOST_NS + kib * HOST_KIB_NS - u64::from(NRC) * 20));
        let _ = host.run(direction, sector, blocks);
    }
    host.now.as_ns() / sectors.len() as u64
}

/// Returns the records of `kib` in a 20 MiB file, in order.
fn in_order(kib: u64) -> Vec<u32> {
    (0..20 * 1024 / kib).map(|record| u32::try_from(record * kib * 2).unwrap()).collect()
}

/// Returns the same records, each once, in random order.
fn at_random(kib: u64) -> Vec<u32> {
    let mut sectors = in_order(kib);
    let mut prng = Prng::new(kib);
    for at in (1..sectors.len()).rev() {
        let other = usize::try_from(prng.below(at as u64 + 1)).unwrap();
        sectors.swap(at, other);
    }
    sectors
}

/// Asserts that `ns` is within `thousandths` of `expected_ns`.
#[track_caller]
fn within(thousandths: u64, ns: u64, expected_ns: u64, kib: u64) {
    let off = ns.abs_diff(expected_ns) * 1000;
    assert!(off <= expected_ns * thousandths, "{kib} KiB: {ns} ns, not {expected_ns}");
}

#[test]
fn reads_take_what_was_measured_and_as_long_at_random() {
    for (kib, read_us, ..) in PUBLISHED.into_iter().take(7) {
        let ns = record_ns(1, Direction::Read, kib, &in_order(kib));
        within(20, ns, 460_400 + 52_450 * kib, kib);
        within(20, ns, read_us * 1000, kib);
        assert_eq!(record_ns(1, Direction::Read, kib, &at_random(kib)), ns);
    }
}

#[test]
fn writes_take_what_was_measured_and_half_a_page_longer_than_a_page() {
    for (kib, _, write_us, _) in PUBLISHED {
        let ns = record_ns(1, Direction::Write, kib, &in_order(kib));
        let partial = if kib < PAGE_KIB { 873_000 } else { 0 };
        within(60, ns, 510_000 + 143_050 * kib + partial, kib);
        within(60, ns, write_us * 1000, kib);
    }
}

#[test]
fn writes_at_random_copy_the_rest_of_an_allocation_unit() {
    for (kib, _, _, write_us) in PUBLISHED {
        let ns = record_ns(1, Direction::Write, kib, &at_random(kib));
        within(60, ns, (512 - kib) * 196_000 + kib * 137_000, kib);
        within(60, ns, write_us * 1000, kib);
    }
}
