//! Messages about near misses: what is wrong, where, and what to write instead.

use std::collections::BTreeSet;

use super::{
    Design, Device, DeviceModel, DieOrder, DriveProfile, FrontProfile, MediumProfile, device_error,
};
use crate::families::USUAL_BASES;

/// Checks the message about each file, which has the given lines after `base = "..."`.
fn check(cases: &[(&str, &str, &str)]) {
    for (base, lines, message) in cases {
        let error = device_error(&format!("base = \"{base}\"\n{lines}\n"));
        assert_eq!(error, format!("my.toml:{message}"), "{lines}");
    }
}

fn lack(line: usize, blocks: u64, data: u64, remedy: &str) -> String {
    format!(
        "{line}: too little spare flash for collection: a die has {blocks} blocks and needs {}, {data} for the data \
             and 4 for collection: {remedy}",
        data + 4
    )
}

/// The drive that `nvme-tlc` is has 32 dies of 128 blocks of 1 MiB, with a tenth in spare.
#[test]
fn flash_with_too_little_spare_says_how_much_it_needs() {
    check(&[
        // 1 % of 128 blocks are one block, and 4 % are five.
        (
            "nvme-tlc",
            "[flash]\noverwritten = 0\nspare = 1",
            &lack(4, 129, 128, "raise `spare` from 1 to 4 or more"),
        ),
        // 4 GiB in 32 dies with blocks of 16 MiB: 8 blocks, of which a half more are four.
        (
            "nvme-tlc",
            "[flash]\noverwritten = 0\nprograms = 512",
            &lack(4, 8, 8, "raise `spare` from 10 to 50 or more"),
        ),
        // Not even five times a block are five blocks.
        (
            "nvme-tlc",
            "[flash]\nsimulated = \"1MiB\"\nspare = 400",
            &lack(
                4,
                0,
                1,
                "raise `simulated`, or lower `programs`, `planes`, `page`, `dies` or `channels`",
            ),
        ),
    ]);
}

#[test]
fn a_value_in_the_form_of_a_data_sheet_is_shown_as_a_profile_writes_it() {
    check(&[
        (
            "nvme-tlc",
            "[flash]\nslc = \"40GB\"",
            "3: `slc` is `40GB`, not a size with its unit: write \"40GiB\", or \"40000000000B\" for units of 1000",
        ),
        ("nvme-tlc", "[flash]\nfill = \"50%\"", "3: `fill` is `50%`, not a whole number: write 50"),
        // As a share of one, or as a percentage out of range.
        (
            "nvme-tlc",
            "[flash]\nfill = 0.5",
            "3: `fill` is `0.5`, not a whole number: write one from 10 to 100",
        ),
        (
            "nvme-tlc",
            "[flash]\nfill = \"5%\"",
            "3: `fill` is `5%`, not a whole number: write one from 10 to 100",
        ),
        (
            "hdd-7200",
            "[platters]\nrpm = \"7200rpm\"",
            "3: `rpm` is `7200rpm`, not a whole number: write 7200",
        ),
        // 6 Gbit/s of Serial ATA carry 600 MB/s.
        (
            "sata-ssd",
            "[ahci]\nlink = \"6Gb/s\"",
            "3: `link` is `6Gb/s`, not a rate in bytes with its unit: write \"600MB/s\" for a link with 8b/10b \
             encoding, else \"750MB/s\"",
        ),
        (
            "cloud-gp3",
            "[volume.bytes]\nrate = \"125MiB/s\"",
            "3: `rate` is `125MiB/s`, not a size with its unit: write \"125MiB\"",
        ),
        (
            "nvme-tlc",
            "[nvme.link]\nlanes = \"x4\"",
            "3: `lanes` is `x4`, not a whole number: write 4",
        ),
    ]);
}

