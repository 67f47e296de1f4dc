//! The commands and their options.

mod btt;
mod ctl;
mod designs;
mod fault;
mod job;
mod serve;
mod setting;
mod size;
mod topic;
mod usage;
mod words;

use std::ffi::OsString;
use std::path::PathBuf;

use blockyard_answer::goal::Goal;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::message::Failure;

pub(crate) use btt::{
    Btt, BttCommand, Check, ContainerName, Convert, CopySectors, Create, DumpMap, Inspected,
    Repair, VersionName,
};
pub(crate) use ctl::{Ctl, CtlCommand};
pub(crate) use designs::Designs;
pub(crate) use fault::FaultSource;
use job::{FIO, JOB_OPTIONS};
pub(crate) use job::{Job, JobChoice};
pub(crate) use serve::{DiskSource, IoChoice, Lanes, Parent, Serve, ServedDisk, Survives, TlsUse};
pub(crate) use setting::{Addresses, Answer, Playback, Setting, Variables};
pub(crate) use topic::{COLUMNS, Topic};
use topic::{FAULTS, JOBS, VERIFY};
pub(crate) use usage::one_line;
use usage::short_help;

/// Compare block-layer designs on modelled devices, and serve disks over NBD
///
/// Blockyard runs fio job files against modelled devices in virtual time, under the
/// queueing designs you name: those of Linux's block layer, past and present, and
/// your own. `serve` uses the same code for a real disk.
#[derive(Debug, Parser)]
#[command(
    name = "blockyard",
    version = env!("BLOCKYARD_VERSION"),
    verbatim_doc_comment,
    after_help = EXIT_CODES,
    max_term_width = 80
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 the run failed or no design meets the goals of --check,
2 bad usage or bad input, 130 interrupted; `btt check` and `btt repair` also use
3 repairable, 4 broken.

`blockyard help TOPIC` explains columns, faults, jobs or verify.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a job under one design and summarise it as fio does
    Run(Run),
    /// Run a job under several designs and explain the difference
    Whatif(Whatif),
    /// Replay a trace: recorded I/O in place of a job
    Replay(Replay),
    /// Compare two saved answers of `whatif --output-format json`
    Compare(Compare),
    /// Simulate published experiments and compare the results with the published figures
    Reproduce(Reproduce),
    /// Serve a disk over NBD: a file, a block device or memory
    Serve(Serve),
    /// Inspect and control a running server through its control socket
    Ctl(Ctl),
    /// Make, check, repair, copy and convert block translation tables
    Btt(Btt),
    /// List the built-in devices, processors and designs, and the options of jobs
    List(List),
    /// Print the file of a device or design, and how to give a disk the values of a design
    Show(Show),
    /// Print the JSON schema of a command's output
    Schema(Schema),
    /// Print completions for a shell
    Completions(Completions),
    /// Print the manual page of blockyard, or of one of its commands
    Man(Man),
    #[command(flatten)]
    Topic(Topic),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    #[default]
    Normal,
    /// For programs
    Json,
}

#[derive(Clone, Debug, Args)]
#[command(
    disable_help_flag = true,
    arg = short_help("replay"),
    after_help = format!("{REPLAY_EXAMPLES}\n\n{REPLAY_MORE}"),
    after_long_help = format!("{REPLAY_EXAMPLES}\n\n{REPLAY_HELP}")
)]
pub(crate) struct Replay {
    /// The trace to replay; its format is detected
    #[arg(value_name = "TRACE")]
    pub(crate) recorded: String,

    /// A device: its name or the path of its file; by default `null`
    ///
    /// `null` takes no time.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,

    // One design, mq-none without any, is summarised as `run` does; several are compared as
    // `whatif` does.
    #[command(flatten)]
    pub(crate) designs: Designs,

    #[command(flatten)]
    pub(crate) demands: Demands,

    #[command(flatten)]
    pub(crate) setting: Setting,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// The formats of `run`, in the order in which several of them are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// fio's terse format, version 3: a line for each job
    Terse,
    /// fio's JSON
    Json,
    /// fio's JSON with complete latency distributions
    #[value(name = "json+")]
    JsonPlus,
    /// For people
    Normal,
}

