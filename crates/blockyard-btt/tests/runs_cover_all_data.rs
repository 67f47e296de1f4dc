//! [`Btt::runs`] leaves out only sectors that read as zeroes, with and without holes, and after cut
//! writes.

use blockyard::prng::Prng;
use blockyard_btt::find::find;
use blockyard_btt::ram::Ram;
use blockyard_btt::{Btt, Container, Format, MediaError, Memory, OpenOptions, Policy, Uuid};

const BYTES: usize = 4096;

/// Memory that finds its holes in pages, as a file does. With a lost map, reading a map entry
/// fails.
struct Pages<'a>(&'a Ram);

impl Memory for Pages<'_> {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        self.0.read(at, to)
    }
    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        self.0.write(at, from)
    }
    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        self.0.zero(at, len)
    }
    fn load(&self, at: u64) -> Result<u32, MediaError> {
        self.0.load(at)
    }
    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        self.0.store(at, word)
    }
    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        self.0.store_long(at, word)
    }
    fn write_back(&self, at: u64, len: u64) {
        self.0.write_back(at, len);
    }
    fn fence(&self) -> Result<(), MediaError> {
        self.0.fence()
    }
    fn hole(&self, at: u64) -> u64 {
        let mut end = at;
        let mut page = vec![0; 4096];
        loop {
            let next = (end / 4096 + 1) * 4096;
            let page = &mut page[..usize::try_from(next.min(self.len()) - end).expect("a page")];
            if page.is_empty()
                || self.read(end, page).is_err()
                || !page.iter().all(|&byte| byte == 0)
            {
                return end - at;
            }
            end = next.min(self.len());
        }
    }
}

/// A BTT with 40 random writes and zeroed sectors, and sometimes a lost one and a cut write.
fn used(ram: &Ram, prng: &mut Prng) {
    let container = Container::LabelledNamespace;
    let uuid = Uuid([1; 16]);
    let format =
        Format { container, sector_bytes: 4096, uuid, parent_uuid: Uuid::NIL, blank: true };
    let btt = Btt::create(ram, &format, Policy::DEFAULT).expect("room for a BTT");
    for _ in 0..40 {
        // Some of the sectors are neighbours, and some pages of the map stay zero.
        let lba = prng.below(2) * (btt.sectors() - 20) + prng.below(20);
        match prng.below(5) {
            0 => btt.set_zero(lba, 1).expect("write to ram"),
            1 => btt.set_error(lba).expect("write to ram"),
            _ => btt.write(lba, &[7; BYTES]).expect("write to ram"),
        }
    }
    let middle = btt.sectors() / 2;
    btt.write(middle, &[8; BYTES]).expect("write to ram");
    let found = find(ram, container, None).expect("a BTT")[0];
    if prng.below(2) == 0 {
        // As if the write had been cut before its map entry, in what is a hole then.
        ram.store(found.start + found.info.layout.mapoff + middle * 4, 0).expect("write to ram");
    }
}

fn check(btt: &Btt<impl Memory>, lbas: core::ops::Range<u64>) -> u64 {
    let runs: Vec<_> = btt.runs(lbas.clone()).collect();
    assert!(runs.iter().all(|run| !run.is_empty() && run.start >= lbas.start));
    assert!(runs.iter().all(|run| run.end <= lbas.end), "{runs:?} in {lbas:?}");
    assert!(runs.windows(2).all(|two| two[0].end <= two[1].start), "in order: {runs:?}");
    let mut sector = [0; BYTES];
    for lba in lbas {
        let is_data = btt.read(lba, &mut sector).is_err() || sector != [0; BYTES];
        assert_eq!(runs.iter().any(|run| run.contains(&lba)), is_data, "sector {lba}");
    }
    runs.iter().map(|run| run.end - run.start).sum()
}

#[test]
fn sectors_outside_of_runs_read_as_zeroes() {
    let mut prng = Prng::new(15);
    for _ in 0..20 {
        let ram = Ram::new(32 << 20);
        used(&ram, &mut prng);
        let options =
            OpenOptions { read_only: true, ..OpenOptions::new(Container::LabelledNamespace) };
        let with = Btt::open(Pages(&ram), &options).expect("an undamaged BTT");
        let without = Btt::open(&ram, &options).expect("an undamaged BTT");
        let all = 0..with.sectors();
        assert_eq!(check(&with, all.clone()), check(&without, all.clone()));
        let first = prng.below(all.end);
        let part = first..first + prng.below(all.end - first + 1);
        assert_eq!(check(&with, part.clone()), check(&without, part));
    }
}

#[test]
fn neighbours_are_one_run() {
    let ram = Ram::new(32 << 20);
    let container = Container::LabelledNamespace;
    let uuid = Uuid([1; 16]);
    let format =
        Format { container, sector_bytes: 4096, uuid, parent_uuid: Uuid::NIL, blank: true };
    let btt = Btt::create(&ram, &format, Policy::DEFAULT).expect("room for a BTT");
    btt.write(10, &[7; 3 * BYTES]).expect("write to ram");
    btt.write(14, &[7; BYTES]).expect("write to ram");
    let runs: Vec<_> = btt.runs(0..100).collect();
    assert_eq!(runs, [10..13, 14..15]);
    let runs: Vec<_> = btt.runs(11..12).collect();
    assert_eq!(runs, vec![11..12]);
}

/// A hole that ends behind one map entry: the entries after it are looked at all the same.
#[test]
fn a_hole_of_one_map_entry_hides_no_data() {
    let ram = Ram::new(32 << 20);
    let container = Container::LabelledNamespace;
    let uuid = Uuid([1; 16]);
    let format =
        Format { container, sector_bytes: 4096, uuid, parent_uuid: Uuid::NIL, blank: true };
    let btt = Btt::create(&ram, &format, Policy::DEFAULT).expect("room for a BTT");
    // A page of the map has 1024 entries; the map begins at a multiple of 64 bytes.
    let found = find(&ram, container, None).expect("a BTT")[0];
    let into_page = (found.start + found.info.layout.mapoff) % 4096 / 4;
    let behind = 1024 - into_page;
    btt.write(behind, &[7; BYTES]).expect("write to ram");
    drop(btt);
    let btt = Btt::open(Pages(&ram), &OpenOptions::new(container)).expect("an undamaged BTT");
    let runs: Vec<_> = btt.runs(behind - 1..behind + 2).collect();
    let one = behind..behind + 1;
    assert_eq!(runs, vec![one]);
}
