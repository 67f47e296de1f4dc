//! Errors about the mechanics of disks and the flash of drives.

use super::*;

fn disk_error(text: &str) -> String {
    device_error(&format!("base = \"hdd-7200\"\n{text}"))
}

#[test]
fn an_impossible_disk_is_refused_where_it_says_so() {
    for (text, error) in [
        (
            "[platters]\ninner = \"220MB/s\"",
            "my.toml:3: the inner zone of a disk is not faster than the outer one",
        ),
        (
            "[platters]\nrpm = 7200\n[platters.read]\naverage = \"900us\"",
            "my.toml:4: no seek curve has these times: `average` lies between `track` and `full`, and nearer \
             to a third of the way than to its ends",
        ),
        ("[platters]\nheads = 0", "my.toml:3: `heads` is `0`, out of range (1 to 64)"),
        ("[platters]\nzones = 0", "my.toml:3: `zones` is `0`, out of range (1 to 256)"),
        (
            "[platters]\nouter = \"300kB/s\"\ninner = \"300kB/s\"",
            "my.toml:3: with these rates, a track has less than 4KiB or more than 512MiB",
        ),
        (
            "[platters]\nage-max = \"90s\"",
            "my.toml:2: a seek, its error, a switch of heads or an age takes at most 60s",
        ),
        (
            "[platters]\noverhead = \"90s\"",
            "my.toml:2: a seek, its error, a switch of heads or an age takes at most 60s",
        ),
        (
            "[platters]\norder = \"estimated\"\n[platters.estimate]\nseek-error = \"90s\"",
            "my.toml:2: a seek, its error, a switch of heads or an age takes at most 60s",
        ),
        (
            "[platters.estimate]\nwindow = 0",
            "my.toml:3: `window` is `0`, out of range (1 to 65536)",
        ),
        ("[platters.cache]\nstart = 101", "my.toml:3: `start` is `101`, out of range (0 to 100)"),
        ("[platters.cache]\nbatch = 0", "my.toml:3: `batch` is `0`, out of range (1 to 16777216)"),
        (
            "[limits]\ncapacity = \"16MiB\"",
            "my.toml:2: this capacity needs fewer than 16 cylinders of `[platters]`, or less than a band in each zone",
        ),
        (
            "[limits]\ncapacity = \"65536TiB\"",
            "my.toml:2: this capacity needs more than 16777216 cylinders of `[platters]`",
        ),
        (
            "[limits]\nmax-discard-sectors = 8",
            "my.toml:2: `[platters]` have nothing to discard: every sector has its place",
        ),
        (
            "[platters]\n[crosspoint]\nchannels = 7",
            "my.toml:2: a drive has one medium: `[crosspoint]`, `[flash]`, `[platters]` or `[volume]`",
        ),
    ] {
        assert_eq!(disk_error(text), error, "{text}");
    }
}

fn disk(text: &str) -> Device {
    Device::parse("x", &format!("base = \"hdd-7200\"\n{text}")).unwrap()
}

#[test]
fn a_disk_has_a_write_cache_if_its_profile_has_one() {
    assert!(disk("").limits.write_cache && !disk("").limits.fua);
    assert!(!disk("[platters.cache]\nwrite = \"0B\"").limits.write_cache);
    assert!(Device::lookup("hdd-15k").unwrap().limits.fua);
}

/// Flash of 128 MiB, over the drive on which a file builds.
const FLASH: &str = "channels = 2\ndies = 2\nplanes = 1\npage = \"16KiB\"\nprograms = 64\nsimulated = \"128MiB\"\n\
    spare = 28\nfill = 100\noverwritten = 0\nread = \"60us\"\nprogram = \"700us\"\nerase = \"3ms\"\n\
    transfer = \"5us\"\ndiscard = \"60us\"\ndiscard-per-gib = \"5ms\"\nbuffer = \"1MiB\"\nbuffered = \"5us\"\n\
    slc = \"1GiB\"\nslc-program = \"200us\"\nslc-idle = \"1ms\"\n";

/// Returns the error about `flash` as the flash of a drive.
fn flash_error(flash: &str) -> String {
    device_error(&format!("base = \"nvme-3dxpoint\"\n[flash]\n{flash}"))
}

