//! Tables for the tests of the device's parts.

use super::{Table, Wanted};
use crate::disk::damage::Damage;
use blockyard_btt::find::find;
use blockyard_btt::{Container, Memory};
use blockyard_pmem::{Durability, Image, ImageOptions, NewImage};
use std::sync::Arc;

/// Returns a BTT for one lane, in a file that is unlinked already.
pub(super) fn table(name: &str) -> Table {
    let path = std::env::temp_dir().join(format!("blockyard-{name}-{}", std::process::id()));
    let container = Container::Namespace;
    let new = NewImage { bytes: 17 << 20, sector_bytes: 512, container };
    let durability = Durability::Disk;
    let options = ImageOptions { durability, ..ImageOptions::default() };
    drop(Image::create(&path, &new, &options).expect("new image"));
    let wanted = Wanted { durability, container: None, read_only: false, force: false, lanes: 1 };
    let table =
        Table::open(&path, wanted, &Arc::new(Damage::new("", None))).expect("table of a new image");
    std::fs::remove_file(path).expect("removal of the image");
    table
}

/// Lets the map entry of a sector name a block that does not exist.
pub(super) fn break_entry(table: &Table, lba: u64) {
    let memory = table.btt.memory();
    let arena = find(memory, Container::Namespace, None).expect("arenas of an image")[0];
    let at = arena.start + arena.info.layout.mapoff + lba * 4;
    memory.store(at, u32::MAX).expect("store within an arena");
}
