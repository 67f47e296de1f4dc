//! Images of a BTT with every kind of damage. Opening one works or is refused with the right error,
//! a check reports the damage and its position, and a repair corrects what is certain, whenever the
//! power goes meanwhile.

mod images;
mod intercepted_memory;

use blockyard_btt::arena::Arena;
use blockyard_btt::check::{Options, Problem, Progress, Report, Severity, check};
use blockyard_btt::find::FindError;
use blockyard_btt::flog::{FlogEntry, FlogError, SlotLayout};
use blockyard_btt::info_block::{InfoBlock, InfoError};
use blockyard_btt::recover::RecoverError;
use blockyard_btt::repair::{Plan, Step};
use blockyard_btt::{
    Btt, Container, Dialect, IoError, MapEntry, Memory, OpenError, OpenOptions, PostmapAba,
    PremapAba, Uuid, Version,
};
use core::cell::RefCell;
use images::{
    BYTES, PAGE, Sparse, WRITTEN, arena, change_info, content, empty, entries, found, put_entry,
    put_map, used,
};
use intercepted_memory::{Call, Intercepted};
use std::collections::BTreeSet;

const NAMESPACE: Container = Container::LabelledNamespace;
const SECTOR: u32 = 4096;

fn checked(image: &Sparse, container: Container) -> (Report, Plan) {
    let before = image.clone();
    let checked =
        check(image, &Options::new(container), &mut |_| {}).expect("check of a readable image");
    assert!(image.same(&before), "a check writes nothing");
    checked
}

fn problems(report: &Report) -> Vec<Problem> {
    report.findings().iter().map(|finding| finding.problem).collect()
}

fn open(image: &Sparse) -> Result<Btt<&Sparse>, OpenError> {
    let before = image.clone();
    let opened = Btt::open(image, &OpenOptions::new(NAMESPACE));
    if opened.is_err() {
        assert!(image.same(&before), "[refused-arena-untouched]");
    }
    opened
}

/// Reads the first sectors without writing anything.
fn contents(image: &Sparse) -> Option<Vec<Result<Vec<u8>, IoError>>> {
    let options = OpenOptions { read_only: true, ..OpenOptions::new(NAMESPACE) };
    let image = image.clone();
    let btt = Btt::open(&image, &options).ok()?;
    let sectors = 0..WRITTEN + 4;
    Some(sectors.map(|lba| read(&btt, lba)).collect())
}

fn read(btt: &Btt<&Sparse>, lba: u64) -> Result<Vec<u8>, IoError> {
    let mut to = vec![0; btt.sector_bytes() as usize];
    btt.read(lba, &mut to).map(|()| to)
}

/// Returns a used image, its only arena, and the contents of its first sectors.
fn good() -> (Sparse, Arena, Vec<Result<Vec<u8>, IoError>>) {
    let image = used(NAMESPACE, SECTOR);
    let arena = arena(&image, NAMESPACE);
    let good = contents(&image).expect("an undamaged BTT");
    assert_eq!(good[5], Ok(content(5, SECTOR)));
    (image, arena, good)
}

/// Repairs an image. Nothing is left to repair then, and every readable sector is unchanged. After
/// a power cut at any word, another repair leads to the same bytes ([repair-steps-durable]).
fn repaired(image: &Sparse) -> Sparse {
    let (before, plan) = checked(image, NAMESPACE);
    let whole = image.clone();
    whole.power_for(None);
    plan.apply(&whole, &mut || {}).expect("successful write");
    let words = whole.written();
    let (after, rest) = checked(&whole, NAMESPACE);
    assert_eq!(rest.steps(), [], "a second repair has nothing to do");
    assert_eq!(after.count(Severity::Repairable), 0, "{:?}", after.findings());
    assert!(after.count(Severity::Broken) <= before.count(Severity::Broken));
    if let Some(read) = contents(image) {
        assert_eq!(contents(&whole), Some(read));
    }
    for power in 0..words {
        let cut = image.clone();
        cut.power_for(Some(power));
        plan.apply(&cut, &mut || {})
            .expect("success, because the writer does not notice the power cut");
        cut.power_for(None);
        let (report, plan) = checked(&cut, NAMESPACE);
        assert!(
            report.worst() <= before.worst(),
            "worse after {power} words: {:?}",
            report.findings()
        );
        if contents(image).is_some() {
            assert_eq!(contents(&cut), contents(image), "after {power} words");
        }
        if let Some(read) = contents(&cut) {
            assert_eq!(Some(read), contents(&whole), "after {power} words");
        }
        plan.apply(&cut, &mut || {}).expect("successful write");
        assert!(cut.same(&whole), "cut after {power} words");
    }
    whole
}

