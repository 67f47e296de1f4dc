//! Files that are accessed by system calls: a failure of the medium is an error of one call, and
//! earlier writes are not lost. If the kernel has lost some after all, each flush fails. Tests
//! mount a full file system, in a namespace of its own, and make block devices. Where that is not
//! permitted, they say so and pass.

use blockyard_btt::{Btt, Container, IoError, MediaError, Memory, check};
use blockyard_pmem::{Durability, Image, ImageMemory, ImageOptions, NewImage};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Serialises the tests: a program that one of them starts briefly inherits all open files, and
/// their locks.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const INSIDE: &str = "BLOCKYARD_FULL_DISK";
const BY_CALLS: [Durability; 2] = [Durability::Calls, Durability::Disk];

fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

fn options(durability: Durability) -> ImageOptions {
    ImageOptions { durability, ..ImageOptions::default() }
}

fn create(path: &Path, durability: Durability) -> Btt<ImageMemory> {
    let new = NewImage { bytes: 32 << 20, sector_bytes: 4096, container: Container::Namespace };
    Image::create(path, &new, &options(durability)).expect("a new image")
}

fn open(path: &Path, durability: Durability) -> Btt<ImageMemory> {
    let options = options(durability);
    let image = Image::identify(path, &options).expect("file with a BTT");
    image.open(&options).expect("an undamaged BTT")
}

fn check(path: &Path) {
    let options = ImageOptions { read_only: true, ..options(Durability::Calls) };
    let image = Image::identify(path, &options).expect("file with a BTT");
    let wanted = check::Options::new(image.container);
    let (report, _) = check::check(&image.memory, &wanted, &mut |_| ()).expect("successful read");
    assert!(report.is_clean(), "{:?}", report.findings());
}

#[test]
fn a_full_file_system_fails_a_write_and_nothing_else() {
    let _alone = alone();
    let Some(folder) = small_file_system("a_full_file_system_fails_a_write_and_nothing_else")
    else {
        return;
    };
    BY_CALLS.into_iter().for_each(|durability| fill(&folder, durability));
}

/// The page cache of a block device takes more than there is room for behind it. The kernel tells
/// that once: the second flush succeeded.
#[test]
fn a_flush_that_failed_fails_again() {
    let _alone = alone();
    let Some(folder) = small_file_system("a_flush_that_failed_fails_again") else { return };
    for durability in [Durability::Calls, Durability::Process] {
        let path = folder.join("image");
        drop(create(&path, Durability::Calls)); // of 32 MiB, on a file system of 16 MiB
        let Some(device) = Loop::over(&path) else { return };
        let btt = open(&device.0, durability);
        let mut worker = btt.worker();
        for lba in 0..5000 {
            worker.write(lba, &[7; 4096]).expect("the page cache takes it");
        }
        for _ in 0..3 {
            let flushed = btt.flush();
            assert_eq!(flushed, Err(IoError::Media(MediaError::Failed)), "{durability:?}");
        }
        drop(worker);
        drop(btt);
        drop(device);
        std::fs::remove_file(&path).expect("existing file");
    }
}

/// Runs the test called `name` of this program again, where a file system of 16 MiB is mounted.
/// Returns its folder when it is run there.
fn small_file_system(name: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(INSIDE) {
        return Some(PathBuf::from(folder));
    }
    let folder = file(name);
    std::fs::create_dir_all(&folder).expect("space on the test disk");
    let script = "mount -t tmpfs -o size=16m none \"$1\" || exit 99; exec \"$0\" --exact \"$2\"";
    let this = std::env::current_exe().expect("path of this test");
    let run = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .args([this.as_os_str(), folder.as_os_str(), name.as_ref()])
        .env(INSIDE, &folder)
        .output();
    std::fs::remove_dir(&folder).expect("an empty folder");
    match run {
        Ok(run) if matches!(run.status.code(), Some(99 | 1)) => {
            println!("skipped: no permission to mount: {}", String::from_utf8_lossy(&run.stderr));
        }
        Ok(run) => assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout)),
        Err(error) => println!("skipped: no unshare: {error}"),
    }
    None
}

