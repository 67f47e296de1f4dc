use super::example::{emmc_4_41, emmc_5_1};
use super::partition::Partition;
use super::*;
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
    assert!(ext.partitioning() && !ext.partitions_complete());
    // HC_ERASE_GRP_SIZE 8: 4 MiB; HC_WP_GRP_SIZE 1; ACC_SIZE 6: 16 KiB.
    assert_eq!((ext.erase_group_sectors(), ext.write_protect_group_sectors()), (8192, 8192));
    assert_eq!((ext.super_page_sectors(), ext.erase_group_on()), (Some(32), false));
    assert_eq!(ext.erase_group_time(), Some(Duration::from_ms(300)));
    assert_eq!(ext.trim_time(), Some(Duration::from_ms(1800)));
    assert_eq!(ext.secure_erase_time(), Some(Duration::from_ms(600)));
    assert_eq!(ext.secure_trim_time(), Some(Duration::from_ms(900)));
    assert_eq!(ext.partition_switch_time(), Some(Duration::from_ms(10)));
    assert_eq!(ext.out_of_interrupt_time(), Some(Duration::from_ms(20)));
    assert_eq!(ext.sleep_awake_time(), Some(Duration::from_ns(6_553_600)));
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
    assert_eq!((ext.pre_eol(), ext.life_time_a(), ext.firmware()), (None, None, None));
    assert!(!ext.bkops() && !ext.discard() && !ext.enhanced_strobe() && !ext.cache_on());
    assert!(!ext.queue_on() && !ext.partitioning() && !ext.data_tag());
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
    assert!(ext.enhanced_strobe() && ext.discard() && ext.cache_barrier());
    assert_eq!((ext.cache_bytes(), ext.cache_on()), (8 << 20, false));
    assert!(ext.cache_flushed_in_order());
    assert_eq!((ext.queue_depth(), ext.queue_on()), (32, false));
    assert_eq!((ext.max_packed_writes(), ext.max_packed_reads()), (63, 60));
    assert_eq!(ext.hpi(), Some(Hpi::SendStatus));
    assert!(ext.bkops_by_device() && !ext.bkops_by_host());
    assert!(ext.secure_features().has(SecureFeatures::SANITIZE | SecureFeatures::TRIM));
    assert_eq!(ext.generic_switch_time(), Some(Duration::from_ms(250)));
    assert_eq!(ext.partition_switch_time(), Some(Duration::from_ms(30)));
    assert_eq!(ext.out_of_interrupt_time(), Some(Duration::from_ms(50)));
    assert_eq!(ext.power_off_long_time(), Some(Duration::from_secs(1)));
    assert_eq!(ext.erase_group_time(), Some(Duration::from_ms(600)));
    assert_eq!(ext.trim_time(), Some(Duration::from_ms(1500)));
    assert_eq!(ext.secure_erase_time(), Some(Duration::from_ms(16_200)));
    assert_eq!(ext.secure_trim_time(), Some(Duration::from_ms(10_200)));
    assert_eq!(ext.partition_sectors(Partition::Boot(0)), 8192);
    assert_eq!(ext.partition_sectors(Partition::Rpmb), 32_768);
    // General purpose partition 2 of 0x0102 write-protect groups of 16 * 512 KiB.
    assert_eq!(ext.partition_sectors(Partition::General(1)), 0x102 * 16 * 1024);
    assert_eq!(ext.partition_sectors(Partition::General(0)), 0);
    assert_eq!(ext.pre_eol(), Some(PreEol::Normal));
    assert_eq!(ext.life_time_a(), Some(LifeTime { tenths: 2 }));
    assert_eq!(ext.life_time_b(), Some(LifeTime { tenths: 11 }));
    assert_eq!((ext.optimal_read_sectors(), ext.optimal_write_sectors()), (Some(8), Some(32)));
    assert_eq!((ext.optimal_trim_sectors(), ext.super_page_sectors()), (Some(32), Some(64)));
    assert_eq!(ext.write_reliability(), 0x1f);
    assert_eq!(ext.contexts(), 5);
}

#[test]
fn a_packed_failure_is_reported_by_bits_and_an_index() {
    let mut bytes = emmc_5_1();
    bytes[54] = 0b1001;
    bytes[35] = 7;
    let ext = ExtCsd::parse(&bytes).unwrap();
    assert!(ext.exceptions().has(ExceptionEvents::URGENT_BKOPS));
    assert!(ext.exceptions().has(ExceptionEvents::PACKED_FAILURE));
    assert!(!ext.exceptions().has(ExceptionEvents::DYNCAP_NEEDED));
    // PACKED_COMMAND_STATUS: bit 0 failed, bit 1 with an index.
    let failure = |status| {
        let mut bytes = bytes;
        bytes[36] = status;
        ExtCsd::parse(&bytes).unwrap().packed_failure()
    };
    assert_eq!([0, 1, 3].map(failure), [None, Some(0), Some(7)]);
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
