//! The command line: exit codes, messages and pipes.

use std::collections::BTreeSet;
use std::io;
use std::process::{Command, Output};

use blockyard_devices::profile::{
    Design, Device, builtin_designs, builtin_devices, builtin_file_systems, builtin_processors,
};
use blockyard_fio::job::options;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.args(args).env_remove("COLUMNS").env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

fn blockyard(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap()
}

/// Asserts that `args` exit with `code`, an empty standard output, and `message` as the error.
fn fails(args: &[&str], code: i32, message: &str) {
    let output = blockyard(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}");
    assert_eq!(text(&output.stdout), "", "{args:?}");
    assert_eq!(text(&output.stderr), format!("blockyard: error: {message}\n"), "{args:?}");
}

#[test]
fn help_and_version_are_answers() {
    for args in [
        &["--help"][..],
        &["--version"],
        &["help", "whatif"],
        &["help", "columns"],
        &["help", "faults"],
        &["help", "jobs"],
        &["help", "verify"],
        &["help", "run"],
        &["help", "replay"],
        &["help", "serve"],
        &["whatif", "--help"],
        &["run", "--help"],
        &["replay", "--help"],
        &["compare", "--help"],
        &["serve", "--help"],
        &["serve", "-h"],
    ] {
        let output = blockyard(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{args:?}");
        let long = text(&output.stdout).lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{args:?}");
    }
    for args in [&["help", "columns"], &["man", "whatif"]] {
        assert!(text(&blockyard(args).stdout).contains("The first table"), "{args:?}");
    }
}

/// The help of `whatif` once had 415 lines, most of them about columns, and that of `serve` 343.
/// The text that describes each option in full is that of `blockyard help COMMAND`: no option is
/// left out of the shorter one.
#[test]
fn the_help_of_a_command_has_at_most_120_lines_and_all_its_options() {
    for command in ["whatif", "run", "replay", "serve", "compare", "reproduce", "ctl", "btt"] {
        let output = blockyard(&[command, "--help"]);
        let help = text(&output.stdout);
        assert!(help.lines().count() <= 120, "{help}");
        let output = blockyard(&["help", command]);
        let options = options_of(text(&output.stdout));
        assert_eq!(options_of(help), options, "{command}");
        assert!(options.is_empty() == (command == "btt"), "{command}: {options:?}");
    }
}

/// Returns the options that a help text describes, without their dashes.
fn options_of(help: &str) -> BTreeSet<&str> {
    let described = help.lines().filter_map(|line| line.strip_prefix("      --"));
    described.filter_map(|line| line.split([' ', '[', '=']).next()).collect()
}

#[test]
fn bad_usage_exits_2_and_prints_nothing_to_standard_output() {
    for args in [
        &[][..],
        &["rn"],
        &["run"],
        &["run", "job.fio", "--devise=srp"],
        &["run", "job.fio", "--seed=x"],
        &["run", "job.fio", "--output-format=yaml"],
        &["run", "job.fio", "--name=x"],
        &["whatif", "job.fio"],
        &["whatif", "job.fio", "--device=srp"],
        &["reproduce", "nothing"],
        &["list", "everything"],
        &["show"],
    ] {
        let output = blockyard(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn an_unknown_name_exits_2_and_suggests_the_nearest() {
    fails(&["run", "job.fio", "--device=spr"], 2, "unknown device `spr`: did you mean `srp`?");
    let output = blockyard(&["whatif", "-", "--device=srp", "--design=mq-none,mq-dedline"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`mq-dedline`: did you mean `mq-deadline`?"));
    let output = blockyard(&["show", "lpcf"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`lpcf`: did you mean `lpfc`?"));
}

/// Without this, intervals of width 0 look like certainty.
#[test]
fn the_help_says_what_seeds_vary() {
    let help = blockyard(&["help", "whatif"]);
    let help = text(&help.stdout);
    assert!(help.contains("Each further seed draws other offsets"), "{help}");
}

fn invalid_path(argument: &str) -> String {
    format!(
        "invalid value 'unix:/run/c.sock' for '{argument}': expected a path without `unix:`: /run/c.sock; see "
    )
}

#[test]
fn a_near_miss_exits_2_and_says_what_to_write() {
    let serve = ["serve", "null:1m", "--nbd", "127.0.0.1:0"];
    fails(
        &[&serve[..], &["--control", "unix:/run/c.sock"]].concat(),
        2,
        &format!("{}`blockyard serve --help`", invalid_path("--control <PATH>")),
    );
    fails(
        &["ctl", "unix:/run/c.sock", "list"],
        2,
        &format!("{}`blockyard ctl --help`", invalid_path("<PATH>")),
    );
    fails(
        &[&serve[..], &["--as", "nvme-tlc", "--set", "flash.slc=0B"]].concat(),
        2,
        "invalid value 'flash.slc=0B' for '--set <KEY=VALUE>': `serve` takes the values of a device from a file: write \
         `base = \"DEVICE\"` and the values to one, and give its path to --as; see `blockyard serve --help`",
    );
    fails(
        &["run", "job.fio", "--device=nvme-tlc", "--set", "slc=0B"],
        2,
        "setting `slc`: unknown key: did you mean `flash.slc`?",
    );
}

fn run_on<'a>(job: &[&'a str], device: &'a str, disks: &'a str) -> Vec<&'a str> {
    [&["run", "--device", device, "--disks", disks], job].concat()
}

#[test]
fn disks_are_given_to_a_host_and_refused_for_a_card() {
    let job = [
        "--name=a",
        "--filename=/dev/a:/dev/b",
        "--direct=1",
        "--rw=read",
        "--bs=4k",
        "--io_size=1m",
    ];
    let output = blockyard(&run_on(&job, "null", "2"));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    assert!(text(&output.stdout).contains("read: IOPS="), "{}", text(&output.stdout));
    let whatif = [&["whatif", "--design", "mq-none", "--device", "srp", "--disks", "2"], &job[..]];
    assert_eq!(blockyard(&whatif.concat()).status.code(), Some(0));
    let one = "command line:2: more file names than disks: the device has 1; give all jobs the same `filename=`, or \
               let `--disks` give more disks to a null device, a SCSI host or an AHCI host";
    fails(&run_on(&job, "null", "1"), 2, one);
    let card =
        "--disks: `sd-hs` is one disk; a null device, a SCSI host or an AHCI host can have several";
    fails(&run_on(&job, "sd-hs", "2"), 2, card);
    let ports = "--disks: an AHCI host as that of `sata-ssd` has at most 32 ports";
    fails(&run_on(&job, "sata-ssd", "33"), 2, ports);
    for wrong in ["0", "1025", "x"] {
        assert_eq!(blockyard(&run_on(&job, "null", wrong)).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn list_names_every_builtin() {
    let output = blockyard(&["list"]);
    assert_eq!(output.status.code(), Some(0));
    let all = text(&output.stdout);
    let parts = builtin_processors().iter().chain(builtin_file_systems());
    let builtins = builtin_designs().iter().chain(builtin_devices()).chain(parts);
    for builtin in builtins {
        assert_eq!(
            all.lines().filter(|line| line.split(' ').next() == Some(builtin.name)).count(),
            1,
            "{}",
            builtin.name
        );
    }
    let devices = text(&blockyard(&["list", "devices"]).stdout).to_owned();
    let designs = text(&blockyard(&["list", "designs"]).stdout).to_owned();
    let processors = text(&blockyard(&["list", "processors"]).stdout).to_owned();
    assert!(processors.contains("Cortex-A55"), "{processors}");
    let file_systems = text(&blockyard(&["list", "filesystems"]).stdout).to_owned();
    assert_eq!(all, format!("{devices}\n{processors}\n{designs}\n{file_systems}"));
    assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");
}

#[test]
fn a_shown_profile_parses_to_itself() {
    for builtin in builtin_designs() {
        let shown = blockyard(&["show", builtin.name]).stdout;
        let parsed = Design::parse(builtin.name, text(&shown)).unwrap();
        assert_eq!(parsed, Design::lookup(builtin.name).unwrap());
    }
    for builtin in builtin_devices() {
        let shown = blockyard(&["show", builtin.name]).stdout;
        let parsed = Device::parse(builtin.name, text(&shown)).unwrap();
        assert_eq!(parsed, Device::lookup(builtin.name).unwrap());
    }
}

#[test]
fn list_names_every_option_of_a_job_and_its_effect() {
    let listed = text(&blockyard(&["list", "options"]).stdout).to_owned();
    let line = |name: &str| {
        let named = |line: &&str| line.split_whitespace().next() == Some(name);
        listed.lines().find(named).unwrap_or_else(|| panic!("{name}")).to_owned()
    };
    assert!(options().all(|option| !line(option.name).is_empty()));
    assert!(line("zero_buffers").contains("no effect: "));
    assert!(line("verify_backlog").contains("not supported yet: "));
}

/// `run` without a device printed 731k IOPS, and said neither of what nor under which design.
#[test]
fn a_summary_names_job_device_design_and_seed_and_null_is_noted() {
    let job = ["--name=x", "--direct=1", "--size=64k"];
    let output = blockyard(
        &[&["run", "--device=nvme-tlc", "--design=kyber", "--seed=7"], &job[..]].concat(),
    );
    assert_eq!(text(&output.stdout).lines().next(), Some("x on nvme-tlc, kyber, seed 7"));
    assert_eq!(text(&output.stderr), "");
    let output = blockyard(&[&["run"], &job[..]].concat());
    assert_eq!(text(&output.stdout).lines().next(), Some("x on null, mq-none, seed 1"));
    assert!(text(&output.stderr).contains("without --device the job runs on `null`"));
}

/// Command lines that people post for fio: it reads them with `getopt_long_only`.
#[test]
fn a_command_line_of_fio_is_taken_as_it_is() {
    let lines = [
        "-filename=/dev/vdb -direct=1 -iodepth 32 -thread -rw=randwrite -ioengine=psync -bs=16k -size=20M -name=x",
        "--name x --rw randread --bs 4k --direct 1 --size 16m --eta always --eta-newline=1",
        "--bs=4k --rw=read --direct=1 --size=1m --name=x --status-interval 1 --append-terse --warnings-fatal",
    ];
    for line in lines {
        let args: Vec<_> =
            ["run", "--device", "nvme-dc"].into_iter().chain(line.split(' ')).collect();
        let output = blockyard(&args);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("x: (groupid=0, jobs=1)"), "{line}");
    }
}

fn run_file(file: &str, args: &[&str]) -> Output {
    blockyard(&[&["run", file, "--device=null"], args].concat())
}

#[test]
fn switches_of_fio_choose_from_a_job_file() {
    let path = std::env::temp_dir().join(format!("blockyard-sections-{}.fio", std::process::id()));
    let jobs = "[global]\ndirect=1\nsize=1m\n[a]\nbs=4k\n[b]\nrw=write\n";
    std::fs::write(&path, jobs).unwrap();
    let file = path.to_str().unwrap();
    let b = run_file(file, &["--section=b", "--output-format=json", "--bs=64k"]);
    let answer: serde_json::Value = serde_json::from_slice(&b.stdout).unwrap();
    assert_eq!(answer["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(answer["jobs"][0]["write"]["total_ios"], 16, "options precede the file");
    let terse = run_file(file, &["--minimal"]);
    assert!(text(&terse.stdout).lines().all(|line| line.starts_with("3;")), "{terse:?}");
    let silent = run_file(file, &["--parse-only"]);
    assert_eq!((silent.status.code(), text(&silent.stdout)), (Some(0), ""));
    assert_eq!(run_file(file, &["--section=a", "--readonly"]).status.code(), Some(0));
    for (args, words) in [
        (&["--readonly"][..], ":7: job `b` writes or trims: --readonly forbids it"),
        (&["--section=c"], ": there is no section [c]"),
        (&["--client=host"], "fio's --client is not supported: jobs run here"),
        (&["--terse-version=5"], "only version 3 of fio's terse format is supported"),
        (&["--name=x"], "has a --name"),
    ] {
        let output = run_file(file, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
    std::fs::remove_file(&path).unwrap();
}

/// Each message says what to write instead.
#[test]
fn a_message_about_a_value_has_the_value_and_what_to_write() {
    let job = ["run", "--device=null", "--name=a", "--direct=1"];
    for (args, words) in [
        (
            &["--bs=2500"][..],
            "`bs=2500`: an offset or length of 2500 bytes is no multiple of the device's 512; use 2560",
        ),
        (&["--bsrange=512-1000"], "`bsrange=512-1000`: an offset or length of 1000 bytes is no"),
        (&["--bs=4KiB"], "`bs` is 4000 bytes: as in fio, KiB"),
        (&["--size=4KiB"], "size too small: 4000 bytes per file hold no block of 4k"),
        (&["--bs=4.5k"], "`4.5k` is not a number with a known unit; write 4608"),
        (&["--thinktime=900 usec"], "`900 usec` is not a time with a known unit; write 900us"),
        (&["--flow=-1"], "`-1` is not modelled: in old versions of fio a negative flow"),
    ] {
        let output = blockyard(&[&job[..], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
    for (args, words) in [
        (&["run", "x.fio", "--power-cut=900"][..], "write 900ns or 900us or 900ms or 900s"),
        (&["serve", "null:1.5g"], "\"1.5g\" is not a size: write 1536m"),
        (&["run", "x.fio", "--disks=1k"], "expected a whole number"),
    ] {
        let output = blockyard(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

/// The examples of `--help` are whole commands, with devices and designs that exist.
#[test]
fn examples_of_the_help_can_be_run() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fsync.fio");
    for command in ["run", "whatif"] {
        let help = blockyard(&[command, "--help"]);
        let help = text(&help.stdout).replace("\\\n", " ");
        let examples = help.lines().filter_map(|line| line.trim().strip_prefix("blockyard "));
        let examples: Vec<_> = examples.filter(|line| line.starts_with(command)).collect();
        assert!(examples.len() >= 3, "{help}");
        for example in examples.iter().filter(|line| !line.contains("--replay")) {
            let words = example.split_whitespace().filter(|word| !word.starts_with("--section"));
            let words = words.map(|word| word.trim_matches('\''));
            let args: Vec<_> =
                words.map(|word| if word == "job.fio" { file } else { word }).collect();
            let output = blockyard(&[&args[..], &["--parse-only"]].concat());
            assert_eq!(output.status.code(), Some(0), "{example}: {}", text(&output.stderr));
        }
    }
}

fn run_with(args: &[&str]) -> Output {
    let job = ["--name=a", "--direct=1", "--number_ios=1", "--bs=${BLOCKYARD_TEST_BS}"];
    let all = [&["run", "--output-format=json"], args, &job].concat();
    command(&all).env("BLOCKYARD_TEST_BS", "8k").output().unwrap()
}

fn bytes_read(output: &Output) -> u64 {
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["jobs"][0]["read"]["io_bytes"].as_u64().unwrap()
}

/// A variable of the environment counts as in fio, and a note says so. One of the command line
/// comes first.
#[test]
fn variables_of_a_job_are_given_or_taken_from_the_environment() {
    let taken = run_with(&[]);
    assert_eq!(bytes_read(&taken), 8192);
    let told = "`8k`, from the environment; --env sets it";
    assert!(text(&taken.stderr).contains(told), "{}", text(&taken.stderr));
    let given = run_with(&["--env", "BLOCKYARD_TEST_BS=4k"]);
    assert_eq!(bytes_read(&given), 4096);
    assert!(!text(&given.stderr).contains("environment"), "{}", text(&given.stderr));
    fails(
        &["run", "--name=a", "--bs=${BLOCKYARD_TEST_NONE}"],
        2,
        "command line:2: `${BLOCKYARD_TEST_NONE}` names no variable that is set; set it with --env \
         NAME=VALUE",
    );
    let numbered =
        ["run", "--env=ncpus=3", "--name=a", "--direct=1", "--size=1m", "--numjobs=$ncpus"];
    let three = blockyard(&[&numbered[..], &["--number_ios=1", "--group_reporting"]].concat());
    assert!(text(&three.stdout).contains("jobs=3"), "{}", text(&three.stdout));
}

#[test]
fn reproduce_lists_the_experiments() {
    let listed = blockyard(&["reproduce"]);
    assert_eq!(listed.status.code(), Some(0));
    for experiment in blockyard_answer::reproduce::experiments() {
        let begins = format!("{} ", experiment.name);
        assert!(text(&listed.stdout).lines().any(|line| line.starts_with(&begins)), "{begins}");
    }
}

#[test]
fn completions_and_man_pages_cover_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let completions = blockyard(&["completions", shell]);
        assert_eq!(completions.status.code(), Some(0), "{shell}");
        for word in ["whatif", "nvme-tlc", "mq-deadline", "blkmq"] {
            assert!(text(&completions.stdout).contains(word), "{shell}: {word}");
        }
    }
    let page = blockyard(&["man"]);
    assert!(text(&page.stdout).contains(".TH blockyard 1"), "{}", text(&page.stdout));
    let page = blockyard(&["man", "whatif"]);
    assert!(text(&page.stdout).contains("\\-\\-design"), "{}", text(&page.stdout));
    fails(&["man", "wahtif"], 2, "unknown command `wahtif`");
}

/// `blockyard list | head -1` must not print an error.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let run = &["run", "--device=null", "--name=x", "--direct=1", "--size=64k"];
    for args in [&["list"][..], &["show", "srp"], &["--help"], run] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = command(args).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(text(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        return; // this system has no /dev/full
    };
    let output = command(&["show", "srp"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("blockyard: error: "));
}

fn coloured(variables: &[&str]) -> bool {
    let mut command = command(&["show", "nothing"]);
    command.envs(variables.iter().map(|name| (name, "1")));
    text(&command.output().unwrap().stderr).contains('\u{1b}')
}

#[test]
fn the_environment_forces_or_forbids_colours() {
    assert!(!coloured(&[]), "a pipe is not a terminal");
    assert!(coloured(&["CLICOLOR_FORCE"]));
    assert!(!coloured(&["NO_COLOR", "CLICOLOR_FORCE"]));
}
