//! Device DAX: persistent memory as a character device, which can be mapped, but neither read,
//! written nor synchronised by calls. The kernel describes it in sysfs.

use std::fs::{File, canonicalize, read_to_string};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Returns the bytes of `file` that can be mapped if it is a device DAX.
///
/// # Errors
///
/// The file is another character device, or the kernel does not describe it.
pub(crate) fn bytes(file: &File) -> io::Result<Option<u64>> {
    let metadata = file.metadata()?;
    if !metadata.file_type().is_char_device() {
        return Ok(None);
    }
    let device = metadata.rdev();
    let major = rustix::fs::major(device);
    let minor = rustix::fs::minor(device);
    described(&Path::new("/sys/dev/char").join(format!("{major}:{minor}"))).map(Some)
}

/// Returns the bytes of the device that a folder of sysfs describes. A mapping has a multiple of
/// its alignment.
fn described(device: &Path) -> io::Result<u64> {
    let is_dax = canonicalize(device.join("subsystem")).is_ok_and(|kind| kind.ends_with("dax"));
    if !is_dax {
        let words = "a character device that is not a device DAX has no bytes";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    }
    let bytes = number(&device.join("size"))?;
    // The alignment belongs to the device since Linux 5.10, and to its region before.
    let alignment = match number(&device.join("align")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            number(&device.join("dax_region/align"))?
        }
        other => other?,
    };
    match alignment.is_power_of_two() {
        true => Ok(bytes - bytes % alignment),
        false => Err(io::Error::other("the alignment of the device DAX is no power of two")),
    }
}

/// Returns the number in a file of sysfs.
fn number(path: &Path) -> io::Result<u64> {
    read_to_string(path)?.trim().parse().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, remove_file, write};
    use std::os::unix::fs::symlink;

    /// No test machine has a device DAX: this folder imitates what the kernel says of one.
    #[test]
    fn the_size_is_read_and_cut_to_the_alignment() {
        let sysfs = std::env::temp_dir().join(format!("blockyard-sysfs-{}", std::process::id()));
        let device = sysfs.join("dev/char/252:0");
        create_dir_all(sysfs.join("bus/dax")).expect("a new folder");
        create_dir_all(device.join("dax_region")).expect("a new folder");
        symlink(sysfs.join("bus/dax"), device.join("subsystem")).expect("a new link");
        write(device.join("size"), "6295552\n").expect("a new file"); // 6 MiB and a page
        assert!(described(&device).is_err(), "the alignment is not known");
        write(device.join("dax_region/align"), "2097152\n").expect("a new file");
        assert_eq!(described(&device).expect("a device of an old kernel"), 6 << 20);
        write(device.join("align"), "4096\n").expect("a new file");
        assert_eq!(described(&device).expect("a device of a new kernel"), 6_295_552);
        write(device.join("align"), "0\n").expect("a file");
        assert!(described(&device).is_err(), "an impossible alignment");
        remove_file(device.join("subsystem")).expect("a link");
        assert!(described(&device).is_err(), "a device of another kind");
        remove_dir_all(sysfs).expect("our folder");
    }

    #[test]
    fn other_character_devices_are_refused() {
        assert!(bytes(&File::open("/dev/null").expect("null device")).is_err());
        let file = File::open("/proc/self/exe").expect("this program");
        assert_eq!(bytes(&file).expect("a regular file"), None);
    }
}
