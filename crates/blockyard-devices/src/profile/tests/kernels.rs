//! Designs of several kernels, their differences, and the page that lists them.

use super::design_error;
use crate::pairing;
use crate::profile::adios::ADIOS;
use crate::profile::design::{BFQ, DEADLINE, KYBER, QUEUE};
use crate::profile::{Design, Device, ProfileError, Reach, WorkerTurn};
use blockyard::policy::{
    BfqTunables, DeadlineTunables, ElevatorKind, HeadLists, Insertion, Plugging, Policies, Restart,
    TagWakes,
};

/// A lone bio is a batch of one in Linux 6.12, and passes no plug in 7.3. Designs of both kernels
/// have the same host, whose thread sleeps in the driver after a batch.
#[test]
fn designs_of_linux_6_12_differ_from_those_of_7_3_in_what_changed_since() {
    for (newer, older) in [
        ("mq-none", "mq-none-6.12"),
        ("mq-deadline", "mq-deadline-6.12"),
        ("mq-kyber", "mq-kyber-6.12"),
        ("mq-bfq", "mq-bfq-6.12"),
        ("mq-adios", "mq-adios-6.12"),
        ("mmc-blkmq", "mmc-blkmq-6.12"),
        ("hsq", "hsq-6.12"),
        ("cqe", "cqe-6.12"),
    ] {
        let [newer, older] = [newer, older].map(|name| Design::lookup(name).unwrap());
        let plugs = [&newer, &older].map(|design| design.policies.plug);
        assert_eq!(plugs, [Plugging::Batches, Plugging::EveryBio], "{}", older.name);
        let changed = match newer.policies.elevator {
            ElevatorKind::Deadline(deadline) => ElevatorKind::Deadline(DeadlineTunables {
                heads: HeadLists::ByClass,
                tag_wakes: TagWakes::Single,
                ..deadline
            }),
            ElevatorKind::Bfq(bfq) => {
                ElevatorKind::Bfq(BfqTunables { plug_stops_clock: true, ..bfq })
            }
            other => other,
        };
        let changed = Policies { plug: Plugging::EveryBio, elevator: changed, ..newer.policies };
        assert_eq!(older.policies, changed, "{}", older.name);
        assert_eq!([&older, &newer].map(|of| of.read_ahead.aligned), [false, true]);
        assert_eq!([&older, &newer].map(|of| of.read_ahead.rotational_twice), [false, true]);
        assert_eq!([&older, &newer].map(|of| of.max_request_sectors), [2560, 8192]);
        assert_eq!(older.host, newer.host, "{}", older.name);
        assert_eq!([older.submitter_sleeps, newer.submitter_sleeps], [true; 2], "{}", older.name);
    }
}

/// On cards, plain names are those of Linux 7.3: the submitter dispatches after a batch. Up to 6.5
/// a worker dispatched to such a host always.
#[test]
fn plain_names_of_designs_for_cards_are_those_of_linux_7_3() {
    let newest = Design::lookup("mq-deadline").unwrap();
    for name in ["mmc-blkmq", "hsq", "cqe", "mmc-blkmq-7.3", "blkmq"] {
        let plain = Design::lookup(name).unwrap();
        assert_eq!(plain.policies, newest.policies, "{name}");
        assert!(plain.submitter_sleeps, "{name}");
    }
    let [plain, first] = ["blkmq", "blkmq-4.16"].map(|name| Design::lookup(name).unwrap());
    assert!(!first.submitter_sleeps);
    assert_eq!(first.host, plain.host);
}

/// EEVDF came with Linux 6.6. Before, a worker of nice -20 took the processor always.
#[test]
fn a_worker_runs_by_its_lag_since_linux_6_6() {
    for name in ["mq-none", "mq-deadline-6.12", "mmc-blkmq-6.12", "hsq", "btt"] {
        assert_eq!(Design::lookup(name).unwrap().worker, WorkerTurn::ByLag, "{name}");
    }
    for name in ["legacy-deadline", "mq-deadline-2017-patched", "mmc-blkmq-4.16", "hsq-v8"] {
        assert_eq!(Design::lookup(name).unwrap().worker, WorkerTurn::AtOnce, "{name}");
    }
    let wrong = design_error("base = \"mq-none\"\n[queue]\nworker = \"later\"\n");
    assert!(wrong.starts_with("my.toml:3: unknown value `later` for `worker`"), "{wrong}");
}