/// Asserts that nothing is planned for a broken image.
fn assert_left_alone(image: &Sparse) -> Report {
    let (report, plan) = checked(image, NAMESPACE);
    assert_eq!(report.worst(), Some(Severity::Broken), "{:?}", report.findings());
    assert_eq!(plan.steps(), []);
    report
}

fn equal_pair(image: &Sparse, arena: &Arena, lane: u32) {
    let mut pair = entries(image, arena, lane);
    pair[0].seq = 1;
    pair[1].seq = 1;
    (0..2).for_each(|slot| put_entry(image, arena.entry_at(lane, slot), pair[slot]));
}

/// Progress is told every 16384 sectors, and at the end of an arena.
#[test]
fn a_check_tells_its_progress() {
    for image in [empty(NAMESPACE, 512, 2 * BYTES), used(NAMESPACE, 512)] {
        let of = arena(&image, NAMESPACE).layout.external_nlba;
        let told = RefCell::new(Vec::new());
        let tell = &mut |progress: Progress| told.borrow_mut().push((progress.done, progress.of));
        check(&image, &Options::new(NAMESPACE), tell).expect("check of a readable image");
        let steps = (1..=of / 16384).map(|step| step * 16384);
        let expected: BTreeSet<_> = steps.chain([of]).map(|done| (done, of)).collect();
        assert!(expected.len() > 1, "an image of {of} sectors");
        assert_eq!(told.borrow().iter().copied().collect::<BTreeSet<_>>(), expected);
    }
}

/// An info block is another arena's if it is where the size of the image puts the copy, but puts
/// its copy elsewhere itself.
#[test]
fn a_copy_that_puts_itself_elsewhere_does_not_count() {
    let image = empty(NAMESPACE, SECTOR, 2 * BYTES);
    let smaller = found(&empty(NAMESPACE, SECTOR, BYTES), NAMESPACE)[0].info;
    let arena = arena(&image, NAMESPACE);
    image.put(arena.start, &[0; 4096]);
    image.put(arena.start + arena.layout.infooff, &smaller.to_bytes());
    let Err(OpenError::Find(FindError::NoInfo { copy, .. })) = open(&image) else {
        panic!("{:?}", open(&image).err())
    };
    assert_eq!(copy, InfoError::Field("infooff"));
}

/// [repair-steps-durable]: nothing is written before what was written elsewhere is durable.
#[test]
fn each_step_of_a_repair_waits_until_the_one_before_is_durable() {
    let marked = good().0;
    change_info(&marked, NAMESPACE, |info| info.error = true);
    let (_, mut plan) = checked(&marked, NAMESPACE);
    plan.clear_error_marks();
    assert!(!plan.steps().is_empty());
    let calls = RefCell::new(Vec::new());
    let memory = Intercepted {
        memory: &marked,
        intercept: |call| {
            match call {
                Call::Write(_) => calls.borrow_mut().push('w'),
                Call::Fence => calls.borrow_mut().push('f'),
                _ => {}
            }
            Ok(())
        },
    };
    plan.apply(&memory, &mut || {}).expect("success");
    let calls: String = calls.into_inner().into_iter().collect();
    assert!(calls.starts_with("wfwf") && !calls.contains("ww"), "{calls}");
}

#[test]
fn images_without_damage_are_clean() {
    let sizes = [
        (Container::Namespace, 512),
        (Container::Namespace, 4104),
        (Container::LabelledNamespace, 520),
        (Container::LabelledNamespace, 4096),
        (Container::Pool, 512),
        (Container::Pool, 1000),
    ];
    for (container, bytes) in sizes {
        let images =
            [empty(container, bytes, BYTES + container.first_arena()), used(container, bytes)];
        for image in images {
            let (report, plan) = checked(&image, container);
            assert_eq!(problems(&report), [], "{container:?}");
            assert_eq!((report.arenas, plan.steps()), (1, &[][..]));
            let sectors = u64::from(arena(&image, container).layout.external_nlba);
            assert_eq!(report.sectors, sectors);
        }
    }
}

#[test]
fn a_damaged_first_info_block_is_replaced_by_its_copy() {
    let (image, arena, good) = good();
    let whole = image.clone();
    for (at, error) in
        [(3, InfoError::Signature), (60, InfoError::Checksum), (4090, InfoError::Checksum)]
    {
        let image = image.clone();
        image.put(arena.start + at, &[0xff]);
        assert_eq!(contents(&image), Some(good.clone()), "the copy is used");
        let (report, plan) = checked(&image, NAMESPACE);
        assert_eq!(problems(&report), [Problem::FirstInfo(error)]);
        assert_eq!((report.worst(), report.at_risk()), (Some(Severity::Repairable), 1));
        let to = arena.start;
        let from = to + arena.layout.infooff;
        assert_eq!(plan.steps(), [Step::CopyInfo { arena: 0, from, to }]);
        assert!(repaired(&image).same(&whole));
    }
    image.lose(arena.start, 64);
    assert_eq!(problems(&checked(&image, NAMESPACE).0), [Problem::FirstInfo(InfoError::Signature)]);
    assert!(repaired(&image).same(&whole), "a write repairs lost bytes");
}

