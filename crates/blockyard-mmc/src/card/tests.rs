use super::erase::Erase;
use super::*;
use crate::command::erase::{MmcErase, SdErase};
use crate::mode::{Timing, Width};
use crate::register::csd::Classes;
use crate::register::example;
use crate::register::ext_csd::example::{emmc_4_41, emmc_5_1};
use crate::register::ext_csd::index;
use blockyard::time::Duration;

pub(crate) fn emmc(mut bytes: [u8; 512], on: &[u16]) -> Card {
    for &at in on {
        bytes[usize::from(at)] = 1;
    }
    let ext_csd = ExtCsd::parse(&bytes).unwrap();
    Card {
        rca: Rca(2),
        cid: Cid::mmc(&example::bits("15010038475446345206deadbeef8201"), ext_csd.revision()),
        csd: Csd::mmc(&example::bits(example::CSD_CHROMEBOOK_EMMC)).unwrap(),
        addressing: Addressing::Sectors,
        sectors: ext_csd.sectors().unwrap(),
        mode: Mode::new(Timing::Hs200, Width::Eight),
        kind: CardKind::Mmc { ext_csd: Some(Box::new(ext_csd)) },
    }
}

pub(crate) fn sd(csd: &str, ssr: &[(usize, u8)], scr: &str) -> Card {
    let csd = Csd::sd(&example::bits(csd)).unwrap();
    let mut bytes = [0; 64];
    for &(at, byte) in ssr {
        bytes[at] = byte;
    }
    let small = csd.layout == Layout::Sd1;
    Card {
        rca: Rca(1),
        cid: Cid::sd(&example::bits("0353445355303847801234abcd00cb01")),
        addressing: if small { Addressing::Bytes } else { Addressing::Sectors },
        sectors: csd.sectors.unwrap(),
        csd,
        mode: Mode::new(Timing::SdHighSpeed, Width::Four),
        kind: CardKind::Sd {
            scr: Scr::parse(&example::hex(scr)).unwrap(),
            ssr: Ssr::parse(&bytes),
            performance: None,
        },
    }
}

pub(crate) const SCR: &str = "0235800300000000";

#[test]
fn emmc_5_1_offers_the_features_in_its_registers() {
    let on = [index::CACHE_CTRL, index::ERASE_GROUP_DEF, index::HPI_MGMT];
    let mut bytes = emmc_5_1();
    bytes[usize::from(index::EXCEPTION_EVENTS_CTRL)] = 0b1000;
    let card = emmc(bytes, &on);
    let host = HostCapabilities { queue_engine_depth: 16, ..HostCapabilities::full() };
    assert!(card.set_block_count(&host) && card.cache_on() && card.bkops() && card.sanitize());
    assert_eq!((card.cache_bytes(), card.queue_depth(&host)), (8 << 20, 16));
    // The card holds 32 tasks; direct commands take one number of the host's.
    let depths = [true, false].map(|queue_engine_direct| {
        card.queue_depth(&HostCapabilities { queue_engine_direct, ..HostCapabilities::full() })
    });
    assert_eq!(depths, [31, 32]);
    assert_eq!(card.max_packed(&host), (63, 60));
    assert_eq!(
        emmc(emmc_5_1(), &on).max_packed(&host),
        (0, 0),
        "the card does not report the failed entry"
    );
    assert_eq!(card.reliable_write(&host), ReliableWrite::Any);
    assert_eq!(card.hpi(), Some(Hpi::SendStatus));
    assert_eq!(card.discard_by(), Some(Erase::Mmc(MmcErase::Discard)));
    assert_eq!(card.zero_by(), Some(Erase::Mmc(MmcErase::Trim)));
    assert!(card.secure_erase_by().is_some());
    // Without CMD23 on the host no feature that needs CMD23 is used.
    let plain = HostCapabilities { set_block_count: false, ..HostCapabilities::full() };
    assert!(!card.set_block_count(&plain));
    assert_eq!(card.max_packed(&plain), (0, 0));
    assert_eq!(card.reliable_write(&plain), ReliableWrite::None);
    // 4.41 has trim but neither discard nor the other features of 4.5.
    let card = emmc(emmc_4_41(), &[]);
    assert_eq!(card.discard_by(), Some(Erase::Mmc(MmcErase::Trim)));
    assert_eq!((card.queue_depth(&host), card.max_packed(&host)), (0, (0, 0)));
    assert!(!card.cache_on() && !card.sanitize() && card.hpi().is_none());
}