/// Linux 4.13 plugs each call of `io_submit`. A completion runs the hardware queues of its own
/// disk: the round of several disks was for driver tags.
#[test]
fn designs_of_2017_plug_calls_and_restart_their_own_disk() {
    for name in [
        "mq-none-2017",
        "mq-deadline-2017",
        "mq-deadline-2017-held",
        "mq-kyber-2017",
        "mq-none-2017-patched",
        "mq-deadline-2017-patched",
    ] {
        let policies = Design::lookup(name).unwrap().policies;
        assert_eq!((policies.plug, policies.restart), (Plugging::Calls, Restart::Own), "{name}");
    }
}

/// Returns the limit for asynchronous requests of the elevator of a design.
fn async_limit(text: &str) -> Option<u32> {
    match Design::parse("my.toml", text).unwrap().policies.elevator {
        ElevatorKind::Deadline(deadline) => deadline.async_depth,
        ElevatorKind::Kyber(kyber) => kyber.async_depth,
        _ => None,
    }
}

/// Since Linux 7.0 the limit for asynchronous requests is one of the queue, whichever elevator it
/// has. Before, mq-deadline had one of its own.
#[test]
fn the_limit_of_asynchronous_requests_is_one_of_the_queue_or_of_mq_deadline() {
    assert_eq!(async_limit("base = \"mq-deadline\"\n"), None);
    let of_queue = ["mq-deadline", "mq-kyber", "mq-none"]
        .map(|base| format!("base = \"{base}\"\n[queue]\nasync-depth = 12\n"));
    assert_eq!(async_limit(&of_queue[0]), Some(12));
    assert_eq!(async_limit(&of_queue[1]), Some(12));
    let own = "base = \"mq-deadline-6.12\"\n[queue.deadline]\nasync-depth = 9\n";
    assert_eq!(async_limit(own), Some(9));
    assert_eq!(
        design_error(
            "base = \"mq-deadline\"\nqueue.async-depth = 12\nqueue.deadline.async-depth = 9\n"
        ),
        "my.toml:2: `async-depth` stands in `[queue]` or in `[queue.deadline]`: both are the same limit"
    );
    assert_eq!(
        design_error(&of_queue[2]),
        "my.toml:3: `async-depth` goes only with an elevator: it limits its tags"
    );
    assert_eq!(
        design_error("base = \"mq-none\"\n[queue]\nasync-depth = 0\n"),
        "my.toml:3: `async-depth` is `0`, out of range (1 to 10240)"
    );
    let wrong = design_error("base = \"mq-deadline\"\n[queue.deadline]\nhead-lists = \"two\"\n");
    assert!(wrong.starts_with("my.toml:3: unknown value `two` for `head-lists`"), "{wrong}");
    let wrong = design_error("base = \"mq-deadline\"\n[queue.deadline]\ntag-wakes = \"all\"\n");
    assert!(wrong.starts_with("my.toml:3: unknown value `all` for `tag-wakes`"), "{wrong}");
    let wrong = design_error("base = \"mq-deadline\"\n[queue.deadline]\ninsertion = \"list\"\n");
    assert!(wrong.starts_with("my.toml:3: unknown value `list` for `insertion`"), "{wrong}");
    let wrong = design_error("base = \"mq-none\"\n[queue]\nrestart = \"turn\"\n");
    assert!(wrong.starts_with("my.toml:3: unknown value `turn` for `restart`"), "{wrong}");
    let wrong = design_error("base = \"mq-none\"\n[queue]\nread-ahead-end = \"odd\"\n");
    assert!(wrong.starts_with("my.toml:3: unknown value `odd` for `read-ahead-end`"), "{wrong}");
}