fn fill(folder: &Path, durability: Durability) {
    let path = folder.join("image");
    let btt = create(&path, durability);
    let mut worker = btt.worker();
    let first_failed = (0..btt.sectors()).find(|lba| {
        let bytes = [lba.to_le_bytes()[0] | 1; 4096];
        match worker.write(*lba, &bytes) {
            Ok(()) => false,
            Err(IoError::Media(MediaError::NoSpace)) => true,
            Err(error) => panic!("sector {lba}: {error}"),
        }
    });
    let first_failed = first_failed.expect("image that is larger than the file system");
    assert!(first_failed > 3000, "only {first_failed} sectors had space");
    let refused = worker.write(first_failed + 1, &[2; 4096]);
    assert_eq!(refused, Err(IoError::Media(MediaError::NoSpace)));
    let mut sector = [0; 4096];
    for lba in 0..first_failed + 2 {
        worker.read(lba, &mut sector).expect("successful read");
        let written = if lba < first_failed { lba.to_le_bytes()[0] | 1 } else { 0 };
        assert_eq!(sector, [written; 4096], "sector {lba}");
    }
    worker.set_zero(0, btt.sectors()).expect("zeroing, for which the map has space");
    drop(worker);
    drop(btt);
    check(&path);
    // The BTT opens for writing, because its map and log have space. Space for data comes and goes.
    let btt = open(&path, durability);
    let more = "mount -o remount,size=64m \"$0\"";
    let grown = Command::new("sh").args(["-c", more]).arg(folder).status();
    assert!(grown.is_ok_and(|grown| grown.success()), "the mounted file system grows");
    (0..500)
        .for_each(|lba| btt.write(first_failed + lba, &[3; 4096]).expect("space on the test disk"));
    drop(btt);
    check(&path);
    std::fs::remove_file(&path).expect("existing file");
    let less = "mount -o remount,size=16m \"$0\"";
    let shrunk = Command::new("sh").args(["-c", less]).arg(folder).status();
    assert!(shrunk.is_ok_and(|shrunk| shrunk.success()), "the empty file system shrinks");
}

#[test]
fn a_truncated_file_fails_accesses_to_the_missing_part() {
    let _alone = alone();
    for durability in BY_CALLS {
        let path = file(&format!("cut-{durability:?}"));
        let btt = create(&path, durability);
        let mut worker = btt.worker();
        (0..100).for_each(|lba| worker.write(lba, &[7; 4096]).expect("space on the test disk"));
        let cut = OpenOptions::new().write(true).open(&path).expect("existing file");
        cut.set_len(8 << 20).expect("successful truncation");
        let missing = worker.read(1, &mut [0; 4096]);
        assert_eq!(missing, Err(IoError::Media(MediaError::Failed)), "the map is missing");
        assert_eq!(btt.set_zero(1, 1), Err(IoError::Media(MediaError::Failed)));
        drop(worker);
        drop(btt);
        let refused = Image::identify(&path, &options(durability));
        assert!(refused.is_err(), "no info block is where its copy should be");
    }
    // The limit is exact.
    let path = file("cut-data");
    let btt = create(&path, Durability::Calls);
    let memory = btt.memory();
    let cut = OpenOptions::new().write(true).open(&path).expect("existing file");
    cut.set_len(5000).expect("successful truncation");
    assert_eq!(memory.read(4096, &mut [0; 904]), Ok(()));
    assert_eq!(memory.read(4096, &mut [0; 905]), Err(MediaError::Failed));
    assert_eq!(memory.load(5000), Err(MediaError::Failed));
}

#[test]
fn an_image_with_holes_keeps_them() {
    let _alone = alone();
    for durability in BY_CALLS {
        let path = file(&format!("sparse-{durability:?}"));
        let new = NewImage { bytes: 4 << 30, sector_bytes: 4096, container: Container::Namespace };
        let made =
            Image::create(&path, &new, &options(durability)).expect("space on the test disk");
        made.write(77, &[1; 4096]).expect("space on the test disk");
        drop(made);
        let btt = open(&path, durability);
        btt.write(78, &[1; 4096]).expect("space on the test disk");
        drop(btt);
        assert!(allocated_bytes(&path) < 8 << 20, "{} bytes allocated", allocated_bytes(&path));
        std::fs::remove_file(&path).expect("existing file");
    }
}

fn allocated_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).expect("existing file").blocks() * 512
}

/// A loop device, which is removed when this is dropped.
struct Loop(PathBuf);

impl Loop {
    fn over(file: &Path) -> Option<Self> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        let made = made.ok().filter(|made| made.status.success());
        if made.is_none() {
            println!("skipped: no loop device is available");
        }
        Some(Self(PathBuf::from(String::from_utf8_lossy(&made?.stdout).trim())))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("--detach").arg(&self.0).status();
        assert!(detached.is_ok_and(|it| it.success()), "{} stays behind", self.0.display());
    }
}

#[test]
fn a_block_device_works_like_a_file() {
    let _alone = alone();
    for durability in [Durability::Calls, Durability::Disk, Durability::Process] {
        let path = file(&format!("device-{durability:?}"));
        drop(create(&path, Durability::Calls));
        let Some(device) = Loop::over(&path) else { return };
        let btt = open(&device.0, durability);
        btt.write(5, &[9; 4096]).expect("successful write");
        btt.flush().expect("successful flush");
        drop(btt);
        drop(device);
        let btt = open(&path, Durability::Calls);
        let mut sector = [0; 4096];
        btt.read(5, &mut sector).expect("successful read");
        assert_eq!(sector, [9; 4096], "{durability:?}");
    }
}

#[test]
fn a_file_is_locked_however_it_is_accessed() {
    let _alone = alone();
    let path = file("locked");
    let btt = create(&path, Durability::Disk);
    let refused = Image::identify(&path, &options(Durability::Process));
    assert!(refused.is_err(), "the file is open elsewhere");
    drop(btt);
    drop(File::open(&path).expect("existing file"));
    open(&path, Durability::Process);
}