#[test]
fn limits_follow_from_card_and_host() {
    let card = emmc(emmc_5_1(), &[index::CACHE_CTRL, index::ERASE_GROUP_DEF]);
    let host = HostCapabilities { max_blocks: 1023, ..HostCapabilities::full() };
    let limits = card.limits(&host).unwrap();
    assert_eq!((limits.capacity_sectors, limits.max_sectors), (61_071_360, 1023));
    assert_eq!((limits.max_segments, limits.logical_block_sectors), (128, 1));
    assert!(limits.write_cache && limits.fua);
    // Whole erase groups of 512 KiB: 2^32 - 1024.
    assert_eq!(limits.max_discard_sectors, 4_294_966_272);
    assert_eq!(limits.max_write_zeroes_sectors, 4_294_966_272);
    // A write that bypasses the cache is a reliable write, which needs CMD23.
    let plain = HostCapabilities { set_block_count: false, ..host.clone() };
    let limits = card.limits(&plain).unwrap();
    assert!(limits.write_cache && !limits.fua);
    // As in Linux, a card with reliable writes has a write cache for the queue, although it has
    // none.
    for (host, reliable) in [(&host, true), (&plain, false)] {
        let limits = emmc(emmc_5_1(), &[]).limits(host).unwrap();
        assert_eq!((limits.write_cache, limits.fua), (reliable, reliable));
    }
    // Only the user area counts, not the other partitions.
    assert_eq!(card.partition_sectors(Partition::Boot(1)), 8192);
    let nothing = Card { sectors: 0, ..card.clone() };
    assert_eq!(nothing.limits(&host), None);
    // Only whole sectors of 4 KiB.
    let card = emmc(emmc_5_1(), &[index::DATA_SECTOR_SIZE]);
    let limits = card.limits(&host).unwrap();
    assert_eq!((limits.logical_block_sectors, limits.max_sectors), (8, 1016));
    assert!(limits.write_cache && limits.fua, "by reliable writes");
    let mut bytes = emmc_5_1();
    bytes[usize::from(index::EXCEPTION_EVENTS_CTRL)] = 0b1000;
    let card = emmc(bytes, &[index::DATA_SECTOR_SIZE]);
    assert_eq!(card.max_packed(&host), (0, 0), "headers of 4 KiB");
    let card = sd(example::CSD_SAMSUNG_32G, &[], SCR);
    let limits = card.limits(&host).unwrap();
    assert!(limits.max_discard_sectors > 0 && limits.max_write_zeroes_sectors > 0);
    assert!(!limits.write_cache && card.partition_sectors(Partition::Boot(0)) == 0);
    // A card without the erase class of commands.
    let mut card = card;
    card.csd.classes = Classes(0);
    let limits = card.limits(&host).unwrap();
    assert_eq!((limits.max_discard_sectors, limits.max_write_zeroes_sectors), (0, 0));
}

