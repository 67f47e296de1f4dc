//! If the file system under a disk is full, a write fails with ENOSPC and the session continues.
//!
//! The test mounts a small file system in its own mount namespace. Where that is not permitted it
//! prints a line and passes.

mod nbd;

use blockyard_serve::Source;
use nbd::{ENOSPC, FLUSH, Running, disk};
use std::process::Command;

const INSIDE: &str = "BLOCKYARD_FULL_DISK";

#[test]
fn a_full_disk_fails_one_write_and_the_session_goes_on() {
    let folder = nbd::path("full");
    if std::env::var_os(INSIDE).is_none() {
        std::fs::create_dir(&folder).unwrap();
        let this = std::env::current_exe().unwrap();
        let script = "mount -t tmpfs -o size=1m none \"$1\" || exit 99; exec \"$0\"";
        let run = Command::new("unshare")
            .args(["--mount", "sh", "-c", script])
            .args([this.as_os_str(), folder.as_os_str()])
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
        return;
    }
    let folder = std::path::PathBuf::from(std::env::var_os(INSIDE).unwrap());
    let path = folder.join("disk");
    std::fs::File::create(&path).unwrap().set_len(4 << 20).unwrap();
    let running = Running::start(disk(Source::File { path, buffered: true }), |_| ());
    let mut client = running.client();
    assert_eq!(client.write(0, &vec![1; 512 << 10]), 0);
    assert_eq!(client.write(1 << 20, &vec![2; 1 << 20]), ENOSPC);
    assert_eq!(client.write(0, &[3; 4096]), 0, "a write to allocated space should succeed");
    assert_eq!(client.read(0, 8192)[4095..4097], [3, 1]);
    assert_eq!(client.call(FLUSH, 0, 0), 0);
    client.bye();
    running.stop();
}