/// Writes `base` and a file `name` that builds on it. Returns the latter's limit for asynchronous
/// requests, or its error.
fn async_limit_over(base: &str, own: &str, name: &str) -> Result<Option<u32>, ProfileError> {
    let folder = std::env::temp_dir().join(format!("blockyard-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("base.toml"), base).unwrap();
    let text = format!("base = \"./base.toml\"\n{own}");
    let design = Design::parse(folder.join("my.toml").to_str().unwrap(), &text);
    std::fs::remove_dir_all(&folder).unwrap();
    design.map(|design| match design.policies.elevator {
        ElevatorKind::Deadline(deadline) => deadline.async_depth,
        ElevatorKind::Kyber(kyber) => kyber.async_depth,
        _ => None,
    })
}

/// Of two files, the one that builds on the other has the last word, in whichever of the two tables
/// it states the limit. A limit of the base is lost with its elevator. A file that takes the
/// elevator away and states a limit is wrong.
#[test]
fn the_limit_of_a_derived_design_is_its_own() {
    let of_queue = "base = \"mq-deadline\"\n[queue]\nasync-depth = 12\n";
    let of_deadline = "base = \"mq-deadline\"\n[queue.deadline]\nasync-depth = 12\n";
    for (base, own, limit) in [
        (of_queue, "", Some(12)),
        (of_deadline, "", Some(12)),
        (of_queue, "queue.deadline.async-depth = 9\n", Some(9)),
        (of_queue, "queue.async-depth = 9\n", Some(9)),
        (of_deadline, "queue.async-depth = 9\n", Some(9)),
        (of_deadline, "queue.deadline.async-depth = 9\n", Some(9)),
        (of_queue, "queue.elevator = \"kyber\"\n", Some(12)),
        (of_deadline, "queue.elevator = \"kyber\"\n", None),
        (of_queue, "queue.elevator = \"none\"\n", None),
    ] {
        let found = async_limit_over(base, own, "async-depth").unwrap();
        assert_eq!(found, limit, "{own} over {base}");
    }
    let own = "queue.elevator = \"none\"\nqueue.async-depth = 9\n";
    let error = async_limit_over(of_queue, own, "async-none").unwrap_err().to_string();
    let words = "my.toml:3: `async-depth` goes only with an elevator: it limits its tags";
    assert!(error.ends_with(words), "{error}");
}

/// A file without a base has the defaults of Linux 7.3, which are those of `mq-none` and
/// `mq-deadline`: 4 MiB, windows that end aligned, and twice the largest request at a rotational
/// disk.
#[test]
fn a_design_without_a_base_has_the_defaults_of_linux_7_3() {
    for (name, elevator) in [("mq-none", "none"), ("mq-deadline", "mq-deadline")] {
        let text = format!(
            "[queue]\nmodel = \"multi\"\nelevator = \"{elevator}\"\ndispatch = \"budget\"\n\
             dequeue = \"by-busy\"\nbusy = \"ewma\"\nswq-merge = \"last8\"\nplug = \"batches\"\n\
             sched-depth = \"from-device-depth\"\n"
        );
        let alone = Design::parse("my.toml", &text).unwrap();
        let named = Design::lookup(name).unwrap();
        let known = Design { name: alone.name.clone(), title: String::new(), ..named };
        assert_eq!(alone, Design { origin: String::new(), ..known }, "{name}");
    }
    assert_eq!(largest("hdd-7200", "base = \"mq-none\"\n"), [8192, 2048]);
}

/// A design says whether a durable direct write ends with a flush. All kernels up to 7.3 do it.
#[test]
fn a_design_can_do_without_the_flush_after_a_durable_write() {
    for name in ["mq-none", "mq-deadline-6.12", "mq-none-2017", "legacy-deadline"] {
        assert!(Design::lookup(name).unwrap().flushes_after_sync_writes, "{name}");
    }
    let needed = "base = \"mq-none\"\n[queue]\nsync-flush = \"needed\"\n";
    assert!(!Design::parse("my.toml", needed).unwrap().flushes_after_sync_writes);
    let wrong = design_error("base = \"mq-none\"\n[queue]\nsync-flush = \"never\"\n");
    assert!(wrong.starts_with("my.toml:3: unknown value `never` for `sync-flush`"), "{wrong}");
}

/// Linux's target is 2 ms, and 75 ms at a rotational disk; the kernels of 2017 are taken to have no
/// throttle, and persistent memory has no queue. A SATA drive has room for 32 commands under any
/// scheduler. A queue of NVMe has the tags of the device, 1023, and with an elevator at most 256.
#[test]
fn writeback_is_throttled_by_the_latency_of_the_design_or_of_linux() {
    let wbt = |device: &str, text: &str| {
        let device = Device::lookup(device).unwrap();
        let design = Design::parse("my.toml", text).unwrap();
        let wbt = pairing::policies(&device, &design).wbt;
        wbt.map(|wbt| (wbt.latency.as_ns() / 1_000, wbt.queue_depth))
    };
    fn of(design: &str) -> String {
        format!("base = \"{design}\"\n")
    }
    fn with(value: &str) -> String {
        format!("base = \"mq-none\"\n[queue]\nwbt-latency = \"{value}\"\n")
    }
    for design in ["mq-none", "mq-deadline", "mq-deadline-6.12", "mq-kyber"] {
        assert_eq!(wbt("hdd-7200", &of(design)), Some((75_000, 32)), "{design}");
        assert_eq!(wbt("sata-ssd", &of(design)), Some((2_000, 32)), "{design}");
    }
    assert_eq!(wbt("nvme-tlc", &of("mq-none")), Some((2_000, 1023)));
    assert_eq!(wbt("nvme-tlc", &of("mq-deadline")), Some((2_000, 256)));
    for design in ["mq-none-2017", "mq-kyber-2017", "legacy-deadline"] {
        assert_eq!(wbt("hdd-7200", &of(design)), None, "{design}");
    }
    assert_eq!(wbt("pmem-dram", &of("pmem-raw")), None);
    assert_eq!(wbt("hdd-7200", &with("10ms")), Some((10_000, 32)));
    assert_eq!(wbt("hdd-7200", &with("off")), None);
    assert_eq!(
        design_error(&with("0us")),
        "my.toml:3: `wbt-latency` is above 0: `off` turns writeback throttling off"
    );
    let wrong = design_error(&with("of"));
    assert!(wrong.starts_with("my.toml:3: `wbt-latency` is `of`, not a time"), "{wrong}");
}

/// Returns the sectors of the largest request and the pages of the longest read-ahead of `device`
/// under the design in `text`.
fn largest(device: &str, text: &str) -> [u64; 2] {
    let design = Design::parse("my.toml", text).unwrap();
    let device = Device::lookup(device).unwrap();
    let limits = &device.under(&design).limits;
    let Reach { usual, .. } = design.read_ahead.reach(limits);
    [limits.max_sectors.into(), usual]
}

/// As [`largest`], under mq-deadline of Linux 7.3, 6.12 and 4.13.
fn largest_by_kernel(device: &str) -> [[u64; 2]; 3] {
    ["", "-6.12", "-2017"]
        .map(|kernel| largest(device, &format!("base = \"mq-deadline{kernel}\"\n")))
}

/// Since Linux 6.17, a disk that takes 65535 sectors is asked for 4 MiB at most, 8192 sectors;
/// before, for 1280 KiB, 2560 sectors. A rotational disk reads ahead twice the largest request: 8
/// MiB are 2048 pages; behind a bridge of USB with 1 MiB, 2 MiB are 512 pages. Before, and at any
/// other disk, 128 KiB are 32 pages.
#[test]
fn the_largest_request_and_the_read_ahead_of_a_disk_grew_with_linux_6_17() {
    assert_eq!(largest_by_kernel("hdd-7200"), [[8192, 2048], [2560, 32], [2560, 32]]);
    assert_eq!(largest_by_kernel("sata-ssd"), [[8192, 32], [2560, 32], [2560, 32]]);
    assert_eq!(largest_by_kernel("usb-hdd"), [[2048, 512], [2048, 32], [2048, 32]]);
    assert_eq!(largest_by_kernel("nvme-tlc"), [[256, 32]; 3]);
    let stated = "base = \"mq-none\"\n[queue]\nmax-request = \"512KiB\"\nread-ahead = \"256KiB\"\n";
    assert_eq!(largest("hdd-7200", stated), [1024, 64]);
    assert_eq!(
        design_error("base = \"mq-none\"\n[queue]\nmax-request = \"6KiB\"\n"),
        "my.toml:3: `max-request` is a whole number of pages of 4KiB"
    );
    let wrong = design_error("base = \"mq-none\"\n[queue]\nread-ahead-rotational = \"odd\"\n");
    assert!(wrong.starts_with("my.toml:3: unknown value `odd` for `read-ahead-rot"), "{wrong}");
}

/// Reads a SATA drive whose file has `keys` in `[limits]`.
fn sata_with_limits(keys: &str) -> Result<Device, ProfileError> {
    Device::parse("my.toml", &format!("base = \"sata-ssd\"\n[limits]\n{keys}\n"))
}

/// A file that states the largest request of a disk is followed under every design.
#[test]
fn a_stated_largest_request_is_not_that_of_the_kernel() {
    for (keys, design, sectors) in [
        ("max-sectors = 4096", "mq-none-6.12", 4096),
        ("max-sectors = 128", "mq-none", 128),
        ("max-hw-sectors = 4096", "mq-none-6.12", 2560),
        ("max-hw-sectors = 4096", "mq-none", 4096),
    ] {
        let device = sata_with_limits(keys).unwrap();
        let limits = &device.under(&Design::lookup(design).unwrap()).limits;
        assert_eq!(limits.max_sectors, sectors, "{keys} under {design}");
    }
    assert_eq!(
        sata_with_limits("max-sectors = 70000").unwrap_err().to_string(),
        "my.toml:3: `max-sectors` is at most `max-hw-sectors`, which the hardware takes"
    );
}

/// The words between backticks in the table under `heading` of docs/LINUX.md: in the columns from
/// `first` on, of which the leftmost is 1, and before `end`.
fn quoted_in_table(heading: &str, first: usize, end: usize) -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/LINUX.md");
    let page = std::fs::read_to_string(page).expect("docs/LINUX.md should be readable");
    let (_, rest) = page.split_once(heading).unwrap_or_else(|| panic!("{heading} is missing"));
    let rows = rest.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let cells = rows.flat_map(|row| row.split('|').skip(first).take(end - first));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The names of the job files of recordings, without those of folders with a table of their own.
fn recorded_jobs() -> Vec<String> {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../blockyard-sim/tests");
    let folders = ["null_blk", "kernels"].map(|folder| format!("{tests}/{folder}"));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

/// Each policy with a value can be set in a design over the elevator that it names, and each key
/// and design exists.
#[test]
fn the_page_on_kernels_names_policies_and_designs_that_exist() {
    let policies = quoted_in_table("# Linux by version", 3, 4);
    assert!(policies.len() > 15, "{policies:?}");
    for policy in policies {
        // A kyber that goes by steps has no depth for discards, which `mq-kyber` has.
        let kyber = policy.starts_with("kyber.");
        let base = if kyber { "mq-kyber-2017" } else { "mq-deadline" };
        let text = match policy.split_once(" = ") {
            Some(_) => format!("base = \"{base}\"\n[queue]\n{policy}\n"),
            None => {
                let key = policy.rsplit('.').next().unwrap();
                assert!(
                    [QUEUE, DEADLINE, KYBER, BFQ, ADIOS].iter().any(|keys| keys.contains(&key)),
                    "{policy}"
                );
                continue;
            }
        };
        Design::parse("page.toml", &text).unwrap_or_else(|error| panic!("{policy}: {error}"));
    }
    let jobs = recorded_jobs();
    for recording in quoted_in_table("# Linux by version", 4, 5) {
        // `full-depth*` stands for each job whose name begins so, and ends in the rest.
        let (begin, end) = recording.split_once('*').unwrap_or((&recording, ""));
        let end = format!("{end}.fio");
        let mut known = jobs.iter().filter(|job| job.starts_with(begin) && job.ends_with(&end));
        assert!(recording == "emulated_card" || known.next().is_some(), "{recording}");
    }
    let designs = quoted_in_table("## Designs", 1, 3);
    assert_eq!(designs.len(), 16, "{designs:?}");
    for design in designs.iter().chain(&quoted_in_table("## Recordings", 3, 4)) {
        Design::lookup(design).unwrap();
    }
}

/// The two designs differ from their bases in the policy that they are named for, and say how far
/// Linux took it.
#[test]
fn a_proposed_and_a_former_mechanism_are_policies_over_a_design_of_linux() {
    let listed = Design::lookup("mq-deadline-listed").unwrap();
    let plain = Design::lookup("mq-deadline-6.12").unwrap().policies;
    let ElevatorKind::Deadline(tunables) = plain.elevator else {
        panic!("mq-deadline-6.12 has another elevator")
    };
    let tunables = DeadlineTunables { insertion: Insertion::Listed, ..tunables };
    let elevator = ElevatorKind::Deadline(tunables);
    assert_eq!(listed.policies, Policies { elevator, ..plain });
    assert!(listed.origin.contains("Linux has not merged them"), "{}", listed.origin);
    let plain = Design::lookup("mq-deadline").unwrap().policies;
    let in_turn = Policies { restart: Restart::InTurn, ..plain };
    assert_eq!(Design::lookup("mq-deadline-in-turn").unwrap().policies, in_turn);
}
