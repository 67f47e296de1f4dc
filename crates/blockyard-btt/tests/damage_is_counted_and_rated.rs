//! A check counts all damage however little it keeps, says which of it puts data at risk, and reads
//! each part of a map at most once.

mod images;
mod intercepted_memory;

use blockyard_btt::arena::Arena;
use blockyard_btt::check::{Options, Problem, Report, Severity, check};
use blockyard_btt::flog::{FlogEntry, FlogError, SlotLayout};
use blockyard_btt::info_block::{InfoBlock, InfoError};
use blockyard_btt::recover::RecoverError;
use blockyard_btt::repair::{Plan, Step};
use blockyard_btt::{
    Btt, Container, Dialect, MapEntry, MediaError, OpenError, OpenOptions, PostmapAba, PremapAba,
    Uuid, Version,
};
use core::cell::{Cell, RefCell};
use core::ops::Range;
use images::{
    BYTES, PAGE, Sparse, arena, change_info, empty, entries, found, put_entry, put_map, used,
};
use intercepted_memory::{Call, Intercepted};

const NAMESPACE: Container = Container::LabelledNamespace;
const SECTOR: u32 = 4096;
/// Bytes of the largest arena.
const ARENA: u64 = 512 << 30;
/// The most sectors of an arena that get a new block.
const LOST_MAX: u32 = 4096;
const NO_BLOCK: MapEntry = MapEntry(0xffff_ffff);

fn checked(image: &Sparse, keep: usize) -> (Report, Plan) {
    let options = Options { keep, ..Options::new(NAMESPACE) };
    check(image, &options, &mut |_| {}).expect("check of a readable image")
}

fn problems(report: &Report) -> Vec<Problem> {
    report.findings().iter().map(|finding| finding.problem).collect()
}

/// Adds a write of `lane` that was cut: the sector still has its first block.
fn cut(image: &Sparse, arena: &Arena, lane: u32, lba: u32) -> PostmapAba {
    let [first, _] = entries(image, arena, lane);
    let entry = FlogEntry { lba, old_map: lba, new_map: first.old_map, seq: 2 };
    put_entry(image, arena.entry_at(lane, 1), entry);
    first.old_block()
}

/// Damages several sectors or lanes of an image.
type Damage = fn(&Sparse, &Arena);

const DAMAGE: [(&str, Damage); 5] = [
    ("lost map entries", |image, arena| image.lose(arena.map_at(PremapAba(100)), 32)),
    ("entries without a block", |image, arena| {
        (40..46).for_each(|lba| put_map(image, arena, lba, NO_BLOCK));
    }),
    ("sectors with one block", |image, arena| {
        (50..56).for_each(|lba| put_map(image, arena, lba, MapEntry::normal(PostmapAba(1000))));
    }),
    ("sectors with the free blocks of lanes", |image, arena| {
        for lane in 200..206 {
            let free = entries(image, arena, lane)[0].old_block();
            put_map(image, arena, lane, MapEntry::normal(free));
        }
    }),
    ("invalid logs", |image, arena| {
        for lane in 100..106 {
            let first = entries(image, arena, lane)[0];
            put_entry(image, arena.entry_at(lane, 1), first);
        }
    }),
];

#[test]
fn all_damage_is_counted_however_little_is_kept() {
    for (name, damage) in DAMAGE {
        let image = used(NAMESPACE, SECTOR);
        damage(&image, &arena(&image, NAMESPACE));
        let (all, _) = checked(&image, 1000);
        let (of_severity, at_risk) = counts(&all);
        assert_eq!(of_severity.iter().sum::<u64>(), all.findings().len() as u64, "{name}");
        assert!(at_risk >= 5, "{name}: {at_risk}");
        for keep in [0, 1, 3, 6] {
            let (some, _) = checked(&image, keep);
            assert_eq!(counts(&some), counts(&all), "{name}, of which {keep} are kept");
            let kept = of_severity.iter().map(|&count| count.min(keep as u64)).sum();
            assert_eq!(some.findings().len() as u64, kept, "{name}");
        }
    }
}

fn counts(report: &Report) -> ([u64; 3], u64) {
    let severities = [Severity::Note, Severity::Repairable, Severity::Broken];
    (severities.map(|severity| report.count(severity)), report.at_risk())
}