#[test]
fn flash_that_cannot_work_is_refused_with_its_line() {
    for (from, to, line, words) in [
        ("channels = 2", "channels = 0", 3, "`channels` is `0`, out of range"),
        ("page = \"16", "page = \"6", 6, "a page of flash must be a multiple of 4 KiB"),
        ("spare = 28", "spare = 1", 9, "too little spare flash for collection"),
        ("fill = 100", "fill = 101", 10, "`fill` is `101`, out of range"),
        ("buffer = \"1M", "buffer = \"4K", 18, "the write buffer of flash must hold two programs"),
        ("read =", "registers = 3\nread =", 12, "`registers` is `3`, out of range"),
        ("read =", "collection = \"lru\"\nread =", 12, "unknown value `lru` for `collection`"),
        (
            "read =",
            "order = \"fifo\"\nread =",
            12,
            "unknown value `fifo` for `order` (one of reads-first, shares, arrival)",
        ),
        ("read =", "queued = 0\nread =", 12, "`queued` is `0`, out of range (1 to 1000)"),
        ("read =", "share = 100\nread =", 12, "`share` is `100`, out of range (1 to 99)"),
        (
            "read =",
            "full-buffer = \"stop\"\nread =",
            12,
            "unknown value `stop` for `full-buffer` (one of writes-wait, queue-waits, all-wait)",
        ),
        ("read =", "flush-steps = 65\nread =", 12, "`flush-steps` is `65`, out of range (0 to 64)"),
        (
            "read =",
            "flush-map = \"0B\"\nread =",
            12,
            "`flush-map` is `0B`, out of range (4KiB to 64MiB)",
        ),
        (
            "read =",
            "retries = [[0, 1]]\nread =",
            12,
            "`retries` is `[[0, 1]]`, not up to 16 points",
        ),
    ] {
        let error = flash_error(&FLASH.replace(from, to));
        assert!(error.starts_with(&format!("my.toml:{line}: {words}")), "{error}");
    }
}

fn flash_of(planes: u32, programs: u32, simulated: &str) -> String {
    let geometry = FLASH.replace("planes = 1", &format!("planes = {planes}"));
    let geometry = geometry.replace("programs = 64", &format!("programs = {programs}"));
    let geometry = geometry.replace("128MiB", simulated).replace("spare = 28", "spare = 400");
    geometry.replace("\"16KiB", "\"4KiB")
}

fn fits(flash: &str) -> Result<(), String> {
    let file = format!("base = \"nvme-3dxpoint\"\n[flash]\n{flash}");
    Device::parse("my.toml", &file).map(|_| ()).map_err(|error| error.to_string())
}

/// [bounded-memory]
#[test]
fn flash_that_takes_too_much_memory_or_time_is_refused_with_what_to_change() {
    let large = FLASH.replace("\"128MiB", "\"64GiB");
    let many = "my.toml:7: flash has at most 4194304 blocks: raise `programs`, `planes` or `page`, or lower `simulated` or `spare`";
    assert_eq!(flash_error(&flash_of(1, 1, "64GiB")), many);
    // 20 GiB of flash are 5242880 blocks of 4 KiB, and a quarter as many of 16 KiB.
    assert_eq!(flash_error(&flash_of(1, 1, "4GiB")), many);
    assert_eq!(fits(&flash_of(2, 2, "4GiB")), Ok(()));
    let long = "my.toml:11: overwriting so much before the start takes too long: lower `overwritten`, `simulated` or `fill`, or raise `spare`";
    assert_eq!(flash_error(&large.replace("overwritten = 0", "overwritten = 400")), long);
    assert_eq!(fits(&large.replace("overwritten = 0", "overwritten = 200")), Ok(()));
    assert_eq!(
        flash_error(&FLASH.replace("\"1MiB", "\"5GiB")),
        "my.toml:18: `buffer` is `5GiB`, out of range (4KiB to 4GiB)"
    );
}

fn retries_error(retries: &str) -> String {
    let retries = format!("retries = {retries}\nread =");
    flash_error(&FLASH.replace("read =", &retries))
}

#[test]
fn a_page_of_flash_is_read_again_at_most_a_hundred_times() {
    assert_eq!(
        retries_error("[[0, 0], [100, 101]]"),
        "my.toml:12: `retries` is `[[0, 0], [100, 101]]`, not up to 16 points `[percentile, times]` that rise \
         from percentile 0 to 100, with at most 100 times"
    );
    let range = "{ value = [[0, 0], [100, 9]], range = [[[0, 0], [100, 9]], [[0, 0], [100, 8]]], origin = \"assumed: x\" }";
    assert_eq!(
        retries_error(range),
        "my.toml:12: both ends of the range of a spread have the same percentiles, and the second is higher somewhere"
    );
    let most = Device::parse("d", "base = \"nvme-tlc\"\nflash.retries = [[0, 0], [100, 100]]\n");
    assert!(most.is_ok(), "{most:?}");
}

fn drive_of(capacity: &str) -> Result<(), String> {
    let file = format!("base = \"nvme-tlc\"\n[limits]\ncapacity = \"{capacity}\"\n");
    Device::parse("my.toml", &file).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn a_drive_smaller_than_the_data_of_its_map_is_refused() {
    // Half of 4 GiB hold data.
    assert_eq!(drive_of("2GiB"), Ok(()));
    assert_eq!(
        drive_of("2147479552B").unwrap_err(),
        "my.toml:2: the capacity is below the data of the map, `simulated` times `fill`: raise `capacity`, or lower \
         `simulated` of `[flash]`"
    );
}
