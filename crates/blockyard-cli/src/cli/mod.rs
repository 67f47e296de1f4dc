//! The commands and their options.

mod btt;
mod ctl;
mod designs;
mod fault;
mod job;
mod serve;
mod setting;
mod size;
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
pub(crate) use usage::one_line;

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
3 repairable, 4 broken.";

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
    /// Look at a running server and command it, through its control socket
    Ctl(Ctl),
    /// Make, check, repair, copy and convert block translation tables
    Btt(Btt),
    /// List the built-in devices, processors and designs, and the options of jobs
    List(List),
    /// Print the file of a device or design
    Show(Show),
    /// Print the JSON schema of a command's output
    Schema(Schema),
    /// Print completions for a shell
    Completions(Completions),
    /// Print the manual page of blockyard, or of one of its commands
    Man(Man),
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
#[command(after_help = REPLAY_HELP)]
pub(crate) struct Replay {
    /// The trace to replay; its format is detected
    #[arg(value_name = "TRACE")]
    pub(crate) recorded: String,

    /// A device: its name or the path of its file; by default `null`, which takes no time
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,

    // One design, mq-none without any, is summarised as `run` does; several are compared as `whatif` does.
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

/// What a run under one design writes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Outputs {
    /// Write a trace in blktrace's format, for blkparse and blktrace's btt
    ///
    /// The file of CPU N is PREFIX.blktrace.N.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) blktrace: Option<PathBuf>,

    /// How to print the answer; several formats are separated by commas
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
    after_help = format!("{RUN_EXAMPLES}\n\n{JOB_HELP}"),
    after_long_help = format!("{RUN_EXAMPLES}\n\n{JOB_HELP}\n\n{FAULTS}\n\n{VERIFY}\n\n{LOGS}\n\n{FIO_LAYOUT}")
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

/// What an answer about several designs has to say.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Demands {
    /// A figure that a design must reach: reader.read.p99<20ms, log.write.bw>=20MiB/s
    ///
    /// [JOB.][DIRECTION.]FIGURE, a bound and a value. DIRECTION is sync, read, write or trim; FIGURE is iops, bw, mean, max or a
    /// percentile of latency (p99.9). Without a job or a direction, every job and direction must reach it, for latencies syncs too.
    /// The option can be repeated.
    #[arg(long = "goal", value_name = "GOAL", value_parser = goal)]
    pub(crate) goals: Vec<Goal>,

    /// Exit with 1 if no design meets all goals, with each of --seeds and in each of --readings
    #[arg(long, requires = "goals")]
    pub(crate) check: bool,

    /// Show where requests spend their time, what holds them, and what the device and its host did
    #[arg(long)]
    pub(crate) details: bool,

    /// Run each design with N seeds, and say whether the designs differ by more than chance, in IOPS and in p99
    ///
    /// Each further seed draws other offsets, for jobs with randrepeat=1 or a randseed too. Without this option, 8 seeds if there are
    /// several designs that issue at most 200,000 I/Os together, otherwise 1. With 1, no chance is judged.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,

    /// Vary what the device's profile assumes, N times, and say how often the ranking holds
    ///
    /// Without this option, 8 times if the designs issue at most 200,000 I/Os together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) readings: Option<u32>,
}

#[derive(Debug, Args)]
#[command(
    override_usage = WHATIF_USAGE,
    after_help = format!("{WHATIF_EXAMPLES}\n\n{JOB_HELP}"),
    after_long_help = format!("{WHATIF_EXAMPLES}\n\n{JOB_HELP}\n\n{FAULTS}\n\n{VERIFY}\n\n{COLUMNS}")
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

    /// How to print the answer
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

    /// How to print the comparison
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

    /// How to print the answer
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
    /// What to list; devices, processors and designs if omitted
    #[arg(value_name = "WHAT", value_enum)]
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
    /// Options of job files, and the effect of each
    Options,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A name that `list` prints, or the path of your own file, which is printed with all that its bases give it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
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