#[test]
fn a_damaged_copy_is_replaced_by_the_first_info_block() {
    let (image, arena, _) = good();
    let whole = image.clone();
    image.put(arena.start + arena.layout.infooff + 100, &[1]);
    open(&image).expect("BTT whose copy is not needed");
    let (report, _) = checked(&image, NAMESPACE);
    assert_eq!(problems(&report), [Problem::CopyInfo(InfoError::Checksum)]);
    assert_eq!(report.at_risk(), 0);
    assert!(repaired(&image).same(&whole));
}

#[test]
fn of_two_intact_info_blocks_the_first_counts_if_everything_else_fits() {
    let (image, arena, _) = good();
    let whole = image.clone();
    let mut other = found(&image, NAMESPACE)[0].info;
    other.uuid = Uuid([3; 16]);
    image.put(arena.start + arena.layout.infooff, &other.to_bytes());
    assert_eq!(problems(&checked(&image, NAMESPACE).0), [Problem::CopyDiffers]);
    assert!(repaired(&image).same(&whole));
    put_map(&image, &arena, 0, MapEntry::normal(PostmapAba(9)));
    put_map(&image, &arena, 1, MapEntry::normal(PostmapAba(9)));
    let report = assert_left_alone(&image);
    assert_eq!(report.findings()[0].problem, Problem::CopyDiffers);
}

/// Returns an info block with changed bytes and a matching checksum.
fn with_checksum(mut bytes: [u8; 4096], at: usize, to: &[u8]) -> [u8; 4096] {
    bytes[at..at + to.len()].copy_from_slice(to);
    let mut low = 0_u32;
    let mut high = 0_u32;
    for (n, word) in bytes.chunks_exact(4).enumerate() {
        let word = u32::from_le_bytes(word.try_into().expect("four bytes"));
        low = low.wrapping_add(if n < 1022 { word } else { 0 });
        high = high.wrapping_add(low);
    }
    bytes[4088..].copy_from_slice(&(u64::from(high) << 32 | u64::from(low)).to_le_bytes());
    bytes
}

/// An unfinished format leaves a first info block of another version or size than the copy says.
#[test]
fn an_intact_first_info_block_counts_whatever_it_says() {
    let (image, arena, _) = good();
    let first = image.bytes(arena.start);
    for (at, to, error) in [
        (52, &[3][..], InfoError::Version { major: 3, minor: 0 }),
        (54, &[1], InfoError::Version { major: 2, minor: 1 }),
        (52, &[1], InfoError::Version { major: 1, minor: 0 }),
        (72, &[0; 4], InfoError::Field("nfree")),
    ] {
        let image = image.clone();
        image.put(arena.start, &with_checksum(first, at, to));
        let refused = OpenError::Find(FindError::Info { start: arena.start, error });
        assert_eq!(open(&image).err(), Some(refused));
        assert_eq!(problems(&assert_left_alone(&image)), [Problem::FirstInfo(error)]);
    }
}

#[test]
fn without_any_info_block_there_is_no_btt() {
    let (image, arena, _) = good();
    image.put(arena.start + 7, &[0xee]);
    image.put(arena.start + arena.layout.infooff + 70, &[0xee]);
    assert!(matches!(open(&image).err(), Some(OpenError::Find(_))));
    let report = assert_left_alone(&image);
    let first = InfoError::Signature;
    let copy = InfoError::Checksum;
    assert_eq!(problems(&report), [Problem::NoInfo { first, copy }]);
}

#[test]
fn a_truncated_container_is_reported_with_its_size() {
    let image = empty(NAMESPACE, 4096, 2 * BYTES);
    let cut = image.resized(2 * BYTES - PAGE);
    assert!(open(&cut).is_err());
    assert_eq!(problems(&assert_left_alone(&cut)), [Problem::Truncated { needs: 2 * BYTES }]);
    let cut = image.resized(BYTES - 1);
    assert!(open(&cut).is_err());
    assert_eq!(problems(&assert_left_alone(&cut)), [Problem::TooSmall]);
    for bytes in [0, 1, 4095, 4096] {
        assert_eq!(problems(&assert_left_alone(&image.resized(bytes))), [Problem::TooSmall]);
    }
    let grown = image.resized(3 * BYTES);
    let (report, _) = checked(&grown, NAMESPACE);
    assert_eq!(problems(&report), [Problem::UnusedSpace { bytes: BYTES }]);
    assert!(report.is_clean());
}

