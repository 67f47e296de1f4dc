//! The arenas of a BTT are one device, if they belong together: a device of two arenas, with a map
//! like a hole.

mod images;
mod intercepted_memory;

use blockyard_btt::arena::Arena;
use blockyard_btt::check::{Options, Problem, check};
use blockyard_btt::find::{FindError, Found};
use blockyard_btt::flog::{FlogEntry, SlotLayout};
use blockyard_btt::info_block::InfoBlock;
use blockyard_btt::{
    Btt, Container, IoError, MapEntry, MediaError, Memory, OpenError, OpenOptions, Policy,
    PostmapAba, PremapAba, Uuid, Version,
};
use core::cell::RefCell;
use core::ops::Range;
use images::{BYTES, Sparse, change_info, content, empty, found, put_entry, put_map};
use intercepted_memory::{Call, Intercepted};

const CONTAINER: Container = Container::LabelledNamespace;
const SECTOR: u32 = 4096;

/// Returns an image with an arena of 512 GiB and one of 16 MiB.
fn two_arenas() -> (Sparse, [Arena; 2]) {
    let mut image = empty(CONTAINER, SECTOR, (512 << 30) + BYTES);
    image.tells_holes = true;
    let arenas =
        found(&image, CONTAINER).into_iter().map(|Found { start, first_lba, info, .. }| {
            let slots = SlotLayout::Standard;
            let dialect = CONTAINER.dialect();
            Arena { start, first_lba, layout: info.layout, slots, dialect }
        });
    let arenas: Vec<_> = arenas.collect();
    (image, arenas.try_into().expect("two arenas"))
}

fn open<M: Memory>(memory: M) -> Result<Btt<M>, OpenError> {
    Btt::open(memory, &OpenOptions::new(CONTAINER))
}

/// Asserts that sectors can be written and read on both sides of the border.
fn assert_usable(image: &Sparse, border: u64) {
    let btt =
        Btt::open(image, &OpenOptions { policy: Policy::LINUX, ..OpenOptions::new(CONTAINER) })
            .expect("an undamaged BTT");
    let sectors = border - 300..border + 300;
    for lba in sectors.clone() {
        btt.write(lba, &content(lba, SECTOR)).expect("successful write");
    }
    for lba in sectors {
        let mut to = vec![0; SECTOR as usize];
        btt.read(lba, &mut to).expect("successful read");
        assert!(to == content(lba, SECTOR), "sector {lba}");
    }
    drop(btt);
    let (report, _) = check(image, &Options::new(CONTAINER), &mut |_| {}).expect("a check");
    assert_eq!(report.findings(), []);
}

/// No known implementation makes such arenas, and the format allows them.
#[test]
fn arenas_may_have_different_numbers_of_lanes() {
    let (image, [first, second]) = two_arenas();
    let border = second.first_lba;
    assert_eq!(border, u64::from(first.layout.external_nlba));
    // The last free block becomes that of a sector more.
    let mut layout = second.layout;
    (layout.nfree, layout.external_nlba) = (255, layout.external_nlba + 1);
    let info = found(&image, CONTAINER)[1].info;
    let bytes = InfoBlock { layout, ..info }.to_bytes();
    image.put(second.start, &bytes);
    image.put(second.start + layout.infooff, &bytes);
    for lane in 0..255 {
        let entry = FlogEntry::first(lane, layout.external_nlba + lane);
        put_entry(&image, second.entry_at(lane, 0), entry);
    }
    put_entry(&image, second.entry_at(255, 0), FlogEntry::default());
    assert_usable(&image, border);
}

#[test]
fn a_range_of_sectors_may_cross_the_border_of_arenas() {
    let (image, [first, second]) = two_arenas();
    let border = second.first_lba;
    let calls = RefCell::new(Vec::new());
    let btt = open(Intercepted {
        memory: &image,
        intercept: |call| {
            if let Call::WriteBack(bytes) = call {
                calls.borrow_mut().push(bytes);
            }
            Ok(())
        },
    })
    .expect("an undamaged BTT");
    btt.write(border - 1, &[7; 2 * SECTOR as usize]).expect("successful write");
    let runs: Vec<u64> = btt.runs(border - 3..border + 3).flatten().collect();
    assert_eq!(runs, [border - 1, border]);
    assert!(btt.runs(0..border - 1).next().is_none());
    assert!(btt.runs(border + 1..btt.sectors()).next().is_none());
    calls.borrow_mut().clear();
    btt.set_zero(border - 2, 5).expect("successful zeroing");
    let last = first.map_at(PremapAba(first.layout.external_nlba - 2));
    let next = second.map_at(PremapAba(0));
    assert_eq!(calls.take(), [last..last + 8, next..next + 12]);
    drop(btt);
    assert_usable(&image, border);
}