/// [owners-add-up], as far as the memory of a check is bounded.
#[test]
fn up_to_4096_sectors_of_an_arena_get_new_blocks() {
    for (count, severity) in [(LOST_MAX, Severity::Repairable), (LOST_MAX + 1, Severity::Broken)] {
        let image = empty(NAMESPACE, 512, BYTES);
        let arena = arena(&image, NAMESPACE);
        (0..count).for_each(|lba| put_map(&image, &arena, lba, NO_BLOCK));
        for keep in [10, 10_000] {
            let (report, plan) = checked(&image, keep);
            // Each has lost its block, which nobody owns.
            assert_eq!(report.count(severity), 2 * u64::from(count), "{count}, {keep}");
            assert_eq!((report.worst(), report.at_risk()), (Some(severity), count.into()));
            let steps = if count > LOST_MAX { 0 } else { count as usize };
            assert_eq!(plan.steps().len(), steps, "{count}, {keep}");
        }
    }
}

/// What is only found behind the last arena, or says that this is another container's BTT, loses no
/// data. What the first info block hides is lost to other readers.
#[test]
fn a_report_says_what_puts_data_at_risk() {
    let own = Uuid([5; 16]);
    let whole = changed(|_| ());
    let copy_at = arena(&whole, NAMESPACE).layout.infooff;
    let bytes = BYTES;
    assert_rated(own, &whole.resized(3 * BYTES), Problem::UnusedSpace { bytes }, 0);
    assert_rated(own, &whole.resized(BYTES - 1), Problem::TooSmall, 0);
    let version = Version::V1;
    let wanted = Version::V2;
    let other = changed(|info| info.version = Version::V1);
    assert_rated(own, &other, Problem::Version { found: version, wanted }, 0);
    assert_rated(own, &changed(|info| info.error = true), Problem::ErrorFlag, 0);
    let copy = whole.clone();
    copy.put(copy_at + 20, &[9]);
    assert_rated(own, &copy, Problem::CopyInfo(InfoError::Checksum), 0);

    let other = changed(|info| info.parent_uuid = Uuid([4; 16]));
    assert_rated(own, &other, Problem::Parent { found: Uuid([4; 16]), wanted: own }, 1);
    assert_rated(own, &whole.resized(2 * BYTES - PAGE), Problem::Truncated { needs: 2 * BYTES }, 1);
    let first = whole.clone();
    first.put(20, &[9]);
    assert_rated(own, &first, Problem::FirstInfo(InfoError::Checksum), 1);
    first.put(copy_at, &[9]);
    let first_error = InfoError::Checksum;
    let copy = InfoError::Signature;
    assert_rated(own, &first, Problem::NoInfo { first: first_error, copy }, 1);
}

fn report_of(own: Uuid, image: &Sparse) -> Report {
    let options = Options { own_uuid: Some(own), ..Options::new(NAMESPACE) };
    check(image, &options, &mut |_| {}).expect("check of a readable image").0
}

fn assert_rated(own: Uuid, image: &Sparse, problem: Problem, at_risk: u64) {
    let report = report_of(own, image);
    assert_eq!(problems(&report), [problem]);
    assert_eq!(report.at_risk(), at_risk, "{problem:?}");
}

fn changed(change: fn(&mut InfoBlock)) -> Sparse {
    let image = empty(NAMESPACE, SECTOR, 2 * BYTES);
    change_info(&image, NAMESPACE, change);
    image
}

/// libpmemblk takes a cut write with plain block numbers for finished. Linux and ndctl refuse the
/// other form.
#[test]
fn a_cut_write_in_the_form_of_linux_is_at_risk_in_a_pool() {
    for (container, state, wanted) in
        [(Container::Pool, 0, Dialect::Flagged), (NAMESPACE, 0xc000_0000, Dialect::Plain)]
    {
        let image = empty(container, SECTOR, BYTES + container.first_arena());
        let arena = arena(&image, container);
        for lane in 0..256 {
            let block = state | (arena.layout.external_nlba + lane);
            put_entry(&image, arena.entry_at(lane, 0), FlogEntry::first(lane, block));
        }
        let other = Problem::Dialect { lanes: 256, wanted };
        let report = checked_report(&image, container);
        assert_eq!((problems(&report), report.at_risk()), (vec![other], 0));
        assert_eq!(report.findings()[0].at, arena.group_at(0), "the log");
        let block = cut(&image, &arena, 7, 3);
        let cut = Problem::CutWrite { lane: 7, sector: 3, block };
        let at_risk = u64::from(container == Container::Pool);
        let report = checked_report(&image, container);
        assert_eq!((problems(&report), report.at_risk()), (vec![cut, other], at_risk));
    }
}