#[test]
fn a_range_of_sizes_is_written_in_sizes() {
    check(&[
        ("nvme-tlc", "[flash]\nslc = \"8TiB\"", "3: `slc` is `8TiB`, out of range (0B to 4TiB)"),
        (
            "nvme-tlc",
            "[limits]\ncapacity = \"2KiB\"",
            "3: `capacity` is `2KiB`, out of range (1MiB to 1048576TiB)",
        ),
    ]);
}

#[test]
fn values_that_contradict_each_other_are_refused_with_both() {
    check(&[
        (
            "nvme-tlc",
            "[flash]\nslc-program = \"2ms\"",
            "3: `slc-program` is `2ms`, longer than `program`, `575us`: lower `slc-program` or raise `program`",
        ),
        (
            "nvme-tlc",
            "[flash]\nread = \"40us\"\nprogram = \"100us\"",
            "4: `slc-program` is `200us`, longer than `program`, `100us`: lower `slc-program` or raise `program`",
        ),
        (
            "nvme-tlc",
            "[flash]\nsuspend = \"3ms\"",
            "3: `suspend` is `3ms`, longer than `program`, `575us`: lower `suspend` or raise `program`",
        ),
        (
            "nvme-tlc",
            "[flash]\nslc = \"2TiB\"",
            "3: `slc` is `2TiB`, more than the drive's `capacity`, `1000204886016B`: lower `slc` or raise `capacity` of \
             `[limits]`",
        ),
        (
            "cloud-gp3",
            "[volume.iops]\nrate = 16000",
            "3: `burst` is `3000`, less than `rate`, `16000`: raise `burst` to `16000` or more, or lower `rate`",
        ),
        (
            "cloud-gp3",
            "[volume.bytes]\nrate = \"512000KiB\"\nburst = \"100MiB\"",
            "4: `burst` is `100MiB`, less than `rate`, `500MiB`: raise `burst` to `500MiB` or more, or lower `rate`",
        ),
        (
            "nvme-tlc",
            "[nvme.link]\nlanes = 3",
            "3: `lanes` is `3`, out of range (1, 2, 4, 8 or 16)",
        ),
        (
            "nvme-tlc",
            "[nvme.link]\nlanes = 32",
            "3: `lanes` is `32`, out of range (1, 2, 4, 8 or 16)",
        ),
    ]);
}

/// `passes` is for reads that go first. No reading of a drive whose order is `arrival` has that.
#[test]
fn a_key_that_the_order_of_a_die_never_uses_is_refused() {
    check(&[
        (
            "nvme-tlc",
            "[flash]\norder = \"arrival\"\npasses = 3",
            "4: `passes` goes only with `reads-first` as `order`, which is `arrival`",
        ),
        (
            "nvme-tlc",
            "[flash]\nsuspend = \"5us\"\norder = \"arrival\"",
            "3: `suspend` goes only with `reads-first` or `shares` as `order`, which is `arrival`",
        ),
        (
            "nvme-tlc",
            "[flash]\nqueued = 2\norder = { value = \"shares\", range = [\"reads-first\", \"shares\"], \
             origin = \"assumed\" }",
            "3: `queued` goes only with `arrival` as `order`, which is `reads-first` or `shares`",
        ),
        (
            "sata-ssd-dc",
            "[flash]\norder = \"reads-first\"\nshare = 30",
            "4: `share` goes only with `shares` as `order`, which is `reads-first`",
        ),
        (
            "emmc-45",
            "[card.read]\nparallel = 2",
            "3: `parallel` goes only with a `queue-depth`: only tasks of a command queue are read in parallel",
        ),
    ]);
}

