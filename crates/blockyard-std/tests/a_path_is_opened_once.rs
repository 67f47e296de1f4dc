//! A disk is one file, whatever its path names a moment later.

mod common;

use blockyard_std::Options;
use common::Scratch;
use core::sync::atomic::{AtomicBool, Ordering};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;

const SIZES: [usize; 2] = [1 << 20, 2 << 20];

/// The path was opened to look at the file and again to use it, so a disk could have the size of
/// one file and the data of another. Checks [path-opened-once].
#[test]
fn a_disk_has_the_size_and_the_data_of_one_file() {
    let files = SIZES.map(|bytes| {
        let file = Scratch::new(&format!("swapped-{bytes}"), 0);
        fs::write(&file.0, vec![u8::try_from(bytes >> 20).unwrap(); bytes]).unwrap();
        file
    });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let [one, two] = &files;
                renameat_with(CWD, &one.0, CWD, &two.0, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let mixed = (0..500).filter(|_| {
            // The last sector of the smaller file is within both.
            let disk = Options::new().file(&files[0].0).unwrap();
            let mut sector = [0; 512];
            disk.read_at(&mut sector, SIZES[0] as u64 - 512).unwrap();
            u64::from(sector[0]) << 20 != disk.size_bytes()
        });
        let mixed = mixed.count();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(mixed, 0, "of 500 disks have the size of the other file");
    });
}