fn checked_report(image: &Sparse, container: Container) -> Report {
    let checked = check(image, &Options::new(container), &mut |_| {});
    checked.expect("check of a readable image").0
}

#[test]
fn sectors_are_counted_through_all_arenas() {
    let mut image = empty(NAMESPACE, SECTOR, ARENA + BYTES);
    image.tells_holes = true;
    let [first, second] = found(&image, NAMESPACE)[..] else { panic!("two arenas") };
    let start = second.start;
    let first_lba = u64::from(first.info.layout.external_nlba);
    let arena = Arena { start, first_lba, layout: second.info.layout, ..arena(&image, NAMESPACE) };
    put_map(&image, &arena, 7, NO_BLOCK);
    let (report, plan) = checked(&image, 1000);
    let sector = first_lba + 7;
    let bad = report.findings()[0];
    let unowned = report.findings()[1];
    assert_eq!((bad.arena, bad.at), (1, arena.map_at(PremapAba(7))));
    assert_eq!(bad.problem, Problem::BadMapEntry { sector, entry: NO_BLOCK });
    assert_eq!(unowned.at, arena.block_at(PostmapAba(7)));
    let block = PostmapAba(7);
    let at = bad.at;
    let entry = MapEntry(0x4000_0007);
    assert_eq!(plan.steps(), [Step::MarkLost { arena: 1, sector, block, at, entry }]);
    assert_eq!(report.sectors, first_lba + u64::from(arena.layout.external_nlba));
}

/// A next arena may start up to 512 GiB behind the end of the largest one.
#[test]
fn a_truncated_container_needs_what_its_info_block_says() {
    for (nextoff, needs) in [(2 * ARENA - PAGE, Some(2 * ARENA - PAGE)), (2 * ARENA, None)] {
        let image = empty(NAMESPACE, SECTOR, BYTES);
        change_info(&image, NAMESPACE, |info| info.nextoff = nextoff);
        let impossible = InfoError::Field("nextoff");
        let expected = match needs {
            Some(needs) => Problem::Truncated { needs },
            None => Problem::NoInfo { first: impossible, copy: impossible },
        };
        assert_eq!(problems(&checked(&image, 1000).0), [expected]);
    }
}

/// Nobody knows then whether the write was cut.
#[test]
fn a_lost_map_entry_of_the_newest_write_is_reported() {
    let image = used(NAMESPACE, SECTOR);
    let arena = arena(&image, NAMESPACE);
    let [a, b] = entries(&image, &arena, 1);
    let newest = if b.seq == a.seq % 3 + 1 { b } else { a };
    image.lose(arena.map_at(newest.sector()), 4);
    let lost = Problem::LostEntry { sector: newest.lba.into() };
    assert!(problems(&checked(&image, 1000).0).contains(&lost));
}

#[test]
fn a_cut_write_into_an_unwritten_map_is_seen() {
    for tells_holes in [false, true] {
        for lba in [9, 16_383, 16_384, 20_000] {
            let mut image = empty(NAMESPACE, 512, BYTES);
            image.tells_holes = tells_holes;
            let arena = arena(&image, NAMESPACE);
            let block = cut(&image, &arena, 5, lba);
            let sector = u64::from(lba);
            let (report, plan) = checked(&image, 1000);
            assert_eq!(problems(&report), [Problem::CutWrite { lane: 5, sector, block }]);
            let at = arena.map_at(PremapAba(lba));
            let entry = MapEntry::normal(block);
            assert_eq!(plan.steps(), [Step::FinishWrite { arena: 0, sector, at, entry }]);
        }
    }
}