/// A range of orders may use what the stated order does not; and who changes the order of a drive
/// need not remove what its file says of the other.
#[test]
fn a_key_that_some_order_of_a_range_uses_is_accepted() {
    for (device, lines) in [
        ("nvme-tlc", "[flash]\npasses = 3\nsuspend = \"5us\"\nshare = 30\nqueued = 2"),
        ("nvme-dc", "[flash]\norder = \"arrival\""),
        ("sata-ssd-dc", "[flash]\norder = \"reads-first\"\npasses = 3"),
        ("emmc-hs400", "[card]\nqueue-depth = 0"),
    ] {
        let parsed = Device::parse("my.toml", &format!("base = \"{device}\"\n{lines}\n"));
        assert!(parsed.is_ok(), "{lines}: {parsed:?}");
    }
}

/// These were sound before those messages, and stay so.
#[test]
fn values_that_matter_to_nothing_are_not_compared() {
    for lines in [
        // A drive whose capacity alone is lowered is all cache.
        "[limits]\ncapacity = \"2GiB\"",
        // Without a cache, its program is none.
        "[flash]\nslc = \"0B\"\nprogram = \"100us\"",
        // Equal times, and a cache of the whole drive.
        "[flash]\nslc = \"1000204886016B\"\nslc-program = \"575us\"\nsuspend = \"575us\"",
    ] {
        let device = Device::parse("my.toml", &format!("base = \"nvme-tlc\"\n{lines}\n"));
        assert!(device.is_ok(), "{lines}: {device:?}");
    }
}

#[test]
fn a_value_outside_its_own_range_is_refused() {
    for (key, value, range, words) in [
        (
            "flash.read",
            "\"61us\"",
            "[\"20us\", \"60us\"]",
            "`61us`, out of range (its `range` is 20us to 60us)",
        ),
        (
            "flash.read",
            "\"19us\"",
            "[\"20us\", \"60us\"]",
            "`19us`, out of range (its `range` is 20us to 60us)",
        ),
        ("flash.spare", "40", "[7, 15]", "`40`, out of range (its `range` is 7 to 15)"),
        (
            "flash.slc",
            "\"40GiB\"",
            "[\"8GiB\", \"16GiB\"]",
            "`40GiB`, out of range (its `range` is 8GiB to 16GiB)",
        ),
        ("nvme.link.lanes", "8", "[1, 4]", "`8`, out of range (its `range` is 1 to 4)"),
        (
            "flash.order",
            "\"arrival\"",
            "[\"reads-first\", \"shares\"]",
            "`arrival`, out of range (its `range` is reads-first to shares)",
        ),
        (
            "flash.retries",
            "[[0, 0], [100, 9]]",
            "[[[0, 0], [100, 1]], [[0, 0], [100, 8]]]",
            "`[[0, 0], [100, 9]]`, out of range (its `range` is [[0, 0], [100, 1]] to [[0, 0], [100, 8]])",
        ),
        // Between its points, the value is above the range.
        (
            "flash.retries",
            "[[0, 0], [50, 5], [100, 8]]",
            "[[[0, 0], [100, 1]], [[0, 0], [100, 8]]]",
            "`[[0, 0], [50, 5], [100, 8]]`, out of range (its `range` is [[0, 0], [100, 1]] to [[0, 0], [100, 8]])",
        ),
    ] {
        let (table, own) = key.rsplit_once('.').unwrap();
        let figure =
            format!("{own} = {{ value = {value}, range = {range}, origin = \"assumed: x\" }}");
        let error = device_error(&format!("base = \"nvme-tlc\"\n[{table}]\n{figure}\n"));
        assert_eq!(error, format!("my.toml:3: `{own}` is {words}"));
    }
}