#[test]
fn another_version_or_owner_is_reported_and_left_alone() {
    let (image, _, _) = good();
    let other = image.clone();
    change_info(&other, NAMESPACE, |info| info.version = Version::V1);
    let wanted = Version::V2;
    assert_eq!(
        problems(&assert_left_alone(&other)),
        [Problem::Version { found: Version::V1, wanted }]
    );
    let found = Uuid([4; 16]);
    change_info(&image, NAMESPACE, |info| info.parent_uuid = found);
    let wanted = Uuid([5; 16]);
    let options = Options { own_uuid: Some(wanted), ..Options::new(NAMESPACE) };
    let (report, plan) = check(&image, &options, &mut |_| {}).expect("check of a readable image");
    assert_eq!(problems(&report), [Problem::Parent { found, wanted }]);
    assert_eq!((report.arenas, report.sectors, plan.steps()), (0, 0, &[][..]));
    assert!(checked(&image, NAMESPACE).0.is_clean(), "any owner is accepted if none is given");
}

#[test]
fn an_arena_of_another_btt_is_refused() {
    let image = empty(NAMESPACE, SECTOR, (512 << 30) + BYTES);
    let second = found(&image, NAMESPACE)[1];
    let other = InfoBlock { uuid: Uuid([3; 16]), ..second.info };
    image.put(second.start, &other.to_bytes());
    image.put(second.start + second.info.layout.infooff, &other.to_bytes());
    let refused = OpenError::Find(FindError::Foreign { start: second.start });
    assert_eq!(open(&image).err(), Some(refused));
    assert_eq!(problems(&assert_left_alone(&image)), [Problem::Foreign]);
}

/// On request, and with a power cut at any word.
#[test]
fn a_broken_mark_is_removed_if_nothing_else_is_wrong() {
    let (image, arena, good) = good();
    let before = image.clone();
    change_info(&image, NAMESPACE, |info| info.error = true);
    let plan = plan_without_marks(&image);
    assert!(matches!(plan.steps(), [Step::ClearError { arena: 0, .. }]));
    for power in (0..=1024).step_by(37) {
        let cut = image.clone();
        cut.power_for(Some(power));
        plan.apply(&cut, &mut || {})
            .expect("success, because the writer does not notice the power cut");
        cut.power_for(None);
        let btt = open(&cut).expect("BTT with one intact info block at every moment");
        assert_eq!(read(&btt, 5), good[5]);
        drop(btt);
        plan_without_marks(&cut).apply(&cut, &mut || {}).expect("successful write");
        assert!(cut.same(&before), "cut after {power} words");
    }
    // Other damage is repaired first. If it cannot be, it stays, and so does the mark.
    let torn = image.clone();
    torn.write(arena.start + 20, &[0xff]).expect("successful write");
    let plan = plan_without_marks(&torn);
    assert!(
        matches!(plan.steps(), [Step::CopyInfo { .. }, Step::ClearError { .. }]),
        "{:?}",
        plan.steps()
    );
    plan.apply(&torn, &mut || {}).expect("successful write");
    assert!(torn.same(&before));
    let twice = image.clone();
    let entry = arena.load_map_entry(&twice, PremapAba(5)).expect("successful read");
    twice.store(arena.map_at(PremapAba(6)), entry.0).expect("successful store");
    assert_eq!(plan_without_marks(&twice).steps(), [], "two sectors with one block");
}

fn plan_without_marks(image: &Sparse) -> Plan {
    let (_, mut plan) = checked(image, NAMESPACE);
    plan.clear_error_marks();
    plan
}

/// A copy that is sound by itself, but says that the copy is elsewhere, belongs to another arena.
#[test]
fn a_copy_that_names_another_place_is_not_used() {
    let (image, arena, _) = good();
    let mut other = found(&image, NAMESPACE)[0].info;
    let copy_at = arena.start + other.layout.infooff;
    // A shorter log leaves room for the copy to begin earlier.
    other.layout.nfree -= 6;
    other.layout.external_nlba += 6;
    other.layout.infooff -= 8;
    image.put(copy_at, &other.to_bytes());
    image.put(arena.start, &[0; 4096]);
    let first = InfoError::Signature;
    let copy = InfoError::Field("infooff");
    assert_eq!(problems(&assert_left_alone(&image)), [Problem::NoInfo { first, copy }]);
}

