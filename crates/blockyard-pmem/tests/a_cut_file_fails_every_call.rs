//! Somebody cuts a file short that is accessed by system calls. A write used to make the file long
//! again, and what was cut off read as zeroes.

use blockyard_btt::{Btt, Container, IoError, MediaError, Memory};
use blockyard_pmem::{Durability, Image, ImageMemory, ImageOptions, NewImage, Unmapped};
use std::fs::File;
use std::path::{Path, PathBuf};

const FAILED: Result<(), MediaError> = Err(MediaError::Failed);

fn path(name: &str) -> PathBuf {
    let name = format!("{name}-{}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).expect("the file should open")
}

/// Every access finds the cut by itself: also a read, load or store before the new end if the
/// length tells it.
///
/// Checks [cut-file-stays-broken].
#[test]
fn every_kind_of_access_finds_the_cut() {
    const LEN: u64 = 16 << 12;
    type Access = fn(&Unmapped) -> Result<(), MediaError>;
    let accesses: [(&str, Access); 9] = [
        ("read across the end", |memory| memory.read(LEN - 200, &mut [0; 200])),
        ("load behind the end", |memory| memory.load(LEN - 8).map(drop)),
        ("write before the end", |memory| memory.write(0, &[2; 200])),
        ("write behind the end", |memory| memory.write(LEN - 8, &[2; 8])),
        ("zero", |memory| memory.zero(LEN - 4096, 4096)),
        ("store", |memory| memory.store(LEN - 8, 2)),
        ("store long", |memory| memory.store_long(LEN - 8, 2)),
        ("flush", Unmapped::flush),
        ("look", Unmapped::look_for_cut),
    ];
    for synchronised in [false, true] {
        for (name, access) in accesses {
            let path = path("accessed");
            std::fs::write(&path, vec![1; 16 << 12]).expect("new file");
            let memory = Unmapped::new(open(&path), true, synchronised).expect("memory");
            assert_eq!(memory.look_for_cut(), Ok(()), "{name}");
            let cut = LEN - 100;
            open(&path).set_len(cut).expect("truncation");
            assert_eq!(memory.read(0, &mut [0; 64]), Ok(()), "bytes before the end");
            assert_eq!(access(&memory), FAILED, "{name}, {synchronised}");
            let left = std::fs::metadata(&path).expect("the file").len();
            assert_eq!(left, cut, "{name} makes the file no longer");
            open(&path).set_len(LEN).expect("extension");
            assert_eq!(memory.read(0, &mut [0; 64]), FAILED, "after {name}");
            assert_eq!(memory.write(0, &[3; 64]), FAILED, "after {name}");
            assert_eq!(memory.flush(), FAILED, "after {name}");
            assert_eq!(memory.hole(LEN - 4096), 0, "what was cut off is no hole");
            if synchronised {
                assert_eq!(memory.fence(), FAILED, "after {name}");
            }
            drop(memory);
            std::fs::remove_file(path).expect("removal");
        }
    }
}

/// A sector of a BTT that was cut off is not read as zeroes, whichever file of a pool set was cut.
///
/// Checks [cut-file-stays-broken].
#[test]
fn a_btt_fails_when_any_of_its_files_is_cut() {
    let single = path("single");
    let set = path("set");
    let parts = [path("part-1"), path("part-2")];
    let words = parts.each_ref().map(|part| format!("20M {}\n", part.display())).concat();
    std::fs::write(&set, format!("PMEMPOOLSET\n{words}")).expect("pool set");
    for durability in [Durability::Disk, Durability::Calls] {
        for cut in [&single, &parts[0], &parts[1]] {
            let options = ImageOptions { durability, ..ImageOptions::default() };
            let btt: Btt<ImageMemory> = match cut == &single {
                true => {
                    let container = Container::Pool;
                    let new = NewImage { bytes: 32 << 20, sector_bytes: 512, container };
                    Image::create(&single, &new, &options).expect("new image")
                }
                false => Image::create_in(&set, 512, Container::Pool, &options).expect("new pool"),
            };
            let last = btt.sectors() - 1;
            btt.write(last, &[5; 512]).expect("write");
            let end = btt.end();
            let len = std::fs::metadata(cut).expect("the file").len();
            open(cut).set_len(len - 4096).expect("truncation");
            let failed = Err(IoError::Media(MediaError::Failed));
            let case = format!("{durability:?}, {}", cut.display());
            assert_eq!(btt.write(0, &[6; 512]), failed, "{case}");
            open(cut).set_len(len).expect("extension");
            assert_eq!(btt.read(last, &mut [0; 512]), failed, "{case}");
            assert_eq!(btt.flush(), failed, "{case}");
            assert_ne!(btt.end(), end, "{case}");
            drop(btt);
            let files = if cut == &single { vec![&single] } else { parts.iter().collect() };
            files.iter().for_each(|file| std::fs::remove_file(file).expect("removal"));
        }
    }
    std::fs::remove_file(set).expect("removal");
}
