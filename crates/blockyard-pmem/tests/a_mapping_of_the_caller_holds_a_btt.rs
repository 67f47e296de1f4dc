//! A BTT lives in memory that the caller mapped, and stays there when the caller takes the memory
//! back.
#![allow(unsafe_code, reason = "the caller promises that its memory is mapped")]

use blockyard_btt::{Btt, Container, Format, Memory, OpenOptions, Policy, Uuid};
use blockyard_pmem::{Copying, Image, ImageOptions, Mapped};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

const BYTES: usize = 32 << 20;

/// A mapping of the caller.
struct Mapping(NonNull<u8>);

impl Mapping {
    fn of(file: &File) -> Self {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, placed by the kernel.
        let start = unsafe { mmap(null_mut(), BYTES, access, MapFlags::SHARED, file, 0) };
        Self(NonNull::new(start.expect("a mapping").cast()).expect("start of a mapping"))
    }

    /// The bytes from `at` on as the memory of a BTT.
    fn memory(&self, at: usize, persistent: bool) -> std::io::Result<Mapped> {
        // SAFETY: mapped, readable and writable until `self` is dropped, and used by one memory at
        // a time.
        unsafe { Mapped::over(self.0.add(at), BYTES - at, true, persistent, Copying::NonTemporal) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that `of` made.
        unsafe { munmap(self.0.as_ptr().cast(), BYTES) }.expect("the mapping is still there");
    }
}

fn file(name: &str) -> (std::path::PathBuf, File) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    let file = File::options().read(true).write(true).create_new(true).open(&path);
    let file = file.expect("space on the test disk");
    file.set_len(BYTES as u64).expect("space on the test disk");
    (path, file)
}

#[test]
fn sectors_are_in_the_memory_and_in_the_file_that_is_mapped() {
    let (path, file) = file("caller.btt");
    let mapping = Mapping::of(&file);
    let format = Format {
        container: Container::Namespace,
        sector_bytes: 4096,
        uuid: Uuid([1; 16]),
        parent_uuid: Uuid::NIL,
        blank: true,
    };
    for (persistent, byte) in [(false, 1), (true, 2)] {
        let memory = mapping.memory(0, persistent).expect("memory of the caller");
        assert_eq!((memory.len(), memory.hole(0)), (BYTES as u64, 0));
        assert_eq!(memory.instructions().is_some(), persistent);
        let btt = match byte {
            1 => Btt::create(memory, &format, Policy::DEFAULT),
            _ => Btt::open(memory, &OpenOptions::new(Container::Namespace)),
        };
        let btt = btt.expect("a BTT");
        let mut sector = [0; 4096];
        btt.read(7, &mut sector).expect("successful read");
        assert_eq!(sector, [byte - 1; 4096], "what was written before");
        btt.write(7, &[byte; 4096]).expect("successful write");
        btt.flush().expect("successful flush");
    }
    drop((mapping, file));
    let options = ImageOptions::default();
    let btt = Image::identify(&path, &options).expect("an image").open(&options).expect("a BTT");
    let mut sector = [0; 4096];
    btt.read(7, &mut sector).expect("successful read");
    assert_eq!(sector, [2; 4096]);
    std::fs::remove_file(path).expect("our file");
}

#[test]
fn memory_need_not_start_at_a_page_but_at_a_word() {
    let (path, file) = file("unaligned.memory");
    let mapping = Mapping::of(&file);
    assert!(mapping.memory(4, false).is_err(), "words of eight bytes would be torn");
    for persistent in [false, true] {
        let memory = mapping.memory(4104, persistent).expect("memory of the caller");
        assert_eq!(memory.len(), BYTES as u64 - 4104);
        memory.write(8, b"bytes").expect("successful write");
        memory.store_long(0, u64::MAX).expect("successful store");
        memory.flush().expect("pages are synchronised from the first one on");
    }
    let bytes = std::fs::read(&path).expect("our file");
    assert_eq!(bytes[4104..4117], *b"\xff\xff\xff\xff\xff\xff\xff\xffbytes");
    assert_eq!(bytes.iter().filter(|&&byte| byte != 0).count(), 13, "nothing else is written");
    std::fs::remove_file(path).expect("our file");
}

#[test]
#[should_panic(expected = "of a mapping of")]
fn bytes_behind_the_memory_are_not_touched() {
    let (path, file) = file("short.memory");
    std::fs::remove_file(path).expect("our file");
    let memory = Mapping::of(&file);
    let memory = memory.memory(0, false).expect("memory of the caller");
    let _ = memory.read(BYTES as u64 - 1, &mut [0; 2]);
}