#[test]
fn a_broken_mark_and_nonzero_unused_bytes_are_reported() {
    let (image, arena, good) = good();
    change_info(&image, NAMESPACE, |info| info.error = true);
    let report = assert_left_alone(&image);
    assert_eq!(problems(&report), [Problem::ErrorFlag]);
    assert_eq!(report.findings()[0].at, arena.start + 48, "the field of flags");
    let btt = open(&image).expect("check of a readable image");
    assert_eq!(read(&btt, 5), good[5]);
    assert_eq!(btt.write(5, &[0; SECTOR as usize]), Err(IoError::ReadOnly));
    drop(btt);

    let image = used(NAMESPACE, SECTOR);
    // A byte outside all fields, and a checksum that counts it.
    let bytes = with_checksum(image.bytes(arena.start), 2000, &[1]);
    image.put(arena.start, &bytes);
    image.put(arena.start + arena.layout.infooff, &bytes);
    let (report, _) = checked(&image, NAMESPACE);
    assert_eq!(problems(&report), [Problem::NonzeroUnused]);
    assert_eq!(report.findings()[0].at, arena.start + 2000);
    assert!(report.is_clean() && open(&image).is_ok());
}

#[test]
fn sizes_that_overflow_are_refused() {
    let (image, _, _) = good();
    type Change = fn(&mut InfoBlock);
    let changes: [(Change, &str); 7] = [
        (|i| i.layout.internal_lbasize = u32::MAX, "internal_nlba"),
        (|i| i.layout.internal_nlba = u32::MAX, "internal_nlba"),
        (|i| i.layout.nfree = u32::MAX, "nfree"),
        (|i| i.layout.mapoff = u64::MAX - 63, "mapoff"),
        (|i| i.layout.flogoff = u64::MAX - 63, "flogoff"),
        (|i| i.layout.infooff = u64::MAX - 4095, "infooff"),
        (|i| i.layout.dataoff = u64::MAX - 7, "dataoff"),
    ];
    for (change, field) in changes {
        let image = image.clone();
        change_info(&image, NAMESPACE, change);
        assert!(open(&image).is_err());
        let first = InfoError::Field(field);
        let found = problems(&assert_left_alone(&image));
        assert_eq!(found, [Problem::NoInfo { first, copy: first }]);
    }
}

#[test]
fn a_chain_of_arenas_that_loops_is_refused() {
    let (image, _, _) = good();
    // To itself, backwards by overflow, and into the middle of itself ([info-fields-consistent]).
    for nextoff in [4096, 0_u64.wrapping_sub(4096), BYTES / 2] {
        let image = image.clone();
        change_info(&image, NAMESPACE, |info| info.nextoff = nextoff);
        assert!(open(&image).is_err());
        let first = InfoError::Field("nextoff");
        assert_eq!(problems(&assert_left_alone(&image)), [Problem::NoInfo { first, copy: first }]);
    }
}

#[test]
fn map_entries_out_of_range_get_the_unowned_blocks() {
    let (image, arena, mut good) = good();
    let blocks = arena.layout.internal_nlba;
    for (lba, entry) in [(2, MapEntry::normal(PostmapAba(blocks))), (7, MapEntry(0xffff_ffff))] {
        put_map(&image, &arena, lba, entry);
        let btt = open(&image).expect("BTT with a valid log");
        assert_eq!(read(&btt, u64::from(lba)), Err(IoError::Map));
    }
    let (report, _) = checked(&image, NAMESPACE);
    let found = problems(&report);
    assert!(found.contains(&Problem::BadMapEntry { sector: 7, entry: MapEntry(0xffff_ffff) }));
    assert_eq!(found.iter().filter(|p| matches!(p, Problem::Unowned { .. })).count(), 2);
    assert_eq!(report.count(Severity::Repairable), 4);
    let (_, plan) = checked(&image, NAMESPACE);
    plan.apply(&image, &mut || {}).expect("successful write");
    assert_eq!(problems(&checked(&image, NAMESPACE).0), []);
    for lba in [2, 7] {
        good[lba] = Err(IoError::Lost);
    }
    assert_eq!(contents(&image), Some(good));
    let btt = open(&image).expect("an undamaged BTT");
    btt.write(7, &content(7, SECTOR)).expect("write to a sector that was marked as lost");
    assert_eq!(read(&btt, 7), Ok(content(7, SECTOR)));
}

/// [owners-add-up].
#[test]
fn a_block_of_two_sectors_is_left_alone() {
    let (image, arena, _) = good();
    let entry = arena.load_map_entry(&image, PremapAba(3)).expect("successful read");
    let block = entry.block(PremapAba(3));
    put_map(&image, &arena, 900, entry);
    let report = assert_left_alone(&image);
    let twice = Problem::TwoSectors { block, sector: 3, other: 900 };
    assert_eq!(problems(&report), [twice, Problem::Unowned { block: PostmapAba(900) }]);
    assert_eq!(report.findings()[0].at, arena.block_at(block));
    assert_eq!(report.at_risk(), 1);
}