/// The logs that a command line asks for, for every job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Logs, like fio's write_lat_log, write_bw_log and write_iops_log")]
pub(crate) struct JobLogs {
    /// Log latencies: PREFIX_lat.1.log, PREFIX_clat.1.log, PREFIX_slat.1.log
    #[arg(long, value_name = "PREFIX")]
    pub(crate) lat_log: Option<String>,

    /// Log bandwidth: PREFIX_bw.1.log
    #[arg(long, value_name = "PREFIX")]
    pub(crate) bw_log: Option<String>,

    /// Log I/Os per second: PREFIX_iops.1.log
    #[arg(long, value_name = "PREFIX")]
    pub(crate) iops_log: Option<String>,
}

/// The outputs of a run under one design.
#[derive(Clone, Debug, Args)]
pub(crate) struct Outputs {
    /// Write a trace in blktrace's format, for blkparse and blktrace's btt
    ///
    /// The file of CPU N is PREFIX.blktrace.N.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) blktrace: Option<PathBuf>,

    /// The format of the answer; several formats are separated by commas
    #[arg(long, value_name = "FORMAT,...", value_delimiter = ',', default_value = "normal")]
    output_format: Vec<RunFormat>,

    /// The same as --output-format=terse
    #[arg(long, help_heading = FIO)]
    minimal: bool,

    /// Print the terse format, too
    #[arg(
        long, help_heading = FIO, value_name = "ANY", num_args = 0..=1, require_equals = true,
        default_missing_value = ""
    )]
    append_terse: Option<String>,

    /// The version of the terse format: 3
    #[arg(long, help_heading = FIO, value_name = "N", value_parser = terse_version)]
    terse_version: Option<u32>,

    #[command(flatten)]
    pub(crate) logs: JobLogs,
}

impl Outputs {
    /// Returns the formats to print.
    pub(crate) fn formats(&self) -> Vec<RunFormat> {
        let mut formats = self.output_format.clone();
        if self.minimal {
            formats = vec![RunFormat::Terse];
        }
        if self.append_terse.is_some() {
            formats.push(RunFormat::Terse);
        }
        formats
    }
}

#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    arg = short_help("run"),
    after_help = format!("{RUN_EXAMPLES}\n\n{RUN_MORE}"),
    after_long_help = format!("{RUN_EXAMPLES}\n\n{JOBS}\n\n{FAULTS}\n\n{VERIFY}\n\n{LOGS}\n\n{FIO_LAYOUT}")
)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) job: Job,

    /// A device: its name or the path of its file; by default `null`, which takes no time
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,

    /// A design: its name or the path of its file
    #[arg(long, value_name = "DESIGN", default_value = "mq-none")]
    pub(crate) design: String,

    #[command(flatten)]
    pub(crate) setting: Setting,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// Demands on an answer about several designs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Demands {
    /// A figure that a design must reach: reader.read.p99<20ms, log.write.bw>=20MiB/s
    ///
    /// [JOB.][DIRECTION.]FIGURE, a bound and a value. DIRECTION is sync, read, write or trim;
    /// FIGURE is iops, bw, mean, max or a percentile of latency (p99.9). Without a job or a
    /// direction, every job and direction must reach it, for latencies syncs too. The option can be
    /// repeated.
    #[arg(long = "goal", value_name = "GOAL", value_parser = goal)]
    pub(crate) goals: Vec<Goal>,

    /// Exit with 1 if no design meets all goals, with each of --seeds and in each of --readings
    #[arg(long, requires = "goals")]
    pub(crate) check: bool,

    /// Show where requests spend their time, why they are held, and the work of the device and its
    /// host
    #[arg(long)]
    pub(crate) details: bool,

    /// Run each design with N seeds; report if IOPS and p99 differ by more than chance
    ///
    /// Each further seed draws other offsets, for jobs with randrepeat=1 or a randseed too. Without
    /// this option, 8 seeds if there are several designs that issue at most 200,000 I/Os together,
    /// otherwise 1. With 1, chance is not tested.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,

    /// Repeat with N random draws of the assumed device parameters; report how often the ranking
    /// holds
    ///
    /// Without this option, 8 times if the designs issue at most 200,000 I/Os together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) readings: Option<u32>,
}

