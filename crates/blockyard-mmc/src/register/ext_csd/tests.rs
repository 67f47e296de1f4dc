use super::example::{emmc_4_41, emmc_5_1};
use super::partition::Partition;
use super::revision::{V4_3, V4_4, V4_5, V4_41, V5_1};
use super::*;
use alloc::vec::Vec;
use blockyard::time::Duration;

#[test]
fn a_published_device_of_4_41_is_read_correctly() {
    let ext = ExtCsd::parse(&emmc_4_41()).unwrap();
    assert_eq!((ext.revision(), ext.sectors()), (revision::V4_41, Some(0x0072_8000)));
    assert_eq!(
        ext.device_type(),
        DeviceType(DeviceType::HS_26 | DeviceType::HS_52 | DeviceType::DDR_1V8)
    );
    // BOOT_SIZE_MULT 16 and RPMB_SIZE_MULT 1, in 128 KiB; no general purpose partition made.
    assert_eq!(ext.partition_sectors(Partition::Boot(1)), 4096);
    assert_eq!(ext.partition_sectors(Partition::Rpmb), 256);
    assert_eq!(ext.partition_sectors(Partition::General(0)), 0);
    assert!(!ext.partitions_complete());
    // HC_ERASE_GRP_SIZE 8: 4 MiB; HC_WP_GRP_SIZE 1.
    assert_eq!((ext.erase_group_sectors(), ext.write_protect_group_sectors()), (8192, 8192));
    assert!(!ext.erase_group_on());
    assert_eq!(ext.erase_group_time(), Some(Duration::from_ms(300)));
    assert_eq!(ext.trim_time(), Some(Duration::from_ms(1800)));
    assert_eq!(ext.secure_erase_time(), Some(Duration::from_ms(600)));
    assert_eq!(ext.secure_trim_time(), Some(Duration::from_ms(900)));
    assert_eq!(ext.out_of_interrupt_time(), Some(Duration::from_ms(20)));
    assert_eq!(ext.hpi(), Some(Hpi::StopTransmission));
    assert!(ext.bkops() && !ext.bkops_by_host());
    assert_eq!((ext.bkops_level(), ext.programmed_sectors()), (BkopsLevel::Impacted, 8));
    assert!(ext.secure_features().has(SecureFeatures::TRIM | SecureFeatures::SECURE_ERASE));
    assert_eq!(ext.reliable_write_sectors(), None);
}

#[test]
fn fields_newer_than_the_revision_are_ignored() {
    // Every byte is set and the revision is 4.3: the host must not read garbage as features.
    let mut bytes = [0xff; 512];
    bytes[usize::from(index::EXT_CSD_REV)] = revision::V4_3;
    let ext = ExtCsd::parse(&bytes).unwrap();
    assert_eq!(ext.device_type(), DeviceType(3));
    assert_eq!((ext.cache_bytes(), ext.queue_depth(), ext.max_packed_writes()), (0, 0, 0));
    assert_eq!((ext.hpi(), ext.generic_switch_time(), ext.trim_time()), (None, None, None));
    assert_eq!(ext.secure_features(), SecureFeatures(0));
    assert!(!ext.bkops() && !ext.discard() && !ext.enhanced_strobe() && !ext.cache_on());
    assert_eq!((ext.exceptions(), ext.packed_failure()), (ExceptionEvents(0), None));
    assert_eq!(ext.partition_sectors(Partition::General(3)), 0);
    assert_eq!(ext.partition_sectors(Partition::Rpmb), 0);
    assert_eq!(ext.data_sector_sectors(), 1);
    // 4.3 has boot partitions and high-capacity groups.
    assert_eq!(ext.partition_sectors(Partition::Boot(0)), 255 * 256);
    assert_eq!(ext.erase_group_sectors(), 255 * 1024);
}