const RUN_EXAMPLES: &str = "\
Examples:
  blockyard run job.fio --device nvme-tlc --design mq-deadline
  blockyard run job.fio --section=log --device sd-a1 --output-format=json
  blockyard run --device hdd-7200 --name=copy --filename=/dev/sda --direct=1 \\
      --rw=read --bs=1m --size=1g";

const JOB_HELP: &str = "\
A job given as options needs a --name; every option that is not listed here then
belongs to the job. As for fio, one dash is as good as two, and a value may
follow a blank; the value of a flag follows a `=`. Options without a --name come
before those of a job file, which may override them:

  --device=srp --name=x --rw=read --bs=4k -direct=1 --size 1g -iodepth 32
  --device=srp job.fio --bs=8k

fio's switches --eta, --eta-interval, --eta-newline, --status-interval,
--alloc-size, --max-jobs, --warnings-fatal and --aux-path change no answer, and
are accepted.

Without --direct=1, a job that only reads, with libaio or a synchronous engine
(fio's default), reads through a page cache with Linux's read-ahead; other jobs
without --direct=1 are refused, as buffered writes come later.

`blockyard list` lists the devices, processors and designs; `blockyard show
NAME` prints the file of one of them.";

const FAULTS: &str = r#"A fault file has a table for each rule; for each request, the first rule that
fires decides:

  [[rule]]
  name = "bad-block"       # its name in the answer; else its number
  op = ["read"]            # or op = "read"; without it, all ops: read, write,
                           # flush (or fsync), discard (or trim), write-zeroes
  disk = 0                 # without it, all disks
  sectors = "1000..1008"   # of 512 bytes, 1008 excluded; without it, all
  error = "medium"         # or io, timeout, no-space, not-supported, gone
  at-once = true           # the error comes before the device is asked

  [[rule]]
  name = "hiccup"
  one-in = 1000            # at random, on average one of so many requests
  # or every = N           # each Nth request that the rule matches, exactly
  # or nth = N             # the Nth alone
  # or first = M, last = N # the Mth to the Nth
  from = "30s"             # after the run or the server began; else at once
  for = "5s"               # then no more; without it, to the end
  delay = "50ms"

Instead of `error` or `delay` a rule can have one of: busy = "device" (or host,
resource), requeue = true, lost = true, timed-out = true, torn-write = SECTORS,
lost-write = true, misdirected-write = SECTOR. An error ends the run unless the
job has continue_on_error. The answer counts how often each rule matched a
request, and how often it fired. If a request has not completed after the
design's `timeout` (30 s by default), the driver decides: it keeps waiting if
the completion was `lost`, and gives up if the request `timed-out`.

On eMMC and SD, faults can also be injected below the level of requests, on
average once in N commands, blocks or pages:

  [card]
  read-crc-one-in = 1000   # also command-lost, response-crc, no-data,
                           # write-crc, program
  [host]
  drift-one-in = 500       # also interrupt-lost, not-now, tuning-fails
  removed-at = "5s"        # the card is pulled out"#;

const VERIFY: &str = "\
With --verify every write leaves a unique mark where it lands. Each read, and at
the end the whole device, is checked against a sequential model of the bios that
says which marks are allowed. --power-cut checks what a loss of power would
leave: each logical block that was in flight or in a volatile cache may have
survived or not, independently of the others. The run continues as if the power
had stayed on; --power-cut may be repeated. Writes that were acknowledged but
not flushed may be lost. If anything is wrong, the exit code is 1. None of these
options changes a figure of the answer.";

const LOGS: &str = "\
Logs have fio's names and format. Each line has: time (ms), value, direction (0
read, 1 write, 2 trim), bytes, offset (with log_offset), priority. Latencies are
in nanoseconds, bandwidth is in kB/s for each I/O or in KiB/s with log_avg_msec,
and IOPS are I/Os per second. The job options log_avg_msec, log_max_value,
log_offset, log_prio, per_job_logs, bwavgtime and iopsavgtime apply. Existing
logs are overwritten.";

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

