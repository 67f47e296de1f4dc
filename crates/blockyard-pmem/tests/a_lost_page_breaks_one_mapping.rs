//! Somebody truncates a file that is mapped. The process used to die by SIGBUS.

use blockyard_btt::{Container, IoError, MediaError, Memory};
use blockyard_pmem::mapped::catch_bus_errors;
use blockyard_pmem::{Copying, Durability, Image, ImageOptions, Mapped, NewImage};
use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHILD: &str = "BLOCKYARD_CHILD_WITH_A_HANDLER";

fn path(name: &str) -> PathBuf {
    let name = format!("{name}-{}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn truncate(path: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(path).expect("file").set_len(bytes).expect("truncation");
}

/// A mapping of 16 pages of ones.
fn mapped(path: &Path, persistent: bool) -> Option<Mapped> {
    std::fs::write(path, vec![1; 16 << 12]).expect("new file");
    let file = File::options().read(true).write(true).open(path).expect("file");
    // A processor may have no instruction for persistent memory.
    Mapped::new(file, true, persistent, Copying::NonTemporal).ok()
}

/// Every access fails that touches the lost page, and after it every access to the mapping.
///
/// Checks [lost-page-breaks-mapping].
#[test]
fn every_kind_of_access_fails_alone() {
    catch_bus_errors();
    const LOST: u64 = 9 << 12;
    type Access = fn(&Mapped) -> Result<(), MediaError>;
    let accesses: [(&str, Access); 7] = [
        ("read", |memory| memory.read(LOST - 100, &mut [0; 200])),
        ("write", |memory| memory.write(LOST - 100, &[2; 200])),
        ("zero", |memory| memory.zero(LOST, 4096)),
        ("load", |memory| memory.load(LOST).map(drop)),
        ("store", |memory| memory.store(LOST, 2)),
        ("store long", |memory| memory.store_long(LOST, 2)),
        ("write back", |memory| {
            memory.write_back(LOST, 64);
            memory.fence()
        }),
    ];
    for persistent in [false, true] {
        for (name, access) in accesses {
            if name == "write back" && !persistent {
                continue; // nothing is written back
            }
            let file = path(&format!("lost-{persistent}"));
            let other = path("other");
            let Some(memory) = mapped(&file, persistent) else { continue };
            let Some(whole) = mapped(&other, false) else { continue };
            truncate(&file, 8 << 12);
            let mut bytes = [0; 64];
            memory.read(0, &mut bytes).expect("bytes before the end");
            assert_eq!(bytes, [1; 64]);
            assert_eq!(access(&memory), Err(MediaError::Failed), "{name}, {persistent}");
            assert_eq!(memory.read(0, &mut bytes), Err(MediaError::Failed), "after {name}");
            assert_eq!(memory.write(0, &[3; 64]), Err(MediaError::Failed), "after {name}");
            assert_eq!(memory.flush(), Err(MediaError::Failed), "after {name}");
            whole.write(0, &[4; 64]).expect("write to the other mapping");
            whole.read(32, &mut bytes).expect("read of the other mapping");
            assert_eq!((bytes[..32].to_vec(), bytes[32..].to_vec()), (vec![4; 32], vec![1; 32]));
            drop((memory, whole));
            let kept = std::fs::read(&file).expect("the file that was truncated");
            assert_eq!((kept.len(), kept[0]), (8 << 12, 1), "a broken mapping does not write");
            [file, other].iter().for_each(|path| std::fs::remove_file(path).expect("removal"));
        }
    }
}

/// A cut within a page is no bus error. A look at the file finds it, and so does a flush.
///
/// Checks [lost-page-breaks-mapping].
#[test]
fn a_cut_within_the_last_page_is_found_by_a_look() {
    catch_bus_errors();
    type Look = fn(&Mapped) -> Result<(), MediaError>;
    let looks: [(&str, Look); 2] = [("look", Mapped::look_for_cut), ("flush", Mapped::flush)];
    for persistent in [false, true] {
        for (name, look) in looks {
            let file = path(&format!("cut-{name}-{persistent}"));
            let Some(memory) = mapped(&file, persistent) else { continue };
            assert_eq!(look(&memory), Ok(()), "{name} at a whole file");
            let mut byte = [1];
            truncate(&file, (16 << 12) - 1);
            memory.read((16 << 12) - 1, &mut byte).expect("the page stays mapped");
            assert_eq!(byte, [0], "the lost byte");
            assert_eq!(look(&memory), Err(MediaError::Failed), "{name}, {persistent}");
            truncate(&file, 16 << 12);
            assert_eq!(memory.read(0, &mut byte), Err(MediaError::Failed), "after {name}");
            assert_eq!(look(&memory), Err(MediaError::Failed), "{name} at a file that grew again");
            drop(memory);
            std::fs::remove_file(file).expect("removal");
        }
    }
}

#[test]
fn a_btt_answers_with_the_error_of_the_medium() {
    catch_bus_errors();
    let path = path("btt");
    let new = NewImage { bytes: 32 << 20, sector_bytes: 512, container: Container::Namespace };
    let options = ImageOptions { durability: Durability::Process, ..ImageOptions::default() };
    let btt = Image::create(&path, &new, &options).expect("new image");
    btt.write(9, &[5; 512]).expect("write");
    truncate(&path, 0);
    let failed = Err(IoError::Media(MediaError::Failed));
    assert_eq!(btt.read(9, &mut [0; 512]), failed);
    assert_eq!(btt.flush(), failed);
    assert!(btt.write(9, &[6; 512]).is_err());
    drop(btt);
    std::fs::remove_file(path).expect("removal of the image");
}

/// SIGBUS from another process still ends this process, by the previous handler.
#[test]
fn a_signal_that_was_sent_ends_the_process() {
    if std::env::var_os(CHILD).is_some() {
        catch_bus_errors();
        let id = std::process::id().to_string();
        // The previous handler, which is that of Rust, takes one signal before it restores the
        // default action.
        for _ in 0..3 {
            drop(Command::new("kill").args(["-BUS", &id]).status());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        return;
    }
    let test = "a_signal_that_was_sent_ends_the_process";
    let this = std::env::current_exe().expect("path of this test");
    let mut child = Command::new(this);
    let ended = child.args(["--exact", test]).env(CHILD, "1").output().expect("child").status;
    assert_eq!(ended.signal(), Some(7), "{ended}");
}
