//! If the file system under a disk is full, a write fails with ENOSPC and the session continues.
//! Writes that the kernel takes and then loses fail every flush.
//!
//! The tests mount a small file system in their own mount namespace. Where that is not permitted
//! they print a line and pass.

mod loop_device;
mod nbd;

use blockyard_serve::Source;
use loop_device::Loop;
use nbd::{Client, EIO, ENOSPC, FLUSH, Running, WRITE, disk, header};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const INSIDE: &str = "BLOCKYARD_FULL_DISK";

/// Runs the test called `name` of this program again, where a file system of 1 MiB is mounted.
/// Returns its folder when it is run there.
fn small_file_system(name: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(INSIDE) {
        return Some(PathBuf::from(folder));
    }
    let folder = nbd::path("full");
    std::fs::create_dir(&folder).unwrap();
    let this = std::env::current_exe().unwrap();
    let script = "mount -t tmpfs -o size=1m none \"$1\" || exit 99; exec \"$0\" --exact \"$2\"";
    let run = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .args([this.as_os_str(), folder.as_os_str(), name.as_ref()])
        .env(INSIDE, &folder)
        .output();
    std::fs::remove_dir(&folder).unwrap();
    match run {
        Ok(run) if run.status.code() == Some(99) || run.status.code() == Some(1) => {
            println!("skipped: may not mount: {}", String::from_utf8_lossy(&run.stderr));
        }
        Ok(run) => assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout)),
        Err(error) => println!("skipped: there is no unshare: {error}"),
    }
    None
}

/// Makes a file of 4 MiB without data.
fn sparse(path: &Path) {
    File::create(path).unwrap().set_len(4 << 20).unwrap();
}

/// Sends a WRITE with FUA, and returns its error.
fn write_durably(client: &mut Client, offset: u64, data: &[u8]) -> u32 {
    let mut head = header(WRITE, 7, offset, u32::try_from(data.len()).unwrap());
    head[5] = 1; // NBD_CMD_FLAG_FUA
    client.stream.write_all(&[&head, data].concat()).unwrap();
    client.reply().unwrap().1
}

#[test]
fn a_full_disk_fails_one_write_and_the_session_goes_on() {
    let Some(folder) = small_file_system("a_full_disk_fails_one_write_and_the_session_goes_on")
    else {
        return;
    };
    let path = folder.join("disk");
    sparse(&path);
    let running = Running::start(disk(Source::File { path, buffered: true }), |_| ());
    let mut client = running.client();
    assert_eq!(client.write(0, &vec![1; 512 << 10]), 0);
    assert_eq!(client.write(1 << 20, &vec![2; 1 << 20]), ENOSPC);
    assert_eq!(write_durably(&mut client, 2 << 20, &vec![2; 1 << 20]), ENOSPC);
    assert_eq!(client.write(0, &[3; 4096]), 0, "a write to allocated space should succeed");
    assert_eq!(client.read(0, 8192)[4095..4097], [3, 1]);
    assert_eq!(client.call(FLUSH, 0, 0), 0);
    client.bye();
    running.stop();
}

/// The page cache of a loop device takes 2 MiB, of which its file has room for less. The kernel
/// tells this with the next durable write, and with no flush after it.
///
/// Checks [failed-flush-stays-failed].
#[test]
fn writes_that_were_lost_fail_each_flush() {
    let Some(folder) = small_file_system("writes_that_were_lost_fail_each_flush") else { return };
    let path = folder.join("disk");
    sparse(&path);
    let Some(device) = Loop::over(&path) else { return };
    let source = Source::File { path: device.path.clone(), buffered: true };
    let running = Running::start(disk(source), |_| ());
    let mut client = running.client();
    assert_eq!(write_durably(&mut client, 0, &[1; 4096]), 0);
    assert_eq!(client.write(1 << 20, &vec![2; 2 << 20]), 0, "the page cache takes it");
    let synced = Command::new("sync").arg(&device.path).status().unwrap();
    assert!(!synced.success(), "another descriptor reports the loss");
    assert_eq!(write_durably(&mut client, 0, &[3; 4096]), EIO, "the write reports it");
    for _ in 0..2 {
        assert_eq!(client.call(FLUSH, 0, 0), EIO);
    }
    client.bye();
    running.server.stopper().stop();
    running.server.join().expect_err("its last flush should fail too");
}