#[test]
fn time_limits_follow_the_standards() {
    // TAAC 10 ms, R2W_FACTOR 4: 16 times.
    let card = emmc(emmc_5_1(), &[index::ERASE_GROUP_DEF]);
    assert_eq!(card.read_limit(), Duration::from_ms(100));
    assert_eq!(card.write_limit(), Duration::from_ms(1600));
    assert_eq!(card.switch_limit(), Duration::from_ms(250));
    assert_eq!(card.interrupt_limit(), Duration::from_ms(50));
    let old = emmc(emmc_4_41(), &[]);
    assert_eq!(old.switch_limit(), time::SWITCH);
    // SDHC and SDXC have fixed limits; below 2 GB the CSD states them: TAAC 1.5 ms * 100, no more
    // than ...
    let sdhc = sd(example::CSD_SAMSUNG_32G, &[], SCR);
    let limits = (sdhc.read_limit(), sdhc.write_limit());
    assert_eq!(limits, (Duration::from_ms(100), Duration::from_ms(250)));
    let sdxc = sd(example::CSD_KINGSTON_128G, &[], SCR);
    assert_eq!(sdxc.write_limit(), Duration::from_ms(500));
    let sdsc = sd(example::CSD_SANDISK_2G, &[], "0025000000000000");
    let limits = (sdsc.read_limit(), sdsc.write_limit());
    assert_eq!(limits, (Duration::from_ms(100), Duration::from_ms(250)));
    // ... and TAAC 200 us * 100, 32 times that for a write.
    let sdsc = sd(example::CSD_KINGSTON_2G, &[], "0025000000000000");
    let limits = (sdsc.read_limit(), sdsc.write_limit());
    assert_eq!(limits, (Duration::from_ms(20), Duration::from_ms(250)));
}

#[test]
fn the_limit_of_an_erase_counts_each_group_that_it_touches() {
    let card = emmc(emmc_5_1(), &[index::ERASE_GROUP_DEF]);
    // Groups of 1024 sectors: 600 ms to erase, 1500 ms to trim.
    assert_eq!(mmc_limit(&card, MmcErase::Erase, 1024, 4096), Duration::from_ms(2400));
    assert_eq!(mmc_limit(&card, MmcErase::Trim, 1023, 2), Duration::from_ms(3000));
    assert_eq!(mmc_limit(&card, MmcErase::Discard, 1024, 1024), Duration::from_ms(1500));
    assert_eq!(mmc_limit(&card, MmcErase::Erase, 0, 1024), Duration::from_secs(1));
    assert_eq!(mmc_limit(&card, MmcErase::SecureErase, 0, 1024), Duration::from_ms(16_200));
    // Allocation units of 4 MiB, 2 of them in 3 s, plus 1 s; if the card states nothing, 250 ms a
    // block.
    let card = sd(example::CSD_SAMSUNG_32G, &[(10, 0x90), (12, 2), (13, 0b0000_1101)], SCR);
    assert_eq!(sd_limit(&card, SdErase::Erase, 8192, 16_384), Duration::from_secs(4));
    assert_eq!(sd_limit(&card, SdErase::Erase, 8191, 2), Duration::from_secs(4));
    assert_eq!(sd_limit(&card, SdErase::Discard, 0, 1 << 20), Duration::from_ms(250));
    let card = sd(example::CSD_SAMSUNG_32G, &[], SCR);
    assert_eq!(
        card.erase_way(Erase::Sd(SdErase::Erase)).unwrap().limit(0, 8),
        Duration::from_secs(2)
    );
}

fn mmc_limit(card: &Card, by: MmcErase, sector: u64, sectors: u64) -> Duration {
    card.erase_way(Erase::Mmc(by)).unwrap().limit(sector, sectors)
}

fn sd_limit(card: &Card, by: SdErase, sector: u64, sectors: u64) -> Duration {
    card.erase_way(Erase::Sd(by)).unwrap().limit(sector, sectors)
}

