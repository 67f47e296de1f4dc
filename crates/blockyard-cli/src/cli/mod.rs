//! What can be asked: commands and their options.

mod btt;
mod serve;
mod setting;
mod size;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::message::Failure;

pub(crate) use btt::{
    Btt, BttCommand, Check, ContainerName, Convert, CopySectors, Create, DumpMap, Inspected,
    Repair, VersionName,
};
pub(crate) use serve::{DiskSource, Serve, ServedDisk, Survives, TlsUse};
pub(crate) use setting::{Addresses, Answer, Playback, Setting};

/// What would this queueing design do on that device?
///
/// Blockyard runs fio job files against modelled devices in virtual time, under the queueing design
/// you name: the block layer of Linux as it was, as it is, and as you describe it.
#[derive(Debug, Parser)]
#[command(name = "blockyard", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the run failed, 2 bad usage or bad input; of `btt check` and `btt repair` also 3
repairable, 4 broken.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a job under one design and summarise it as fio does
    Run(Run),
    /// Run the same job under several designs and say what differs and why
    Whatif(Whatif),
    /// Replay a trace: recorded I/O in place of a job
    Replay(Replay),
    /// Run published experiments and set our figures beside theirs
    Reproduce(Reproduce),
    /// Serve a disk over NBD: a file, a block device or memory
    Serve(Serve),
    /// Make, check, repair, copy and convert block translation tables
    Btt(Btt),
    /// List the devices and designs that are built in, and the options of jobs
    List(List),
    /// Print the file of a built-in device or design
    Show(Show),
}

/// What to do.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Job {
    /// A fio job file; `-` for standard input
    #[arg(value_name = "JOB")]
    pub(crate) file: Option<String>,

    /// A job by options, as for fio: --name=x --rw=read --bs=4k ...
    #[arg(id = JOB_OPTIONS, last = true, value_name = "--name=NAME --OPTION=VALUE")]
    pub(crate) options: Vec<String>,

    /// A trace in place of a job; see `blockyard replay --help`
    #[arg(long, value_name = "TRACE")]
    pub(crate) replay: Option<String>,
}

const JOB_OPTIONS: &str = "options";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    #[default]
    Normal,
    /// For programs
    Json,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = REPLAY_HELP)]
pub(crate) struct Replay {
    /// A trace: its format is told from how it begins
    #[arg(value_name = "TRACE")]
    pub(crate) recorded: String,

    /// A device, by name or by path of its file
    #[arg(long, value_name = "DEVICE", default_value = "null")]
    pub(crate) device: String,

    /// Designs, by name or by path of their files: one is summarised as by `run`, several are
    /// compared as by `whatif`
    #[arg(
        long = "design",
        value_name = "DESIGN,...",
        default_value = "mq-none",
        value_delimiter = ','
    )]
    pub(crate) designs: Vec<String>,

    #[command(flatten)]
    pub(crate) setting: Setting,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// What `run` prints, in the order in which several of them are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// fio's terse format, version 3: a line for each job
    Terse,
    /// fio's JSON
    Json,
    /// The same with whole distributions of latencies
    #[value(name = "json+")]
    JsonPlus,
    /// For people
    Normal,
}

/// Logs that a command line asks for, of every job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Logs, as of fio's write_lat_log, write_bw_log and write_iops_log")]
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

/// What is written of a run under one design.
#[derive(Clone, Debug, Args)]
pub(crate) struct Outputs {
    /// Write what blktrace would to PREFIX.blktrace.N for each CPU N, for blkparse and btt
    #[arg(long, value_name = "PREFIX")]
    pub(crate) blktrace: Option<PathBuf>,

    /// How to print the answer; several at once, separated by commas
    #[arg(long, value_name = "FORMAT,...", value_delimiter = ',', default_value = "normal")]
    pub(crate) output_format: Vec<RunFormat>,

    #[command(flatten)]
    pub(crate) logs: JobLogs,
}

