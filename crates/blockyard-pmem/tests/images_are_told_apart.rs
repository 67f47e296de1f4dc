//! What a file is, is found out without writing, and not from what its sectors hold.

use blockyard::btt::info_block::{InfoBlock, Version};
use blockyard::btt::layout::{Layout, NFREE};
use blockyard::btt::{Container, Uuid};
use blockyard_pmem::{Image, ImageOptions, NewImage};
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
    let image = Image::map(&path, &options).expect("it is a BTT");
    assert_eq!(image.container, container);
    image.open(&options).expect("it is whole");
}

#[test]
fn a_file_that_is_refused_takes_no_room() {
    let path = file("no-btt");
    let made = std::fs::File::create(&path).expect("there is room");
    made.set_len(64 << 20).expect("there is room");
    let options = ImageOptions::default();
    let refused = Image::map(&path, &options).and_then(|image| image.open(&options));
    assert!(refused.is_err());
    assert_eq!(made.metadata().expect("it is there").blocks(), 0);
}