#[test]
fn an_erase_is_three_commands_over_whole_units() {
    let card = emmc(emmc_5_1(), &[index::ERASE_GROUP_DEF]);
    let erase = card.erase_way(Erase::Mmc(MmcErase::Erase)).unwrap();
    let commands = erase.commands(1024, 2048).unwrap();
    assert_eq!(commands.map(|command| command.opcode.index()), [35, 36, 38]);
    assert_eq!(commands.map(|command| command.argument), [1024, 3071, 0]);
    assert_eq!(erase.commands(1024, 100), None);
    assert_eq!(erase.commands(100, 1024), None);
    assert_eq!(erase.commands(1000, 2048), None, "more than the whole units in it");
    assert_eq!(erase.commands(0, 0), None);
    assert_eq!(erase.whole_units(100, 2048), Some((1024, 1024)));
    assert_eq!(erase.whole_units(100, 1000), None);
    assert_eq!(erase.whole_units(u64::MAX, 2), None);
    let trim = card.erase_way(Erase::Mmc(MmcErase::Trim)).unwrap();
    assert!(trim.commands(100, 1).is_some());
    assert_eq!(trim.commands(u64::MAX - 1, 2), None);
    assert_eq!(card.erase_way(Erase::Sd(SdErase::Erase)), None);
    // Where the high-capacity group is off, the CSD applies: also 1024 blocks here.
    assert_eq!(emmc(emmc_4_41(), &[]).preferred_erase_sectors(), 1024);
    assert_eq!(emmc(emmc_4_41(), &[index::ERASE_GROUP_DEF]).preferred_erase_sectors(), 8192);
    // A small SD card is addressed in bytes.
    let card = sd(example::CSD_SANDISK_2G, &[], "0025000000000000");
    let commands = card.erase_way(Erase::Sd(SdErase::Erase)).unwrap().commands(8, 8).unwrap();
    assert_eq!(commands.map(|command| command.opcode.index()), [32, 33, 38]);
    assert_eq!(commands.map(|command| command.argument), [4096, 7680, 0]);
}

#[test]
fn a_card_without_the_class_or_the_size_of_erases_does_without() {
    let on = [index::ERASE_GROUP_DEF];
    assert_eq!(erases_without_class(emmc(emmc_5_1(), &on)), (None, None));
    assert_eq!(erases_without_class(sd(example::CSD_SAMSUNG_32G, &[], SCR)), (None, None));
    // A high-capacity group of no sectors leaves the CSD's in force, of 1024 sectors.
    let mut bytes = emmc_5_1();
    for (groups, sectors) in [(0, 1024), (1, 1024), (2, 2048)] {
        bytes[usize::from(index::HC_ERASE_GRP_SIZE)] = groups;
        assert_eq!(emmc(bytes, &on).preferred_erase_sectors(), sectors);
    }
    // An SD card that erases whole sectors only, or whose erased sectors read as ones, zeroes none.
    let mut card = sd(example::CSD_SAMSUNG_32G, &[], SCR);
    card.csd.erase_sectors = 2;
    assert_eq!((card.zero_by(), card.discard_by()), (None, Some(Erase::Sd(SdErase::Erase))));
    let ones = sd(example::CSD_SAMSUNG_32G, &[], "02b5800300000000");
    assert_eq!(ones.zero_by(), None);
    // More than 32 GB, and exactly 32 GB.
    let mut card = sd(example::CSD_SAMSUNG_32G, &[], SCR);
    for (sectors, limit) in [(1 << 26, time::SD_WRITE), ((1 << 26) + 1, time::SDXC_WRITE)] {
        card.sectors = sectors;
        assert_eq!(card.write_limit(), limit);
    }
}

fn erases_without_class(mut card: Card) -> (Option<Erase>, Option<Erase>) {
    assert!(card.discard_by().is_some() && card.zero_by().is_some());
    card.csd.classes.0 &= !(1 << 5);
    (card.discard_by(), card.zero_by())
}