#[test]
fn a_block_of_two_sectors_is_found_far_away() {
    for tells_holes in [false, true] {
        for (near, far) in [(3, 20_000), (20_000, 3)] {
            let mut image = empty(Container::Namespace, 512, BYTES + PAGE);
            image.tells_holes = tells_holes;
            let arena = arena(&image, Container::Namespace);
            put_map(&image, &arena, near, MapEntry::normal(PostmapAba(far)));
            let (report, _) = checked(&image, Container::Namespace);
            let sector = u64::from(near.min(far));
            let other = u64::from(near.max(far));
            let twice = Problem::TwoSectors { block: PostmapAba(far), sector, other };
            assert_eq!(problems(&report), [twice, Problem::Unowned { block: PostmapAba(near) }]);
        }
    }
}

#[test]
fn all_findings_are_counted_and_the_first_ones_kept() {
    let (image, arena, _) = good();
    for lba in 0..arena.layout.external_nlba {
        put_map(&image, &arena, lba, MapEntry::normal(PostmapAba(1)));
    }
    let options = Options { keep: 10, ..Options::new(NAMESPACE) };
    let (report, _) = check(&image, &options, &mut |_| {}).expect("check of a readable image");
    assert_eq!(report.findings().len(), 10);
    // Every sector but the first shares the block, and leaves its own block unowned.
    assert_eq!(report.count(Severity::Broken), 2 * u64::from(arena.layout.external_nlba - 1));
}

#[test]
fn a_block_of_a_sector_and_a_lane_is_left_alone() {
    let (image, arena, _) = good();
    let lane = 200;
    let free = entries(&image, &arena, lane)[0].old_block();
    put_map(&image, &arena, 50, MapEntry::normal(free));
    let report = assert_left_alone(&image);
    assert_eq!(problems(&report)[0], Problem::SectorAndLane { block: free, sector: 50, lane });
    let options = Options { keep: 0, ..Options::new(NAMESPACE) };
    let (none, _) = check(&image, &options, &mut |_| {}).expect("check of a readable image");
    assert_eq!(none.findings(), []);
    assert_eq!(counts(&none), counts(&report), "all are counted");
}

fn counts(report: &Report) -> (u64, u64) {
    (report.count(Severity::Broken), report.at_risk())
}

/// [sequence-orders-entries].
#[test]
fn lanes_with_impossible_sequence_numbers_get_a_new_log() {
    let pairs = [[1, 1], [2, 2], [3, 3], [0, 0], [4, 1], [1, 4], [5, 0], [0, u32::MAX], [9, 9]];
    for numbers in pairs {
        let (image, arena, good) = good();
        // A used lane whose write is finished.
        let mut pair = entries(&image, &arena, 1);
        for slot in 0..2 {
            pair[slot].seq = numbers[slot];
            put_entry(&image, arena.entry_at(1, slot), pair[slot]);
        }
        let error = FlogError::Sequence(numbers);
        let refused = RecoverError::Flog { lane: 1, error };
        assert_eq!(open(&image).err(), Some(OpenError::Arena { start: 0, error: refused }));
        let (report, _) = checked(&image, NAMESPACE);
        let found = problems(&report);
        assert_eq!(found[0], Problem::Log { lane: 1, error });
        assert_eq!(report.findings()[0].at, arena.group_at(1));
        let image = repaired(&image);
        assert_eq!(problems(&checked(&image, NAMESPACE).0), []);
        assert_eq!(contents(&image), Some(good));
    }
}

#[test]
fn lanes_with_bad_entries_or_padding_get_a_new_log() {
    let (whole, arena, good) = good();
    let blocks = arena.layout.internal_nlba;
    let sectors = arena.layout.external_nlba;
    let [a, b] = entries(&whole, &arena, 2);
    let slot = if b.seq == a.seq % 3 + 1 { 1 } else { 0 };
    let newest = [a, b][slot];
    // No write of a sector that does not exist was cut, whatever the bytes behind the map are.
    let behind = FlogEntry { lba: sectors, old_map: sectors, new_map: newest.old_map, ..newest };
    let changes = [
        (behind, FlogError::Sector(sectors)),
        (FlogEntry { lba: sectors, ..newest }, FlogError::Sector(sectors)),
        (FlogEntry { old_map: blocks, ..newest }, FlogError::Block(blocks)),
        (FlogEntry { new_map: 0x3fff_ffff, ..newest }, FlogError::Block(0x3fff_ffff)),
    ];
    for (entry, error) in changes {
        let image = whole.clone();
        put_entry(&image, arena.entry_at(2, slot), entry);
        assert!(open(&image).is_err());
        assert_eq!(problems(&checked(&image, NAMESPACE).0)[0], Problem::Log { lane: 2, error });
        let image = repaired(&image);
        assert_eq!(contents(&image), Some(good.clone()));
        assert!(open(&image).is_ok());
    }
    let image = whole.clone();
    image.put(arena.group_at(2) + 60, &[1]);
    assert!(open(&image).is_err());
    let error = FlogError::Padding;
    assert_eq!(problems(&checked(&image, NAMESPACE).0)[0], Problem::Log { lane: 2, error });
    assert_eq!(contents(&repaired(&image)), Some(good));
}