#[derive(Debug, Args)]
#[command(
    override_usage = WHATIF_USAGE,
    disable_help_flag = true,
    arg = short_help("whatif"),
    after_help = format!("{WHATIF_EXAMPLES}\n\n{WHATIF_MORE}"),
    after_long_help = format!("{WHATIF_EXAMPLES}\n\n{JOBS}\n\n{FAULTS}\n\n{VERIFY}\n\n{WHATIF_MORE}")
)]
pub(crate) struct Whatif {
    #[command(flatten)]
    pub(crate) job: Job,

    /// A device: its name or the path of its file
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: String,

    #[command(flatten)]
    pub(crate) designs: Designs,

    #[command(flatten)]
    pub(crate) demands: Demands,

    #[command(flatten)]
    pub(crate) setting: Setting,

    /// The format of the answer
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// An answer: ratios are relative to it
    #[arg(value_name = "A.json")]
    pub(crate) first: String,

    /// The answer that is compared with it; designs of one name belong together
    #[arg(value_name = "B.json")]
    pub(crate) second: String,

    /// Write the comparison of the first design as a page, as `whatif --html` does
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// The format of the comparison
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// The experiment; without a name, all are listed
    #[arg(value_name = "NAME", value_enum)]
    pub(crate) experiment: Option<Experiment>,

    #[command(flatten)]
    pub(crate) answer: Answer,

    /// The format of the answer
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// eMMC: PIO, DMA and double buffering (December 2010)
    MmcDoubleBuffer,
    /// The block translation table on persistent memory (May 2015)
    Btt,
    /// An SD card: from one kernel thread to blk-mq (February 2017)
    MmcMq,
    /// Multi-queue SCSI under three schedulers (August 2017)
    Scsi,
    /// eMMC and SD: the host software queue (February 2020)
    Hsq,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// The items to list; all but options if omitted
    #[arg(value_name = "ITEMS", value_enum)]
    pub(crate) what: Option<Listed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// Devices
    Devices,
    /// Classes of processors, for `processors = "NAME"` in the file of a device
    Processors,
    /// Designs
    Designs,
    /// File systems, for `--filesystem NAME`
    Filesystems,
    /// Options of job files, and the effect of each
    Options,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A name that `list` prints, or the path of your own file, which is printed with all that its
    /// bases give it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Of a design, print the rules of udev for disks of this device, too
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The command whose answer the schema describes
    #[arg(value_name = "COMMAND", value_enum)]
    pub(crate) of: Described,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Described {
    /// The answer of `whatif --output-format=json`
    Whatif,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The command; without one, the page of blockyard itself
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
}

fn terse_version(text: &str) -> Result<u32, &'static str> {
    if text == "3" { Ok(3) } else { Err("only version 3 of fio's terse format is supported") }
}

fn goal(text: &str) -> Result<Goal, String> {
    Goal::parse(text).map_err(|error| error.to_string())
}

const WHATIF_USAGE: &str = "\
blockyard whatif [OPTIONS] --device <DEVICE> [--design <DESIGN,...>]
                        <JOB|--name=NAME --OPTION=VALUE|--replay <TRACE>>";

const WHATIF_EXAMPLES: &str = "\
Examples:
  blockyard whatif job.fio --device nvme-tlc
  blockyard whatif job.fio --device sd-a2 --scheduler none,mq-deadline \\
      --host blkmq,cqe --details
  blockyard whatif --device sata-ssd --design none,mq-deadline,kyber \\
      --goal 'db.read.p99<2ms' --check --name=db --filename=/dev/sda \\
      --direct=1 --ioengine=libaio --rw=randrw --bs=8k --iodepth=32 --size=1g
  blockyard whatif --replay disk.blktrace.0 --device hdd-7200 --pace think";