#[test]
fn all_fields_of_a_5_1_device_are_read() {
    let ext = ExtCsd::parse(&emmc_5_1()).unwrap();
    assert_eq!(ext.sectors(), Some(61_071_360));
    assert_eq!(
        ext.device_type(),
        DeviceType(
            DeviceType::HS_26
                | DeviceType::HS_52
                | DeviceType::DDR_1V8
                | DeviceType::HS200_1V8
                | DeviceType::HS400_1V8
        )
    );
    assert!(ext.enhanced_strobe() && ext.discard());
    assert_eq!((ext.cache_bytes(), ext.cache_on()), (8 << 20, false));
    assert_eq!(ext.queue_depth(), 32);
    assert_eq!((ext.max_packed_writes(), ext.max_packed_reads()), (63, 60));
    assert_eq!(ext.hpi(), Some(Hpi::SendStatus));
    assert!(!ext.bkops_by_host());
    assert!(ext.secure_features().has(SecureFeatures::SANITIZE | SecureFeatures::TRIM));
    assert_eq!(ext.generic_switch_time(), Some(Duration::from_ms(250)));
    assert_eq!(ext.out_of_interrupt_time(), Some(Duration::from_ms(50)));
    assert_eq!(ext.erase_group_time(), Some(Duration::from_ms(600)));
    assert_eq!(ext.trim_time(), Some(Duration::from_ms(1500)));
    assert_eq!(ext.secure_erase_time(), Some(Duration::from_ms(16_200)));
    assert_eq!(ext.secure_trim_time(), Some(Duration::from_ms(10_200)));
    assert_eq!(ext.partition_sectors(Partition::Boot(0)), 8192);
    assert_eq!(ext.partition_sectors(Partition::Rpmb), 32_768);
    // General purpose partition 2 of 0x0102 write-protect groups of 16 * 512 KiB.
    assert_eq!(ext.partition_sectors(Partition::General(1)), 0x102 * 16 * 1024);
    assert_eq!(ext.partition_sectors(Partition::General(0)), 0);
}

#[test]
fn a_packed_failure_is_reported_by_bits_and_an_index() {
    let mut bytes = emmc_5_1();
    bytes[54] = 0b1001;
    bytes[35] = 7;
    let ext = ExtCsd::parse(&bytes).unwrap();
    assert!(ext.exceptions().has(ExceptionEvents::URGENT_BKOPS));
    assert!(ext.exceptions().has(ExceptionEvents::PACKED_FAILURE));
    assert_eq!(
        [0, 1, 3].map(|status| failure_with_status(&bytes, status)),
        [None, Some(0), Some(7)]
    );
}

/// PACKED_COMMAND_STATUS: bit 0 failed, bit 1 with an index.
fn failure_with_status(bytes: &[u8; 512], status: u8) -> Option<u8> {
    let mut bytes = *bytes;
    bytes[36] = status;
    ExtCsd::parse(&bytes).unwrap().packed_failure()
}

#[test]
fn an_unknown_sector_size_is_refused() {
    let mut bytes = emmc_5_1();
    bytes[usize::from(index::DATA_SECTOR_SIZE)] = 2;
    let error = ExtCsd::parse(&bytes).unwrap_err();
    assert_eq!((error.field, error.value), ("DATA_SECTOR_SIZE", 2));
    bytes[usize::from(index::DATA_SECTOR_SIZE)] = 1;
    assert_eq!(ExtCsd::parse(&bytes).unwrap().data_sector_sectors(), 8);
}