#[test]
fn arenas_of_one_btt_have_the_same_uuids_and_sizes() {
    let (whole, [_, second]) = two_arenas();
    let info = found(&whole, CONTAINER)[1].info;
    let changes: [fn(&mut InfoBlock); 4] = [
        |info| info.uuid = Uuid([3; 16]),
        |info| info.parent_uuid = Uuid([3; 16]),
        |info| info.layout.external_lbasize = 4095,
        |info| {
            info.layout.internal_lbasize = 4352;
            info.layout.internal_nlba -= 300;
            info.layout.external_nlba -= 300;
        },
    ];
    for change in changes {
        let image = whole.clone();
        let mut other = info;
        change(&mut other);
        image.put(second.start, &other.to_bytes());
        let refused = OpenError::Find(FindError::Foreign { start: second.start });
        assert_eq!(open(&image).err(), Some(refused), "{other:?}");
        let (report, _) = check(&image, &Options::new(CONTAINER), &mut |_| {}).expect("a check");
        assert_eq!((report.arenas, report.findings()[0].problem), (1, Problem::Foreign));
    }
}

#[test]
fn a_btt_of_another_container_is_refused() {
    let image = empty(CONTAINER, SECTOR, BYTES);
    let other = image.clone();
    change_info(&other, CONTAINER, |info| info.version = Version::V1);
    let version = FindError::Version { found: Version::V1, wanted: Version::V2 };
    assert_eq!(open(&other).err(), Some(OpenError::Find(version)));
    change_info(&image, CONTAINER, |info| info.parent_uuid = Uuid([3; 16]));
    assert_eq!(refusal(&image, 3), None);
    let parent = FindError::Parent { found: Uuid([3; 16]), wanted: Uuid([4; 16]) };
    assert_eq!(refusal(&image, 4), Some(OpenError::Find(parent)));
}

fn refusal(image: &Sparse, own: u8) -> Option<OpenError> {
    let own_uuid = Some(Uuid([own; 16]));
    Btt::open(image, &OpenOptions { own_uuid, ..OpenOptions::new(CONTAINER) }).err()
}

/// The map entry is durable before anything else is written.
#[test]
fn a_finished_write_is_durable_when_the_btt_is_open() {
    let image = empty(CONTAINER, SECTOR, BYTES);
    let arena = images::arena(&image, CONTAINER);
    assert_eq!(durable_changes(&image), [], "nothing is to be finished");
    let block = arena.layout.external_nlba + 5;
    let cut = FlogEntry { lba: 9, old_map: 9, new_map: block, seq: 2 };
    put_entry(&image, arena.entry_at(5, 1), cut);
    let at = arena.map_at(PremapAba(9));
    assert_eq!(durable_changes(&image), [Some(at..at + 4), None]);
}

fn durable_changes(image: &Sparse) -> Vec<Option<Range<u64>>> {
    let calls = RefCell::new(Vec::new());
    open(Intercepted {
        memory: image,
        intercept: |call| {
            match call {
                Call::WriteBack(bytes) => calls.borrow_mut().push(Some(bytes)),
                Call::Fence => calls.borrow_mut().push(None),
                _ => {}
            }
            Ok(())
        },
    })
    .expect("an undamaged BTT");
    calls.into_inner()
}

/// A sector that cannot be read, or perhaps cannot, counts as data.
#[test]
fn sectors_that_cannot_be_read_are_in_runs() {
    let image = empty(CONTAINER, SECTOR, BYTES);
    let arena = images::arena(&image, CONTAINER);
    put_map(&image, &arena, 20, MapEntry::default().zeroed(PremapAba(20)));
    let beyond = PostmapAba(arena.layout.internal_nlba);
    put_map(&image, &arena, 30, MapEntry::default().zeroed(PremapAba(beyond.0)));
    let btt = open(&image).expect("an undamaged BTT");
    assert_eq!(btt.read(30, &mut [0; SECTOR as usize]), Err(IoError::Map));
    assert!(btt.runs(0..100).flatten().eq([30]));
    let map = arena.layout.mapoff..arena.layout.flogoff;
    let btt = open(Intercepted {
        memory: &image,
        intercept: |call| match call {
            Call::Read(at) if map.contains(&at) => Err(MediaError::Bad),
            _ => Ok(()),
        },
    })
    .expect("an undamaged BTT");
    assert!(btt.runs(10..40).flatten().eq(10..40), "a map that the medium lost");
}
