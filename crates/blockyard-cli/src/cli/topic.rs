//! The topics of `blockyard help TOPIC`: texts that belong to several commands, or are too long for
//! the help of one.
//!
//! `clap` prints the help of a topic as it does that of a command, so each topic is a command that
//! the lists leave out.

use clap::Subcommand;

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Topic {
    /// The columns of answers
    #[command(hide = true, long_about = COLUMNS, help_template = "{about}")]
    Columns,
    /// Rules of faults
    #[command(hide = true, long_about = FAULTS, help_template = "{about}")]
    Faults,
    /// Jobs on the command line
    #[command(hide = true, long_about = JOBS, help_template = "{about}")]
    Jobs,
    /// Checks of data
    #[command(hide = true, long_about = VERIFY, help_template = "{about}")]
    Verify,
}

impl Topic {
    /// Returns the text that `help` prints.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Columns => COLUMNS,
            Self::Faults => FAULTS,
            Self::Jobs => JOBS,
            Self::Verify => VERIFY,
        }
    }
}

pub(crate) const JOBS: &str = "\
A job given as options needs a --name; every option that is not listed here then
belongs to the job. As for fio, one dash is as good as two, and a value may
follow a blank; the value of a flag follows a `=`. Options without a --name come
before those of a job file, which may override them:

  --device=srp --name=x --rw=read --bs=4k -direct=1 --size 1g -iodepth 32
  --device=srp job.fio --bs=8k

fio's switches --eta, --eta-interval, --eta-newline, --status-interval,
--alloc-size, --max-jobs, --warnings-fatal and --aux-path change no answer, and
are accepted.

Without --direct=1, a job with libaio or a synchronous engine (fio's default)
reads and writes through a page cache with Linux's read-ahead and writeback:
above 10 % of the memory (--memory) dirty pages are written back, and below 20 %
a writer is slowed to the rate of its disk.

`blockyard list` lists the devices, processors and designs; `blockyard show
NAME` prints the file of one of them.";

pub(crate) const FAULTS: &str = r#"A fault file has a table for each rule; for each request, the first rule that
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
  from = "30s"             # after the run or the server began; else from then
  for = "5s"               # then no more; without it, to the end
  delay = "50ms"

Instead of `error` or `delay` a rule can have one of: busy = "device" (or host,
resource), requeue = true, lost = true, timed-out = true, torn-write = SECTORS,
lost-write = true, misdirected-write = SECTOR. An error ends the run unless the
job has continue_on_error. The answer counts how often each rule matched a
request, and how often it fired. If a request has not completed after the
design's `timeout` (30 s by default), the driver decides: it keeps waiting if
the completion was `lost`, and aborts the request if it `timed-out`.

On eMMC and SD, faults can also be injected below the level of requests, on
average once in N commands, blocks or pages:

  [card]
  read-crc-one-in = 1000   # also command-lost, response-crc, no-data,
                           # write-crc, program
  [host]
  drift-one-in = 500       # also interrupt-lost, not-now, tuning-fails
  removed-at = "5s"        # the card is pulled out"#;

pub(crate) const VERIFY: &str = "\
With --verify every write leaves a unique mark at its position. Each read, and
at the end the whole device, is checked against a sequential model of the bios
that says which marks are allowed. --power-cut checks what a loss of power would
leave: each logical block that was in flight or in a volatile cache may have
survived or not, independently of the others. The run continues as if the power
had stayed on; --power-cut may be repeated. Writes that were acknowledged but
not flushed may be lost. If anything is wrong, the exit code is 1. None of these
options changes a figure of the answer.";

pub(crate) const COLUMNS: &str = r#"The columns of `whatif`, `compare` and `replay`.

The first table, for each job (or group that reports as one) and direction:
  I/Os             I/Os that completed
  IOPS, MiB/s      completed I/Os and bytes, per second of the job's run time
  mean             mean latency, from submission to completion
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
  IOPS             I/Os that completed, per second
  MiB/s            bytes that completed, per second
  p50, p99, p99.9  latency, from submission to completion, that 50 %, 99 % or
                   99.9 % of I/Os did not exceed
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

Holds of hardware queues: the reasons why a run of a hardware queue stops with
work left, or why a request that is issued directly is staged instead. Each has
its count per I/O, and the share of the time for which a hardware queue is held,
until its next request is issued:
  budget     the device has no room; this is known before a request is dequeued
  tag        no driver tag is free
  device     the driver refuses a request: the device is full
  host       the driver refuses a request: a resource that the disks of the host
             share is exhausted
  resource   the driver refuses a request: another resource is exhausted
  leftovers  an earlier request for which the device had no room goes first
  order      the scheduler holds its requests back
  quiesced   dispatch is quiesced

What BFQ did; in a slot one process has the device:
  too idle        share of the slots that ended because the process let the
                  device wait for too long
  timeout         because their time was over
  budget          because their budget was used up
  empty           because the process had no more requests
  preempted       because another process went first
  average budget  bytes that a process may get in a slot, and the share of them
  budget used     that was used; a slow process is charged for its time
  waits           how often the device was held for the process's next request
  met, near       shares of them in which it came in time, and in which it also
                  was near the end of the last one: what a wait buys
  held            share of the time for which the device was held
  withheld        share of the time in which it had nothing to do meanwhile,
                  and requests of others waited: what waiting costs
  raised          how often a weight was raised, for a process that starts or
                  a soft real-time one
  time raised     share of the time in which such a process had requests
  injected        requests of others that filled waits
  merged          queues of cooperating processes that became one
What control groups got: the bytes of each group's requests. (none) are the
processes of no group; what the kernel writes back is among them.

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

Time of jobs, all jobs together; shown if jobs have one I/O at a time, think or
pause:
  total              the sum of the run times of all instances of jobs
  thinking           computing between I/Os: thinktime_spin
  in calls           computing in calls: submitting, copying from the page
                     cache, polling
  waiting for a CPU  ready, while the CPU runs another thread or an interrupt;
                     spinning for a lock
  waiting for I/O    asleep until I/Os end or a tag is free, and until the job
                     runs again
  pausing            asleep by choice: thinktime, rate

Writes through the page cache and syncs:
  mean           of a write or sync; the shares of its owners add up to it
  in memory      copying, submitting writeback, or ready without a CPU
  page read      waiting for a page of which a part is written
  throttled      pausing, because pages became dirty too fast
  writeback      waiting until pages that are synced have been written
  flush          waiting for the flush of the disk
  not reaped     done, but the job has not taken the result
  bytes/byte     bytes that reached the device, for each byte that jobs wrote;
                 writes, flushes and page reads are for each write of the jobs
  left dirty     dirty pages at the end of the run

A drive:
  commands per doorbell  above 1 where a processor tells the drive of several
                         commands in one write, or need not tell it
  controller, link       share of the time in which they were in use; of a link
                         with two directions, the busier one
  medium                 the same, as a mean over the parts that work side by
                         side. The next table has the counters of the medium:
                         docs/devices explains each of them

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
  between CPUs       interrupts by which a CPU wakes a thread on another, idle
                     one; their time is a part of run-delay
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