#[test]
fn partitions_have_the_access_numbers_of_the_standard() {
    let numbers = Partition::ALL.map(Partition::access);
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn settings_of_a_host_do_not_change_the_identity_of_a_device() {
    let ext = ExtCsd::parse(&emmc_5_1()).unwrap();
    let mut bytes = emmc_5_1();
    for at in [index::HS_TIMING, index::CACHE_CTRL, index::ERASE_GROUP_DEF, index::HPI_MGMT] {
        bytes[usize::from(at)] = 1;
    }
    assert!(ext.same_device(&ExtCsd::parse(&bytes).unwrap()));
    bytes[usize::from(index::SEC_COUNT) + 2] ^= 0x40;
    assert!(!ext.same_device(&ExtCsd::parse(&bytes).unwrap()));
}

/// A byte, the revision that introduced it, and a property that its lowest bit decides.
type Flag = (u16, u8, fn(&ExtCsd) -> bool);

/// A byte, the revision that introduced it, and a property that follows from it alone.
struct Row {
    at: u16,
    since: u8,
    get: fn(&ExtCsd) -> u64,
    /// The property where the byte has this value; that of 0 counts before the revision.
    of: fn(u64) -> u64,
}

const fn row(at: u16, since: u8, get: fn(&ExtCsd) -> u64, of: fn(u64) -> u64) -> Row {
    Row { at, since, get, of }
}

fn ms(time: Option<Duration>) -> u64 {
    time.map_or(0, |time| time.as_ns() / 1_000_000)
}

/// The flags of one bit.
const FLAGS: [Flag; 10] = [
    (index::STROBE_SUPPORT, V5_1, ExtCsd::enhanced_strobe),
    (index::CACHE_CTRL, V4_5, ExtCsd::cache_on),
    (index::HPI_MGMT, V4_41, ExtCsd::hpi_on),
    (index::BKOPS_SUPPORT, V4_41, ExtCsd::bkops),
    (index::BKOPS_EN, V4_41, ExtCsd::bkops_by_host),
    (index::ERASED_MEM_CONT, 0, ExtCsd::erased_reads_as_ones),
    (index::PARTITION_SETTING_COMPLETED, V4_41, ExtCsd::partitions_complete),
    (index::ERASE_GROUP_DEF, V4_3, ExtCsd::erase_group_on),
    (index::CMDQ_SUPPORT, V5_1, |ext| ext.queue_depth() == 1),
    (index::PACKED_COMMAND_STATUS, V4_5, |ext| ext.packed_failure() == Some(0)),
];

/// The other properties of one byte.
const ROWS: [Row; 20] = [
    row(index::MAX_PACKED_WRITES, V4_5, |ext| ext.max_packed_writes().into(), whole),
    row(index::MAX_PACKED_READS, V4_5, |ext| ext.max_packed_reads().into(), whole),
    row(
        index::HPI_FEATURES,
        V4_41,
        |ext| ext.hpi().map_or(0, |by| 1 + u64::from(by == Hpi::StopTransmission)),
        |value| if value & 1 == 0 { 0 } else { 1 + (value >> 1 & 1) },
    ),
    row(index::BKOPS_STATUS, V4_41, |ext| ext.bkops_level() as u64, |value| value & 3),
    row(index::EXCEPTION_EVENTS_STATUS, V4_5, |ext| ext.exceptions().0.into(), whole),
    row(
        index::EXCEPTION_EVENTS_STATUS + 1,
        V4_5,
        |ext| ext.exceptions().0.into(),
        |value| value << 8,
    ),
    row(
        index::EXCEPTION_EVENTS_CTRL,
        V4_5,
        |ext| ext.packed_events_on().into(),
        |value| value >> 3 & 1,
    ),
    row(
        index::WR_REL_PARAM,
        V4_41,
        |ext| ext.reliable_write_sectors().is_none().into(),
        |value| value >> 2 & 1,
    ),
    row(index::REL_WR_SEC_C, 0, |ext| ext.reliable_write_sectors().unwrap().into(), whole),
    row(index::CACHE_SIZE, V4_5, ExtCsd::cache_bytes, |value| 128 * value),
    row(index::CACHE_SIZE + 3, V4_5, ExtCsd::cache_bytes, |value| (128 * value) << 24),
    row(
        index::SEC_COUNT + 3,
        revision::V4_2,
        |ext| ext.sectors().unwrap_or(0),
        |value| value << 24,
    ),
    row(
        index::CORRECTLY_PRG_SECTORS_NUM + 1,
        0,
        |ext| ext.programmed_sectors().into(),
        |value| value << 8,
    ),
    row(index::GENERIC_CMD6_TIME, V4_5, |ext| ms(ext.generic_switch_time()), |value| 10 * value),
    row(
        index::OUT_OF_INTERRUPT_TIME,
        V4_41,
        |ext| ms(ext.out_of_interrupt_time()),
        |value| 10 * value,
    ),
    row(index::ERASE_TIMEOUT_MULT, V4_3, |ext| ms(ext.erase_group_time()), |value| 300 * value),
    row(index::TRIM_MULT, V4_4, |ext| ms(ext.trim_time()), |value| 300 * value),
    row(
        index::BOOT_SIZE_MULT,
        V4_3,
        |ext| ext.partition_sectors(Partition::Boot(1)),
        |value| 256 * value,
    ),
    row(
        index::RPMB_SIZE_MULT,
        V4_41,
        |ext| ext.partition_sectors(Partition::Rpmb),
        |value| 256 * value,
    ),
    row(index::HC_ERASE_GRP_SIZE, V4_3, ExtCsd::erase_group_sectors, |value| 1024 * value),
];

/// Every property that one byte decides, in every revision and for every value of the byte.
#[test]
fn each_byte_counts_from_its_revision_on() {
    for (revision, value) in (0..=9).flat_map(|rev| (0..=255).map(move |value| (rev, value))) {
        for (at, since, get) in FLAGS {
            let expected = revision >= since && lowest_bit(value.into()) == 1;
            let is_named = at != index::PACKED_COMMAND_STATUS || value & 2 == 0;
            let said = get(&with_byte(revision, at, value));
            assert!(said == expected || !is_named, "byte {at} of {revision}: {value}");
        }
        for Row { at, since, get, of } in &ROWS {
            let expected = of(if revision >= *since { value.into() } else { 0 });
            let said = get(&with_byte(revision, *at, value));
            assert_eq!(said, expected, "byte {at} of {revision}: {value}");
        }
        let known = match revision {
            0..=3 => 0x03,
            4..=5 => 0x0f,
            6 => 0x3f,
            _ => 0xff,
        };
        let ext = with_byte(revision, index::DEVICE_TYPE, value);
        assert_eq!(ext.device_type(), DeviceType(value & known));
        let known = if revision < V4_4 {
            0
        } else if revision < V4_5 {
            0x15
        } else {
            0x55
        };
        let ext = with_byte(revision, index::SEC_FEATURE_SUPPORT, value);
        assert_eq!(ext.secure_features(), SecureFeatures(value & known));
        assert_eq!(ext.discard(), revision >= V4_5);
        let mut bytes = [0; 512];
        bytes[usize::from(index::EXT_CSD_REV)] = revision;
        bytes[usize::from(index::DATA_SECTOR_SIZE)] = value;
        let sectors = ExtCsd::parse(&bytes).ok().map(|ext| ext.data_sector_sectors());
        let expected = match value {
            _ if revision < V4_5 => Some(1),
            0 => Some(1),
            1 => Some(8),
            _ => None,
        };
        assert_eq!(sectors, expected, "DATA_SECTOR_SIZE of {revision}: {value}");
    }
}

fn lowest_bit(value: u64) -> u64 {
    value & 1
}

fn whole(value: u64) -> u64 {
    value
}

fn with_byte(revision: u8, at: u16, value: u8) -> ExtCsd {
    let mut bytes = [0; 512];
    bytes[usize::from(index::EXT_CSD_REV)] = revision;
    bytes[usize::from(at)] = value;
    ExtCsd::parse(&bytes).unwrap()
}

/// Some bytes count only together with another one.
#[test]
fn some_bytes_need_another() {
    for depth in 0..=255 {
        let set = [(index::CMDQ_SUPPORT, 1), (index::CMDQ_DEPTH, depth)];
        assert_eq!(
            (with_bytes(&set).queue_depth(), with_bytes(&set[1..]).queue_depth()),
            (depth % 32 + 1, 0)
        );
    }
    let secure = [
        (index::SEC_FEATURE_SUPPORT, 1),
        (index::ERASE_TIMEOUT_MULT, 2),
        (index::SEC_ERASE_MULT, 3),
        (index::SEC_TRIM_MULT, 5),
    ];
    assert_eq!(secure_times(with_bytes(&secure)), (1800, 3000));
    for needed in 0..2 {
        let mut without = secure;
        without[needed].1 = 0;
        assert_eq!(secure_times(with_bytes(&without)), (0, 0), "without byte {}", secure[needed].0);
    }
    for number in 0..4 {
        let sizes = (0..12).map(|at| (index::GP_SIZE_MULT + at, u8::try_from(at + 1).unwrap()));
        let mut set: Vec<_> = sizes.collect();
        set.extend([(index::HC_ERASE_GRP_SIZE, 2), (index::HC_WP_GRP_SIZE, 3)]);
        let partition = Partition::General(number);
        assert_eq!(with_bytes(&set).partition_sectors(partition), 0, "not complete");
        set.push((index::PARTITION_SETTING_COMPLETED, 1));
        let first = u64::from(3 * number) + 1;
        let groups = first + ((first + 1) << 8) + ((first + 2) << 16);
        assert_eq!(with_bytes(&set).partition_sectors(partition), groups * 2 * 3 * 1024);
    }
    assert_eq!(with_bytes(&[(index::SEC_COUNT, 7)]).partition_sectors(Partition::User), 7);
    // Each byte of a device's identity.
    let identity = [194, 196, 212, 213, 214, 215, 224, 221, 222, 223, 232, 160, 248];
    let differing: Vec<_> =
        (0..512).filter(|&at| !with_bytes(&[]).same_device(&with_bytes(&[(at, 1)]))).collect();
    let mut expected: Vec<u16> = identity.to_vec();
    expected.push(index::EXT_CSD_REV);
    expected.sort_unstable();
    assert_eq!(differing, expected);
}

fn with_bytes(set: &[(u16, u8)]) -> ExtCsd {
    let mut bytes = [0; 512];
    bytes[usize::from(index::EXT_CSD_REV)] = revision::V5_1;
    for &(at, value) in set {
        bytes[usize::from(at)] = value;
    }
    ExtCsd::parse(&bytes).unwrap()
}

fn secure_times(ext: ExtCsd) -> (u64, u64) {
    (ms(ext.secure_erase_time()), ms(ext.secure_trim_time()))
}

/// A size of 0 says that the CSD has it; any other is the size.
#[test]
fn the_size_of_the_user_area_is_any_number_but_zero() {
    for (count, sectors) in [(0, None), (1, Some(1)), (2, Some(2))] {
        let mut bytes = emmc_5_1();
        bytes[usize::from(index::SEC_COUNT)..][..4].copy_from_slice(&u32::to_le_bytes(count));
        let ext = ExtCsd::parse(&bytes).unwrap();
        assert_eq!(ext.sectors(), sectors);
        assert_eq!(ext.partition_sectors(Partition::User), count.into());
    }
}