const WHATIF_MORE: &str = "\
More help:
  blockyard help columns   the columns of the answer
  blockyard help jobs      jobs on the command line, and buffered I/O
  blockyard help faults    rules of faults
  blockyard help verify    checks of data, and power cuts
  blockyard help whatif    each option in full; also `blockyard man whatif`
  blockyard list           the devices, processors, designs and job options
  blockyard show NAME      the file of a device or a design
  blockyard schema whatif  the JSON schema of --output-format json";

const RUN_EXAMPLES: &str = "\
Examples:
  blockyard run job.fio --device nvme-tlc --design mq-deadline
  blockyard run job.fio --section=log --device sd-a1 --output-format=json
  blockyard run --device hdd-7200 --name=copy --filename=/dev/sda --direct=1 \\
      --rw=read --bs=1m --size=1g";

const RUN_MORE: &str = "\
More help:
  blockyard help jobs      jobs on the command line, and buffered I/O
  blockyard help faults    rules of faults
  blockyard help verify    checks of data, and power cuts
  blockyard help run       each option, logs and fio's layouts in full; also
                           `blockyard man run`
  blockyard list           the devices, processors, designs and job options
  blockyard show NAME      the file of a device or a design";

const LOGS: &str = "\
Logs have fio's names and format. Each line has: time (ms), value, direction (0
read, 1 write, 2 trim), bytes, offset (with log_offset), priority. Latencies are
in nanoseconds, bandwidth is in kB/s for each I/O or in KiB/s with log_avg_msec,
and IOPS are I/Os per second. The job options log_avg_msec, log_max_value,
log_offset, log_prio, per_job_logs, bwavgtime and iopsavgtime apply. Existing
logs are overwritten.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  blockyard replay disk.blktrace.0 --device hdd-7200 --pace think
  blockyard replay fio.iolog --device sd-a2 --design mq-none,mq-deadline
  blockyard replay src1_0.csv --device sata-ssd --disk 0 --pace closed:32";

const REPLAY_MORE: &str = "\
A trace is a fio iolog, a file of blktrace or blkparse, or an MSR-Cambridge CSV.

More help:
  blockyard help replay    formats, paces, and each option in full; also
                           `blockyard man replay`
  blockyard help columns   the columns of an answer about several designs
  blockyard help faults    rules of faults
  blockyard help verify    checks of data, and power cuts";

const REPLAY_HELP: &str = "\
Formats, detected from the first bytes of the file:
  fio iolog, version 2 or 3   the output of fio with write_iolog
  blktrace                    x.blktrace.0 and its siblings (or x), one for each
                              CPU
  blkparse                    the output of blkparse
  MSR-Cambridge CSV           Timestamp,Hostname,DiskNumber,Type,Offset,Size,
                              ResponseTime

Paces:
  open       each I/O at its recorded instant, however many are in flight; one
             submitter per CPU
  closed:N   in the order of the trace, N in flight, as fast as possible; one
             submitter
  think      each I/O after the pause that preceded it in the trace, counted
             from the latest issue or completion of the same process, once the
             process has no more I/Os in flight than in the trace: a faster
             device gets more I/Os per second. If a trace has no completions,
             the times between issues are kept.

The latency of an I/O counts until its end: with `open` from its recorded
instant, however late it was issued; with `think` from the end of its pause, so
that a slow device delays the I/Os that follow, and those are not late; with
`closed` from its issue. With one design, `lat` counts so, while `slat` and
`clat` count from the issue. The answer says how late I/Os were.

One design, mq-none without any, is summarised as `run` does. With several the
answer is that of `whatif`: the formats are normal and json, and logs and
--blktrace are not available. --goal, --details, --seeds and --readings need
several designs.

From blktrace and blkparse, queued I/Os (Q) are replayed, or issued requests (D)
if there is no Q. The disks of the trace are mapped to those of the device in
the order in which they appear in the trace.";

