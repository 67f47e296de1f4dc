//! The kind of a file is recognised without writing to it, and independently of its sectors' data.

use blockyard_btt::info_block::{InfoBlock, Version, checksum};
use blockyard_btt::layout::{Layout, NFREE};
use blockyard_btt::{Container, Uuid};
use blockyard_pmem::pool::Pool;
use blockyard_pmem::{Durability, Image, ImageOptions, NewImage, PoolSet};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn data_that_look_like_an_info_block_do_not_deceive() {
    let path = file("deceptive");
    let bytes = 32 << 20;
    let container = Container::LabelledNamespace;
    let new = NewImage { bytes, sector_bytes: 4096, container };
    let options = ImageOptions::default();
    let btt = Image::create(&path, &new, &options).expect("space on the test disk");
    let layout = Layout::new(bytes - 4096, 4096, 4096, NFREE).expect("layout of a 32 MiB arena");
    let forged = InfoBlock {
        uuid: Uuid([1; 16]),
        parent_uuid: Uuid::NIL,
        error: false,
        version: Version::V1,
        layout,
        nextoff: 0,
    };
    // A lane set first writes to its free blocks. Only after all blocks were used does one lie at
    // byte 4096.
    for turn in 0..btt.sectors() + 300 {
        btt.write(turn % btt.sectors(), &forged.to_bytes()).expect("successful write");
    }
    drop(btt);
    let bytes = std::fs::read(&path).expect("existing file");
    assert_eq!(
        bytes[4096..8192],
        forged.to_bytes(),
        "the forged block lies where it could deceive"
    );
    let image = Image::identify(&path, &options).expect("file with a BTT");
    assert_eq!(image.container, container);
    image.open(&options).expect("an undamaged BTT");
}

#[test]
fn a_refused_file_gets_no_space() {
    let path = file("no-btt");
    let made = std::fs::File::create(&path).expect("space on the test disk");
    made.set_len(64 << 20).expect("space on the test disk");
    let options = ImageOptions::default();
    let refused = Image::identify(&path, &options).and_then(|image| image.open(&options));
    assert!(refused.is_err());
    assert_eq!(made.metadata().expect("existing file").blocks(), 0);
}

/// Formatting writes the first info block last. A pool without that block is still
/// unwritten.
#[test]
fn a_partly_formatted_pool_is_formatted_again() {
    let whole = file("formatted");
    drop(header_alone(&whole, true));
    let options = ImageOptions::default();
    drop(Image::identify(&whole, &options).and_then(|image| image.open(&options)).expect("a pool"));
    let laid = std::fs::read(&whole).expect("existing file");
    let layout = Layout::new((32 << 20) - 8192, 520, 768, NFREE).expect("layout of a 32 MiB arena");
    let log = offset_in_pool(layout.flogoff);
    let copy = offset_in_pool(layout.infooff);
    // Without the first info block, and with parts of the copy or of the log.
    for (nth, end) in [copy + 4096, copy + 2048, copy, log + 1000, log + 8].into_iter().enumerate()
    {
        let path = file(&format!("being-laid-{nth}"));
        let mut bytes = laid.clone();
        bytes[8192..12288].fill(0);
        bytes[end..].fill(0);
        std::fs::write(&path, bytes).expect("space on the test disk");
        let image = Image::identify(&path, &options).expect("a pool");
        assert_eq!(image.unwritten.is_some(), nth > 0, "an intact copy is a BTT");
        let btt = image.open(&options).expect("pool that is formatted now");
        btt.write(7, &[5; 520]).expect("successful write");
    }
}

fn offset_in_pool(offset: u64) -> usize {
    8192 + usize::try_from(offset).expect("a small length")
}

/// Creates a pool that nobody has written to, like libpmemblk: a header, and zeroes.
fn header_alone(path: &Path, blank: bool) -> std::fs::File {
    let made = std::fs::File::create_new(path).expect("space on the test disk");
    made.set_len(32 << 20).expect("space on the test disk");
    let pool = Pool { uuid: Uuid([3; 16]), sector_bytes: 520, blank };
    made.write_all_at(&pool.to_bytes(Uuid([4; 16]), 0), 0).expect("space on the test disk");
    made
}

#[test]
fn an_unwritten_pool_reads_as_zeroes_until_it_is_written() {
    for durability in [Durability::Process, Durability::Calls, Durability::Disk] {
        let path = file(&format!("unlaid-{durability:?}"));
        drop(header_alone(&path, true));
        let before = std::fs::read(&path).expect("existing file");
        let options = ImageOptions { durability, ..ImageOptions::default() };
        let read_only = ImageOptions { read_only: true, ..options };
        let image = Image::identify(&path, &read_only).expect("a pool");
        assert!(image.unwritten.is_some());
        let btt = image.open(&read_only).expect("BTT opened for reading");
        let sectors = btt.sectors();
        let mut sector = [1; 520];
        btt.read(sectors - 1, &mut sector).expect("successful read");
        assert_eq!((sector, btt.sector_bytes()), ([0; 520], 520));
        assert!(btt.write(0, &sector).is_err(), "a read-only BTT");
        drop(btt);
        assert!(std::fs::read(&path).expect("existing file") == before, "nothing was written");

        let image = Image::identify(&path, &options).expect("a pool");
        let btt = image.open(&options).expect("BTT opened for writing");
        btt.write(7, &[5; 520]).expect("successful write");
        assert_eq!(btt.sectors(), sectors);
        drop(btt);
        let image = Image::identify(&path, &options).expect("a pool");
        assert!(image.unwritten.is_none());
        let btt = image.open(&options).expect("an undamaged BTT");
        btt.read(7, &mut sector).expect("successful read");
        assert_eq!(sector, [5; 520]);
    }
}

