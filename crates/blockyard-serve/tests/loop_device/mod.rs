//! A loop device, where root may make one.
#![allow(dead_code, reason = "each test uses a part of it")]

use super::nbd;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device, detached when dropped.
pub(crate) struct Loop {
    pub(crate) path: PathBuf,
}

impl Loop {
    /// Makes one over `file`. Without root or kernel support, reports that and returns `None`.
    pub(crate) fn over(file: &Path) -> Option<Self> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        let made = made.ok().filter(|made| made.status.success());
        if made.is_none() {
            nbd::not_checked("block devices, as no loop device can be made here");
        }
        let path = String::from_utf8(made?.stdout).unwrap();
        Some(Self { path: PathBuf::from(path.trim()) })
    }
}

impl Loop {
    /// Lets a device over a file in tmpfs, which has no `FALLOC_FL_ZERO_RANGE`, fail to zero. From
    /// then on it discards, but `fallocate` cannot punch holes. Returns whether it is so.
    pub(crate) fn stops_zeroing(&self) -> bool {
        let zero = Command::new("fallocate").args(["-z", "-l", "4096"]).arg(&self.path).output();
        let queue = Path::new("/sys/block").join(self.path.file_name().unwrap()).join("queue");
        fn most(what: &str, queue: &Path) -> String {
            fs::read_to_string(queue.join(what)).unwrap().trim().to_owned()
        }
        zero.is_ok()
            && most("write_zeroes_max_bytes", &queue) == "0"
            && most("discard_max_bytes", &queue) != "0"
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let gone = Command::new("losetup").arg("--detach").arg(&self.path).status();
        assert!(
            gone.is_ok_and(|gone| gone.success()),
            "{} should be detached",
            self.path.display()
        );
    }
}