#[derive(Debug, Args)]
#[command(
    after_help = JOB_HELP,
    after_long_help = format!("{JOB_HELP}\n\n{FAULTS}\n\n{VERIFY}\n\n{LOGS}\n\n{FIO_LAYOUT}")
)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) job: Job,

    /// A device, by name or by path of its file
    #[arg(long, value_name = "DEVICE", default_value = "null")]
    pub(crate) device: String,

    /// A design, by name or by path of its file
    #[arg(long, value_name = "DESIGN", default_value = "mq-none")]
    pub(crate) design: String,

    #[command(flatten)]
    pub(crate) setting: Setting,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

#[derive(Debug, Args)]
#[command(after_help = JOB_HELP, after_long_help = format!("{JOB_HELP}\n\n{FAULTS}\n\n{VERIFY}\n\n{COLUMNS}"))]
pub(crate) struct Whatif {
    #[command(flatten)]
    pub(crate) job: Job,

    /// A device, by name or by path of its file
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: String,

    /// Designs, by name or by path of their files; ratios are to the first
    #[arg(long = "design", value_name = "DESIGN,...", required = true, value_delimiter = ',')]
    pub(crate) designs: Vec<String>,

    #[command(flatten)]
    pub(crate) setting: Setting,

    /// How to print the answer
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// Which experiment; where none is named, they are listed
    #[arg(value_name = "NAME", value_enum)]
    pub(crate) experiment: Option<Experiment>,

    #[command(flatten)]
    pub(crate) answer: Answer,

    /// How to print the answer
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// eMMC: copied by the processor, by DMA, and by DMA beside the next request (December 2010)
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
    /// What to list; everything where nothing is named
    #[arg(value_name = "WHAT", value_enum)]
    pub(crate) what: Option<Listed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// Devices
    Devices,
    /// Designs
    Designs,
    /// Options of job files, and what becomes of each
    Options,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A name that `list` prints
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

const JOB_HELP: &str = "\
A job given by options has a --name; every option that is not listed here then belongs to the job:

  --device=srp --name=x --rw=read --bs=4k --direct=1 --ioengine=libaio --iodepth=32 --size=1g

Without --direct=1 a job that only reads, by a synchronous engine (fio's default), reads through a page
cache with Linux's read-ahead; other jobs without it are refused.

`blockyard list` names the devices and designs, `blockyard show NAME` prints the file of one.";

const FAULTS: &str = r#"A file of faults has a table for each rule; the first that fires decides:

  [[rule]]
  name = "bad-block"       # as the answer calls it
  op = ["read"]            # or one op, or nothing for all; also: disk = NUMBER
  sectors = "1000..1008"   # of 512 bytes, 1008 not included; leave it out for all
  error = "medium"         # or io, timeout, no-space, not-supported, gone; also: at-once = true

  [[rule]]
  name = "hiccup"
  one-in = 1000            # or nth = N, every = N, first = N and last = N
  delay = "50ms"

In place of `error` or `delay` a rule has one of: busy = "device" (or host, resource),
requeue = true, lost = true, timed-out = true, torn-write = SECTORS, lost-write = true,
misdirected-write = SECTOR. An error ends the run, unless the job says continue_on_error.
The answer counts for each rule how often it matched a request, and how often it fired. The driver is
asked about a request after the `timeout` of the design (30 s): it waits on where a completion was
`lost`, and gives up where it `timed-out`.

An eMMC device or SD card also has faults below requests, once in N commands, blocks or pages on average:

  [card]
  read-crc-one-in = 1000   # also command-lost, response-crc, no-data, write-crc, program
  [host]
  drift-one-in = 500       # also interrupt-lost, not-now, tuning-fails; removed-at = TIME"#;

const VERIFY: &str = "\
With --verify every write leaves a mark of its own where it lands. Each read, and at the end the whole
device, is held against a sequential model of the bios: which of their marks may be there. With
--power-cut the same is asked of what would be left if the power went: all that is under way, and what
is in a volatile cache, may be there or not, each logical block by itself. The run goes on as if the
power had stayed; the cut may be repeated. What was acknowledged and not flushed is gone by right. If
anything is wrong, the exit code is 1. None of this changes a figure of the answer.";

const LOGS: &str = "\
Logs have fio's names and lines: time (ms), value, 0 read 1 write 2 trim, bytes, offset (with
log_offset), priority. Values are nanoseconds, kB/s of each I/O or KiB/s with log_avg_msec, and I/Os
per second. Of a job, log_avg_msec, log_max_value, log_offset, log_prio, per_job_logs, bwavgtime and
iopsavgtime are heeded. Logs that are there already are written over.";

const REPLAY_HELP: &str = "\
Formats, each told from how the file begins:
  fio iolog, version 2 or 3   what fio writes with write_iolog
  blktrace                    x.blktrace.0 and its siblings (or x), one for each processor
  blkparse                    what blkparse prints of these
  MSR-Cambridge CSV           Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime

Paces:
  open       each I/O at its own instant, whatever is outstanding; a submitter for each processor
  closed:N   in the order of the trace, N outstanding, as fast as can be; one submitter
  think      as long after what the same process saw before (its latest issue or completion, with
             no more outstanding than then) as in the trace: a faster device then sees more I/O a
             second. Where a trace has no completions, the spans between issues are kept.

Under several designs the answer is that of `whatif`: it has the formats normal and json, and there are
no logs and no --blktrace.

Of blktrace and blkparse what was queued (Q) is replayed, or what the driver was given (D) where
there is no Q. Disks of the trace are taken for those of the device, by order of appearance.";

const FIO_LAYOUT: &str = "\
With --output-format=json the answer has fio's layout, and every key that fio prints; json+ adds the
bins of latencies to each list of percentiles, terse prints fio's version 3. Bandwidth and IOPS are
sampled every 500 ms of virtual time, whether they are logged or not. What is not modelled is zero:
the clock, page faults, short and dropped I/Os. All processor time is system time. `job options` are
the principal ones as understood; the disk of `disk_util` is the device. Of eMMC and SD there is a
key `mmc` beside these, of persistent memory `pmem`, as in the answer of `whatif`: its help says what is in it.";

const COLUMNS: &str = r#"Columns of the first table:
  IOPS              I/Os that ended, per second
  MiB/s             bytes that ended, per second
  p50, p99, p99.9   time from submission to end that this percentage of I/Os did not exceed
  CPU %             load of the machine's CPUs, mean over all of them
  wake/I/O          threads woken for each I/O
  I/O/cmd           I/Os for each command: above 1 where I/Os were merged, below it where they were
                    split or needed flushes, which are commands too
  ratio             IOPS relative to the first design

What the device had of it:
  cmds              commands given to it, flushes included
  busy %            share of the time in which it had a command; of eMMC and SD: in which there was a
                    transaction on the bus, or the card was busy
  gap               mean time in which that was not so, between two times in which it was

Where a request spends its life, mean and share of the whole; syncs are not among them:
  life              all of what follows
  for a tag         until a tag was free for it: the job sleeps in its call (of an I/O)
  staged            in the elevator or a software queue, where others can join it
  held              taken out of there, until the driver accepted it
  in driver         until the driver was done with it
  for a flush       before or behind its data, where it asks for durability
  untaken           until the job took the result (of an I/O)

What holds it back, where a run of a hardware queue stopped while there was work: how often for each
I/O, and the share of time that a hardware queue stood so, until the next request was issued for it:
  budget            the device had no room, asked before a request was taken out
  tag               there was no driver tag
  device            the driver refused: the device is full
  host              the driver refused: what the disks of the host share is used up
  resource          the driver refused: something else ran out
  leftovers         what was taken out before had to go first
  order             the elevator withheld what it had
  quiesced          runs were stopped from outside

What jobs spend their time on, all of them together, where they have one I/O at a time, think or pause:
  all               the lives of all instances of jobs
  thinking          computing between I/Os: thinktime_spin
  in calls          computing to have I/Os done: submitting, copying from the page cache, polling
  for a CPU         ready, and another thread or an interrupt had the CPU; spinning for a lock
  for I/O           asleep until I/Os end or a tag is free, and until it runs again
  pausing           asleep because it wants to be: thinktime, rate

On eMMC and SD, what the bus carried: how often each command was sent, and
  CMD13/QSR         questions which tasks of the card's command queue are ready (CMD13 with bit 15): when
                    one is, so that a real engine, which asks at its own period, asks more often
  CMD13/write       questions after the card's state (CMD13 without it) for each command that writes
  lost writes       writes that were reported as done, and of which the card then said that they failed:
                    nobody asks after a write where the controller or DAT0 tells of the end of busy;
                    with a cache the next flush fails; what cqe may be writing again is not counted

What the host did; a transaction is on the bus from its start to its interrupt, so that a busy card is
part of it where the host waits for that, and else is not:
  bus %             share of the time with a transaction on the bus
  bus gap           mean time without one, between two
  map in, out       time of CPUs that made memory ready for transfers, as a share of the time: with a
                    transaction on the bus, and without
  unmap in, out     the same of making it ready for the CPUs again
  awaited           transactions, for each I/O, that an idle bus had to wait for because a thread of
                    the driver's was woken to start them; wake/I/O counts all threads
  ctx/I/O           changes from one thread to another, for each I/O

On persistent memory, what a processor spends an I/O on, as shares of its time:
  each I/O          that time, of all processors together
  path              before and after: system calls, bios, threads
  copy              copying data, and waiting for channels to the memory
  readers           knowing who reads what: published blocks and looks at them, versions
  locks             taking lanes and map entries, and waiting for others that have them
  log, map          log entries stored and written back; map entries loaded, stored and written back
  fences            waiting until what was stored is durable
  channels          use of the channels to the memory, a share of the time
and counted for each I/O: fences, lines written back (data apart), lines of shared words fetched from
other processors, looks through the words of all readers, time waited for locks.

With --output-format=json the answer is one object, null standing for a ratio to nothing:

  {"job", "device", "seed", "designs": [...], "why"}

and each design, in the order asked for:

  {"name", "iops", "bytes_per_s", "lat_ns": {"mean", "p50", "p99", "p99.9"}, "cpu_percent",
   "commands", "ios_per_command", "device_busy_percent", "mean_idle_gap_ns", "wakeups_per_io",
   "ratio", "life_ns": {"for_tag", "staged", "held", "in_driver", "for_flush", "untaken"},
   "holds": {REASON: {"count", "per_io", "percent"}},
   "jobs_ns": {"alive", "thinking", "in_calls", "ready", "waiting", "pausing"},
    "mmc": {"commands": {"CMD13": COUNT, ...}, "queue_status", "status_per_write", "lost_writes", "doubtful_writes",
      "bus_busy_percent", "mean_bus_gap_ns", "unnoticed_ns", "memory_percent",
      "map_percent": {"inside", "outside"},
     "unmap_percent": {"inside", "outside"},
     "wakeups_per_io", "awaited_wakeups_per_io", "switches_per_io",
     "transfer_ns": {"work", "idle", "absent"}} of eMMC and SD: the last from one transfer to the
     next, bus or card at work, both idle though there is a request, no request; memory_percent the
     share of the time in which the card programmed pages or read ahead, seen on the bus or not;
     unnoticed_ns the time in which a transaction was over and nobody knew, as a fault lost its
     interrupt,
   "pmem": {"io_ns", "percent": {"path", "copy", "tracking", "locks", "log", "map", "fences"},
     "fences", "write_backs", "scans", "transfers", "lock_wait_ns", "channels_percent"} of persistent
     memory, for each I/O,
   "faults": [{"name", "matched", "fired"}, ...] with --faults,
   "verified": {"reads", "read_sectors", "writes", "flushes", "cached_sectors",
     "power_cuts": [{"at_ns", "lost_by_right", "lost_by_wrong"}, ...],
     "violation_count", "violations": [...]} with --verify}"#;

/// Reads the command line.
pub(crate) fn parse(argv: impl Iterator<Item = OsString>) -> Result<Cli, Failure> {
    let text = |arg: OsString| {
        arg.into_string()
            .map_err(|arg| Failure::Input(format!("not UTF-8: {}", arg.to_string_lossy())))
    };
    let argv = argv.map(text).collect::<Result<Vec<_>, _>>()?;
    Ok(Cli::try_parse_from(job_options_last(argv))?)
}

/// The command line with the options of a job moved behind a `--`.
///
/// A job given by options has a `--name`. Where there is one, every long option that is not the
/// command's own belongs to the job, and so does every word after the first of them.
fn job_options_last(argv: Vec<String>) -> Vec<String> {
    let is_name = |arg: &String| arg == "--name" || arg.starts_with("--name=");
    if argv.iter().any(|arg| arg == "--") || !argv.iter().any(is_name) {
        return argv;
    }
    let mut cli = Cli::command();
    cli.build();
    let command = argv.get(1).and_then(|name| cli.find_subcommand(name));
    let Some(command) = command.filter(|c| c.get_arguments().any(|a| a.get_id() == JOB_OPTIONS))
    else {
        return argv;
    };
    let mut ours = Vec::new();
    let mut job = Vec::new();
    let mut args = argv.into_iter();
    ours.extend(args.by_ref().take(2));
    while let Some(arg) = args.next() {
        let long = arg.strip_prefix("--").map(|rest| rest.split_once('=').unwrap_or((rest, "")).0);
        let own = command.get_arguments().find(|own| long.is_some() && own.get_long() == long);
        if let Some(own) = own {
            let value_follows = own.get_action().takes_values() && !arg.contains('=');
            ours.push(arg);
            ours.extend(args.by_ref().take(usize::from(value_follows)));
        } else if long.is_some() || !(job.is_empty() || arg == "-h") {
            job.push(arg);
        } else {
            ours.push(arg);
        }
    }
    ours.push("--".to_owned());
    ours.extend(job);
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> String {
        job_options_last(line.split(' ').map(str::to_owned).collect()).join(" ")
    }

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_of_a_job_go_behind_those_of_the_command() {
        assert_eq!(
            split("blockyard run --direct=1 --name=x --device srp --rw=read --seed=3 --name=y"),
            "blockyard run --device srp --seed=3 -- --direct=1 --name=x --rw=read --name=y"
        );
        assert_eq!(
            split("blockyard whatif --name=x --rw read --design a,b --output-format json"),
            "blockyard whatif --design a,b --output-format json -- --name=x --rw read"
        );
    }

    #[test]
    fn a_command_line_without_job_options_is_left_alone() {
        for line in [
            "blockyard run job.fio --devise srp",
            "blockyard run --device srp -- --name=x --seed=3",
            "blockyard show --name=x",
            "blockyard --name=x",
        ] {
            assert_eq!(split(line), line);
        }
    }

    #[test]
    fn a_job_is_a_file_or_options_and_never_both_or_neither() {
        let parse = |line: &str| {
            parse(line.split(' ').map(OsString::from)).map(|cli| match cli.command {
                Command::Run(run) => (run.job.file, run.job.options),
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(parse("blockyard run -").unwrap(), (Some("-".to_owned()), vec![]));
        let options = vec!["--name=x".to_owned(), "--rw=read".to_owned()];
        assert_eq!(parse("blockyard run --name=x --rw=read").unwrap(), (None, options));
        assert!(matches!(parse("blockyard run"), Err(Failure::Usage(_))));
        assert!(matches!(parse("blockyard run a.fio --name=x"), Err(Failure::Usage(_))));
    }
}
