//! What a file is, is found out without writing, and not from what its sectors hold.

use blockyard_btt::info_block::{InfoBlock, Version};
use blockyard_btt::layout::{Layout, NFREE};
use blockyard_btt::{Container, Uuid};
use blockyard_pmem::pool::Pool;
use blockyard_pmem::{Durability, Image, ImageOptions, NewImage};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn data_that_look_like_an_info_block_are_data() {
    let path = file("told-apart");
    let (bytes, container) = (32 << 20, Container::LabelledNamespace);
    let (new, options) =
        (NewImage { bytes, sector_bytes: 4096, container }, ImageOptions::default());
    let btt = Image::create(&path, &new, &options).expect("there is room");
    let layout = Layout::new(bytes - 4096, 4096, 4096, NFREE).expect("there is such an arena");
    let forged = InfoBlock {
        uuid: Uuid([1; 16]),
        parent_uuid: Uuid::NIL,
        error: false,
        version: Version::V1,
        layout,
        nextoff: 0,
    };
    // The first writes of a lane set go to free blocks; before all blocks were in turn, one lies at byte 4096.
    for turn in 0..btt.sectors() + 300 {
        btt.write(turn % btt.sectors(), &forged.to_bytes()).expect("it is written");
    }
    drop(btt);
    let bytes = std::fs::read(&path).expect("it is there");
    assert_eq!(bytes[4096..8192], forged.to_bytes(), "the forgery is where it could deceive");
    let image = Image::identify(&path, &options).expect("it is a BTT");
    assert_eq!(image.container, container);
    image.open(&options).expect("it is whole");
}

#[test]
fn a_file_that_is_refused_takes_no_room() {
    let path = file("no-btt");
    let made = std::fs::File::create(&path).expect("there is room");
    made.set_len(64 << 20).expect("there is room");
    let options = ImageOptions::default();
    let refused = Image::identify(&path, &options).and_then(|image| image.open(&options));
    assert!(refused.is_err());
    assert_eq!(made.metadata().expect("it is there").blocks(), 0);
}

/// Laying out writes the first info block last: what is there before still is a pool that nobody wrote.
#[test]
fn a_pool_that_was_being_laid_out_is_laid_out_again() {
    let whole = file("laid");
    drop(header_alone(&whole, true));
    let options = ImageOptions::default();
    drop(Image::identify(&whole, &options).and_then(|image| image.open(&options)).expect("a pool"));
    let laid = std::fs::read(&whole).expect("it is there");
    let layout = Layout::new((32 << 20) - 8192, 520, 768, NFREE).expect("there is such an arena");
    let at = |offset: u64| 8192 + usize::try_from(offset).expect("it is small");
    let (log, copy) = (at(layout.flogoff), at(layout.infooff));
    // Without the first info block; with so much of the copy; with so much of the log.
    for (nth, end) in [copy + 4096, copy + 2048, copy, log + 1000, log + 8].into_iter().enumerate()
    {
        let path = file(&format!("being-laid-{nth}"));
        let mut bytes = laid.clone();
        bytes[8192..12288].fill(0);
        bytes[end..].fill(0);
        std::fs::write(&path, bytes).expect("there is room");
        let image = Image::identify(&path, &options).expect("it is a pool");
        assert_eq!(image.unlaid.is_some(), nth > 0, "a whole copy is a BTT");
        let btt = image.open(&options).expect("it is laid out");
        btt.write(7, &[5; 520]).expect("it is written");
    }
}

/// A pool as libpmemblk leaves it that nobody wrote: a header, and zeroes.
fn header_alone(path: &Path, blank: bool) -> std::fs::File {
    let made = std::fs::File::create_new(path).expect("there is room");
    made.set_len(32 << 20).expect("there is room");
    let pool = Pool { uuid: Uuid([3; 16]), sector_bytes: 520, blank };
    made.write_all_at(&pool.to_bytes(Uuid([4; 16]), 0), 0).expect("there is room");
    made
}

#[test]
fn a_pool_that_nobody_wrote_is_zeroes_until_it_is_written() {
    for durability in [Durability::Process, Durability::Calls, Durability::Disk] {
        let path = file(&format!("unlaid-{durability:?}"));
        drop(header_alone(&path, true));
        let before = std::fs::read(&path).expect("it is there");
        let options = ImageOptions { durability, ..ImageOptions::default() };
        let read_only = ImageOptions { read_only: true, ..options };
        let image = Image::identify(&path, &read_only).expect("it is a pool");
        assert!(image.unlaid.is_some());
        let btt = image.open(&read_only).expect("it can be read");
        let (sectors, mut sector) = (btt.sectors(), [1; 520]);
        btt.read(sectors - 1, &mut sector).expect("it is read");
        assert_eq!((sector, btt.sector_bytes()), ([0; 520], 520));
        assert!(btt.write(0, &sector).is_err(), "it is read-only");
        drop(btt);
        assert!(std::fs::read(&path).expect("it is there") == before, "nothing was written");

        let image = Image::identify(&path, &options).expect("it is a pool");
        let btt = image.open(&options).expect("it can be written");
        btt.write(7, &[5; 520]).expect("it is written");
        assert_eq!(btt.sectors(), sectors);
        drop(btt);
        let image = Image::identify(&path, &options).expect("it is a pool");
        assert!(image.unlaid.is_none());
        let btt = image.open(&options).expect("it is whole");
        btt.read(7, &mut sector).expect("it is read");
        assert_eq!(sector, [5; 520]);
    }
}

#[test]
fn a_pool_of_which_anything_is_left_is_not_taken_for_empty() {
    let layout = Layout::new((32 << 20) - 8192, 520, 768, NFREE).expect("there is such an arena");
    let places = [0, 4095, layout.mapoff + 4, layout.flogoff + 8, layout.flogoff + 255 * 64 + 24];
    for (nth, at) in places.into_iter().enumerate() {
        let path = file(&format!("left-{nth}"));
        let made = header_alone(&path, true);
        made.write_all_at(&[1], 8192 + at).expect("there is room");
        let before = std::fs::read(&path).expect("it is there");
        let options = ImageOptions::default();
        let opened = Image::identify(&path, &options).and_then(|image| image.open(&options));
        assert!(opened.is_err(), "at {at}");
        assert!(std::fs::read(&path).expect("it is there") == before, "at {at}");
    }
    let path = file("left-used");
    drop(header_alone(&path, false));
    let options = ImageOptions::default();
    let opened = Image::identify(&path, &options).and_then(|image| image.open(&options));
    assert!(opened.is_err(), "it was made of what was there");
}