const COLUMNS: &str = r#"The first table, for each job (or group that reports as one) and direction:
  I/Os             I/Os that ended
  IOPS, MiB/s      I/Os and bytes that ended, per second of the job's run time
  mean             mean latency, from submission to end
  p50, p99, p99.9  latency that 50 %, 99 % or 99.9 % of the I/Os did not exceed
  max              the longest latency
  ratio            the job's IOPS relative to the first design
  n/a              the design cannot run on the device, for this reason
I/Os, mean and p99.9 are shown if the terminal has room. A job that syncs has a
row `sync` first: its I/Os are the syncs, and its latencies are what each
commit waits for. A difference of IOPS within 2 % counts as none. Sentences name
p99 if 1,000 I/Os or more and an interval of 95 % (in parentheses after a p99)
show that it differs by more than 10 %.

With --details, all jobs together:
  IOPS             I/Os that ended, per second
  MiB/s            bytes that ended, per second
  p50, p99, p99.9  latency, from submission to end, that 50 %, 99 % or 99.9 % of
                   I/Os did not exceed
  CPU %            mean load of all CPUs of the machine
  wakes/I/O        threads woken for each I/O
  I/Os/cmd         I/Os for each command: above 1 where I/Os were merged, below
                   1 where they were split or needed flushes, which are commands
                   too
  ratio            IOPS relative to the first design

Device utilisation:
  commands  commands that the device completed, flushes included
  busy %    share of the time with a command at the device; for eMMC and SD,
            with a transaction on the bus or a busy card
  mean gap  mean length of the idle periods between busy ones

Where requests spend their time, as a mean and a share of the total; syncs are
not included:
  total                  the sum of the stages below
  waiting for a tag      no tag is free, and the job sleeps in its call (per
                         I/O)
  queued                 the request is in the scheduler or a software queue,
                         where I/Os can still be merged into it
  dequeued, not issued   the request has left the scheduler, and the driver has
                         not accepted it yet
  in the driver          the driver has accepted the request and not completed
                         it yet
  waiting for flushes    the request waits for the flushes before and after its
                         data, which durable writes need
  completed, not reaped  the job has not taken the result yet (per I/O)

What holds hardware queues, that is, the reasons why a run of a hardware queue
stops with work left, or why a request that is issued directly is staged
instead: how often per I/O, and the share of the time for which a
hardware queue is held, until its next request is issued:
  budget     the device has no room; this is known before a request is dequeued
  tag        no driver tag is free
  device     the driver refuses a request: the device is full
  host       the driver refuses a request: a resource that the disks of the host
             share is used up
  resource   the driver refuses a request: another resource is used up
  leftovers  an earlier request for which the device had no room goes first
  order      the scheduler holds its requests back
  quiesced   dispatch is quiesced

Locks that CPUs share: the queue's single lock, the scheduler's lock, those of
dispatch lists, and the words of tag maps. The last two are shown where the
device's profile has line-transfer:
  taken per I/O  acquisitions for each I/O
  moved          share of them for which cache lines came from another CPU
  held           share of the time for which the lock was held; of several locks
                 of the kind, of the busiest one
  average hold   time for which the lock was held, for each acquisition
  longest hold   longest time for which it was held by one acquisition
  average wait   time for which a CPU waited, for each acquisition
  longest wait   longest time for which a CPU waited; it waits once for all
                 acquisitions of a piece of work
Below a design, the same for each kind of work that took the lock, if the lock
was held for any time:
  submit    bios enter: a merge is tried and, if it fails, a request is made;
            the scheduler's lock is held only to try the merge
  insert    requests enter the scheduler, a list of them by one acquisition;
            under the queue's single lock this takes no time: submit has it
  dispatch  requests leave the scheduler, and the driver accepts or refuses them
  complete  requests end
A wait counts for the work that the CPU waited to do first.

