//! Formatting memory that has old bytes, byte by byte: the parts that belong to an empty BTT have
//! its contents, and no other byte changes, neither in the memory nor beyond its end.
//!
//! The length of the log was wrong in a planted fault, and no test noticed: formatting zeroed bytes
//! behind the arena.

use blockyard_btt::layout::{ARENA_BYTES_MIN, Layout};
use blockyard_btt::ram::Ram;
use blockyard_btt::{Btt, Container, Format, Memory, OpenOptions, Uuid};
use core::ops::Range;

const OLD: u8 = 0xa5;
const PAGE: u64 = 4096;

fn bytes(ram: &Ram) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(ram.len()).expect("a small memory")];
    ram.read(0, &mut bytes).expect("memory can be read");
    bytes
}

/// Returns the bytes that formatting may change: the two info blocks, the map, and the log.
fn own(start: u64, layout: &Layout) -> [Range<u64>; 4] {
    let map_bytes = u64::from(layout.external_nlba) * 4;
    let log_bytes = u64::from(layout.nfree) * 64;
    [
        0..PAGE,
        layout.mapoff..layout.mapoff + map_bytes,
        layout.flogoff..layout.flogoff + log_bytes,
        layout.infooff..layout.infooff + PAGE,
    ]
    .map(|part| start + part.start..start + part.end)
}

#[test]
fn old_bytes_are_replaced_within_the_parts_and_kept_between_them() {
    for (container, sector_bytes) in [
        (Container::LabelledNamespace, 512),
        (Container::Namespace, 4096),
        (Container::Namespace, 4160),
        (Container::Pool, 512),
    ] {
        let before = container.first_arena();
        // No whole number of pages: the last bytes belong to no arena. Behind the container, there
        // is other memory.
        let len = before + ARENA_BYTES_MIN + 2 * PAGE + 1000;
        let ram = Ram::new(len);
        ram.write(0, &vec![OLD; usize::try_from(len).expect("a small memory")]).expect("a write");
        let uuid = Uuid([1; 16]);
        let parent_uuid = Uuid([9; 16]);
        let format = Format { container, sector_bytes, uuid, parent_uuid, blank: false };
        let plan = format.plan(len).expect("plan of a possible BTT");
        let [(start, info)] = plan[..] else { panic!("one arena") };
        assert_eq!((start, info.nextoff), (before, 0));
        let layout = info.layout;
        format.write(&ram).expect("an empty BTT");
        let found = bytes(&ram);
        let [first, map, log, copy] = own(start, &layout);
        assert_eq!(bytes_of(&found, &first), info.to_bytes(), "the info block");
        assert_eq!(bytes_of(&found, &copy), info.to_bytes(), "its copy");
        // An entry with only bit 31 is a sector that reads as zeroes, in its own block.
        for (lba, entry) in (0_u32..).zip(bytes_of(&found, &map).chunks_exact(4)) {
            assert_eq!(entry, (0x8000_0000 | lba).to_le_bytes(), "sector {lba}");
        }
        for (lane, group) in (0_u32..).zip(bytes_of(&found, &log).chunks_exact(64)) {
            let block = layout.external_nlba + lane;
            let block = if container == Container::Pool { 0x8000_0000 | block } else { block };
            let entry = [lane, block, block, 1].map(u32::to_le_bytes).concat();
            assert_eq!((&group[..16], &group[16..]), (&entry[..], &[0; 48][..]), "lane {lane}");
        }
        let mut kept = 0;
        for part in own(start, &layout) {
            let is_old = bytes_of(&found, &(kept..part.start)).iter().all(|byte| *byte == OLD);
            assert!(is_old, "bytes {kept} to {} belong to no part: {container:?}", part.start);
            kept = part.end;
        }
        assert!(
            bytes_of(&found, &(kept..len)).iter().all(|byte| *byte == OLD),
            "bytes behind the arena"
        );
        let btt = Btt::open(&ram, &OpenOptions::new(container)).expect("an empty BTT");
        let mut sector = vec![1; sector_bytes as usize];
        for lba in [0, btt.sectors() - 1] {
            btt.read(lba, &mut sector).expect("a sector of an empty BTT");
            assert!(sector.iter().all(|byte| *byte == 0), "old data in sector {lba}");
        }
    }
}

fn bytes_of<'a>(found: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap());
    &found[start..end]
}