/// Returns 60 readings of the device in `text`.
fn readings(name: &str, text: &str) -> Vec<DriveProfile> {
    let path = std::env::temp_dir().join(format!("{name}-{}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let readings = Device::readings(path.to_str().unwrap(), &[], 1, 60);
    std::fs::remove_file(&path).unwrap();
    let drive = |device: Device| match device.model {
        DeviceModel::Drive(drive) => drive,
        other => panic!("{other:?}"),
    };
    readings.unwrap().into_iter().map(drive).collect()
}

#[test]
fn a_reading_of_lanes_has_as_many_as_a_link_can_have() {
    let lanes = "lanes = { value = 4, range = [2, 8], origin = \"assumed: x\" }";
    let readings = readings("lanes", &format!("base = \"nvme-tlc\"\n[nvme.link]\n{lanes}\n"));
    let lanes = readings.iter().map(|drive| match drive.front {
        FrontProfile::Nvme(nvme) => nvme.link.lanes,
        other => panic!("{other:?}"),
    });
    assert_eq!(lanes.collect::<BTreeSet<_>>(), BTreeSet::from([2, 4, 8]));
}

/// A range of words has those between its ends in the list of the key.
#[test]
fn a_reading_of_a_word_has_each_of_its_range() {
    let order = "order = { value = \"shares\", range = [\"shares\", \"arrival\"], origin = \"assumed: x\" }";
    let readings = readings("words", &format!("base = \"nvme-tlc\"\n[flash]\n{order}\n"));
    let arrivals = readings.iter().map(|drive| match drive.medium {
        MediumProfile::Flash(flash) => match flash.order {
            DieOrder::ReadsFirst => panic!("{order}"),
            DieOrder::Shares => 0,
            DieOrder::Arrival => 1,
        },
        other => panic!("{other:?}"),
    });
    // Half of 60, as each is as likely.
    let arrivals: u32 = arrivals.sum();
    assert!((15..=45).contains(&arrivals), "{arrivals} of 60 in order of arrival");
}

#[test]
fn a_range_of_words_that_cannot_be_drawn_from_is_refused() {
    for (range, words) in [
        (
            "[\"arrival\", \"reads-first\"]",
            "the words of a range are not in the order in which the key lists them",
        ),
        (
            "[\"reads-first\", \"arrivals\"]",
            "unknown value `arrivals` for `order`: did you mean `arrival`?",
        ),
        ("[\"shares\"]", "`range` is `[shares]`, not a lowest and a highest value"),
    ] {
        let order = format!("{{ value = \"shares\", range = {range}, origin = \"assumed: x\" }}");
        let error = device_error(&format!("base = \"nvme-tlc\"\n[flash]\norder = {order}\n"));
        assert_eq!(error, format!("my.toml:3: {words}"));
    }
}

/// The range of `slc-program` in `sata-ssd` is from 100 to 280 us, and each reading draws by
/// itself.
#[test]
fn a_reading_is_not_refused_for_figures_that_cross() {
    let readings = readings("crossing", "base = \"sata-ssd\"\nflash.program = \"250us\"\n");
    let crosses = |drive: &DriveProfile| match drive.medium {
        MediumProfile::Flash(flash) => flash.slc_program > flash.program,
        other => panic!("{other:?}"),
    };
    assert!(readings.iter().any(crosses) && !readings.iter().all(crosses));
}

#[test]
fn a_file_that_lacks_most_lines_is_shown_a_base_with_its_tables() {
    for (text, lacks, base) in [
        (
            "[flash]\nspare = 10\n",
            "1: a drive needs a front end: `[nvme]`, `[ahci]`, `[virtio]`, `[ufs]` or `[usb]`",
            "nvme-tlc",
        ),
        (
            "[nvme]\ndepth = 10\n[flash]\nspare = 10\n",
            "1: missing key `hw-queues` in `[nvme]`",
            "nvme-tlc",
        ),
        (
            "title = \"x\"\n[ahci]\ndepth = 10\n[platters]\nrpm = 5400\n",
            "2: missing key `issue` in `[ahci]`",
            "hdd-7200",
        ),
        (
            "[ufs]\ndepth = 10\n[flash]\nspare = 10\n",
            "1: missing key `hw-queues` in `[ufs]`",
            "ufs-3",
        ),
        ("ufs.depth = 10\n", "1: missing key `hw-queues` in `[ufs]`", "ufs-3"),
        (
            "processors = \"cortex-a72\"\n[hba]\nluns = 1\n",
            "2: missing key `hw-queues` in `[hba]`",
            "srp",
        ),
        (
            "[limits]\ncapacity = \"1TiB\"\n",
            "1: no device: none of `[null]`, `[hba]`, `[card]`, `[pmem]` and a drive's front end, nor a `base` that has one",
            "nvme-tlc",
        ),
    ] {
        let expected = format!(
            "my.toml:{lacks}; with `base = \"{base}\"` at the top, or another name that `blockyard list` prints, a file \
             needs only the lines that differ"
        );
        assert_eq!(device_error(text), expected);
    }
    for (table, base) in USUAL_BASES.iter() {
        let tables = Device::lookup(base).unwrap().model.tables();
        assert!(tables.contains(table), "{base} has no `[{table}]`");
    }
    // A file with a base has the rest from there, so it is not told of another.
    assert_eq!(
        device_error("base = \"srp\"\n[hba.refusal]\nlimit = 3\n"),
        "my.toml:2: missing key `mode` in `[hba.refusal]`"
    );
}

#[test]
fn what_is_no_toml_is_named() {
    check(&[
        ("nvme-tlc", "[flash]\nspare =\nfill = 50", "3: `spare` has no value: write one after `=`"),
        ("nvme-tlc", "[flash]\nspare = # percent", "3: `spare` has no value: write one after `=`"),
        (
            "nvme-tlc",
            "[limits]\ncapacity = 1TiB",
            "3: a value that is no number needs quotes: write `capacity = \"1TiB\"`",
        ),
        (
            "nvme-tlc",
            "[flash]\nspare = 10\nfill = 50\nspare = 12",
            "5: `spare` is there a second time in its table: leave out one of the two",
        ),
        (
            "nvme-tlc",
            "[flash]\nspare = 10\n[limits]\n[flash] # more\nfill = 50",
            "5: `[flash]` is there a second time, after line 2: put its keys together",
        ),
        ("nvme-tlc", "[flash\nspare = 10", "2: unclosed table, expected `]`"),
    ]);
    assert_eq!(
        device_error("base = nvme-tlc\n"),
        "my.toml:1: a value that is no number needs quotes: write `base = \"nvme-tlc\"`"
    );
}

/// The user gave `my.toml` only, so the message leads to the line there that names the other file.
#[test]
fn a_base_that_cannot_be_read_is_named_with_its_line() {
    let reason = std::io::Error::from_raw_os_error(2);
    for path in ["mq-dead/ine", "missing.toml"] {
        let file = format!("title = \"mine\"\nbase = \"{path}\"\n");
        let message = format!("my.toml:2: `base` cannot be read: {path}: {reason}");
        assert_eq!(device_error(&file), message);
        assert_eq!(Design::parse("my.toml", &file).unwrap_err().to_string(), message);
    }

    let long = std::env::temp_dir().join(format!("a-long-base-{}.toml", std::process::id()));
    std::fs::write(&long, "#".repeat(64 * 1024 + 1)).unwrap();
    let long = long.to_str().unwrap();
    let error = device_error(&format!("base = \"{long}\"\n"));
    std::fs::remove_file(long).unwrap();
    assert_eq!(error, format!("my.toml:1: `base` cannot be read: {long}: longer than 64 KiB"));
}

/// A file that names itself as its base would be read without end.
#[test]
fn bases_in_a_circle_are_refused() {
    let path = std::env::temp_dir().join(format!("a-circle-{}.toml", std::process::id()));
    let path = path.to_str().unwrap();
    let text = format!("title = \"circle\"\nbase = \"{path}\"\n");
    std::fs::write(path, &text).unwrap();
    let error = Device::parse("my.toml", &text).unwrap_err().to_string();
    std::fs::remove_file(path).unwrap();
    let words = "more than 8 files build on each other: perhaps in a circle";
    assert_eq!(error, format!("{path}:2: {words}"));
}
