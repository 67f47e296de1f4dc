//! A FAT volume of `embedded-sdmmc` on the disk.

use crate::emulated::{Kind, Model};
use crate::{blocking_disk, pattern, slot};
use blockyard_spi::disk::Design;
use blockyard_spi::sdmmc::Shared;
use embedded_sdmmc::{
    Block, BlockDevice, BlockIdx, Mode, TimeSource, Timestamp, VolumeIdx, VolumeManager,
};

const PARTITION: u32 = 64;
const PARTITION_SECTORS: u32 = 8128;
const FAT_SECTORS: u32 = 32;

/// An empty FAT16 volume in the first partition, by the specification of FAT: clusters of one
/// sector, two FATs, 512 entries in the root directory.
fn format(model: &mut Model) {
    let mbr = model.sector(0);
    mbr[446 + 4] = 0x06; // FAT16
    mbr[446 + 8..][..4].copy_from_slice(&PARTITION.to_le_bytes());
    mbr[446 + 12..][..4].copy_from_slice(&PARTITION_SECTORS.to_le_bytes());
    mbr[510..].copy_from_slice(&[0x55, 0xaa]);
    let boot = model.sector(PARTITION);
    boot[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    boot[3..11].copy_from_slice(b"BLOCKYRD");
    boot[11..13].copy_from_slice(&512_u16.to_le_bytes());
    boot[13] = 1; // sectors of a cluster
    boot[14..16].copy_from_slice(&1_u16.to_le_bytes()); // reserved sectors
    boot[16] = 2; // FATs
    boot[17..19].copy_from_slice(&512_u16.to_le_bytes());
    boot[19..21].copy_from_slice(&8128_u16.to_le_bytes());
    boot[21] = 0xf8;
    boot[22..24].copy_from_slice(&32_u16.to_le_bytes());
    boot[38] = 0x29;
    boot[43..54].copy_from_slice(b"TEST       ");
    boot[54..62].copy_from_slice(b"FAT16   ");
    boot[510..].copy_from_slice(&[0x55, 0xaa]);
    for fat in [PARTITION + 1, PARTITION + 1 + FAT_SECTORS] {
        model.sector(fat)[..4].copy_from_slice(&[0xf8, 0xff, 0xff, 0xff]);
    }
}

struct NoClock;

impl TimeSource for NoClock {
    fn get_timestamp(&self) -> Timestamp {
        Timestamp::from_calendar(2024, 2, 29, 12, 0, 0).expect("a day of the calendar")
    }
}

#[test]
fn a_file_is_written_and_read_back_by_another_disk() {
    for kind in Kind::ALL {
        let slot = slot(Model::new(kind));
        format(&mut slot.0.borrow_mut());
        let data = pattern(1, 20);
        let data = &data[..10_000];
        {
            let disk = Shared::new(blocking_disk(&slot, Design::SMALL));
            let volumes = VolumeManager::new(disk, NoClock);
            let volume = volumes.open_volume(VolumeIdx(0)).unwrap();
            let root = volume.open_root_dir().unwrap();
            let file = root.open_file_in_dir("LOG.BIN", Mode::ReadWriteCreate).unwrap();
            file.write(data).unwrap();
            file.close().unwrap();
        }
        let disk = Shared::new(blocking_disk(&slot, Design::SMALL));
        let volumes = VolumeManager::new(disk, NoClock);
        let volume = volumes.open_volume(VolumeIdx(0)).unwrap();
        let root = volume.open_root_dir().unwrap();
        let file = root.open_file_in_dir("LOG.BIN", Mode::ReadOnly).unwrap();
        let mut back = vec![0; 20_000];
        let mut length = 0;
        while !file.is_eof() {
            length += file.read(&mut back[length..]).unwrap();
        }
        assert_eq!(back[..length], *data, "{kind:?}");
        // The file system allocates from the front, so the file lies behind the root directory in
        // one piece.
        let first = (PARTITION + 1 + 2 * FAT_SECTORS + 32) as usize * 512;
        assert_eq!(slot.0.borrow().data[first..][..10_000], *data, "{kind:?}");
    }
}

#[test]
fn blocks_of_one_call_become_one_transfer() {
    let slot = slot(Model::new(Kind::Sdhc));
    let shared = Shared::new(blocking_disk(&slot, Design::SMALL));
    assert_eq!(shared.num_blocks().unwrap().0, 8192);
    let data = pattern(2, 11);
    let mut blocks = vec![Block::new(); 11];
    for (block, bytes) in blocks.iter_mut().zip(data.chunks(512)) {
        block.contents.copy_from_slice(bytes);
    }
    shared.write(&blocks, BlockIdx(50)).unwrap();
    assert_eq!(slot.0.borrow().data[50 * 512..61 * 512], data);
    blocks.fill(Block::new());
    shared.read(&mut blocks, BlockIdx(50)).unwrap();
    assert_eq!(blocks.iter().flat_map(|block| block.contents).collect::<Vec<_>>(), data);
    let disk = shared.into_disk();
    let counts = disk.0.counts();
    assert_eq!((counts.ios, counts.transfers), (22, 4), "eight blocks at once, and three");
}