const FIO_LAYOUT: &str = "\
With --output-format=json the answer has fio's layout and every key that fio
prints; json+ adds latency bins to each list of percentiles; terse is version 3
of fio's terse format. Bandwidth and IOPS are sampled every 500 ms of virtual
time, with or without logs. Values that are not modelled are zero: the date and
time, page faults, short and dropped I/Os. CPU time is system time, except for
thinktime_spin. `job options` has the job's own options as written, and the
principal ones as Blockyard understood them; `global options` has those of
[global]. The disk in `disk_util` is the device. For eMMC and SD there is also a
key `mmc`, for persistent memory a key `pmem`, and for drives a key `drive`, as
in the answer of `whatif`: `blockyard schema whatif` describes them.";

/// Reads the command line.
pub(crate) fn parse(argv: impl Iterator<Item = OsString>) -> Result<Cli, Failure> {
    let text = |arg: OsString| {
        arg.into_string()
            .map_err(|arg| Failure::Input(format!("not UTF-8: {}", arg.to_string_lossy())))
    };
    let argv = argv.map(text).collect::<Result<Vec<_>, _>>()?;
    let argv = words::job_options_last(argv).map_err(Failure::Input)?;
    let cli = Cli::try_parse_from(&argv).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Failure::Help(error),
        _ => Failure::Input(usage::with_help(&error, &Cli::command(), &argv)),
    })?;
    if let Command::Run(Run { job, .. }) | Command::Whatif(Whatif { job, .. }) = &cli.command {
        check_job(job)?;
    }
    Ok(cli)
}

/// Checks that a job is a file, which options without a `--name` may precede, or options.
fn check_job(job: &Job) -> Result<(), Failure> {
    match &job.file {
        Some(file) if job.options.iter().any(|word| words::is_name(word)) => Err(Failure::Input(
            format!("the job is the file `{file}` or has a --name: run one after the other"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }

    /// `clap` would break longer lines, wherever they end.
    #[test]
    fn texts_of_the_help_have_lines_of_at_most_80() {
        fn check(command: &clap::Command) {
            let texts =
                [command.get_after_help(), command.get_after_long_help(), command.get_long_about()];
            for line in texts.into_iter().flatten().map(ToString::to_string) {
                let long = line.lines().find(|line| line.chars().count() > 80);
                assert_eq!(long, None, "{}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    fn run_of(line: &str) -> Result<(Option<String>, Vec<String>), Failure> {
        parse(line.split(' ').map(OsString::from)).map(|cli| match cli.command {
            Command::Run(run) => (run.job.file, run.job.options),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn a_job_is_a_file_or_options_and_never_both_or_neither() {
        assert_eq!(run_of("blockyard run -").unwrap(), (Some("-".to_owned()), vec![]));
        let options = vec!["--name=x".to_owned(), "--rw=read".to_owned()];
        assert_eq!(run_of("blockyard run --name=x --rw=read").unwrap(), (None, options));
        assert!(matches!(run_of("blockyard run"), Err(Failure::Input(_))));
        assert!(matches!(run_of("blockyard run a.fio --name=x"), Err(Failure::Input(_))));
    }

    fn error(line: &str) -> String {
        match parse(line.split(' ').map(OsString::from)) {
            Err(Failure::Input(words)) => words,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_usage_error_is_one_line_that_names_the_help() {
        for (line, words) in [
            (
                "blockyard btt create",
                "the following required arguments were not provided: --size <SIZE>, <FILE>; \
                 see `blockyard btt create --help`",
            ),
            (
                "blockyard run --devise null",
                "unexpected argument '--devise' found; a similar argument exists: '--device'; \
                 see `blockyard run --help`",
            ),
            (
                "blockyard serve x --tls-cert a --tls-key b --tls c",
                "invalid value 'c' for '--tls <USE>' [possible values: require, offer]; \
                 see `blockyard serve --help`",
            ),
            ("blockyard frob", "unrecognized subcommand 'frob'; see `blockyard --help`"),
        ] {
            assert_eq!(error(line), words);
        }
    }
}