#[test]
fn a_lost_log_is_restored_from_the_map() {
    let (image, arena, good) = good();
    image.put(arena.group_at(0), &[0; 256 * 64]);
    assert!(open(&image).is_err());
    let (report, plan) = checked(&image, NAMESPACE);
    assert_eq!(report.count(Severity::Repairable), 512);
    plan.apply(&image, &mut || {}).expect("successful write");
    assert_eq!(problems(&checked(&image, NAMESPACE).0), []);
    assert_eq!(contents(&image), Some(good));
}

/// [free-blocks-distinct].
#[test]
fn two_lanes_with_one_free_block_are_separated() {
    let (image, arena, good) = good();
    let block = entries(&image, &arena, 100)[0].old_block();
    let entry = FlogEntry { lba: 101, ..entries(&image, &arena, 100)[0] };
    put_entry(&image, arena.entry_at(101, 0), entry);
    let error = RecoverError::DuplicateFree { lane: 100, other: 101, block };
    assert_eq!(open(&image).err(), Some(OpenError::Arena { start: 0, error }));
    let found = problems(&checked(&image, NAMESPACE).0);
    let lost = PostmapAba(arena.layout.external_nlba + 101);
    let twice = Problem::DuplicateFree { lane: 100, other: 101, block };
    assert_eq!(found, [twice, Problem::Unowned { block: lost }]);
    let image = repaired(&image);
    assert_eq!(contents(&image), Some(good));
    assert_eq!(entries(&image, &arena, 101)[0].old_block(), lost);
}

#[test]
fn entries_that_other_readers_misread_are_corrected() {
    for (slot, seq) in [(0, 2), (0, 3), (1, 1), (1, 2), (1, 3)] {
        for used in [false, true] {
            let (image, arena, good) = good();
            // A lane with one entry: the first of an unused lane, or that of a finished write.
            let lane = if used { 1 } else { 99 };
            let [a, b] = entries(&image, &arena, lane);
            let newest = if used && b.seq == a.seq % 3 + 1 { b } else { a };
            put_entry(&image, arena.entry_at(lane, slot), FlogEntry { seq, ..newest });
            put_entry(&image, arena.entry_at(lane, 1 - slot), FlogEntry::default());
            let numbers = if slot == 0 { [seq, 0] } else { [0, seq] };
            let (report, plan) = checked(&image, NAMESPACE);
            assert_eq!(problems(&report), [Problem::Misread { lane, numbers }]);
            assert!(matches!(plan.steps(), [Step::OlderEntry { .. }]));
            let repaired_image = repaired(&image);
            let pair = entries(&repaired_image, &arena, lane);
            if used || slot == 1 {
                assert_eq!(pair[slot], FlogEntry { seq, ..newest });
                assert_eq!(seq, pair[1 - slot].seq % 3 + 1, "the number after the older one");
            } else {
                assert_eq!(pair, [newest, FlogEntry::default()], "as formatted");
            }
            assert_eq!(contents(&repaired_image), Some(good));
        }
    }
    let (image, arena, _) = good();
    let first = entries(&image, &arena, 99);
    assert_eq!(first.map(|entry| entry.seq), [1, 0], "which all readers understand");
}

/// Cuts lane 1's last write between log and map. Returns its sector, the old and the new block.
fn cut_lane(image: &Sparse, arena: &Arena) -> (u32, PostmapAba, PostmapAba) {
    let [a, b] = entries(image, arena, 1);
    let newest = if b.seq == a.seq % 3 + 1 { b } else { a };
    put_map(image, arena, newest.lba, MapEntry::normal(newest.old_block()));
    (newest.lba, newest.old_block(), newest.new_block())
}

#[test]
fn a_cut_write_is_no_damage_and_is_finished() {
    let (image, arena, good) = good();
    let whole = image.clone();
    let (lba, _, block) = cut_lane(&image, &arena);
    let (report, plan) = checked(&image, NAMESPACE);
    assert!(report.is_clean());
    assert_eq!(problems(&report), [Problem::CutWrite { lane: 1, sector: lba.into(), block }]);
    assert!(matches!(plan.steps(), [Step::FinishWrite { .. }]));
    assert_eq!(contents(&image), Some(good), "the write reads as finished");
    assert!(repaired(&image).same(&whole));
    open(&image).expect("an undamaged BTT");
    assert!(image.same(&whole), "opening finishes the write too");
}

