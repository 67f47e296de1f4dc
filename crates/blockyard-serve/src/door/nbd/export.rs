//! Disks as NBD exports: sizes, flags and block sizes.

use crate::disk::roster::Listed;
use crate::disk::{Disk, NULL_READ_BYTES_MAX};
use blockyard_wire::nbd::number::PAYLOAD_BYTES_DEFAULT;
use blockyard_wire::nbd::{
    BASE_ALLOCATION, BlockSizes, Export, ExportError, ExportFlags, ExportIndex, Exports,
};

const _: () = assert!(
    PAYLOAD_BYTES_DEFAULT as usize <= NULL_READ_BYTES_MAX,
    "a null disk can answer the longest read"
);

/// Returns an export for each disk, with the number of the disk, in the order of `disks`.
///
/// # Errors
///
/// The exports contradict each other: for example, two of them have one name.
pub(crate) fn exports(disks: &[Listed]) -> Result<Exports, ExportError> {
    let numbered = disks.iter().map(|it| (ExportIndex(it.number), export(&it.disk)));
    Exports::numbered(numbered.collect())
}

fn export(disk: &Disk) -> Export {
    let limits = disk.limits();
    // CAN_MULTI_CONN: all connections write to the same memory or file.
    let mut flags =
        ExportFlags::FLUSH | ExportFlags::FUA | ExportFlags::CACHE | ExportFlags::CAN_MULTI_CONN;
    if limits.max_discard_sectors > 0 {
        flags = flags | ExportFlags::TRIM;
    }
    if limits.max_write_zeroes_sectors > 0 {
        flags = flags | ExportFlags::WRITE_ZEROES | ExportFlags::FAST_ZERO;
    }
    if limits.rotational {
        flags = flags | ExportFlags::ROTATIONAL;
    }
    if disk.read_only {
        flags = flags | ExportFlags::READ_ONLY;
    }
    Export {
        name: disk.name.clone(),
        description: String::new(),
        size_bytes: disk.size_bytes,
        blocks: BlockSizes {
            minimum: u32::try_from(disk.request_block_bytes()).expect("block size within 32 bits"),
            preferred: 4096,
            maximum: PAYLOAD_BYTES_DEFAULT,
            partial_zeroes: true,
        },
        flags,
        contexts: vec![BASE_ALLOCATION.to_owned()],
    }
}