#[test]
fn a_pool_with_remains_of_a_btt_is_not_taken_for_unwritten() {
    let layout = Layout::new((32 << 20) - 8192, 520, 768, NFREE).expect("layout of a 32 MiB arena");
    let places = [0, 4095, layout.mapoff + 4, layout.flogoff + 8, layout.flogoff + 255 * 64 + 24];
    for (nth, at) in places.into_iter().enumerate() {
        let path = file(&format!("left-{nth}"));
        let made = header_alone(&path, true);
        made.write_all_at(&[1], 8192 + at).expect("space on the test disk");
        let before = std::fs::read(&path).expect("existing file");
        let options = ImageOptions::default();
        let opened = Image::identify(&path, &options).and_then(|image| image.open(&options));
        assert!(opened.is_err(), "at {at}");
        assert!(std::fs::read(&path).expect("existing file") == before, "at {at}");
    }
    let path = file("left-used");
    drop(header_alone(&path, false));
    let options = ImageOptions::default();
    let opened = Image::identify(&path, &options).and_then(|image| image.open(&options));
    assert!(opened.is_err(), "a pool that was not created from zeroes");
}

/// libpmemblk 1.12 refuses the same pools. Before, they were opened and written, whatever their
/// features mean.
#[test]
fn a_pool_with_unknown_features_is_refused() {
    let path = file("later-pool");
    let new = NewImage { bytes: 20 << 20, sector_bytes: 512, container: Container::Pool };
    let options = ImageOptions::default();
    drop(Image::create(&path, &new, &options).expect("space on the test disk"));
    let made = std::fs::File::options().read(true).write(true).open(&path).expect("new file");
    let mut header = [0; 4096];
    made.read_exact_at(&mut header, 0).expect("header of a pool");
    // The major version; features that may be ignored, that need to be understood, and that forbid
    // writing.
    for (at, value, accepted) in
        [(8, 2, false), (12, 0x11, true), (16, 0xe, false), (20, 1, false), (20, 0, true)]
    {
        let mut changed = header;
        changed[at] = value;
        let mut checked = [0; 4096];
        checked[..2048].copy_from_slice(&changed[..2048]);
        changed[4088..].copy_from_slice(&checksum(&checked).to_le_bytes());
        made.write_all_at(&changed, 0).expect("write");
        let image = Image::identify(&path, &options);
        assert_eq!(image.is_ok(), accepted, "byte {at} is {value}: {image:?}");
    }
}

/// Opening a pipe for reading waits for a writer, which may never come.
#[test]
fn a_pipe_is_refused_at_once() {
    let path = file("pipe");
    let made = Command::new("mkfifo").arg(&path).status().expect("a program that starts");
    assert!(made.success());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let options = ImageOptions { read_only: true, ..ImageOptions::default() };
        tell.send(Image::identify(&path, &options).is_err())
    });
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(true));
}

/// What is beyond the longest pool set could name more parts.
#[test]
fn a_pool_set_that_is_too_long_is_refused() {
    let path = file("long-set");
    let comment = "#".repeat(1 << 20);
    std::fs::write(&path, format!("PMEMPOOLSET\n20M /part\n{comment}\n20M /more\n"))
        .expect("space on the test disk");
    assert!(PoolSet::read(&path).is_err());
}

/// A file and a set of two parts, each opened so that nothing reaches them.
#[test]
fn discarded_changes_reach_no_file() {
    let [path, first, second] = ["discarded", "discarded-0", "discarded-1"].map(file);
    let lines = [&first, &second].map(|part| format!("20M {}\n", part.display())).concat();
    std::fs::write(&path, format!("PMEMPOOLSET\n{lines}")).expect("space on the test disk");
    let options = ImageOptions::default();
    let discarded = ImageOptions { durability: Durability::Discarded, ..options };
    assert!(Image::create_in(&path, 512, Container::Pool, &discarded).is_err());
    assert!(!first.exists() && !second.exists(), "the parts are removed again");
    let btt = Image::create_in(&path, 512, Container::Pool, &options).expect("two parts");
    let last = btt.sectors() - 1;
    drop(btt);
    let before = read_files([&first, &second]);
    let btt = Image::identify(&path, &discarded).and_then(|image| image.open(&discarded));
    let btt = btt.expect("a private mapping");
    for lba in [0, last] {
        let mut sector = [0; 512];
        btt.write(lba, &[7; 512]).and_then(|()| btt.read(lba, &mut sector)).expect("a sector");
        assert_eq!(sector, [7; 512]);
    }
    btt.flush().expect("nothing to flush");
    drop(btt);
    assert!(before == read_files([&first, &second]), "no part has changed");
    [path, first, second].iter().for_each(|path| std::fs::remove_file(path).expect("removal"));
}

fn read_files(parts: [&PathBuf; 2]) -> [Vec<u8>; 2] {
    parts.map(|part| std::fs::read(part).expect("a part"))
}
