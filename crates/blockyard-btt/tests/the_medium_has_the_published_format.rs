//! Images of every sector size, version and number of arenas, byte by byte. Each number here comes
//! from the format's description, which has it from images of Linux and libpmemblk, or from the
//! calculation beside it. Fields and positions are written independently of the code.

#![allow(clippy::cast_possible_truncation, reason = "sectors are small")]

mod images;

use blockyard_btt::{Btt, Container, Memory, OpenOptions, Policy, Uuid};
use images::{Sparse, content, empty};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Bytes of the largest arena.
const ARENA: u64 = 512 * GIB;

/// The fields of an info block: name, position, bytes and value.
type Fields = [(&'static str, u64, usize, u64); 13];

/// Sizes and positions of an arena.
#[derive(Clone, Copy)]
struct Sizes {
    external: u64,
    internal: u64,
    internal_count: u64,
    external_count: u64,
    map: u64,
    log: u64,
    copy: u64,
}

/// A row of the description's table of arenas.
const fn sizes(of: [u64; 7]) -> Sizes {
    let [external, internal, internal_count, external_count, map, log, copy] = of;
    Sizes { external, internal, internal_count, external_count, map, log, copy }
}

/// Returns the first byte of the first arena.
fn first_byte(container: Container) -> u64 {
    match container {
        Container::Namespace => 4096,
        Container::LabelledNamespace => 0,
        Container::Pool => 8192,
    }
}

fn fields(sizes: Sizes, version: [u64; 2], next: u64) -> Fields {
    [
        ("flags", 48, 4, 0),
        ("major", 52, 2, version[0]),
        ("minor", 54, 2, version[1]),
        ("external_lbasize", 56, 4, sizes.external),
        ("external_nlba", 60, 4, sizes.external_count),
        ("internal_lbasize", 64, 4, sizes.internal),
        ("internal_nlba", 68, 4, sizes.internal_count),
        ("nfree", 72, 4, 256),
        ("infosize", 76, 4, 4096),
        ("nextoff", 80, 8, next),
        ("dataoff", 88, 8, 4096),
        ("mapoff", 96, 8, sizes.map),
        ("flogoff", 104, 8, sizes.log),
    ]
}

fn number(image: &Sparse, at: u64, bytes: usize) -> u64 {
    let mut number = [0; 8];
    image.read(at, &mut number[..bytes]).expect("bytes that are not lost");
    u64::from_le_bytes(number)
}

/// Fletcher-64 modulo 2^32 over words of four bytes, the last two of them as zeroes, written as two
/// sums: word number n of 1024 counts 1024 - n times in the high one.
fn checksum(block: &[u8; 4096]) -> u64 {
    let words =
        block[..4088].chunks(4).map(|w| u32::from_le_bytes(w.try_into().expect("four bytes")));
    let (low, high) = (0_u64..).zip(words).fold((0_u64, 0_u64), |(low, high), (n, word)| {
        (low + u64::from(word), high + (1024 - n) * u64::from(word))
    });
    ((high % (1 << 32)) << 32) | (low % (1 << 32))
}

/// Asserts that the arena at byte `start` is as formatted.
fn assert_formatted(image: &Sparse, container: Container, start: u64, sizes: Sizes, next: u64) {
    let (version, parent) = match container {
        Container::Namespace => ([1, 1], [0; 16]),
        Container::LabelledNamespace => ([2, 0], [0; 16]),
        Container::Pool => ([1, 1], [9; 16]),
    };
    let first: [u8; 4096] = image.bytes(start);
    assert_eq!(first[..16], *b"BTT_ARENA_INFO\0\0");
    assert_eq!((&first[16..32], &first[32..48]), (&[1; 16][..], &parent[..]), "uuids");
    for (name, at, bytes, expected) in fields(sizes, version, next) {
        assert_eq!(number(image, start + at, bytes), expected, "{name}, {} bytes", sizes.external);
    }
    assert_eq!(number(image, start + 112, 8), sizes.copy, "infooff");
    assert!(first[120..4088].iter().all(|&byte| byte == 0), "unused");
    assert_eq!(number(image, start + 4088, 8), checksum(&first), "checksum");
    assert_eq!(image.bytes::<4096>(start + sizes.copy), first, "the copy");
    // The map is zero, and each lane has its first entry.
    let map_ends = [sizes.map, sizes.map + (sizes.external_count - 1) * 4];
    assert_eq!(map_ends.map(|at| number(image, start + at, 4)), [0; 2]);
    for lane in 0..256 {
        let block = sizes.external_count + lane;
        let block = if container == Container::Pool { 0x8000_0000 | block } else { block };
        let group = start + sizes.log + lane * 64;
        let words: Vec<u64> = (0..16).map(|n| number(image, group + n * 4, 4)).collect();
        assert_eq!(words[..4], [lane, block, block, 1]);
        assert_eq!(words[4..], [0; 12]);
    }
}

/// Asserts that a sector's data are in the lane's first free block, and that map and log say so.
fn assert_written(
    image: &Sparse,
    container: Container,
    start: u64,
    sizes: Sizes,
    (lba, lane): (u64, u64),
) {
    let dialect = if container == Container::Pool { 0xc000_0000 } else { 0 };
    let block = sizes.external_count + lane;
    assert_eq!(number(image, start + sizes.map + lba * 4, 4), 0xc000_0000 | block);
    let mut data = vec![0; sizes.external as usize];
    image.read(start + 4096 + block * sizes.internal, &mut data).expect("bytes that are not lost");
    assert_eq!(data, content(lba, sizes.external as u32));
    let entry = start + sizes.log + lane * 64 + 16;
    let words = [0, 4, 8, 12].map(|at| number(image, entry + at, 4));
    assert_eq!(words, [lba, dialect | lba, dialect | block, 2]);
}

/// Writes the sectors in turn, each through the next lane. Returns the number of sectors of the
/// BTT.
fn write(image: &Sparse, container: Container, sectors: &[(u64, u64)], bytes: u32) -> u64 {
    let btt = Btt::open(image, &OpenOptions::new(container)).expect("BTT that was just made");
    let mut worker = btt.worker();
    for &(lba, as_if) in sectors {
        worker.write(lba, &content(as_if, bytes)).expect("successful write");
    }
    drop(worker);
    for &(lba, as_if) in sectors {
        let mut data = vec![0; bytes as usize];
        btt.read(lba, &mut data).expect("successful read");
        assert_eq!(data, content(as_if, bytes));
    }
    btt.sectors()
}

/// One arena of each sector size of Linux, with metadata and without, and of some sizes of
/// libpmemblk.
#[test]
fn every_sector_size_has_its_published_layout() {
    // Linux's version 1.1 in 32 MiB. Blocks of 576 bytes hold 520 and 528, and blocks of 4160 hold
    // 4104 and 4160.
    let without_label = [
        sizes([512, 512, 64964, 64708, 33_267_712, 33_529_856, 33_546_240]),
        sizes([520, 576, 57795, 57539, 33_296_384, 33_529_856, 33_546_240]),
        sizes([528, 576, 57795, 57539, 33_296_384, 33_529_856, 33_546_240]),
        sizes([4104, 4160, 8050, 7794, 33_497_088, 33_529_856, 33_546_240]),
        sizes([4160, 4160, 8050, 7794, 33_497_088, 33_529_856, 33_546_240]),
        sizes([4224, 4224, 7928, 7672, 33_497_088, 33_529_856, 33_546_240]),
        // 33550336 - 8192 - 16384 - 4096 = 33521664; by 4100 it is 8176; the map of 7920 has 8
        // pages.
        sizes([4096, 4096, 8176, 7920, 33_497_088, 33_529_856, 33_546_240]),
    ];
    // Version 2.0, of 32 MiB: 33554432 - 28672 = 33525760, by 516, 580, 4100, 4164 and 4228.
    let with_label = [
        sizes([4096, 4096, 8177, 7921, 33_501_184, 33_533_952, 33_550_336]),
        // 64972; the map of 64716 entries has 64 pages: 33533952 - 262144.
        sizes([512, 512, 64972, 64716, 33_271_808, 33_533_952, 33_550_336]),
        // 57803; that of 57547 has 57 pages: 33533952 - 233472.
        sizes([520, 576, 57803, 57547, 33_300_480, 33_533_952, 33_550_336]),
        sizes([528, 576, 57803, 57547, 33_300_480, 33_533_952, 33_550_336]),
        // 8051 and 7929; maps of 8 pages: 33533952 - 32768.
        sizes([4104, 4160, 8051, 7795, 33_501_184, 33_533_952, 33_550_336]),
        sizes([4160, 4160, 8051, 7795, 33_501_184, 33_533_952, 33_550_336]),
        sizes([4224, 4224, 7929, 7673, 33_501_184, 33_533_952, 33_550_336]),
    ];
    // Pools of 32 MiB: 33546240 - 28672 = 33517568, by 516, 772, 1028 and 4100.
    let pool = [
        // 64956; the map of 64700 has 64 pages: 33525760 - 262144.
        sizes([512, 512, 64956, 64700, 33_263_616, 33_525_760, 33_542_144]),
        sizes([64, 512, 64956, 64700, 33_263_616, 33_525_760, 33_542_144]),
        // 43416; that of 43160 has 43: 33525760 - 176128.
        sizes([520, 768, 43416, 43160, 33_349_632, 33_525_760, 33_542_144]),
        // 32604; that of 32348 has 32: 33525760 - 131072.
        sizes([1000, 1024, 32604, 32348, 33_394_688, 33_525_760, 33_542_144]),
        // 8175; that of 7919 has 8.
        sizes([4096, 4096, 8175, 7919, 33_492_992, 33_525_760, 33_542_144]),
    ];
    for (container, all) in [
        (Container::Namespace, &without_label[..]),
        (Container::LabelledNamespace, &with_label),
        (Container::Pool, &pool),
    ] {
        let start = first_byte(container);
        for &sizes in all {
            let bytes = sizes.external as u32;
            let image = empty(container, bytes, 32 * MIB);
            assert_formatted(&image, container, start, sizes, 0);
            let last = sizes.external_count - 1;
            assert_eq!(write(&image, container, &[(5, 5), (last, last)], bytes), last + 1);
            assert_written(&image, container, start, sizes, (5, 0));
            assert_written(&image, container, start, sizes, (last, 1));
        }
    }
}

/// The smallest arena: 16 MiB, whatever follows its last whole page.
#[test]
fn an_arena_has_at_least_16_mib() {
    let least = sizes([512, 512, 32458, 32202, 16_625_664, 16_756_736, 16_773_120]);
    for more in [0, 1, 4095] {
        let image = empty(Container::LabelledNamespace, 512, 16 * MIB + more);
        assert_formatted(&image, Container::LabelledNamespace, 0, least, 0);
    }
    for container in [Container::Namespace, Container::Pool] {
        let start = first_byte(container);
        let image = empty(container, 512, 16 * MIB + start);
        assert_formatted(&image, container, start, least, 0);
        let format = images::format(container, 512);
        assert!(format.plan(16 * MIB + start - 1).is_err());
    }
}

/// Arenas of 512 GiB and a remainder, with writes to the sectors on both sides of each border.
#[test]
fn several_arenas_form_a_chain() {
    let whole = sizes([
        4096,
        4096,
        134_086_776,
        134_086_520,
        549_219_446_784,
        549_755_793_408,
        549_755_809_792,
    ]);
    // 512 GiB - 4096: one page less is one block less, as 549755785216 - 4096 over 4100 is
    // 134086775.03.
    let a_page_less = sizes([
        4096,
        4096,
        134_086_775,
        134_086_519,
        549_219_442_688,
        549_755_789_312,
        549_755_805_696,
    ]);
    // 64 MiB - 4096: 67104768 - 28672 = 67076096; by 4100 it is 16360; the map of 16104 has 16
    // pages.
    let rest = sizes([4096, 4096, 16360, 16104, 67_018_752, 67_084_288, 67_100_672]);
    // A pool's 24 MiB - 8192: 25157632 - 28672 = 25128960; it is 6129; that of 5873 has 6.
    let pools = sizes([4096, 4096, 6129, 5873, 25_112_576, 25_137_152, 25_153_536]);
    // 1.5 TiB, and 4 TiB with 15 MiB that stay unused.
    let cases: [(Container, u64, &[Sizes]); 4] = [
        (Container::Namespace, ARENA + 64 * MIB, &[whole, rest]),
        (Container::Pool, ARENA + 24 * MIB, &[whole, pools]),
        (Container::Namespace, 3 * ARENA, &[whole, whole, a_page_less]),
        (Container::LabelledNamespace, 8 * ARENA + 15 * MIB, &[whole; 8]),
    ];
    for (container, bytes, arenas) in cases {
        let image = empty(container, 4096, bytes);
        let starts = (0..).map(|n| first_byte(container) + n * ARENA);
        let starts: Vec<u64> = starts.take(arenas.len()).collect();
        for (n, &sizes) in arenas.iter().enumerate() {
            let next = if n + 1 == arenas.len() { 0 } else { ARENA };
            assert_formatted(&image, container, starts[n], sizes, next);
        }
        // The number of each sector in the device and in its arena; each goes through the next
        // lane.
        let mut sectors = Vec::new();
        let mut before = 0;
        for sizes in arenas {
            sectors.extend([0, sizes.external_count - 1].map(|lba| (before + lba, lba)));
            before += sizes.external_count;
        }
        assert_eq!(write(&image, container, &sectors, 4096), before);
        let written = (0_u64..).step_by(2).zip(starts.iter().zip(arenas));
        for (lane, (&start, &sizes)) in written {
            // The default design has 16 lanes for a thread, so a ninth arena would use the first
            // lane again.
            let last = sizes.external_count - 1;
            assert_written(&image, container, start, sizes, (0, lane));
            assert_written(&image, container, start, sizes, (last, lane + 1));
        }
    }
}

/// Sectors of 512 bytes in a whole arena: more than 2^29 of them, with a map of more than 2^32
/// bytes.
#[test]
fn a_map_may_exceed_4_gib() {
    // 549755813888 - 28672 = 549755785216; by 516 it is 1065418188.4; the map of 1065417932 entries
    // has 4261671728 bytes, which are 1040448 pages: 549755793408 - 4261675008.
    let sizes = sizes([
        512,
        512,
        1_065_418_188,
        1_065_417_932,
        545_494_118_400,
        549_755_793_408,
        549_755_809_792,
    ]);
    let image = empty(Container::LabelledNamespace, 512, ARENA);
    assert_formatted(&image, Container::LabelledNamespace, 0, sizes, 0);
    let last = sizes.external_count - 1;
    assert_eq!(write(&image, Container::LabelledNamespace, &[(last, last)], 512), last + 1);
    assert_written(&image, Container::LabelledNamespace, 0, sizes, (last, 0));
}

/// A truncated file, a larger file, and containers with the BTT of another kind of container.
#[test]
fn a_btt_is_found_only_where_its_container_puts_it() {
    let image = empty(Container::Namespace, 512, 32 * MIB);
    assert!(opens(&image, Container::Namespace));
    assert!(!opens(&image, Container::LabelledNamespace) && !opens(&image, Container::Pool));
    for bytes in [0, 1, 4096, 8191, 8192, 16 * MIB, 32 * MIB - 4096, 32 * MIB - 1] {
        assert!(!opens(&image.resized(bytes), Container::Namespace), "{bytes}");
    }
    assert!(
        opens(&image.resized(64 * MIB), Container::Namespace),
        "the space after the BTT is not read"
    );
    // The parent UUID counts if the container's UUID is known.
    let foreign =
        OpenOptions { own_uuid: Some(Uuid([5; 16])), ..OpenOptions::new(Container::Pool) };
    let pool = empty(Container::Pool, 512, 32 * MIB);
    assert!(opens(&pool, Container::Pool) && Btt::open(&pool, &foreign).is_err());
}

fn opens(image: &Sparse, container: Container) -> bool {
    Btt::open(image, &OpenOptions { policy: Policy::DEFAULT, ..OpenOptions::new(container) })
        .is_ok()
}
