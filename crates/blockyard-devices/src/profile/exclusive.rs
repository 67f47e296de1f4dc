//! The tables of devices that exclude each other: a device has those of one model, and a drive one of its front ends and
//! one of its media.

/// The tables of each model.
pub const MODEL_TABLES: [&[&str]; 5] =
    [&["null"], &["hba"], &["card", "host"], &["pmem"], DRIVE_TABLES];

/// The tables of drives: first the front ends, then the media.
pub(crate) const DRIVE_TABLES: &[&str] =
    &["nvme", "ahci", "virtio", "ufs", "usb", "crosspoint", "flash", "platters", "volume"];

/// The front ends and the media of drives.
pub const DRIVE_PARTS: [&[&str]; 2] = [FRONT_TABLES, MEDIUM_TABLES];

const FRONTS: usize = 5;
pub(crate) const FRONT_TABLES: &[&str] = DRIVE_TABLES.split_at(FRONTS).0;
pub(crate) const MEDIUM_TABLES: &[&str] = DRIVE_TABLES.split_at(FRONTS).1;