/// The lane that may keep the block is the one whose write was not cut: the other one will free the
/// block.
#[test]
fn a_cut_write_whose_old_block_an_earlier_lane_has_is_left_alone() {
    let image = empty(NAMESPACE, SECTOR, BYTES);
    let arena = arena(&image, NAMESPACE);
    cut(&image, &arena, 150, 40);
    put_entry(&image, arena.entry_at(30, 0), FlogEntry::first(30, 40));
    let (report, plan) = checked(&image, 1000);
    let twice = Problem::DuplicateFree { lane: 30, other: 150, block: PostmapAba(40) };
    assert!(problems(&report).contains(&twice), "{:?}", report.findings());
    assert_eq!((report.worst(), plan.steps()), (Some(Severity::Broken), &[][..]));
}

/// The only entry of a lane is that of a write, with a number that other readers misread. No group
/// shows where second entries are.
#[test]
fn an_older_entry_is_added_at_the_usual_place() {
    let image = empty(NAMESPACE, SECTOR, BYTES);
    let arena = arena(&image, NAMESPACE);
    assert_eq!(arena.slots, SlotLayout::Standard);
    let free = entries(&image, &arena, 5)[0].old_map;
    put_map(&image, &arena, 9, MapEntry::normal(PostmapAba(free)));
    let written = FlogEntry { lba: 9, old_map: 9, new_map: free, seq: 2 };
    put_entry(&image, arena.entry_at(5, 0), written);
    let (report, plan) = checked(&image, 1000);
    assert_eq!(problems(&report), [Problem::Misread { lane: 5, numbers: [2, 0] }]);
    let at = arena.group_at(5) + 16;
    let entry = FlogEntry { old_map: free, seq: 1, ..written };
    assert_eq!(plan.steps(), [Step::OlderEntry { arena: 0, lane: 5, at, entry }]);
}

/// An info block that is whole is not ours to change, whatever the copy says.
#[test]
fn a_broken_mark_beside_an_unusable_info_block_stays() {
    let image = empty(NAMESPACE, SECTOR, BYTES);
    change_info(&image, NAMESPACE, |info| info.error = true);
    let mut first = found(&image, NAMESPACE)[0].info;
    first.layout.nfree = 0;
    image.put(0, &first.to_bytes());
    let (report, mut plan) = checked(&image, 1000);
    let unusable = Problem::FirstInfo(InfoError::Field("nfree"));
    assert_eq!(problems(&report), [unusable, Problem::ErrorFlag]);
    plan.clear_error_marks();
    assert_eq!(plan.steps(), []);
}

/// Writing does not repair bytes that this medium lost.
#[test]
fn a_lost_info_block_is_zeroed_before_it_is_written() {
    let image = empty(NAMESPACE, SECTOR, BYTES);
    let whole = image.clone();
    image.put(0, &[0; 4096]);
    let (_, plan) = checked(&image, 1000);
    let is_lost = Cell::new(true);
    plan.apply(
        &Intercepted {
            memory: &image,
            intercept: |call| match call {
                Call::Zero(0) => {
                    is_lost.set(false);
                    Ok(())
                }
                Call::Write(0) if is_lost.get() => Err(MediaError::Bad),
                _ => Ok(()),
            },
        },
        &mut || {},
    )
    .expect("a repaired block");
    assert!(image.same(&whole));
}

/// Some groups have their second entry where old Linux put it. The most groups decide for a check;
/// no BTT like this can be opened.
#[test]
fn a_log_has_one_layout() {
    for (old_lanes, wrong) in [(vec![2], vec![2]), ((1..6).collect(), vec![0, 6])] {
        let image = empty(NAMESPACE, SECTOR, BYTES);
        let arena = arena(&image, NAMESPACE);
        let old = Arena { slots: SlotLayout::OldLinux, ..arena };
        for lane in [0, 6].into_iter().chain(1..6) {
            let [first, _] = entries(&image, &arena, lane);
            let arena = if old_lanes.contains(&lane) { &old } else { &arena };
            put_entry(&image, arena.entry_at(lane, 1), FlogEntry { seq: 2, ..first });
        }
        let (report, _) = checked(&image, 1000);
        let error = FlogError::Padding;
        let expected = wrong.iter().map(|&lane| Problem::Log { lane, error });
        let logs = problems(&report).into_iter().filter(|one| matches!(one, Problem::Log { .. }));
        assert!(logs.eq(expected), "{:?}", report.findings());
        let first_other = old_lanes[0];
        let error = RecoverError::Flog { lane: first_other, error };
        let opened = Btt::open(&image, &OpenOptions::new(NAMESPACE));
        assert_eq!(opened.err(), Some(OpenError::Arena { start: 0, error }));
    }
}