What jobs spend their time on, all jobs together; shown if jobs have one I/O at
a time, think or pause:
  total              the sum of the run times of all instances of jobs
  thinking           computing between I/Os: thinktime_spin
  in calls           computing in calls: submitting, copying from the page
                     cache, polling
  waiting for a CPU  ready, while the CPU runs another thread or an interrupt;
                     spinning for a lock
  waiting for I/O    asleep until I/Os end or a tag is free, and until the job
                     runs again
  pausing            asleep by choice: thinktime, rate

A drive:
  commands per doorbell  above 1 where a processor tells the drive of several
                         commands at once, or need not tell it at all
  controller, link       share of the time in which they were in use; of a link
                         with two directions, the busier one
  medium                 the same, as a mean over the parts that work side by
                         side. The next table has the counters of the medium:
                         "Counters of media" in docs/DEVICES.md says what
                         each counts, and what a high value tells

Commands on the bus, for eMMC and SD: the number of times that each command was
sent, and
  CMD13/QSR    CMD13s with bit 15, which ask which tasks of the card's command
               queue are ready. They are sent when a task is ready; a real
               engine asks periodically, and so more often
  CMD13/write  CMD13s without bit 15, which ask for the card's state, per
               command that writes
  lost writes  writes that were completed before the card reported their
               failure, because only the controller or DAT0 signalled the end of
               busy. With a cache, the next flush fails. Writes that a command
               queue may repeat are not counted
  in doubt     writes that were completed, and for which the card's answer was
               lost

The host. A transaction is on the bus from its start to its interrupt; that
includes the time in which the card is busy if the host waits for it:
  bus %              share of the time with a transaction on the bus
  bus gap            mean time between two transactions
  map, unmap         CPU time spent mapping memory for transfers and unmapping
                     it, as a share of the time, while the bus is busy and while
                     it is idle
  awaited wakes/I/O  transactions, for each I/O, that an idle bus waits for
                     because a thread of the driver has to wake up first;
                     wakes/I/O counts all threads
  unnoticed          time in which a transaction was over, but a fault had lost
                     its interrupt

Interrupts, and the threads that are woken, for each I/O:
  driver's thread    the thread that starts requests
  driver's worker    the worker that completes requests after their interrupt
  jobs               the threads of the jobs

CPU time per I/O, for persistent memory:
  per I/O   CPU time of all CPUs together; the columns up to fences are shares
            of it
  path      work before and after the memory access: system calls, bios,
            threads
  copy      copying data, and waiting for memory channels
  readers   keeping track of readers: published blocks, scans, versions
  locks     taking lanes and map entries, and waiting for them
  log, map  storing and writing back log entries; loading, storing and writing
            back map entries
  fences    waiting until stores are durable
  channels  utilisation of the memory channels, as a share of the time
Counts per I/O: fences, lines written back (data excluded), lines of shared
words fetched from other CPUs, scans of the words of all readers, time spent
waiting for locks.

With --output-format=json the answer also has figures of each job and direction,
histograms and time series. `blockyard schema whatif` prints the JSON schema."#;

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
            let texts = [command.get_after_help(), command.get_after_long_help()];
            for line in texts.into_iter().flatten().map(ToString::to_string) {
                let long = line.lines().find(|line| line.chars().count() > 80);
                assert_eq!(long, None, "{}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
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
        assert!(matches!(parse("blockyard run"), Err(Failure::Input(_))));
        assert!(matches!(parse("blockyard run a.fio --name=x"), Err(Failure::Input(_))));
    }

    #[test]
    fn a_usage_error_is_one_line_that_names_the_help() {
        let error = |line: &str| match parse(line.split(' ').map(OsString::from)) {
            Err(Failure::Input(words)) => words,
            other => panic!("{line}: {other:?}"),
        };
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
                "invalid value 'c' for '--tls <WHETHER>' [possible values: require, offer]; \
                 see `blockyard serve --help`",
            ),
            ("blockyard frob", "unrecognized subcommand 'frob'; see `blockyard --help`"),
        ] {
            assert_eq!(error(line), words);
        }
    }
}