#[test]
fn a_feature_begins_at_its_limit() {
    let host = HostCapabilities::full();
    let mut card = emmc(emmc_5_1(), &[]);
    // CMD23 since 3.1, which the CSD calls version 3.
    for (spec_version, has) in [(2, false), (3, true), (4, true)] {
        card.csd.layout = Layout::Mmc { spec_version };
        assert_eq!(card.set_block_count(&host), has, "{spec_version}");
    }
    // A header of 512 bytes has 63 entries after its first 8 bytes.
    for (stated, most) in [(5, 5), (62, 62), (63, 63), (64, 63), (255, 63)] {
        let mut bytes = emmc_5_1();
        bytes[usize::from(index::EXCEPTION_EVENTS_CTRL)] = 0b1000;
        bytes[usize::from(index::MAX_PACKED_WRITES)] = stated;
        bytes[usize::from(index::MAX_PACKED_READS)] = 5;
        assert_eq!(emmc(bytes, &[]).max_packed(&host), (most, 5));
        bytes[usize::from(index::MAX_PACKED_READS)] = stated;
        assert_eq!(emmc(bytes, &[]).max_packed(&host), (most, most));
    }
    // A cache without a size is none.
    let mut bytes = emmc_5_1();
    bytes[usize::from(index::CACHE_SIZE)..][..4].fill(0);
    assert!(!emmc(bytes, &[index::CACHE_CTRL]).cache_on());
    bytes[usize::from(index::CACHE_SIZE)] = 1;
    assert!(emmc(bytes, &[index::CACHE_CTRL]).cache_on());
    // Without EXT_CSD a device has none of its features.
    for card in [
        Card { kind: CardKind::Mmc { ext_csd: None }, ..emmc(emmc_5_1(), &[]) },
        sd(example::CSD_SAMSUNG_32G, &[], SCR),
    ] {
        assert_eq!((card.queue_depth(&host), card.cache_bytes()), (0, 0));
        assert_eq!((card.max_packed(&host), card.data_sector_sectors()), ((0, 0), 1));
    }
    // The least that a host can transfer.
    let least = HostCapabilities { max_blocks: 1, max_segments: 1, ..HostCapabilities::full() };
    let limits = emmc(emmc_5_1(), &[]).limits(&least).unwrap();
    assert_eq!((limits.max_sectors, limits.max_segments), (1, 1));
}

/// TAAC is a time and NSAC a number of clocks; both count. Larger SD cards do not use them.
#[test]
fn time_limits_follow_from_both_parts_of_the_access_time() {
    let (limits, access) = limits_with_slow_access(emmc(emmc_5_1(), &[]));
    assert_eq!(limits, (times(access, 10), times(access, 40)));
    let (limits, access) =
        limits_with_slow_access(sd(example::CSD_SANDISK_2G, &[], "0025000000000000"));
    assert_eq!(limits, (times(access, 100), times(access, 400)));
    let (limits, _) = limits_with_slow_access(sd(example::CSD_SAMSUNG_32G, &[], SCR));
    assert_eq!(limits, (time::SD_READ, time::SD_WRITE));
}

/// Returns the read and write limits of `card` with an access time of 100 us and 200 clocks, and
/// that time.
fn limits_with_slow_access(mut card: Card) -> ((Duration, Duration), Duration) {
    let clocks = 200;
    card.csd.read_access.span = Duration::from_us(100);
    card.csd.read_access.clocks = clocks;
    card.csd.write_factor = 4;
    let access = Duration::from_us(100) + card.mode.time(clocks.into());
    ((card.read_limit(), card.write_limit()), access)
}

fn times(access: Duration, factor: u64) -> Duration {
    Duration::from_ns(access.as_ns() * factor)
}

/// A full erase takes as long as an erase of each allocation unit: two of 4 MiB in 3 s, plus 1 s.
#[test]
fn a_full_erase_may_take_as_long_as_that_of_all_sectors() {
    let mut card = sd(example::CSD_SAMSUNG_32G, &[(10, 0x90), (12, 2), (13, 0b0000_1101)], SCR);
    for units in [2_u64, 3, 4] {
        card.sectors = units * 8192;
        let full = card.erase_way(Erase::Sd(SdErase::Full)).unwrap().limit(0, 8);
        assert_eq!(full, Duration::from_ms(1000 + 1500 * units));
    }
}