#[test]
fn an_unreadable_lane_that_may_hold_a_cut_write_gets_no_block() {
    let (image, arena, _) = good();
    cut_lane(&image, &arena);
    equal_pair(&image, &arena, 1);
    let found = problems(&assert_left_alone(&image));
    let error = FlogError::Sequence([1, 1]);
    assert_eq!(found[0], Problem::Log { lane: 1, error });
}

#[test]
fn a_cut_write_whose_old_block_is_free_in_another_lane_is_left_alone() {
    let (image, arena, _) = good();
    let (_, block, _) = cut_lane(&image, &arena);
    let first = FlogEntry::first(150, block.0);
    put_entry(&image, arena.entry_at(150, 0), first);
    let found = problems(&assert_left_alone(&image));
    assert!(found.contains(&Problem::DuplicateFree { lane: 1, other: 150, block }));
}

#[test]
fn nothing_is_certain_if_both_lanes_and_sectors_lack_blocks() {
    let (image, arena, _) = good();
    equal_pair(&image, &arena, 30);
    put_map(&image, &arena, 7, MapEntry(0xffff_ffff));
    assert_left_alone(&image);
}

#[test]
fn bytes_that_the_medium_lost_are_reported() {
    let (image, arena, _) = good();
    image.lose(arena.group_at(77), 16);
    let block = PostmapAba(arena.layout.external_nlba + 77);
    let lost = [Problem::LostLog { lane: 77 }, Problem::Unowned { block }];
    assert_eq!(problems(&assert_left_alone(&image)), lost);
    image.lose(arena.map_at(PremapAba(10)), 4);
    let found = problems(&assert_left_alone(&image));
    assert_eq!(found[0], Problem::LostLog { lane: 77 });
    // Two entries share a word.
    assert_eq!(found[1], Problem::LostEntry { sector: 10 });
    assert_eq!(found[2], Problem::LostEntry { sector: 11 });
}

#[test]
fn a_log_with_the_padding_of_old_linux_is_valid() {
    let (image, arena, good) = good();
    let old = Arena { slots: SlotLayout::OldLinux, ..arena };
    for lane in 0..256 {
        let [_, second] = entries(&image, &arena, lane);
        put_entry(&image, arena.entry_at(lane, 1), FlogEntry::default());
        put_entry(&image, old.entry_at(lane, 1), second);
    }
    let (report, _) = checked(&image, NAMESPACE);
    assert_eq!(problems(&report), []);
    assert_eq!(contents(&image), Some(good.clone()));
    // The log keeps its layout in a repair.
    equal_pair(&image, &old, 1);
    let repaired_image = repaired(&image);
    assert_eq!(contents(&repaired_image), Some(good));
}

#[test]
fn block_numbers_in_another_dialect_are_reported() {
    let pool = empty(Container::Pool, 4096, BYTES + 8192);
    let arena = arena(&pool, Container::Pool);
    for lane in 0..256 {
        let plain = FlogEntry::first(lane, arena.layout.external_nlba + lane);
        put_entry(&pool, arena.entry_at(lane, 0), plain);
    }
    let (report, _) = checked(&pool, Container::Pool);
    let wanted = Dialect::Flagged;
    assert_eq!(problems(&report), [Problem::Dialect { lanes: 256, wanted }]);
    assert!(report.is_clean());
}

/// 4 TiB: eight arenas and a remainder.
#[test]
fn a_sparse_image_of_4_tib_is_checked_arena_by_arena() {
    let image = empty(Container::Namespace, 4096, 4 << 40);
    let last_at = found(&image, Container::Namespace)[7].start;
    let btt = Btt::open(&image, &OpenOptions::new(Container::Namespace)).expect("an undamaged BTT");
    let last = btt.sectors() - 1;
    btt.write(last, &content(last, 4096)).expect("successful write");
    drop(btt);
    let mut calls = 0;
    let options = Options::new(Container::Namespace);
    let (report, _) = check(&image, &options, &mut |_| calls += 1).expect("successful read");
    assert_eq!((report.arenas, report.sectors), (8, last + 1));
    assert_eq!(problems(&report), []);
    assert!(calls > 8 * 1000, "{calls}");
    image.put(last_at + 16, &[0xee]);
    let (report, plan) = check(&image, &options, &mut |_| {}).expect("successful read");
    assert_eq!(problems(&report), [Problem::FirstInfo(InfoError::Checksum)]);
    assert_eq!(report.findings()[0].arena, 7);
    plan.apply(&image, &mut || {}).expect("successful write");
    let btt = Btt::open(&image, &OpenOptions::new(Container::Namespace)).expect("an undamaged BTT");
    let mut to = vec![0; 4096];
    btt.read(last, &mut to).expect("successful read");
    assert_eq!(to, content(last, 4096));
    assert_eq!(image.len(), 4 << 40);
}