#[test]
fn a_repair_tells_each_step() {
    let image = empty(NAMESPACE, SECTOR, BYTES);
    let arena = arena(&image, NAMESPACE);
    (0..5).for_each(|lba| put_map(&image, &arena, lba, NO_BLOCK));
    let (_, plan) = checked(&image, 1000);
    let mut told = 0;
    plan.apply(&image, &mut || told += 1).expect("successful write");
    assert_eq!((told, plan.steps().len()), (5, 5));
}

/// [repair-steps-durable]: each word that a step stores is written back, and a fence ends the step.
#[test]
fn a_repair_writes_back_the_words_that_it_stores() {
    let image = empty(NAMESPACE, SECTOR, BYTES);
    let arena = arena(&image, NAMESPACE);

    let lost = image.clone();
    put_map(&lost, &arena, 9, NO_BLOCK);
    let entry = arena.map_at(PremapAba(9));
    // The last fence is that of a flush.
    assert_eq!(written_back(&lost), [Some(entry..entry + 4), None, None]);

    let invalid = image.clone();
    let first = entries(&invalid, &arena, 3)[0];
    put_entry(&invalid, arena.entry_at(3, 1), first);
    let at = arena.group_at(3);
    let [first, second] = two_words(at);
    let all = Some(at..at + 64);
    let expected = [second.clone(), None, first, None, all, None, second, None, None];
    assert_eq!(written_back(&invalid), expected, "[rewritten-log-unreadable]");

    let misread = image.clone();
    let first = entries(&misread, &arena, 3)[0];
    put_entry(&misread, arena.entry_at(3, 0), FlogEntry { seq: 3, ..first });
    let [first, second] = two_words(at);
    assert_eq!(written_back(&misread), [first, None, second, None, None]);
}

fn written_back(image: &Sparse) -> Vec<Option<Range<u64>>> {
    let calls = RefCell::new(Vec::new());
    let (_, plan) = checked(image, 1000);
    let memory = Intercepted {
        memory: image,
        intercept: |call| {
            match call {
                Call::WriteBack(bytes) => calls.borrow_mut().push(Some(bytes)),
                Call::Fence => calls.borrow_mut().push(None),
                _ => {}
            }
            Ok(())
        },
    };
    plan.apply(&memory, &mut || {}).expect("successful write");
    calls.into_inner()
}

fn two_words(at: u64) -> [Option<Range<u64>>; 2] {
    [at, at + 8].map(|at| Some(at..at + 8))
}

/// Each 16384 map entries are read together, unless they are in a hole. Single ones are loaded only
/// for the newest writes of lanes.
#[test]
fn a_check_reads_a_map_once_and_no_holes() {
    let mut image = empty(NAMESPACE, 512, BYTES);
    let arena = arena(&image, NAMESPACE);
    assert_eq!(map_reads(&image), (vec![0, 16_384], 0));
    image.tells_holes = true;
    assert_eq!(map_reads(&image), (vec![], 0));
    let far = image.clone();
    cut(&far, &arena, 5, 16_384);
    assert_eq!(map_reads(&far), (vec![16_384], 1), "the piece with the sector of a cut write");
    put_map(&image, &arena, 16_384, MapEntry::normal(PostmapAba(16_384)));
    assert_eq!(map_reads(&image), (vec![16_384], 0), "the hole is as long as a piece");
}

fn map_reads(image: &Sparse) -> (Vec<u64>, u32) {
    let layout = arena(image, NAMESPACE).layout;
    let of_map = RefCell::new(Vec::new());
    let loads = Cell::new(0);
    let memory = Intercepted {
        memory: image,
        intercept: |call| {
            match call {
                Call::Read(at) if (layout.mapoff..layout.flogoff).contains(&at) => {
                    of_map.borrow_mut().push((at - layout.mapoff) / 4);
                }
                Call::Load(_) => loads.set(loads.get() + 1),
                _ => {}
            }
            Ok(())
        },
    };
    let (report, _) =
        check(&memory, &Options::new(NAMESPACE), &mut |_| {}).expect("check of a good image");
    assert!(report.is_clean(), "{:?}", report.findings());
    (of_map.take(), loads.get())
}
