//! Calls libpmemblk 1.12 and its checker, which tests compare with this crate.
#![allow(dead_code, unreachable_pub, reason = "each test uses some of these functions")]

use blockyard_btt::{Btt, IoError};
use blockyard_pmem::{Image, ImageMemory, ImageOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Calls libpmemblk: `create SIZE`, then `write LBA BYTE`, `zero LBA`, `error LBA`, and `read LBA`,
/// which prints the byte that fills the sector, or the error.
const PEER: &str = r#"
import ctypes, os, sys
lib = ctypes.CDLL("libpmemblk.so.1", use_errno=True)
for name in ("pmemblk_create", "pmemblk_open"):
    getattr(lib, name).restype = ctypes.c_void_p
lib.pmemblk_errormsg.restype = ctypes.c_char_p
lib.pmemblk_create.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint]
lib.pmemblk_open.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
for name in ("pmemblk_read", "pmemblk_write"):
    getattr(lib, name).argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_longlong]
for name in ("pmemblk_set_zero", "pmemblk_set_error"):
    getattr(lib, name).argtypes = [ctypes.c_void_p, ctypes.c_longlong]
lib.pmemblk_close.argtypes = [ctypes.c_void_p]
lib.pmemblk_nblock.argtypes = [ctypes.c_void_p]
lib.pmemblk_nblock.restype = ctypes.c_size_t
path, bytes_, calls = sys.argv[1].encode(), int(sys.argv[2]), sys.argv[3:]
if calls[0] == "create":
    pool = lib.pmemblk_create(path, bytes_, int(calls[1]), 0o600)
    calls = calls[2:]
else:
    pool = lib.pmemblk_open(path, bytes_)
if not pool:
    sys.exit(lib.pmemblk_errormsg().decode())
print("blocks", lib.pmemblk_nblock(pool))
while calls:
    call, lba, calls = calls[0], int(calls[1]), calls[2:]
    if call == "write":
        byte, calls = int(calls[0]), calls[1:]
        assert lib.pmemblk_write(pool, bytes([byte]) * bytes_, lba) == 0
    elif call == "zero":
        assert lib.pmemblk_set_zero(pool, lba) == 0
    elif call == "error":
        assert lib.pmemblk_set_error(pool, lba) == 0
    else:
        sector = ctypes.create_string_buffer(bytes_)
        if lib.pmemblk_read(pool, sector, lba) == 0:
            assert len(set(sector.raw)) == 1, "a mix"
            print(sector.raw[0])
        else:
            print(os.strerror(ctypes.get_errno()))
lib.pmemblk_close(pool)
"#;

pub fn peer(path: &Path, sector_bytes: u32, calls: &str) -> Vec<String> {
    let out = Command::new("python3")
        .args(["-c", PEER])
        .arg(path)
        .arg(sector_bytes.to_string())
        .args(calls.split_whitespace())
        .output()
        .expect("python3 runs");
    let words = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "libpmemblk ({calls}): {words}");
    String::from_utf8_lossy(&out.stdout).lines().map(String::from).collect()
}

pub fn is_there() -> bool {
    let load = "import ctypes; ctypes.CDLL('libpmemblk.so.1')";
    let all = succeeds(Command::new("python3").args(["-c", load]))
        && Command::new("pmempool").arg("--version").output().is_ok();
    assert!(
        all || std::env::var_os("CI").is_none(),
        "libpmemblk1, pmdk-tools and python3 are needed"
    );
    if !all {
        eprintln!("skipped: libpmemblk1, pmdk-tools or python3 is not installed");
    }
    all
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|out| out.status.success())
}

/// Returns the path of a file that does not exist yet.
pub fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

pub fn check(path: &Path) {
    let out = Command::new("pmempool")
        .arg("check")
        .arg("-v")
        .arg(path)
        .output()
        .expect("a program that starts");
    let words = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && words.contains("consistent"), "pmempool check: {words}");
    assert!(!words.contains("not consistent"), "pmempool check: {words}");
}

/// Asserts that `pmempool info` finds the BTT of the pool, with sectors of this size.
pub fn info(path: &Path, sector_bytes: u32) {
    let out =
        Command::new("pmempool").arg("info").arg(path).output().expect("a program that starts");
    let words = String::from_utf8_lossy(&out.stdout);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "pmempool info: {errors}");
    let size = words
        .lines()
        .find(|line: &&str| line.starts_with("External LBA size "))
        .and_then(|line| line.rsplit(' ').next());
    assert_eq!(size, Some(sector_bytes.to_string().as_str()), "pmempool info: {words}");
}

pub fn sector(btt: &Btt<ImageMemory>, lba: u64) -> Result<u8, IoError> {
    let mut bytes = vec![0xee; btt.sector_bytes() as usize];
    btt.read(lba, &mut bytes)?;
    assert!(bytes.iter().all(|&byte| byte == bytes[0]), "a mix in sector {lba}");
    Ok(bytes[0])
}

pub fn write(btt: &Btt<ImageMemory>, lba: u64, byte: u8) {
    btt.write(lba, &vec![byte; btt.sector_bytes() as usize]).expect("successful write");
}

pub fn open(path: &Path) -> Btt<ImageMemory> {
    let options = ImageOptions::default();
    Image::identify(path, &options).expect("a pool").open(&options).expect("an undamaged BTT")
}
